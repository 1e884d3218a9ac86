/* SPDX-License-Identifier: Apache-2.0 */
#include "sentry/syscalls/fs_stat.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "sentry/abi/stat.h"
#include "sentry/kernel/cred.h"
#include "sentry/kernel/task.h"
#include "sentry/kernel/uaccess.h"
#include "sentry/syscalls/pathin.h"
#include "sentry/vfs/fdtable.h"
#include "sentry/vfs/perm.h"
#include "sentry/vfs/vfs.h"

#ifndef AT_STATX_SYNC_TYPE
#define AT_STATX_SYNC_TYPE 0x6000
#endif
#ifndef AT_NO_AUTOMOUNT
#define AT_NO_AUTOMOUNT 0x800
#endif
#ifndef AT_EACCESS
#define AT_EACCESS 0x200
#endif

static int64_t stat_out(struct task *t, uaddr_t dst, const struct kstat *st)
{
	struct linux_stat s = {
		.st_dev = st->dev,
		.st_ino = st->ino,
		.st_nlink = st->nlink,
		.st_mode = st->mode,
		.st_uid = st->uid,
		.st_gid = st->gid,
		.st_rdev = st->rdev,
		.st_size = (int64_t)st->size,
		.st_blksize = st->blksize,
		.st_blocks = (int64_t)st->blocks,
		.atime_sec = (uint64_t)st->atime.sec,
		.atime_nsec = st->atime.nsec,
		.mtime_sec = (uint64_t)st->mtime.sec,
		.mtime_nsec = st->mtime.nsec,
		.ctime_sec = (uint64_t)st->ctime.sec,
		.ctime_nsec = st->ctime.nsec,
	};

	return copy_out(t, dst, &s, sizeof(s));
}

/* The attributes of an open file; also of anonymous ones, which have no place. */
static int fd_getattr(struct task *t, int fd, struct kstat *st, uint32_t *mnt_id)
{
	struct file *f;
	int err = fd_get_opath(t, fd, &f);

	if (err)
		return err;
	err = vfs_getattr_inode(f->inode, st);
	if (mnt_id)
		*mnt_id = f->mnt ? f->mnt->id : 0;
	file_put(f);
	return err;
}

static int path_getattr(struct task *t, int dirfd, const char *path, unsigned wf, struct kstat *st, uint32_t *mnt_id)
{
	struct path p;
	int err = path_walk(t, dirfd, path, wf, &p);

	if (err)
		return err;
	err = vfs_getattr(&p, st);
	if (mnt_id)
		*mnt_id = p.mnt->id;
	path_put(&p);
	return err;
}

/* What stat, newfstatat and statx have in common. glibc's fstat(3) comes here with "" and AT_EMPTY_PATH. */
static int stat_at(struct task *t, int dirfd, uaddr_t upath, int flags, struct kstat *st, uint32_t *mnt_id)
{
	unsigned wf = flags & AT_SYMLINK_NOFOLLOW ? 0 : WALK_FOLLOW;
	struct pathbuf p;
	int err;

	if (!upath && (flags & AT_EMPTY_PATH)) {
		p.s[0] = '\0'; /* as Linux since 6.11 */
	} else {
		err = path_in(t, upath, &p);
		if (err)
			return err;
	}
	if (!p.s[0] && (flags & AT_EMPTY_PATH)) {
		if (dirfd >= 0)
			return fd_getattr(t, dirfd, st, mnt_id);
		wf |= WALK_EMPTY;
	}
	return path_getattr(t, dirfd, p.s, wf, st, mnt_id);
}

static int64_t do_stat(struct task *t, int dirfd, uaddr_t path, int flags, uaddr_t dst)
{
	struct kstat st;
	int err = stat_at(t, dirfd, path, flags, &st, NULL);

	return err ? err : stat_out(t, dst, &st);
}

int64_t sys_stat(struct task *t, const struct sysargs *a)
{
	return do_stat(t, AT_FDCWD, ARG_PTR(a, 0), 0, ARG_PTR(a, 1));
}

int64_t sys_lstat(struct task *t, const struct sysargs *a)
{
	return do_stat(t, AT_FDCWD, ARG_PTR(a, 0), AT_SYMLINK_NOFOLLOW, ARG_PTR(a, 1));
}

