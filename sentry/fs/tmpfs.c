/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Superblocks and inodes of tmpfs. A directory entry holds a reference on its inode, so an inode lives as long as it
 * has a name, is open, or is in the dentry cache. The quota is as Linux's: an inode counts as many times as it has
 * names (once when it has none).
 */
#include "sentry/fs/tmpfs.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sentry/fs/chardev.h"

bool tmpfs_is(const struct inode *in)
{
	return in->ops == &tmpfs_file_iops || in->ops == &tmpfs_dir_iops || in->ops == &tmpfs_link_iops ||
	       in->ops == &tmpfs_special_iops;
}

static void set_ops(struct tmpfs_inode *ti)
{
	struct inode *in = &ti->vfs;

	switch (in->mode & S_IFMT) {
	case S_IFREG:
		in->ops = &tmpfs_file_iops;
		in->fops = &tmpfs_file_ops;
		break;
	case S_IFDIR:
		in->ops = &tmpfs_dir_iops;
		in->fops = &tmpfs_dir_ops;
		break;
	case S_IFLNK:
		in->ops = &tmpfs_link_iops;
		break;
	case S_IFCHR:
		in->ops = &tmpfs_special_iops;
		in->fops = chardev_ops(in->rdev);
		break;
	default:
		in->ops = &tmpfs_special_iops;
	}
}

int tmpfs_inode_create(struct tmpfs_super *ts, uint32_t mode, uint64_t rdev, uid_t uid, gid_t gid,
		       struct tmpfs_inode **ret)
{
	return tmpfs_inode_create_sized(ts, sizeof(struct tmpfs_inode), mode, rdev, uid, gid, ret);
}

int tmpfs_inode_create_sized(struct tmpfs_super *ts, size_t size, uint32_t mode, uint64_t rdev, uid_t uid, gid_t gid,
			     struct tmpfs_inode **ret)
{
	struct tmpfs_inode *ti;
	int err = store_inode_charge(ts->store);

	if (err < 0)
		return err;
	ti = calloc(1, size);
	if (!ti) {
		store_inode_uncharge(ts->store);
		return -ENOMEM;
	}
	inode_init(&ti->vfs, ts->face, &tmpfs_special_iops, ts->next_ino++, mode);
	ti->ts = ts;
	ti->vfs.rdev = rdev;
	ti->vfs.uid = uid;
	ti->vfs.gid = gid;
	ti->vfs.nlink = S_ISDIR(mode) ? 2 : 1;
	ti->vfs.atime = ti->vfs.mtime = ti->vfs.ctime = ti->vfs.btime = ktime_now();
	set_ops(ti);
	tmpfs_touch(ti, false);
	*ret = ti;
	return 0;
}

int tmpfs_symlink_create(struct tmpfs_super *ts, const char *target, uid_t uid, gid_t gid, struct tmpfs_inode **ret)
{
	size_t len = strlen(target);
	struct tmpfs_inode *ti;
	int err = tmpfs_inode_create(ts, S_IFLNK | 0777, 0, uid, gid, &ti);

	if (err < 0)
		return err;
	err = store_meta_charge(ts->store, len + 1);
	if (err == 0) {
		ti->link = strdup(target);
		if (!ti->link) {
			store_meta_uncharge(ts->store, len + 1);
			err = -ENOMEM;
		}
	}
	if (err < 0) {
		inode_put(&ti->vfs);
		return err;
	}
	ti->vfs.size = len;
	*ret = ti;
	return 0;
}

void tmpfs_touch(struct tmpfs_inode *ti, bool contents)
{
	struct inode *in = &ti->vfs;

	in->ctime = ktime_now();
	if (contents)
		in->mtime = in->ctime;
	if (S_ISREG(in->mode))
		in->blocks = store_file_stat_blocks(&ti->data, in->size);
	else if (S_ISDIR(in->mode))
		in->size = (tmpfs_dir_live(ti) + 2) * 20ull; /* as Linux's tmpfs counts */
}

/* Empties the tree below @root bottom up, without recursion: a guest makes trees as deep as it likes. */
static void tree_free(struct tmpfs_inode *root)
{
	struct tmpfs_inode *dir = root, *up, *in;
	struct tmpfs_dirent *de;
	uint64_t cookie;

	while (dir) {
		cookie = 0;
		de = tmpfs_dir_next(dir, &cookie);
		if (de && de->in && S_ISDIR(de->in->vfs.mode) && de->in->dir) {
			dir = de->in;
			continue;
		}
		if (de) {
			in = de->in;
			tmpfs_dir_remove(dir, de, false);
			if (in)
				inode_put(&in->vfs);
			continue;
		}
		up = dir == root ? NULL : dir->parent; /* alive: it holds dir */
		tmpfs_dir_free(dir);
		dir = up;
	}
}

