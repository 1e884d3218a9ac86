/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The overlay: a view of a read-only lower with all changes in an upper, which is a tmpfs of its own.
 *
 * Inodes. A directory, and a file that exists in the lower only, is shown by a wrapper (struct ovl_inode) that knows
 * its lower and its upper. What was made in the upper is shown as the tmpfs inode itself, so its I/O has no extra
 * layer; it says that its superblock is the overlay's (tmpfs_super.face). A file that is copied up while its wrapper
 * lives keeps the wrapper (tmpfs_inode.wrapper) until nobody uses it. So there is one inode for a file at any time,
 * and locks, running programs and the dentry cache see one identity.
 *
 * Names. An entry in the upper directory hides the lower's: an inode, or a whiteout (an entry without an inode). An
 * entry with TMPFS_DE_COVERS leaves a whiteout behind when it is removed, because the lower has that name too;
 * whoever makes an entry knows whether it has (it has when there was a whiteout, or at copy-up, or when a lower name
 * is replaced). A directory made in the upper has no lower (opaque); one that was copied up holds its lower in
 * tmpfs_inode.origin, wherever it is moved: renaming a directory of the lower copies nothing below it. None of this
 * can be named, read or forged by the guest.
 *
 * Copy-up (overlay_copyup.c) is done by the first change of contents or attributes. It makes the parents first. The
 * copy has the lower's inode number.
 *
 * Hard links of the lower stay links: the index knows which lower file with several names was copied up, so each of
 * its names leads to the copy.
 */
#include "sentry/fs/overlay.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/bug.h"
#include "base/hash.h"

bool ovl_is(const struct inode *in)
{
	return in->ops == &ovl_dir_iops || in->ops == &ovl_iops;
}

struct tmpfs_inode *ovl_upper_of(struct inode *in)
{
	struct inode *up = ovl_is(in) ? ovl_i(in)->upper : in;

	return up ? tmpfs_i(up) : NULL;
}

static struct inode *real_of(const struct ovl_inode *oi)
{
	return oi->upper ? oi->upper : oi->lower;
}

/* ---- tables ---- */

static void table_init(struct ovl_table *t)
{
	*t = (struct ovl_table){ .n_buckets = 1 };
	list_init(&t->first);
}

static struct list *bucket(struct ovl_table *t, uint64_t ino)
{
	return t->buckets ? &t->buckets[hash_u64(ino) & (t->n_buckets - 1)] : &t->first;
}

static uint64_t inode_key(const struct list *node)
{
	return container_of((struct list *)(uintptr_t)node, struct ovl_inode, hash_node)->lower->ino;
}

static uint64_t index_key(const struct list *node)
{
	return container_of((struct list *)(uintptr_t)node, struct ovl_index, node)->lower->ino;
}

static void table_grow(struct ovl_table *t, uint64_t (*key)(const struct list *node))
{
	struct list *old = t->buckets ? t->buckets : &t->first, *b;
	uint32_t old_n = t->n_buckets, n = MAX(old_n * 2, 64u), live = 0;

	for (uint32_t i = 0; i < old_n; i++) {
		for (const struct list *x = old[i].next; x != &old[i]; x = x->next)
			live++;
	}
	t->n = live;
	if (live < old_n / 2)
		return; /* most have left meanwhile */
	b = malloc(sizeof(*b) * n);
	if (!b) {
		t->n = 0; /* longer chains are only slower; try again later */
		return;
	}
	for (uint32_t i = 0; i < n; i++)
		list_init(&b[i]);
	t->n_buckets = n;
	for (uint32_t i = 0; i < old_n; i++) {
		while (!list_empty(&old[i])) {
			struct list *node = old[i].next;

			list_del(node);
			list_add(&b[hash_u64(key(node)) & (n - 1)], node);
		}
	}
	free(t->buckets);
	t->buckets = b;
}

/* What leaves the table is not counted off: the count is put right when it would grow. */
static void table_add(struct ovl_table *t, struct list *node, uint64_t (*key)(const struct list *node))
{
	if (t->n >= t->n_buckets)
		table_grow(t, key);
	t->n++;
	list_add(bucket(t, key(node)), node);
}

/* ---- attributes ---- */

void ovl_sync(struct ovl_inode *oi)
{
	const struct inode *r = real_of(oi);
	struct inode *in = &oi->vfs;

	in->mode = r->mode;
	in->uid = r->uid;
	in->gid = r->gid;
	in->rdev = r->rdev;
	in->size = r->size;
	in->blocks = r->blocks;
	in->atime = r->atime;
	in->mtime = r->mtime;
	in->ctime = r->ctime;
	in->btime = r->btime;
	if (oi->removed && (S_ISDIR(r->mode) || oi->removed >= r->nlink))
		in->nlink = 0;
	else if (S_ISDIR(r->mode) && oi->upper && oi->lower)
		in->nlink = r->nlink ? 1 : 0; /* "unknown", as overlayfs says: it would have to be counted */
	else
		in->nlink = r->nlink - oi->removed;
}