int64_t sys_fstat(struct task *t, const struct sysargs *a)
{
	struct kstat st;
	int err = fd_getattr(t, ARG_INT(a, 0), &st, NULL);

	return err ? err : stat_out(t, ARG_PTR(a, 1), &st);
}

int64_t sys_newfstatat(struct task *t, const struct sysargs *a)
{
	int flags = ARG_INT(a, 3);

	if (flags & ~(AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_EMPTY_PATH | AT_STATX_SYNC_TYPE))
		return -EINVAL;
	return do_stat(t, ARG_INT(a, 0), ARG_PTR(a, 1), flags, ARG_PTR(a, 2));
}

static struct linux_statx_time statx_time(struct ktime kt)
{
	return (struct linux_statx_time){ .sec = kt.sec, .nsec = kt.nsec };
}

static int64_t statx_out(struct task *t, uaddr_t dst, const struct kstat *st, uint32_t mnt_id)
{
	struct linux_statx x = {
		.stx_mask = STATX_BASIC_STATS,
		.stx_blksize = st->blksize,
		.stx_nlink = st->nlink,
		.stx_uid = st->uid,
		.stx_gid = st->gid,
		.stx_mode = (uint16_t)st->mode,
		.stx_ino = st->ino,
		.stx_size = st->size,
		.stx_blocks = st->blocks,
		.stx_atime = statx_time(st->atime),
		.stx_ctime = statx_time(st->ctime),
		.stx_mtime = statx_time(st->mtime),
		.stx_rdev_major = major(st->rdev),
		.stx_rdev_minor = minor(st->rdev),
		.stx_dev_major = major(st->dev),
		.stx_dev_minor = minor(st->dev),
	};

	if (st->btime.sec || st->btime.nsec) {
		x.stx_mask |= STATX_BTIME;
		x.stx_btime = statx_time(st->btime);
	}
	if (mnt_id) {
		x.stx_mask |= STATX_MNT_ID;
		x.stx_mnt_id = mnt_id;
	}
	return copy_out(t, dst, &x, sizeof(x));
}

int64_t sys_statx(struct task *t, const struct sysargs *a)
{
	int flags = ARG_INT(a, 2);
	uint32_t mnt_id = 0;
	struct kstat st;
	int err;

	if ((ARG_U32(a, 3) & STATX__RESERVED) || (flags & AT_STATX_SYNC_TYPE) == AT_STATX_SYNC_TYPE)
		return -EINVAL;
	if (flags & ~(AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_EMPTY_PATH | AT_STATX_SYNC_TYPE))
		return -EINVAL;
	err = stat_at(t, ARG_INT(a, 0), ARG_PTR(a, 1), flags, &st, &mnt_id);
	return err ? err : statx_out(t, ARG_PTR(a, 4), &st, mnt_id);
}

static int access_place(const struct cred *c, const struct path *p, int mode)
{
	struct inode *in = p->dentry->inode;
	int err;

	if ((mode & MAY_EXEC) && S_ISREG(in->mode) && (p->mnt->flags & MNT_NOEXEC))
		return -EACCES;
	err = vfs_permission(c, in, mode);
	if (!err && (mode & MAY_WRITE) && (S_ISREG(in->mode) || S_ISDIR(in->mode) || S_ISLNK(in->mode)))
		err = path_want_write(p);
	return err;
}

/* access(2): with the real ids, and the capabilities that a program of the real user would have. */
static void real_cred(const struct task *t, struct cred *c)
{
	*c = *t->cred;
	c->fsuid = c->uid;
	c->fsgid = c->gid;
	if (!(c->securebits & 4)) /* SECBIT_NO_SETUID_FIXUP */
		c->cap_effective = c->uid ? 0 : c->cap_permitted;
}

static int64_t do_access(struct task *t, int dirfd, uaddr_t path, int mode, int flags)
{
	struct cred *saved = t->cred, real;
	struct path p;
	int err;

	if ((mode & ~7) || (flags & ~(AT_EACCESS | AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH)))
		return -EINVAL;
	if (!(flags & AT_EACCESS)) {
		real_cred(t, &real);
		t->cred = &real; /* for the walk, too */
	}
	err = path_walk_user(t, dirfd, path, flags & ~AT_SYMLINK_FOLLOW, true, &p);
	if (!err) {
		err = mode ? access_place(t->cred, &p, mode) : 0;
		path_put(&p);
	}
	t->cred = saved;
	return err;
}