static void tmpfs_destroy(struct inode *in)
{
	struct tmpfs_inode *ti = tmpfs_i(in);

	switch (in->mode & S_IFMT) {
	case S_IFREG:
		store_file_clear(ti->ts->store, &ti->data);
		break;
	case S_IFDIR:
		/* Only the root of a dying superblock still has entries (whiteouts apart). */
		tree_free(ti);
		inode_put(ti->origin);
		break;
	case S_IFLNK:
		if (ti->link)
			store_meta_uncharge(ti->ts->store, strlen(ti->link) + 1);
		free(ti->link);
		break;
	}
	tmpfs_xattr_free(ti);
	/* A name more is a charge more; names are left only when the superblock dies. */
	for (; !S_ISDIR(in->mode) && in->nlink > 1; in->nlink--)
		store_inode_uncharge(ti->ts->store);
	store_inode_uncharge(ti->ts->store);
	free(ti);
}

static int tmpfs_readlink(struct inode *in, char *buf, size_t n)
{
	size_t len = MIN((size_t)in->size, n);

	memcpy(buf, tmpfs_i(in)->link, len);
	return (int)len;
}

static int tmpfs_statfs(struct super *sb, struct kstatfs *st)
{
	const struct store *s = tmpfs_s(sb)->store;
	uint64_t used = (s->used_bytes + STORE_BLOCK - 1) / STORE_BLOCK;

	*st = (struct kstatfs){
		.type = sb->magic,
		.bsize = STORE_BLOCK,
		.blocks = s->max_bytes / STORE_BLOCK,
		.files = s->max_inodes,
		.ffree = s->max_inodes - s->used_inodes,
		.namelen = 255,
	};
	st->bfree = st->bavail = st->blocks > used ? st->blocks - used : 0;
	return 0;
}

static void tmpfs_super_destroy(struct super *sb)
{
	free(tmpfs_s(sb));
}

static const struct super_ops tmpfs_super_ops = {
	.statfs = tmpfs_statfs,
	.destroy = tmpfs_super_destroy,
};

int tmpfs_create(struct store *s, uint32_t root_mode, struct super **ret)
{
	struct tmpfs_super *ts = calloc(1, sizeof(*ts));
	struct tmpfs_inode *root;
	int err;

	if (!ts)
		return -ENOMEM;
	super_init(&ts->sb, &tmpfs_super_ops, "tmpfs", TMPFS_MAGIC);
	ts->sb.stable = true;
	ts->store = s;
	ts->face = &ts->sb;
	ts->next_ino = 1;
	err = tmpfs_inode_create(ts, S_IFDIR | (root_mode & 07777), 0, 0, 0, &root);
	if (err < 0) {
		super_put(&ts->sb);
		return err;
	}
	root->parent = root;
	ts->sb.root = &root->vfs;
	*ret = &ts->sb;
	return 0;
}

#define TMPFS_ATTR_OPS \
	.setattr = tmpfs_setattr, .getxattr = tmpfs_getxattr, .setxattr = tmpfs_setxattr, \
	.listxattr = tmpfs_listxattr, .removexattr = tmpfs_removexattr, .destroy = tmpfs_destroy

const struct inode_ops tmpfs_dir_iops = {
	TMPFS_ATTR_OPS,
	.lookup = tmpfs_lookup,
	.create = tmpfs_create_file,
	.mkdir = tmpfs_mkdir,
	.mknod = tmpfs_mknod,
	.symlink = tmpfs_symlink,
	.link = tmpfs_link,
	.unlink = tmpfs_unlink,
	.rmdir = tmpfs_rmdir,
	.rename = tmpfs_rename,
	.tmpfile = tmpfs_tmpfile,
};

const struct inode_ops tmpfs_file_iops = {
	TMPFS_ATTR_OPS,
};

const struct inode_ops tmpfs_link_iops = {
	TMPFS_ATTR_OPS,
	.readlink = tmpfs_readlink,
};

const struct inode_ops tmpfs_special_iops = {
	TMPFS_ATTR_OPS,
};
