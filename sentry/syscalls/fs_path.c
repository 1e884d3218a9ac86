/* SPDX-License-Identifier: Apache-2.0 */
#include "sentry/syscalls/fs_path.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>

#include "sentry/kernel/cred.h"
#include "sentry/kernel/task.h"
#include "sentry/syscalls/pathin.h"
#include "sentry/vfs/nameops.h"

static int64_t do_mkdir(struct task *t, int dirfd, uaddr_t path, uint32_t mode)
{
	struct pathbuf p;
	int err = path_in(t, path, &p);

	return err ? err : vfs_mkdir(t, dirfd, p.s, mode);
}

int64_t sys_mkdir(struct task *t, const struct sysargs *a)
{
	return do_mkdir(t, AT_FDCWD, ARG_PTR(a, 0), ARG_U32(a, 1));
}

int64_t sys_mkdirat(struct task *t, const struct sysargs *a)
{
	return do_mkdir(t, ARG_INT(a, 0), ARG_PTR(a, 1), ARG_U32(a, 2));
}

static int64_t do_mknod(struct task *t, int dirfd, uaddr_t path, uint32_t mode, uint32_t rdev)
{
	struct pathbuf p;
	int err = path_in(t, path, &p);

	return err ? err : vfs_mknod(t, dirfd, p.s, mode, rdev, NULL);
}

int64_t sys_mknod(struct task *t, const struct sysargs *a)
{
	return do_mknod(t, AT_FDCWD, ARG_PTR(a, 0), ARG_U32(a, 1) & 0177777, ARG_U32(a, 2));
}

int64_t sys_mknodat(struct task *t, const struct sysargs *a)
{
	return do_mknod(t, ARG_INT(a, 0), ARG_PTR(a, 1), ARG_U32(a, 2) & 0177777, ARG_U32(a, 3));
}

static int64_t do_unlink(struct task *t, int dirfd, uaddr_t path, bool dir)
{
	struct pathbuf p;
	int err = path_in(t, path, &p);

	if (err)
		return err;
	return dir ? vfs_rmdir(t, dirfd, p.s) : vfs_unlink(t, dirfd, p.s);
}

int64_t sys_rmdir(struct task *t, const struct sysargs *a)
{
	return do_unlink(t, AT_FDCWD, ARG_PTR(a, 0), true);
}

int64_t sys_unlink(struct task *t, const struct sysargs *a)
{
	return do_unlink(t, AT_FDCWD, ARG_PTR(a, 0), false);
}

int64_t sys_unlinkat(struct task *t, const struct sysargs *a)
{
	int flags = ARG_INT(a, 2);

	if (flags & ~AT_REMOVEDIR)
		return -EINVAL;
	return do_unlink(t, ARG_INT(a, 0), ARG_PTR(a, 1), flags & AT_REMOVEDIR);
}

static int64_t do_rename(struct task *t, int odirfd, uaddr_t opath, int ndirfd, uaddr_t npath, unsigned flags)
{
	struct pathbuf o, n;
	int err = path_in(t, opath, &o);

	if (!err)
		err = path_in(t, npath, &n);
	return err ? err : vfs_rename(t, odirfd, o.s, ndirfd, n.s, flags);
}

int64_t sys_rename(struct task *t, const struct sysargs *a)
{
	return do_rename(t, AT_FDCWD, ARG_PTR(a, 0), AT_FDCWD, ARG_PTR(a, 1), 0);
}

int64_t sys_renameat(struct task *t, const struct sysargs *a)
{
	return do_rename(t, ARG_INT(a, 0), ARG_PTR(a, 1), ARG_INT(a, 2), ARG_PTR(a, 3), 0);
}

int64_t sys_renameat2(struct task *t, const struct sysargs *a)
{
	return do_rename(t, ARG_INT(a, 0), ARG_PTR(a, 1), ARG_INT(a, 2), ARG_PTR(a, 3), ARG_U32(a, 4));
}

static int64_t do_link(struct task *t, int odirfd, uaddr_t opath, int ndirfd, uaddr_t npath, int flags)
{
	struct pathbuf o, n;
	unsigned wf = 0;
	struct path old;
	int err;

	if (flags & ~(AT_SYMLINK_FOLLOW | AT_EMPTY_PATH))
		return -EINVAL;
	/* Linux: a descriptor that was passed in must not become a name without the right to search its path. */
	if ((flags & AT_EMPTY_PATH) && !cred_has_cap(t->cred, CAP_DAC_READ_SEARCH))
		return -ENOENT;
	if (flags & AT_EMPTY_PATH)
		wf |= WALK_EMPTY;
	if (flags & AT_SYMLINK_FOLLOW)
		wf |= WALK_FOLLOW;
	err = path_in(t, opath, &o);
	if (!err)
		err = path_in(t, npath, &n);
	if (!err)
		err = path_walk(t, odirfd, o.s, wf, &old);
	if (err)
		return err;
	err = vfs_link(t, &old, ndirfd, n.s);
	path_put(&old);
	return err;
}

int64_t sys_link(struct task *t, const struct sysargs *a)
{
	return do_link(t, AT_FDCWD, ARG_PTR(a, 0), AT_FDCWD, ARG_PTR(a, 1), 0);
}

int64_t sys_linkat(struct task *t, const struct sysargs *a)
{
	return do_link(t, ARG_INT(a, 0), ARG_PTR(a, 1), ARG_INT(a, 2), ARG_PTR(a, 3), ARG_INT(a, 4));
}

static int64_t do_symlink(struct task *t, uaddr_t target, int dirfd, uaddr_t path)
{
	struct pathbuf to, p;
	int err = path_in(t, target, &to);

	if (!err)
		err = path_in(t, path, &p);
	return err ? err : vfs_symlink(t, to.s, dirfd, p.s);
}

int64_t sys_symlink(struct task *t, const struct sysargs *a)
{
	return do_symlink(t, ARG_PTR(a, 0), AT_FDCWD, ARG_PTR(a, 1));
}

int64_t sys_symlinkat(struct task *t, const struct sysargs *a)
{
	return do_symlink(t, ARG_PTR(a, 0), ARG_INT(a, 1), ARG_PTR(a, 2));
}
