/* SPDX-License-Identifier: Apache-2.0 */
/* Copying a file of the lower into the upper before its first change. Nothing is visible until the copy is complete. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sentry/fs/overlay.h"
#include "sentry/vfs/uio.h"
#include "sentry/vfs/vfs.h"

#define COPY_CHUNK     (128u * 1024)
#define LINK_MAX_BYTES 4096u
#define XATTR_VALUE    65536u

int ovl_open_real(struct inode *real, uint32_t flags, struct file **ret)
{
	struct file *f = file_create(real->fops, real, flags);
	int err = 0;

	if (!f)
		return -ENFILE;
	if (real->ops->open)
		err = real->ops->open(real, f);
	if (err == 0 && !f->ops)
		err = -ENXIO;
	if (err < 0) {
		f->ops = NULL; /* nothing was opened that release would close */
		file_put(f);
		return err;
	}
	*ret = f;
	return 0;
}

static bool all_zero(const uint8_t *p, size_t n)
{
	return n == 0 || (p[0] == 0 && !memcmp(p, p + 1, n - 1));
}

static int copy_data(struct inode *from, struct tmpfs_inode *to, uint64_t max)
{
	static uint8_t buf[COPY_CHUNK];
	bool sparse = from->blocks < from->size / 512;
	struct uio_seg seg;
	struct file *f;
	struct uio u;
	ssize_t n = 0, put;
	int err = ovl_open_real(from, O_RDONLY, &f);

	if (err < 0)
		return err;
	for (uint64_t off = 0; err == 0 && off < max; off += (uint64_t)n) {
		n = vfs_read_kernel(f, buf, MIN((uint64_t)COPY_CHUNK, max - off), off);
		if (n <= 0) {
			err = (int)n;
			break;
		}
		to->vfs.size = off + (uint64_t)n;
		if (sparse && all_zero(buf, (size_t)n))
			continue;
		uio_init_kernel(&u, &seg, buf, (size_t)n);
		put = store_file_write(to->ts->store, &to->data, off, &u, off);
		if (put != n)
			err = put < 0 ? (int)put : -ENOSPC;
	}
	file_put(f);
	return err;
}

static int copy_one_xattr(struct inode *from, struct tmpfs_inode *to, const char *name, void *value)
{
	ssize_t n = from->ops->getxattr(from, name, value, XATTR_VALUE);
	int err;

	if (n < 0)
		return n == -ENODATA || n == -EOPNOTSUPP ? 0 : (int)n;
	err = tmpfs_setxattr(&to->vfs, name, value, (size_t)n, 0);
	return err == -EOPNOTSUPP ? 0 : err;
}

static int copy_xattrs(struct inode *from, struct tmpfs_inode *to)
{
	ssize_t n;
	char *names = NULL, *value = NULL;
	int err = 0;

	if (!from->ops->listxattr || !from->ops->getxattr)
		return 0;
	n = from->ops->listxattr(from, NULL, 0);
	if (n <= 0)
		return n == 0 || n == -EOPNOTSUPP ? 0 : (int)n;
	names = malloc((size_t)n + 1);
	value = malloc(XATTR_VALUE);
	if (!names || !value) {
		err = -ENOMEM;
		goto out;
	}
	n = from->ops->listxattr(from, names, (size_t)n);
	if (n < 0) {
		err = (int)n;
		goto out;
	}
	names[n] = '\0';
	for (char *p = names; err == 0 && p < names + n; p += strlen(p) + 1)
		err = copy_one_xattr(from, to, p, value);
out:
	free(names);
	free(value);
	return err;
}

int ovl_copy_attrs(struct inode *from, struct tmpfs_inode *to)
{
	struct inode *in = &to->vfs;
	int err = copy_xattrs(from, to);

	if (err < 0)
		return err;
	in->ino = from->ino;
	in->mode = from->mode;
	in->uid = from->uid;
	in->gid = from->gid;
	tmpfs_touch(to, false);
	in->atime = from->atime;
	in->mtime = from->mtime;
	in->ctime = from->ctime;
	in->btime = from->btime;
	to->flags = TMPFS_COPIED;
	return 0;
}

