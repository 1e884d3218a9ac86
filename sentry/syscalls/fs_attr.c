/* SPDX-License-Identifier: Apache-2.0 */
#include "sentry/syscalls/fs_attr.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "sentry/kernel/task.h"
#include "sentry/kernel/uaccess.h"
#include "sentry/syscalls/pathin.h"
#include "sentry/vfs/fdtable.h"
#include "sentry/vfs/perm.h"
#include "sentry/vfs/vfs.h"

/* The place of an open file. @opath: descriptors of O_PATH too. */
static int fd_place(struct task *t, int fd, bool opath, struct path *p)
{
	struct file *f;
	int err = opath ? fd_get_opath(t, fd, &f) : fd_get(t, fd, &f);

	if (err)
		return err;
	err = file_place(f, &p->dentry, &p->mnt);
	file_put(f);
	return err;
}

/* Consumes the references of @p. */
static int64_t change(struct task *t, struct path p, struct iattr *attr)
{
	int err = vfs_setattr(t, &p, attr);

	path_put(&p);
	return err;
}

static int64_t do_chmod(struct task *t, int dirfd, uaddr_t upath, uint32_t mode, int flags)
{
	struct iattr attr = { .valid = ATTR_MODE | ATTR_CTIME, .mode = mode & 07777 };
	struct path p;
	int err;

	if (flags & ~(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH))
		return -EINVAL;
	err = path_walk_user(t, dirfd, upath, flags, true, &p);
	if (err)
		return err;
	/* The mode of a symlink means nothing, and Linux has no way to change it. */
	if (S_ISLNK(p.dentry->inode->mode)) {
		path_put(&p);
		return -EOPNOTSUPP;
	}
	return change(t, p, &attr);
}

int64_t sys_chmod(struct task *t, const struct sysargs *a)
{
	return do_chmod(t, AT_FDCWD, ARG_PTR(a, 0), ARG_U32(a, 1), 0);
}

int64_t sys_fchmodat(struct task *t, const struct sysargs *a)
{
	return do_chmod(t, ARG_INT(a, 0), ARG_PTR(a, 1), ARG_U32(a, 2), 0);
}

int64_t sys_fchmodat2(struct task *t, const struct sysargs *a)
{
	return do_chmod(t, ARG_INT(a, 0), ARG_PTR(a, 1), ARG_U32(a, 2), ARG_INT(a, 3));
}

int64_t sys_fchmod(struct task *t, const struct sysargs *a)
{
	struct iattr attr = { .valid = ATTR_MODE | ATTR_CTIME, .mode = ARG_U32(a, 1) & 07777 };
	struct path p;
	int err = fd_place(t, ARG_INT(a, 0), false, &p);

	return err ? err : change(t, p, &attr);
}

/* (uid_t)-1 leaves one as it is. */
static struct iattr owner_attr(uint32_t uid, uint32_t gid)
{
	struct iattr attr = { .valid = ATTR_CTIME, .uid = uid, .gid = gid };

	if (uid != UINT32_MAX)
		attr.valid |= ATTR_UID;
	if (gid != UINT32_MAX)
		attr.valid |= ATTR_GID;
	return attr;
}

static int64_t do_chown(struct task *t, int dirfd, uaddr_t upath, uint32_t uid, uint32_t gid, int flags)
{
	struct iattr attr = owner_attr(uid, gid);
	struct path p;
	int err;

	if (flags & ~(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH))
		return -EINVAL;
	err = path_walk_user(t, dirfd, upath, flags, true, &p);
	return err ? err : change(t, p, &attr);
}

int64_t sys_chown(struct task *t, const struct sysargs *a)
{
	return do_chown(t, AT_FDCWD, ARG_PTR(a, 0), ARG_U32(a, 1), ARG_U32(a, 2), 0);
}

int64_t sys_lchown(struct task *t, const struct sysargs *a)
{
	return do_chown(t, AT_FDCWD, ARG_PTR(a, 0), ARG_U32(a, 1), ARG_U32(a, 2), AT_SYMLINK_NOFOLLOW);
}

int64_t sys_fchownat(struct task *t, const struct sysargs *a)
{
	return do_chown(t, ARG_INT(a, 0), ARG_PTR(a, 1), ARG_U32(a, 2), ARG_U32(a, 3), ARG_INT(a, 4));
}

int64_t sys_fchown(struct task *t, const struct sysargs *a)
{
	struct iattr attr = owner_attr(ARG_U32(a, 1), ARG_U32(a, 2));
	struct path p;
	int err = fd_place(t, ARG_INT(a, 0), false, &p);

	return err ? err : change(t, p, &attr);
}

struct two_times {
	struct {
		int64_t sec, nsec;
	} at[2]; /* atime, mtime */
};

/* One of utimensat's times into @attr. Returns whether it is UTIME_NOW. */
static bool set_time(struct iattr *attr, uint32_t bit, struct ktime *dst, int64_t sec, int64_t nsec)
{
	if (nsec == UTIME_OMIT)
		return false;
	attr->valid |= bit;
	if (nsec == UTIME_NOW) {
		*dst = ktime_now();
		return true;
	}
	*dst = (struct ktime){ .sec = sec, .nsec = (uint32_t)nsec };
	return false;
}

