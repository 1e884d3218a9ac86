/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open regular files that came from the lower. The file below is opened on first use; once there is an upper, all
 * goes there, so that a reader sees what a writer with another descriptor wrote. Only a mapping made before the copy-
 * up stays with the lower (as in overlayfs), on the host's own file, so that programs and libraries are shared page
 * cache. Opening for writing copies nothing: the first write, truncation or shared mapping does.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sentry/fs/overlay.h"
#include "sentry/vfs/vfs.h"

static struct ovl_file *ovl_f(struct file *f)
{
	return container_of(f, struct ovl_file, file);
}

/* The file to work on (borrowed), with the flags of today. */
static int real_file(struct file *f, struct file **ret)
{
	struct ovl_inode *oi = ovl_i(f->inode);
	struct ovl_file *of = ovl_f(f);
	struct file **real = oi->upper ? &of->upper : &of->lower;
	int err;

	if (!*real) {
		err = ovl_open_real(oi->upper ? oi->upper : oi->lower, oi->upper ? f->flags : O_RDONLY, real);
		if (err < 0)
			return err;
	}
	if (oi->upper)
		(*real)->flags = f->flags;
	*ret = *real;
	return 0;
}

static int real_for_write(struct file *f, struct file **ret)
{
	int err = ovl_copy_up(ovl_i(f->inode), OVL_ALL_DATA);

	return err < 0 ? err : real_file(f, ret);
}

static ssize_t ovl_read(struct file *f, struct uio *u, uint64_t *pos)
{
	struct file *real;
	ssize_t n = real_file(f, &real);

	if (n < 0)
		return n;
	n = real->ops->read ? real->ops->read(real, u, pos) : -EINVAL;
	f->inode->atime = real->inode->atime;
	return n;
}

static ssize_t ovl_write(struct file *f, struct uio *u, uint64_t *pos)
{
	struct file *real;
	ssize_t n = real_for_write(f, &real);

	if (n < 0)
		return n;
	n = real->ops->write(real, u, pos);
	ovl_sync(ovl_i(f->inode));
	return n;
}

static int64_t seek_data_hole(struct file *f, int64_t off, int whence)
{
	struct file *real;
	int64_t r = real_file(f, &real);

	if (r < 0)
		return r;
	if (real->ops->llseek)
		return real->ops->llseek(real, off, whence);
	if (off < 0 || (uint64_t)off >= f->inode->size)
		return -ENXIO;
	return whence == SEEK_DATA ? off : (int64_t)f->inode->size;
}

static int64_t ovl_llseek(struct file *f, int64_t off, int whence)
{
	int err = f->inode->ops->refresh(f->inode);

	if (err < 0)
		return err;
	if (whence == SEEK_DATA || whence == SEEK_HOLE) {
		off = seek_data_hole(f, off, whence);
		if (off < 0)
			return off;
		whence = SEEK_SET;
	}
	return file_seek(f, off, whence, f->inode->size);
}

static int ovl_mmap(struct file *f, int prot, bool shared, struct file_map *map)
{
	struct file *real;
	int err;

	/* A shared mapping of a file that may be written can become writable later (mprotect). */
	if (shared && file_writable(f))
		err = real_for_write(f, &real);
	else
		err = real_file(f, &real);
	if (err < 0)
		return err;
	err = vfs_mmap(real, prot, shared, map);
	ovl_sync(ovl_i(f->inode));
	return err;
}

static int ovl_fsync(struct file *f, bool data_only)
{
	(void)f;
	(void)data_only;
	return 0; /* the upper has no disk, the lower no changes */
}

static int ovl_fallocate(struct file *f, int mode, uint64_t off, uint64_t len)
{
	struct file *real;
	int err = real_for_write(f, &real);

	if (err < 0)
		return err;
	err = real->ops->fallocate ? real->ops->fallocate(real, mode, off, len) : -EOPNOTSUPP;
	ovl_sync(ovl_i(f->inode));
	return err;
}

static void ovl_release(struct file *f)
{
	file_put(ovl_f(f)->lower);
	file_put(ovl_f(f)->upper);
}

const struct file_ops ovl_file_ops = {
	.file_size = sizeof(struct ovl_file),
	.read = ovl_read,
	.write = ovl_write,
	.llseek = ovl_llseek,
	.mmap = ovl_mmap,
	.fsync = ovl_fsync,
	.fallocate = ovl_fallocate,
	.release = ovl_release,
};