static int copy_symlink(struct tmpfs_super *ts, struct inode *from, struct tmpfs_inode **ret)
{
	char target[LINK_MAX_BYTES + 1];
	int n = from->ops->readlink ? from->ops->readlink(from, target, LINK_MAX_BYTES) : -EINVAL;

	if (n < 0)
		return n;
	target[n] = '\0';
	return tmpfs_symlink_create(ts, target, from->uid, from->gid, ret);
}

/* The copy, in no directory yet. */
static int make_copy(struct ovl_super *os, struct ovl_inode *oi, uint64_t data, struct tmpfs_inode **ret)
{
	struct inode *low = oi->lower;
	struct tmpfs_inode *ti;
	int err = low->ops->refresh ? low->ops->refresh(low) : 0;

	if (err < 0)
		return err;
	if (S_ISLNK(low->mode))
		err = copy_symlink(ovl_upper(os), low, &ti);
	else
		err = tmpfs_inode_create(ovl_upper(os), low->mode, low->rdev, low->uid, low->gid, &ti);
	if (err < 0)
		return err;
	if (S_ISREG(low->mode))
		err = copy_data(low, ti, data);
	if (err == 0)
		err = ovl_copy_attrs(low, ti);
	if (err < 0) {
		inode_put(&ti->vfs);
		return err;
	}
	if (S_ISDIR(low->mode))
		ti->origin = inode_get(low);
	*ret = ti;
	return 0;
}

/* Gives the copy as many links, and charges, as the file shows. */
static int set_links(struct ovl_inode *oi, struct tmpfs_inode *ti)
{
	uint32_t nlink;
	int err = 0;

	if (S_ISDIR(ti->vfs.mode)) {
		if (oi->removed)
			ti->vfs.nlink = 0;
		return 0;
	}
	ovl_sync(oi);
	nlink = oi->vfs.nlink;
	if (nlink == 0)
		ti->vfs.nlink = 0;
	while (err == 0 && ti->vfs.nlink < nlink) {
		err = store_inode_charge(ti->ts->store);
		ti->vfs.nlink += err == 0;
	}
	return err;
}

/* Enters the copy where the file is. */
static int attach(struct ovl_inode *oi, struct tmpfs_inode *ti)
{
	struct tmpfs_inode *dir;
	int err;

	if (!oi->name)
		return 0; /* unlinked, or a single file that is the root */
	dir = tmpfs_i(oi->parent->upper);
	err = tmpfs_dir_insert(dir, oi->name, oi->name_len, ti, TMPFS_DE_COVERS);
	if (err == 0 && S_ISDIR(ti->vfs.mode)) {
		ti->parent = dir;
		dir->vfs.nlink++;
	}
	return err;
}

static int copy_up_one(struct ovl_inode *oi, uint64_t data)
{
	struct ovl_super *os = ovl_s(oi->vfs.sb);
	struct ovl_index *x = NULL;
	struct tmpfs_inode *ti = NULL;
	int err = 0;

	if (!S_ISDIR(oi->lower->mode) && oi->lower->nlink > 1)
		err = ovl_index_make(os, oi->lower, &x);
	if (err == 0)
		err = make_copy(os, oi, data, &ti);
	if (err < 0)
		return err;
	err = set_links(oi, ti);
	if (err == 0)
		err = attach(oi, ti);
	if (err < 0) {
		inode_put(&ti->vfs);
		return err;
	}
	if (x && !x->upper && ti->vfs.nlink) {
		x->upper = ti;
		inode_get(&ti->vfs);
	}
	list_del(&oi->hash_node);
	oi->upper = &ti->vfs;
	oi->removed = 0;
	ti->wrapper = &oi->vfs;
	if (!S_ISDIR(ti->vfs.mode))
		ovl_clear_place(oi);
	ovl_sync(oi);
	return 0;
}

int ovl_copy_up(struct ovl_inode *oi, uint64_t data)
{
	struct ovl_inode *p;
	int err;

	if (oi->upper)
		return 0;
	/* From the top down; the root of a tree always has an upper. */
	while (oi->parent && !oi->parent->upper) {
		for (p = oi->parent; p->parent && !p->parent->upper;)
			p = p->parent;
		err = copy_up_one(p, 0);
		if (err < 0)
			return err;
	}
	return copy_up_one(oi, data);
}