static int ovl_refresh(struct inode *in)
{
	struct ovl_inode *oi = ovl_i(in);
	int err = 0;

	if (!oi->upper && oi->lower->ops->refresh)
		err = oi->lower->ops->refresh(oi->lower);
	if (err == 0)
		ovl_sync(oi);
	return err;
}

static int ovl_setattr(struct inode *in, const struct iattr *attr)
{
	struct ovl_inode *oi = ovl_i(in);
	int err = ovl_copy_up(oi, attr->valid & ATTR_SIZE ? attr->size : OVL_ALL_DATA);

	if (err == 0)
		err = tmpfs_setattr(oi->upper, attr);
	ovl_sync(oi);
	return err;
}

static int ovl_readlink(struct inode *in, char *buf, size_t n)
{
	struct inode *r = real_of(ovl_i(in));

	return r->ops->readlink ? r->ops->readlink(r, buf, n) : -EINVAL;
}

static ssize_t ovl_getxattr(struct inode *in, const char *name, void *buf, size_t size)
{
	struct inode *r = real_of(ovl_i(in));

	return r->ops->getxattr ? r->ops->getxattr(r, name, buf, size) : -EOPNOTSUPP;
}

static ssize_t ovl_listxattr(struct inode *in, char *buf, size_t size)
{
	struct inode *r = real_of(ovl_i(in));

	return r->ops->listxattr ? r->ops->listxattr(r, buf, size) : 0;
}

static int ovl_setxattr(struct inode *in, const char *name, const void *buf, size_t size, int flags)
{
	struct ovl_inode *oi = ovl_i(in);
	int err = ovl_copy_up(oi, OVL_ALL_DATA);

	if (err == 0)
		err = tmpfs_setxattr(oi->upper, name, buf, size, flags);
	ovl_sync(oi);
	return err;
}

static int ovl_removexattr(struct inode *in, const char *name)
{
	struct ovl_inode *oi = ovl_i(in);
	ssize_t n = ovl_getxattr(in, name, NULL, 0);
	int err;

	if (n < 0)
		return (int)n; /* nothing to remove: no copy-up */
	err = ovl_copy_up(oi, OVL_ALL_DATA);
	if (err == 0)
		err = tmpfs_removexattr(oi->upper, name);
	ovl_sync(oi);
	return err;
}

/* ---- places and the index ---- */

int ovl_set_place(struct ovl_inode *oi, struct ovl_inode *dir, const char *name, size_t len)
{
	char *copy;

	if (oi->parent == dir && oi->name && oi->name_len == len && !memcmp(oi->name, name, len))
		return 0;
	copy = malloc(len);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, name, len);
	inode_get(&dir->vfs);
	ovl_clear_place(oi);
	oi->parent = dir;
	oi->name = copy;
	oi->name_len = (uint32_t)len;
	return 0;
}

void ovl_clear_place(struct ovl_inode *oi)
{
	struct ovl_inode *parent = oi->parent;

	free(oi->name);
	oi->name = NULL;
	oi->parent = NULL;
	if (parent)
		inode_put(&parent->vfs);
}

void ovl_dir_changed(struct ovl_inode *dir)
{
	ovl_listing_put(dir->listing);
	dir->listing = NULL;
	ovl_sync(dir);
}

/* May two lower inodes be the same file? Pointers differ when the lower forgot the inode meanwhile. */
static bool same_lower(const struct inode *a, const struct inode *b)
{
	return a == b || (a->ino == b->ino && a->mode == b->mode && a->size == b->size &&
			  a->mtime.sec == b->mtime.sec && a->mtime.nsec == b->mtime.nsec);
}

struct ovl_index *ovl_index_find(struct ovl_super *os, const struct inode *lower)
{
	struct ovl_index *x;

	list_for_each_entry(x, bucket(&os->index, lower->ino), node)
		if (same_lower(x->lower, lower))
			return x;
	return NULL;
}

int ovl_index_make(struct ovl_super *os, struct inode *lower, struct ovl_index **ret)
{
	struct ovl_index *x = ovl_index_find(os, lower);

	if (!x) {
		x = calloc(1, sizeof(*x));
		if (!x)
			return -ENOMEM;
		x->lower = inode_get(lower);
		table_add(&os->index, &x->node, index_key);
	}
	*ret = x;
	return 0;
}

static void index_drop(struct ovl_index *x)
{
	list_del(&x->node);
	inode_put(x->lower);
	if (x->upper)
		inode_put(&x->upper->vfs);
	free(x);
}

