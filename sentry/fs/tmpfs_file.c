/* SPDX-License-Identifier: Apache-2.0 */
/* Open regular files of tmpfs. Seals (memfd.c) are enforced here and in tmpfs_attr.c. */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/host/file.h"
#include "base/host/seal.h"
#include "sentry/fs/tmpfs.h"
#include "sentry/vfs/uio.h"

#define DAY_SECONDS 86400

static bool older(const struct ktime *a, const struct ktime *b)
{
	return a->sec < b->sec || (a->sec == b->sec && a->nsec <= b->nsec);
}

/* As relatime mounts do: once after each change, and once a day. */
static void accessed(struct file *f)
{
	struct inode *in = f->inode;
	struct ktime now;

	if (f->flags & O_NOATIME)
		return;
	now = ktime_now();
	if (older(&in->atime, &in->mtime) || older(&in->atime, &in->ctime) || now.sec - in->atime.sec >= DAY_SECONDS)
		in->atime = now;
}

static ssize_t tmpfs_read(struct file *f, struct uio *u, uint64_t *pos)
{
	struct tmpfs_inode *ti = tmpfs_i(f->inode);
	ssize_t n = store_file_read(ti->ts->store, &ti->data, ti->vfs.size, u, *pos);

	if (n > 0) {
		*pos += (uint64_t)n;
		accessed(f);
	}
	return n;
}

static ssize_t tmpfs_write(struct file *f, struct uio *u, uint64_t *pos)
{
	struct tmpfs_inode *ti = tmpfs_i(f->inode);
	uint64_t off = f->flags & O_APPEND ? ti->vfs.size : *pos;
	ssize_t n;

	if (u->resid == 0)
		return 0;
	if (ti->seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE))
		return -EPERM;
	if (ti->seals & F_SEAL_GROW && (off > ti->vfs.size || u->resid > ti->vfs.size - off))
		return -EPERM;
	n = store_file_write(ti->ts->store, &ti->data, ti->vfs.size, u, off);
	if (n > 0) {
		*pos = off + (uint64_t)n;
		ti->vfs.size = MAX(ti->vfs.size, *pos);
		tmpfs_touch(ti, true);
	}
	return n;
}

static int64_t tmpfs_llseek(struct file *f, int64_t off, int whence)
{
	struct tmpfs_inode *ti = tmpfs_i(f->inode);

	if (whence == SEEK_DATA || whence == SEEK_HOLE) {
		if (off < 0)
			return -ENXIO;
		off = store_file_seek(ti->ts->store, &ti->data, ti->vfs.size, (uint64_t)off, whence == SEEK_DATA);
		if (off < 0)
			return off;
		whence = SEEK_SET;
	}
	return file_seek(f, off, whence, ti->vfs.size);
}

static int reserve(struct tmpfs_inode *ti, uint64_t off, uint64_t len, bool keep_size)
{
	uint64_t end = off + len;
	int err;

	if (ti->seals & F_SEAL_GROW && end > ti->vfs.size)
		return -EPERM;
	err = store_file_reserve(ti->ts->store, &ti->data, ti->vfs.size, off, len);
	if (err < 0 || keep_size || end <= ti->vfs.size)
		return err;
	err = store_file_truncate(ti->ts->store, &ti->data, ti->vfs.size, end);
	if (err == 0)
		ti->vfs.size = end;
	return err;
}

static int tmpfs_fallocate(struct file *f, int mode, uint64_t off, uint64_t len)
{
	struct tmpfs_inode *ti = tmpfs_i(f->inode);
	uint64_t end;
	int err = 0;

	if (mode & ~(FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE))
		return -EOPNOTSUPP;
	if (mode & FALLOC_FL_PUNCH_HOLE && mode != (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE))
		return -EOPNOTSUPP;
	if (len == 0)
		return -EINVAL;
	if (__builtin_add_overflow(off, len, &end) || end > STORE_SIZE_MAX)
		return -EFBIG;
	if (mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE)) {
		if (ti->seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE))
			return -EPERM;
		err = store_file_punch(ti->ts->store, &ti->data, ti->vfs.size, off, len);
	}
	if (err == 0 && !(mode & FALLOC_FL_PUNCH_HOLE))
		err = reserve(ti, off, len, mode & FALLOC_FL_KEEP_SIZE);
	tmpfs_touch(ti, true);
	return err;
}

static int tmpfs_mmap(struct file *f, int prot, bool shared, struct file_map *map)
{
	struct tmpfs_file *tf = container_of(f, struct tmpfs_file, file);
	struct tmpfs_inode *ti = tmpfs_i(f->inode);
	bool was = ti->data.kind == STORE_PRIVATE, memfd = ti->flags & TMPFS_MEMFD;
	int err;

	if (shared && prot & PROT_WRITE && ti->seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE))
		return -EPERM;
	err = store_file_make_private(ti->ts->store, &ti->data, ti->vfs.size, memfd ? MFD_ALLOW_SEALING : 0);
	if (err < 0)
		return err;
	if (!was && ti->seals) {
		err = host_add_seals(ti->data.priv->fd, ti->seals & SEALS_HOST);
		if (err < 0)
			return err;
	}
	if (!tf->mapped) {
		tf->mapped = true;
		store_private_hold(ti->ts->store, ti->data.priv);
	}
	ti->vfs.blocks = store_file_stat_blocks(&ti->data, ti->vfs.size);
	map->fd = ti->data.priv->fd;
	map->offset = 0;
	accessed(f);
	return 0;
}

static int tmpfs_fsync(struct file *f, bool data_only)
{
	(void)f;
	(void)data_only;
	return 0;
}

static void tmpfs_release(struct file *f)
{
	struct tmpfs_file *tf = container_of(f, struct tmpfs_file, file);
	struct tmpfs_inode *ti = tmpfs_i(f->inode);

	if (tf->mapped)
		store_private_release(ti->ts->store, ti->data.priv);
}

const struct file_ops tmpfs_file_ops = {
	.file_size = sizeof(struct tmpfs_file),
	.read = tmpfs_read,
	.write = tmpfs_write,
	.llseek = tmpfs_llseek,
	.mmap = tmpfs_mmap,
	.fsync = tmpfs_fsync,
	.fallocate = tmpfs_fallocate,
	.release = tmpfs_release,
};