int64_t sys_access(struct task *t, const struct sysargs *a)
{
	return do_access(t, AT_FDCWD, ARG_PTR(a, 0), ARG_INT(a, 1), 0);
}

int64_t sys_faccessat(struct task *t, const struct sysargs *a)
{
	return do_access(t, ARG_INT(a, 0), ARG_PTR(a, 1), ARG_INT(a, 2), 0);
}

int64_t sys_faccessat2(struct task *t, const struct sysargs *a)
{
	return do_access(t, ARG_INT(a, 0), ARG_PTR(a, 1), ARG_INT(a, 2), ARG_INT(a, 3));
}

#define ST_VALID 0x20 /* f_flags are meant */

static int64_t statfs_out(struct task *t, uaddr_t dst, struct super *sb, const struct mount *m)
{
	struct kstatfs st;
	struct linux_statfs s;
	int err = vfs_statfs(sb, &st);

	if (err)
		return err;
	s = (struct linux_statfs){
		.f_type = (int64_t)st.type,
		.f_bsize = (int64_t)st.bsize,
		.f_blocks = st.blocks,
		.f_bfree = st.bfree,
		.f_bavail = st.bavail,
		.f_files = st.files,
		.f_ffree = st.ffree,
		.f_fsid = { (int32_t)sb->dev, 0 },
		.f_namelen = (int64_t)st.namelen,
		.f_frsize = (int64_t)st.bsize,
		.f_flags = ST_VALID,
	};
	/* ST_RDONLY, ST_NOSUID, ST_NODEV, ST_NOEXEC */
	if (m) {
		s.f_flags |= m->flags & MNT_RDONLY ? 1 : 0;
		s.f_flags |= m->flags & MNT_NOSUID ? 2 : 0;
		s.f_flags |= m->flags & MNT_NODEV ? 4 : 0;
		s.f_flags |= m->flags & MNT_NOEXEC ? 8 : 0;
	}
	return copy_out(t, dst, &s, sizeof(s));
}

int64_t sys_statfs(struct task *t, const struct sysargs *a)
{
	struct path p;
	int64_t r = path_walk_user(t, AT_FDCWD, ARG_PTR(a, 0), 0, true, &p);

	if (r)
		return r;
	r = statfs_out(t, ARG_PTR(a, 1), p.mnt->sb, p.mnt);
	path_put(&p);
	return r;
}

int64_t sys_fstatfs(struct task *t, const struct sysargs *a)
{
	struct file *f;
	int64_t r = fd_get_opath(t, ARG_INT(a, 0), &f);

	if (r)
		return r;
	r = statfs_out(t, ARG_PTR(a, 1), f->inode->sb, f->mnt);
	file_put(f);
	return r;
}

int64_t sys_ustat(struct task *t, const struct sysargs *a)
{
	return -ENOSYS;
}

/* readlink(2): a magic link too tells its text. */
static int64_t do_readlink(struct task *t, int dirfd, uaddr_t upath, uaddr_t dst, int size)
{
	char buf[PATH_MAX_LINUX];
	struct inode *in;
	struct path p;
	int64_t r;

	if (size <= 0)
		return -EINVAL;
	/* "" with an O_PATH descriptor of a symlink */
	r = path_walk_user(t, dirfd, upath, AT_EMPTY_PATH, false, &p);
	if (r)
		return r;
	in = p.dentry->inode;
	if (S_ISLNK(in->mode) && in->ops->readlink)
		r = in->ops->readlink(in, buf, MIN((size_t)size, sizeof(buf)));
	else
		r = -EINVAL;
	path_put(&p);
	if (r > 0) {
		int err = copy_out(t, dst, buf, (size_t)r);

		if (err)
			r = err;
	}
	return r;
}

int64_t sys_readlink(struct task *t, const struct sysargs *a)
{
	return do_readlink(t, AT_FDCWD, ARG_PTR(a, 0), ARG_PTR(a, 1), ARG_INT(a, 2));
}

int64_t sys_readlinkat(struct task *t, const struct sysargs *a)
{
	return do_readlink(t, ARG_INT(a, 0), ARG_PTR(a, 1), ARG_PTR(a, 2), ARG_INT(a, 3));
}