void ovl_index_forget(struct ovl_super *os, struct tmpfs_inode *ti)
{
	struct ovl_index *x;

	if (!(ti->flags & TMPFS_COPIED) || ti->vfs.nlink)
		return;
	list_for_each_entry(x, bucket(&os->index, ti->vfs.ino), node) {
		if (x->upper == ti) {
			index_drop(x);
			return;
		}
	}
}

/* ---- wrappers ---- */

static int wrapper_create(struct ovl_super *os, struct inode *lower, struct inode *upper, struct ovl_inode **ret)
{
	const struct inode *r = upper ? upper : lower;
	struct ovl_inode *oi = calloc(1, sizeof(*oi));

	if (!oi)
		return -ENOMEM;
	inode_init(&oi->vfs, &os->sb, S_ISDIR(r->mode) ? &ovl_dir_iops : &ovl_iops, r->ino, r->mode);
	list_init(&oi->hash_node);
	oi->lower = lower ? inode_get(lower) : NULL;
	oi->upper = upper ? inode_get(upper) : NULL;
	if (S_ISDIR(r->mode))
		oi->vfs.fops = &ovl_dir_ops;
	else if (S_ISREG(r->mode))
		oi->vfs.fops = &ovl_file_ops;
	else
		oi->vfs.fops = r->fops;
	if (upper)
		tmpfs_i(upper)->wrapper = &oi->vfs;
	else
		table_add(&os->hash, &oi->hash_node, inode_key);
	ovl_sync(oi);
	*ret = oi;
	return 0;
}

int ovl_wrap_upper(struct ovl_inode *dir, struct tmpfs_inode *ti, struct inode **ret)
{
	struct ovl_inode *oi;
	int err;

	if (ti->wrapper || !S_ISDIR(ti->vfs.mode)) {
		*ret = inode_get(ti->wrapper ? ti->wrapper : &ti->vfs);
		return 0;
	}
	err = wrapper_create(ovl_s(dir->vfs.sb), ti->origin, &ti->vfs, &oi);
	if (err < 0)
		return err;
	oi->parent = ovl_i(inode_get(&dir->vfs));
	*ret = &oi->vfs;
	return 0;
}

/* The live wrapper of a lower inode that has no upper. */
static struct ovl_inode *find_wrapper(struct ovl_super *os, const struct ovl_inode *dir, const struct qname *name,
				      const struct inode *lower)
{
	struct ovl_inode *oi;
	bool here;

	list_for_each_entry(oi, bucket(&os->hash, lower->ino), hash_node) {
		if (oi->lower == lower)
			return oi;
		here = oi->parent == dir && oi->name && oi->name_len == name->len &&
		       !memcmp(oi->name, name->s, name->len);
		if (S_ISDIR(lower->mode) ? here && oi->lower->ino == lower->ino && S_ISDIR(oi->lower->mode)
					 : (here || lower->nlink > 1) && same_lower(oi->lower, lower))
			return oi;
	}
	return NULL;
}

static int wrap_lower(struct ovl_inode *dir, const struct qname *name, struct inode *lower, struct inode **ret)
{
	struct ovl_super *os = ovl_s(dir->vfs.sb);
	struct ovl_index *x = NULL;
	struct ovl_inode *oi;
	int err;

	if (!S_ISDIR(lower->mode) && lower->nlink > 1)
		x = ovl_index_find(os, lower);
	if (x && x->upper)
		return ovl_wrap_upper(dir, x->upper, ret);
	oi = find_wrapper(os, dir, name, lower);
	if (oi) {
		inode_get(&oi->vfs);
	} else {
		err = wrapper_create(os, lower, NULL, &oi);
		if (err < 0)
			return err;
		oi->removed = x ? x->removed : 0;
	}
	err = ovl_set_place(oi, dir, name->s, name->len);
	if (err < 0) {
		inode_put(&oi->vfs);
		return err;
	}
	ovl_sync(oi);
	*ret = &oi->vfs;
	return 0;
}

static int ovl_lookup(struct inode *dir, const struct qname *name, struct inode **ret)
{
	struct ovl_inode *od = ovl_i(dir);
	struct tmpfs_dirent *de = od->upper ? tmpfs_dir_find(tmpfs_i(od->upper), name->s, name->len) : NULL;
	struct inode *lower;
	int err;

	if (de)
		return de->in ? ovl_wrap_upper(od, de->in, ret) : -ENOENT;
	if (!od->lower)
		return -ENOENT;
	err = od->lower->ops->lookup ? od->lower->ops->lookup(od->lower, name, &lower) : -ENOTDIR;
	if (err < 0)
		return err;
	err = wrap_lower(od, name, lower, ret);
	inode_put(lower);
	return err;
}

