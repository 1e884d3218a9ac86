/* SPDX-License-Identifier: Apache-2.0 */
#include "sentry/syscalls/fs_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/stat.h>

#include "sentry/abi/stat.h"
#include "sentry/kernel/cred.h"
#include "sentry/kernel/task.h"
#include "sentry/kernel/uaccess.h"
#include "sentry/syscalls/pathin.h"
#include "sentry/vfs/fdtable.h"
#include "sentry/vfs/vfs.h"

/* One call gives at most this many bytes, however large the guest's buffer is. */
#define DIRENT_BUF (64u * 1024)

struct dirent_writer {
	struct dir_emit emit;
	uint8_t *buf;
	size_t cap, len;
	bool too_small; /* not even the first one fits */
	bool old;       /* getdents(2): struct linux_dirent */
};

static bool emit_dirent(struct dir_emit *e, const char *name, size_t len, uint64_t ino, unsigned dtype,
			uint64_t next_pos)
{
	struct dirent_writer *w = container_of(e, struct dirent_writer, emit);
	size_t head = w->old ? offsetof(struct linux_dirent, d_name) : offsetof(struct linux_dirent64, d_name);
	size_t reclen = ROUND_UP(head + len + (w->old ? 2 : 1), sizeof(uint64_t));
	uint8_t *at = w->buf + w->len;

	if (len > NAME_MAX_LINUX || reclen > w->cap - w->len) {
		w->too_small |= !w->len;
		return false;
	}
	memset(at, 0, reclen);
	if (w->old) {
		struct linux_dirent *d = (struct linux_dirent *)(void *)at;

		*d = (struct linux_dirent){ .d_ino = ino, .d_off = (int64_t)next_pos, .d_reclen = (uint16_t)reclen };
		at[reclen - 1] = (uint8_t)dtype;
	} else {
		struct linux_dirent64 *d = (struct linux_dirent64 *)(void *)at;

		*d = (struct linux_dirent64){
			.d_ino = ino,
			.d_off = (int64_t)next_pos,
			.d_reclen = (uint16_t)reclen,
			.d_type = (uint8_t)dtype,
		};
	}
	memcpy(at + head, name, len);
	w->len += reclen;
	return true;
}

static int iterate(struct file *f, struct dirent_writer *w)
{
	int err;

	if (!S_ISDIR(f->inode->mode) || !f->ops || !f->ops->iterate)
		return -ENOTDIR;
	if (f->dentry && f->dentry->dead)
		return -ENOENT;
	err = f->ops->iterate(f, &w->emit);
	/* What was emitted before an error is given; the error comes again with the next call. */
	if (w->len)
		return 0;
	return err ? err : w->too_small ? -EINVAL : 0;
}

static int64_t do_getdents(struct task *t, const struct sysargs *a, bool old)
{
	static _Alignas(8) uint8_t buf[DIRENT_BUF];
	struct dirent_writer w = {
		.emit.emit = emit_dirent,
		.buf = buf,
		.cap = MIN((size_t)ARG_U32(a, 2), sizeof(buf)),
		.old = old,
	};
	struct file *f;
	uint64_t pos;
	int err = fd_get(t, ARG_INT(a, 0), &f);

	if (err)
		return err;
	pos = f->pos;
	err = iterate(f, &w);
	if (!err && w.len)
		err = copy_out(t, ARG_PTR(a, 1), buf, w.len);
	if (err)
		f->pos = pos;
	file_put(f);
	return err ? err : (int64_t)w.len;
}

int64_t sys_getdents(struct task *t, const struct sysargs *a)
{
	return do_getdents(t, a, true);
}

int64_t sys_getdents64(struct task *t, const struct sysargs *a)
{
	return do_getdents(t, a, false);
}

/* Consumes @p. */
static int64_t set_cwd(struct task *t, struct path p)
{
	int err = S_ISDIR(p.dentry->inode->mode) ? vfs_permission(t->cred, p.dentry->inode, MAY_EXEC) : -ENOTDIR;

	if (err) {
		path_put(&p);
		return err;
	}
	path_put(&t->fs->cwd);
	t->fs->cwd = p;
	return 0;
}

int64_t sys_chdir(struct task *t, const struct sysargs *a)
{
	struct path p;
	int err = path_walk_user(t, AT_FDCWD, ARG_PTR(a, 0), 0, true, &p);

	return err ? err : set_cwd(t, p);
}

int64_t sys_fchdir(struct task *t, const struct sysargs *a)
{
	struct path p = { 0 };
	struct file *f;
	int err = fd_get_opath(t, ARG_INT(a, 0), &f);

	if (err)
		return err;
	err = S_ISDIR(f->inode->mode) && f->dentry ? file_place(f, &p.dentry, &p.mnt) : -ENOTDIR;
	file_put(f);
	return err ? err : set_cwd(t, p);
}

int64_t sys_chroot(struct task *t, const struct sysargs *a)
{
	struct path p;
	int err = path_walk_user(t, AT_FDCWD, ARG_PTR(a, 0), 0, true, &p);

	if (err)
		return err;
	if (!S_ISDIR(p.dentry->inode->mode))
		err = -ENOTDIR;
	else
		err = vfs_permission(t->cred, p.dentry->inode, MAY_EXEC);
	if (!err && !cred_has_cap(t->cred, CAP_SYS_CHROOT))
		err = -EPERM;
	if (err) {
		path_put(&p);
		return err;
	}
	path_put(&t->fs->root);
	t->fs->root = p;
	return 0;
}

int64_t sys_getcwd(struct task *t, const struct sysargs *a)
{
	struct path *cwd = &t->fs->cwd;
	char buf[PATH_MAX_LINUX];
	int len;

	if (!dentry_is_root(cwd->dentry) && !cwd->dentry->hashed)
		return -ENOENT;
	len = path_name(cwd, &t->fs->root, buf, sizeof(buf));
	if (len < 0)
		return len;
	if ((uint64_t)len + 1 > ARG_U64(a, 1))
		return -ERANGE;
	return copy_out(t, ARG_PTR(a, 0), buf, (size_t)len + 1) ? -EFAULT : len + 1;
}

int64_t sys_umask(struct task *t, const struct sysargs *a)
{
	uint32_t old = t->fs->umask;

	t->fs->umask = ARG_U32(a, 0) & 0777;
	return old;
}
