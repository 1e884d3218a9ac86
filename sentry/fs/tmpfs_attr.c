/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes and extended attributes of tmpfs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "base/host/seal.h"
#include "sentry/fs/tmpfs.h"

#define XATTR_VALUE_MAX 65536u
#define XATTR_TOTAL_MAX 131072u /* of one inode, names and values */
#define XATTR_LIST_MAX_BYTES 65536u

struct tmpfs_xattr {
	struct tmpfs_xattr *next;
	uint32_t name_len, len;
	char data[]; /* the name with its NUL, then the value */
};

static int set_size(struct tmpfs_inode *ti, uint64_t size)
{
	struct inode *in = &ti->vfs;
	int err;

	if ((ti->seals & F_SEAL_SHRINK && size < in->size) || (ti->seals & F_SEAL_GROW && size > in->size))
		return -EPERM;
	/* A memfd exists to be mapped, which charges its size: say early what cannot work later. */
	if (ti->flags & TMPFS_MEMFD && size > ti->ts->store->max_bytes)
		return -EFBIG;
	err = store_file_truncate(ti->ts->store, &ti->data, in->size, size);
	if (err < 0)
		return err;
	in->size = size;
	return 0;
}

int tmpfs_setattr(struct inode *in, const struct iattr *attr)
{
	struct tmpfs_inode *ti = tmpfs_i(in);
	int err;

	if (attr->valid & ATTR_MODE && ti->seals & F_SEAL_EXEC && (attr->mode ^ in->mode) & 0111)
		return -EPERM;
	if (attr->valid & ATTR_SIZE) {
		if (!S_ISREG(in->mode))
			return S_ISDIR(in->mode) ? -EISDIR : -EINVAL;
		err = set_size(ti, attr->size);
		if (err < 0)
			return err;
	}
	if (attr->valid & ATTR_MODE)
		in->mode = (in->mode & S_IFMT) | (attr->mode & 07777);
	if (attr->valid & ATTR_UID)
		in->uid = attr->uid;
	if (attr->valid & ATTR_GID)
		in->gid = attr->gid;
	tmpfs_touch(ti, attr->valid & ATTR_SIZE);
	if (attr->valid & ATTR_ATIME)
		in->atime = attr->atime;
	if (attr->valid & ATTR_MTIME)
		in->mtime = attr->mtime;
	ti->flags |= TMPFS_CHANGED;
	return 0;
}

/* ---- xattr(7) ---- */

static int name_supported(const char *name)
{
	static const char *const prefixes[] = { "user.", "trusted.", "security." };

	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
		if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
			return name[strlen(prefixes[i])] ? 0 : -EINVAL;
	return -EOPNOTSUPP;
}

static struct tmpfs_xattr **xattr_find(struct tmpfs_inode *ti, const char *name)
{
	struct tmpfs_xattr **p;

	for (p = &ti->xattrs; *p; p = &(*p)->next)
		if (!strcmp((*p)->data, name))
			break;
	return p;
}

static size_t xattr_bytes(const struct tmpfs_xattr *x)
{
	return sizeof(*x) + x->name_len + 1 + x->len;
}

static void xattr_drop(struct tmpfs_inode *ti, struct tmpfs_xattr **p)
{
	struct tmpfs_xattr *x = *p;

	*p = x->next;
	store_meta_uncharge(ti->ts->store, xattr_bytes(x));
	free(x);
}

ssize_t tmpfs_getxattr(struct inode *in, const char *name, void *buf, size_t size)
{
	const struct tmpfs_xattr *x;
	int err = name_supported(name);

	if (err < 0)
		return err;
	x = *xattr_find(tmpfs_i(in), name);
	if (!x)
		return -ENODATA;
	if (size == 0)
		return (ssize_t)x->len;
	if (size < x->len)
		return -ERANGE;
	memcpy(buf, x->data + x->name_len + 1, x->len);
	return (ssize_t)x->len;
}

int tmpfs_setxattr(struct inode *in, const char *name, const void *buf, size_t size, int flags)
{
	struct tmpfs_inode *ti = tmpfs_i(in);
	struct tmpfs_xattr *x, **old;
	size_t total = 0;
	int err = name_supported(name);

	if (err < 0)
		return err;
	if (size > XATTR_VALUE_MAX)
		return -E2BIG;
	old = xattr_find(ti, name);
	if (flags & XATTR_CREATE && *old)
		return -EEXIST;
	if (flags & XATTR_REPLACE && !*old)
		return -ENODATA;
	for (x = ti->xattrs; x; x = x->next)
		total += x == *old ? 0 : xattr_bytes(x);
	total += sizeof(*x) + strlen(name) + 1 + size;
	if (total > XATTR_TOTAL_MAX)
		return -ENOSPC;
	x = malloc(sizeof(*x) + strlen(name) + 1 + size);
	if (!x)
		return -ENOMEM;
	x->name_len = (uint32_t)strlen(name);
	x->len = (uint32_t)size;
	memcpy(x->data, name, x->name_len + 1);
	if (size)
		memcpy(x->data + x->name_len + 1, buf, size);
	err = store_meta_charge(ti->ts->store, xattr_bytes(x));
	if (err < 0) {
		free(x);
		return err;
	}
	if (*old)
		xattr_drop(ti, old);
	x->next = ti->xattrs;
	ti->xattrs = x;
	ti->flags |= TMPFS_CHANGED;
	tmpfs_touch(ti, false);
	return 0;
}

ssize_t tmpfs_listxattr(struct inode *in, char *buf, size_t size)
{
	const struct tmpfs_xattr *x;
	size_t n = 0;

	for (x = tmpfs_i(in)->xattrs; x; x = x->next)
		n += x->name_len + 1;
	if (n > XATTR_LIST_MAX_BYTES)
		return -E2BIG;
	if (size == 0)
		return (ssize_t)n;
	if (size < n)
		return -ERANGE;
	for (x = tmpfs_i(in)->xattrs; x; x = x->next) {
		memcpy(buf, x->data, x->name_len + 1);
		buf += x->name_len + 1;
	}
	return (ssize_t)n;
}

int tmpfs_removexattr(struct inode *in, const char *name)
{
	struct tmpfs_inode *ti = tmpfs_i(in);
	struct tmpfs_xattr **p;
	int err = name_supported(name);

	if (err < 0)
		return err;
	p = xattr_find(ti, name);
	if (!*p)
		return -ENODATA;
	xattr_drop(ti, p);
	ti->flags |= TMPFS_CHANGED;
	tmpfs_touch(ti, false);
	return 0;
}

void tmpfs_xattr_free(struct tmpfs_inode *ti)
{
	while (ti->xattrs)
		xattr_drop(ti, &ti->xattrs);
}
