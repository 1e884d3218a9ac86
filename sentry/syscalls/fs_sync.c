/* SPDX-License-Identifier: Apache-2.0 */
#include "sentry/syscalls/fs_sync.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "sentry/kernel/kernel.h"
#include "sentry/kernel/sig.h"
#include "sentry/kernel/task.h"
#include "sentry/vfs/fdtable.h"
#include "sentry/vfs/vfs.h"

/* The combinations of fallocate(2): one kind of operation, with KEEP_SIZE or without. Linux: vfs_fallocate since 6.12.
 */
static int check_falloc_mode(int mode)
{
	bool keep = mode & FALLOC_FL_KEEP_SIZE;

	switch (mode & ~FALLOC_FL_KEEP_SIZE) {
	case 0:
	case FALLOC_FL_UNSHARE_RANGE:
	case FALLOC_FL_ZERO_RANGE:
		return 0;
	case FALLOC_FL_PUNCH_HOLE:
		return keep ? 0 : -EOPNOTSUPP;
	case FALLOC_FL_COLLAPSE_RANGE:
	case FALLOC_FL_INSERT_RANGE:
		return keep ? -EOPNOTSUPP : 0;
	default:
		return -EOPNOTSUPP;
	}
}

static int file_fallocate(struct task *t, struct file *f, int mode, uint64_t off, uint64_t len)
{
	uint32_t type = f->inode->mode;
	uint64_t end = off + len; /* both are positive off_t: no overflow */
	int err = check_falloc_mode(mode);

	if (err)
		return err;
	if (!file_writable(f))
		return -EBADF;
	if (S_ISFIFO(type))
		return -ESPIPE;
	if (S_ISDIR(type))
		return -EISDIR;
	if (!S_ISREG(type))
		return -ENODEV;
	if (end > INT64_MAX)
		return -EFBIG;
	if (!(mode & FALLOC_FL_KEEP_SIZE) && end > f->inode->size && end > task_rlimit(t, RLIMIT_FSIZE)) {
		sig_send_self(t, SIGXFSZ);
		return -EFBIG;
	}
	return f->ops->fallocate ? f->ops->fallocate(f, mode, off, len) : -EOPNOTSUPP;
}

int64_t sys_fallocate(struct task *t, const struct sysargs *a)
{
	struct file *f;
	int err = fd_get(t, ARG_INT(a, 0), &f);

	if (err)
		return err;
	if (ARG_I64(a, 2) < 0 || ARG_I64(a, 3) <= 0)
		err = -EINVAL;
	else
		err = file_fallocate(t, f, ARG_INT(a, 1), ARG_U64(a, 2), ARG_U64(a, 3));
	file_put(f);
	return err;
}

static int64_t do_fsync(struct task *t, int fd, bool data_only)
{
	struct file *f;
	int err = fd_get(t, fd, &f);

	if (err)
		return err;
	if (f->ops && f->ops->fsync)
		err = f->ops->fsync(f, data_only);
	else if (!S_ISREG(f->inode->mode) && !S_ISDIR(f->inode->mode))
		err = -EINVAL;
	file_put(f);
	return err;
}

int64_t sys_fsync(struct task *t, const struct sysargs *a)
{
	return do_fsync(t, ARG_INT(a, 0), false);
}

int64_t sys_fdatasync(struct task *t, const struct sysargs *a)
{
	return do_fsync(t, ARG_INT(a, 0), true);
}

static int super_sync(struct super *sb)
{
	return sb->ops && sb->ops->sync ? sb->ops->sync(sb) : 0;
}

int64_t sys_sync(struct task *t, const struct sysargs *a)
{
	struct mount *m;

	list_for_each_entry(m, &kernel.mnt_ns->mounts, node)
		(void)super_sync(m->sb); /* sync(2) always succeeds */
	return 0;
}

int64_t sys_syncfs(struct task *t, const struct sysargs *a)
{
	struct file *f;
	int err = fd_get(t, ARG_INT(a, 0), &f);

	if (err)
		return err;
	err = super_sync(f->inode->sb);
	file_put(f);
	return err;
}

int64_t sys_sync_file_range(struct task *t, const struct sysargs *a)
{
	int64_t off = ARG_I64(a, 1), len = ARG_I64(a, 2), end;
	struct file *f;
	int err;

	if (ARG_U32(a, 3) & ~7u) /* SYNC_FILE_RANGE_* */
		return -EINVAL;
	if (off < 0 || len < 0 || __builtin_add_overflow(off, len, &end))
		return -EINVAL;
	err = fd_get(t, ARG_INT(a, 0), &f);
	if (err)
		return err;
	if (!S_ISREG(f->inode->mode) && !S_ISDIR(f->inode->mode) && !S_ISBLK(f->inode->mode))
		err = -ESPIPE;
	else if (f->ops && f->ops->fsync)
		err = f->ops->fsync(f, true);
	file_put(f);
	return err;
}

/* Advice only: the host's page cache does its own read-ahead. */
int64_t sys_fadvise64(struct task *t, const struct sysargs *a)
{
	struct file *f;
	int err = fd_get(t, ARG_INT(a, 0), &f);

	if (err)
		return err;
	if (S_ISFIFO(f->inode->mode))
		err = -ESPIPE;
	else if (ARG_I64(a, 2) < 0 || ARG_U32(a, 3) > POSIX_FADV_NOREUSE)
		err = -EINVAL;
	file_put(f);
	return err;
}

int64_t sys_readahead(struct task *t, const struct sysargs *a)
{
	struct file *f;
	int err = fd_get(t, ARG_INT(a, 0), &f);

	if (err)
		return err;
	if (!file_readable(f))
		err = -EBADF;
	else if (!S_ISREG(f->inode->mode) && !S_ISBLK(f->inode->mode))
		err = -EINVAL;
	file_put(f);
	return err;
}