static int ovl_revalidate(struct inode *dir, const struct qname *name, struct inode *in)
{
	struct ovl_inode *od = ovl_i(dir);

	if (!od->lower || !od->lower->ops->revalidate || od->lower->sb->stable)
		return 1;
	if (od->upper && tmpfs_dir_find(tmpfs_i(od->upper), name->s, name->len))
		return 1;
	if (in && (!ovl_is(in) || !ovl_i(in)->lower))
		return 1;
	return od->lower->ops->revalidate(od->lower, name, in ? ovl_i(in)->lower : NULL);
}

/* A wrapper holds its parent: freeing is done in a loop, not by recursion, as the tree may be of any depth. */
static void ovl_destroy(struct inode *in)
{
	static struct list dying = LIST_INIT(dying);
	static bool busy;
	struct ovl_inode *oi = ovl_i(in);

	if (oi->upper)
		tmpfs_i(oi->upper)->wrapper = NULL;
	list_del(&oi->hash_node);
	list_add_tail(&dying, &oi->hash_node);
	if (busy)
		return;
	busy = true;
	while (!list_empty(&dying)) {
		oi = list_first_entry(&dying, struct ovl_inode, hash_node);
		list_del(&oi->hash_node);
		ovl_listing_put(oi->listing);
		ovl_clear_place(oi);
		inode_put(oi->upper);
		inode_put(oi->lower);
		free(oi);
	}
	busy = false;
}

/* ---- the superblock ---- */

static int ovl_statfs(struct super *sb, struct kstatfs *st)
{
	struct super *upper = ovl_s(sb)->upper;
	int err = upper->ops->statfs(upper, st);

	st->type = sb->magic;
	return err;
}

static void ovl_super_destroy(struct super *sb)
{
	struct ovl_super *os = ovl_s(sb);
	struct ovl_index *x, *tmp;

	for (uint32_t i = 0; i < os->index.n_buckets; i++)
		list_for_each_entry_safe(x, tmp, os->index.buckets ? &os->index.buckets[i] : &os->index.first, node)
			index_drop(x);
	free(os->index.buckets);
	free(os->hash.buckets);
	if (os->upper)
		ovl_upper(os)->face = os->upper;
	super_put(os->upper);
	super_put(os->lower);
	free(os);
}

static const struct super_ops ovl_super_ops = {
	.statfs = ovl_statfs,
	.destroy = ovl_super_destroy,
};

bool overlay_is(const struct super *sb)
{
	return sb->ops == &ovl_super_ops;
}

/* The root: of a directory, the two roots merged; of a single file, a wrapper that has no place. */
static int make_root(struct ovl_super *os)
{
	struct tmpfs_inode *up = tmpfs_i(os->upper->root);
	struct inode *low = os->lower->root;
	struct ovl_inode *root;
	int err;

	if (S_ISDIR(low->mode)) {
		err = ovl_copy_attrs(low, up);
		if (err < 0)
			return err;
		up->origin = inode_get(low);
	}
	err = wrapper_create(os, low, S_ISDIR(low->mode) ? &up->vfs : NULL, &root);
	if (err < 0)
		return err;
	os->sb.root = &root->vfs;
	return 0;
}

int overlay_create(struct super *lower, struct super *upper, struct super **ret)
{
	struct ovl_super *os = calloc(1, sizeof(*os));
	int err;

	if (!os)
		return -ENOMEM;
	super_init(&os->sb, &ovl_super_ops, "overlay", OVERLAYFS_SUPER_MAGIC);
	os->sb.stable = lower->stable;
	table_init(&os->hash);
	table_init(&os->index);
	os->lower = super_get(lower);
	os->upper = super_get(upper);
	ovl_upper(os)->face = &os->sb;
	ovl_upper(os)->next_ino = OVL_INO_BASE;
	err = make_root(os);
	if (err < 0) {
		super_put(&os->sb);
		return err;
	}
	*ret = &os->sb;
	return 0;
}

#define OVL_ATTR_OPS \
	.refresh = ovl_refresh, .setattr = ovl_setattr, .getxattr = ovl_getxattr, .setxattr = ovl_setxattr, \
	.listxattr = ovl_listxattr, .removexattr = ovl_removexattr, .destroy = ovl_destroy

const struct inode_ops ovl_dir_iops = {
	OVL_ATTR_OPS,
	.lookup = ovl_lookup,
	.revalidate = ovl_revalidate,
	.create = ovl_create,
	.mkdir = ovl_mkdir,
	.mknod = ovl_mknod,
	.symlink = ovl_symlink,
	.link = ovl_link,
	.unlink = ovl_unlink,
	.rmdir = ovl_rmdir,
	.rename = ovl_rename,
	.tmpfile = ovl_tmpfile,
};

const struct inode_ops ovl_iops = {
	OVL_ATTR_OPS,
	.readlink = ovl_readlink,
};