static bool nsec_ok(int64_t nsec)
{
	return nsec == UTIME_NOW || nsec == UTIME_OMIT || (nsec >= 0 && nsec < (int64_t)NSEC_PER_SEC);
}

/* @tt NULL: both now. 0 with attr->valid 0: there is nothing to do. */
static int times_attr(const struct two_times *tt, struct iattr *attr)
{
	bool a_now, m_now;

	*attr = (struct iattr){ .valid = 0 };
	if (!tt) {
		attr->valid = ATTR_ATIME | ATTR_MTIME | ATTR_CTIME | ATTR_TOUCH;
		attr->atime = attr->mtime = ktime_now();
		return 0;
	}
	if (!nsec_ok(tt->at[0].nsec) || !nsec_ok(tt->at[1].nsec))
		return -EINVAL;
	a_now = set_time(attr, ATTR_ATIME, &attr->atime, tt->at[0].sec, tt->at[0].nsec);
	m_now = set_time(attr, ATTR_MTIME, &attr->mtime, tt->at[1].sec, tt->at[1].nsec);
	if (attr->valid)
		attr->valid |= ATTR_CTIME;
	if (a_now && m_now)
		attr->valid |= ATTR_TOUCH;
	return 0;
}

/* @upath 0: the descriptor @dirfd itself, as futimens(3) asks. */
static int64_t do_utimes(struct task *t, int dirfd, uaddr_t upath, const struct two_times *tt, int flags)
{
	struct iattr attr;
	struct path p;
	int err = times_attr(tt, &attr);

	if (err || !attr.valid)
		return err;
	if (!upath && dirfd != AT_FDCWD) {
		if (flags)
			return -EINVAL;
		err = fd_place(t, dirfd, false, &p);
	} else {
		if (flags & ~(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH))
			return -EINVAL;
		err = path_walk_user(t, dirfd, upath, flags, true, &p);
	}
	return err ? err : change(t, p, &attr);
}

int64_t sys_utimensat(struct task *t, const struct sysargs *a)
{
	struct two_times tt;

	if (ARG_PTR(a, 2) && copy_in(t, ARG_PTR(a, 2), &tt, sizeof(tt)))
		return -EFAULT;
	return do_utimes(t, ARG_INT(a, 0), ARG_PTR(a, 1), ARG_PTR(a, 2) ? &tt : NULL, ARG_INT(a, 3));
}

static int64_t utimes_at(struct task *t, int dirfd, uaddr_t upath, uaddr_t utimes)
{
	struct two_times tt;

	if (!utimes)
		return do_utimes(t, dirfd, upath, NULL, 0);
	if (copy_in(t, utimes, &tt, sizeof(tt)))
		return -EFAULT;
	for (int i = 0; i < 2; i++) {
		/* struct timeval */
		if (tt.at[i].nsec < 0 || tt.at[i].nsec >= 1000000)
			return -EINVAL;
		tt.at[i].nsec *= 1000;
	}
	return do_utimes(t, dirfd, upath, &tt, 0);
}

int64_t sys_utimes(struct task *t, const struct sysargs *a)
{
	return utimes_at(t, AT_FDCWD, ARG_PTR(a, 0), ARG_PTR(a, 1));
}

int64_t sys_futimesat(struct task *t, const struct sysargs *a)
{
	return utimes_at(t, ARG_INT(a, 0), ARG_PTR(a, 1), ARG_PTR(a, 2));
}

int64_t sys_utime(struct task *t, const struct sysargs *a)
{
	struct two_times tt = { 0 };
	int64_t sec[2];

	if (!ARG_PTR(a, 1))
		return do_utimes(t, AT_FDCWD, ARG_PTR(a, 0), NULL, 0);
	if (copy_in(t, ARG_PTR(a, 1), sec, sizeof(sec)))
		return -EFAULT;
	tt.at[0].sec = sec[0];
	tt.at[1].sec = sec[1];
	return do_utimes(t, AT_FDCWD, ARG_PTR(a, 0), &tt, 0);
}

int64_t sys_truncate(struct task *t, const struct sysargs *a)
{
	struct inode *in;
	struct path p;
	int err;

	if (ARG_I64(a, 1) < 0)
		return -EINVAL;
	err = path_walk_user(t, AT_FDCWD, ARG_PTR(a, 0), 0, true, &p);
	if (err)
		return err;
	in = p.dentry->inode;
	if (S_ISDIR(in->mode))
		err = -EISDIR;
	else if (!S_ISREG(in->mode))
		err = -EINVAL;
	else
		err = path_want_write(&p);
	if (!err)
		err = vfs_permission(t->cred, in, MAY_WRITE);
	if (!err)
		err = vfs_truncate(t, in, NULL, ARG_I64(a, 1));
	path_put(&p);
	return err;
}

int64_t sys_ftruncate(struct task *t, const struct sysargs *a)
{
	struct file *f;
	int err;

	if (ARG_I64(a, 1) < 0)
		return -EINVAL;
	err = fd_get(t, ARG_INT(a, 0), &f);
	if (err)
		return err;
	if (!S_ISREG(f->inode->mode) || !file_writable(f))
		err = -EINVAL;
	else
		err = vfs_truncate(t, f->inode, f, ARG_I64(a, 1));
	file_put(f);
	return err;
}
