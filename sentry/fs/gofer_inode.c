/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inodes of a grant: found by the host's device and inode number, placed by parent and name, with attributes that are
 * trusted for a time. An inode without an id may be given one at any time by walking to its place; when the host has
 * moved something else there it is stale (gofer_stale), which makes the dentry cache look again.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/host/file.h"
#include "base/slab.h"
#include "sentry/fs/gofer_priv.h"
#include "sentry/vfs/dentry.h"

static struct slab inodes = SLAB_INIT(inodes, struct gofer_inode);

uint64_t gofer_until(const struct gofer_fs *fs)
{
	return fs->sb.stable ? GOFER_FOREVER : gofer_now() + GOFER_TRUST_NS;
}

uint64_t gofer_guest_ino(const struct gofer_fs *fs, uint64_t dev, uint64_t ino)
{
	/* The guest sees one device: numbers of other host file systems below the grant are moved apart. */
	return dev == fs->root_dev ? ino : ino ^ (hash_u64(dev) & ~0xffffffffffull);
}

static uint32_t bucket_of(const struct gofer_fs *fs, uint64_t dev, uint64_t ino)
{
	return (uint32_t)hash_u64(ino ^ hash_u64(dev)) & (fs->n_buckets - 1);
}

struct gofer_inode *gofer_inode_peek(struct gofer_fs *fs, uint64_t dev, uint64_t ino)
{
	struct gofer_inode *gi;

	list_for_each_entry(gi, &fs->buckets[bucket_of(fs, dev, ino)], hash_node) {
		if (gi->ino == ino && gi->dev == dev)
			return gi;
	}
	return NULL;
}

static void table_grow(struct gofer_fs *fs)
{
	uint32_t old_n = fs->n_buckets;
	struct list *old = fs->buckets, *b = malloc(sizeof(*b) * old_n * 2);

	if (!b)
		return; /* longer chains are only slower */
	for (uint32_t i = 0; i < old_n * 2; i++)
		list_init(&b[i]);
	fs->buckets = b;
	fs->n_buckets = old_n * 2;
	for (uint32_t i = 0; i < old_n; i++) {
		while (!list_empty(&old[i])) {
			struct gofer_inode *gi = list_first_entry(&old[i], struct gofer_inode, hash_node);

			list_del(&gi->hash_node);
			list_add(&b[bucket_of(fs, gi->dev, gi->ino)], &gi->hash_node);
		}
	}
	free(old);
}

static void table_insert(struct gofer_inode *gi)
{
	struct gofer_fs *fs = gi->fs;

	if (++fs->n_inodes > fs->n_buckets)
		table_grow(fs);
	list_add(&fs->buckets[bucket_of(fs, gi->dev, gi->ino)], &gi->hash_node);
}

static void table_remove(struct gofer_inode *gi)
{
	if (list_empty(&gi->hash_node))
		return;
	list_del(&gi->hash_node);
	gi->fs->n_inodes--;
}

void gofer_attr_set(struct gofer_inode *gi, const Sbx__Gofer__Attr *a, uint64_t until)
{
	const struct gofer_fs_args *args = &gi->fs->args;
	struct inode *in = &gi->inode;

	if ((a->mode & S_IFMT) != (in->mode & S_IFMT) || a->ino != gi->ino || a->dev != gi->dev)
		return; /* about another file */
	in->mode = a->mode;
	in->nlink = a->nlink;
	gi->owned = a->uid == args->host_uid;
	in->uid = gi->owned ? args->uid : a->uid;
	in->gid = a->gid == args->host_gid ? args->gid : a->gid;
	in->rdev = a->rdev;
	in->size = a->size;
	in->blocks = a->blocks;
	in->atime = (struct ktime){ a->atime, a->atime_nsec };
	in->mtime = (struct ktime){ a->mtime, a->mtime_nsec };
	in->ctime = (struct ktime){ a->ctime, a->ctime_nsec };
	in->btime = (struct ktime){ a->btime, a->btime_nsec };
	gi->attr_until = until;
}

bool gofer_place_is(const struct gofer_inode *gi, const struct gofer_inode *parent, const char *name, size_t len)
{
	return gi->parent == parent && gi->name && gi->name_len == len && !memcmp(gi->name, name, len);
}

void gofer_place_clear(struct gofer_inode *gi)
{
	struct gofer_inode *parent = gi->parent;

	gi->parent = NULL;
	free(gi->name);
	gi->name = NULL;
	gi->name_len = 0;
	gi->name_until = 0;
	gi->listed = false;
	if (parent)
		inode_put(&parent->inode);
}

int gofer_place_set(struct gofer_inode *gi, struct gofer_inode *parent, const char *name)
{
	size_t len = strlen(name);
	char *copy;

	if (gofer_place_is(gi, parent, name, len))
		return 0;
	for (struct gofer_inode *x = S_ISDIR(gi->inode.mode) ? parent : NULL; x; x = x->parent) {
		if (x == gi)
			return -ESTALE;
	}
	copy = strdup(name);
	if (!copy)
		return -ENOMEM;
	inode_get(&parent->inode);
	gofer_place_clear(gi);
	gi->parent = parent;
	gi->name = copy;
	gi->name_len = (uint32_t)len;
	return 0;
}

static const struct inode_ops *ops_for(uint32_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return &gofer_reg_inode_ops;
	case S_IFDIR:
		return &gofer_dir_inode_ops;
	case S_IFLNK:
		return &gofer_link_inode_ops;
	default:
		return &gofer_special_inode_ops;
	}
}

static struct gofer_inode *inode_make(struct gofer_fs *fs, const Sbx__Gofer__Attr *a)
{
	struct gofer_inode *gi = slab_alloc(&inodes);

	if (!gi)
		return NULL;
	memset(gi, 0, sizeof(*gi));
	inode_init(&gi->inode, &fs->sb, ops_for(a->mode), gofer_guest_ino(fs, a->dev, a->ino), a->mode);
	if (S_ISREG(a->mode))
		gi->inode.fops = &gofer_file_ops;
	else if (S_ISDIR(a->mode))
		gi->inode.fops = &gofer_dir_ops;
	gi->fs = fs;
	gi->dev = a->dev;
	gi->ino = a->ino;
	gi->serial = ++fs->conn->serial;
	list_init(&gi->hash_node);
	list_init(&gi->put_node);
	list_init(&gi->watch_node);
	table_insert(gi);
	return gi;
}

int gofer_iget(struct gofer_fs *fs, struct gofer_inode *parent, const char *name, const Sbx__Gofer__Attr *a,
               uint64_t until, struct gofer_inode **ret)
{
	struct gofer_inode *gi = gofer_inode_peek(fs, a->dev, a->ino);
	bool made;
	int r;

	/* The number was used again for another kind of file; or the root of the grant shows up below itself. */
	if (gi && ((gi->inode.mode ^ a->mode) & S_IFMT || (parent && &gi->inode == fs->sb.root))) {
		if (&gi->inode != fs->sb.root)
			table_remove(gi);
		gi = NULL;
	}
	made = !gi;
	if (gi) {
		inode_get(&gi->inode);
	} else {
		gi = inode_make(fs, a);
		if (!gi)
			return -ENOMEM;
	}
	if (parent && !gofer_place_is(gi, parent, name, strlen(name))) {
		/* Moved by the host, or another link: an id by the old place would not last. Not while it has host fds:
		 * then it is surely the same file. */
		if (gi->parent && gi->fid && a->nlink == 1 && !gi->wr) {
			gofer_fid_clear(gi);
		}
		r = gofer_place_set(gi, parent, name);
		if (r < 0) {
			inode_put(&gi->inode);
			return r;
		}
	}
	gi->gone = false;
	/* Not what is older than what is known; and an fd that was written to knows better. */
	if ((!gi->wr || !gi->wr->changed) && (until >= gi->attr_until || made))
		gofer_attr_set(gi, a, until);
	if (parent)
		gi->name_until = gofer_name_until(parent);
	*ret = gi;
	return 0;
}

int gofer_stale(struct gofer_inode *gi)
{
	gi->attr_until = gi->name_until = 0;
	if (gi->parent) {
		gofer_listing_drop(gi->parent);
		dcache_invalidate(&gi->parent->inode, gi->name, gi->name_len);
	}
	return -ESTALE;
}

void gofer_touched(struct gofer_inode *gi)
{
	struct gofer_listing *l = gi->listed && gi->parent ? gi->parent->listing : NULL;
	struct gofer_ent *e = l ? gofer_listing_find(l, gi->name, gi->name_len) : NULL;

	if (e)
		e->flags &= (uint8_t)~ENT_ATTR;
	gi->listed = false;
	gi->attr_until = 0;
}

static uint64_t neg_key(struct gofer_inode *dir, const char *name, size_t len)
{
	return hash_bytes(&dir->fs->conn->key, name, len) ^ hash_u64(dir->serial);
}

void gofer_neg_add(struct gofer_inode *dir, const char *name, size_t len)
{
	struct gofer_conn *c = dir->fs->conn;
	uint64_t key = neg_key(dir, name, len);

	if (dir->fs->sb.stable)
		return; /* the dentry cache keeps it */
	if (!c->neg)
		c->neg = calloc(GOFER_NEG_SLOTS, sizeof(*c->neg));
	if (c->neg)
		c->neg[key & (GOFER_NEG_SLOTS - 1)] = (struct gofer_neg){ key, gofer_name_until(dir) };
}

bool gofer_neg_hit(struct gofer_inode *dir, const char *name, size_t len)
{
	struct gofer_conn *c = dir->fs->conn;
	uint64_t key = neg_key(dir, name, len);
	const struct gofer_neg *n = c->neg ? &c->neg[key & (GOFER_NEG_SLOTS - 1)] : NULL;

	return n && n->key == key && n->until > gofer_now();
}

void gofer_neg_forget_all(struct gofer_inode *dir)
{
	dir->serial = ++dir->fs->conn->serial; /* it is part of the keys */
}

void gofer_neg_forget(struct gofer_inode *dir, const char *name, size_t len)
{
	struct gofer_conn *c = dir->fs->conn;
	uint64_t key = neg_key(dir, name, len);
	struct gofer_neg *n = c->neg ? &c->neg[key & (GOFER_NEG_SLOTS - 1)] : NULL;

	if (n && n->key == key)
		n->until = 0;
}

/* From an open host fd: no round trip. Owners are not taken: this process may be in another user namespace. */
static int refresh_from_fd(struct gofer_inode *gi, struct gofer_hfd *h)
{
	struct inode *in = &gi->inode;
	struct stat st;
	int r = host_fstat(h->fd, &st);

	if (r < 0)
		return r;
	in->mode = (in->mode & S_IFMT) | (st.st_mode & 07777);
	in->nlink = (uint32_t)st.st_nlink;
	in->size = (uint64_t)st.st_size;
	in->blocks = (uint64_t)st.st_blocks;
	in->atime = (struct ktime){ st.st_atim.tv_sec, (uint32_t)st.st_atim.tv_nsec };
	in->mtime = (struct ktime){ st.st_mtim.tv_sec, (uint32_t)st.st_mtim.tv_nsec };
	in->ctime = (struct ktime){ st.st_ctim.tv_sec, (uint32_t)st.st_ctim.tv_nsec };
	h->changed = false;
	gi->attr_until = gofer_until(gi->fs);
	return 0;
}

static int refresh_from_gofer(struct gofer_inode *gi)
{
	Sbx__Gofer__GetAttr g = SBX__GOFER__GET_ATTR__INIT;
	struct gofer_call c;
	uint64_t until = gofer_attr_until(gi);
	int r;

	gofer_call_init(&c, gi->fs->conn);
	if (gi->fid) {
		c.req.op_case = SBX__GOFER__REQUEST__OP_GETATTR;
		c.req.getattr = &g;
		r = gofer_call_fid(&c, gi, &g.fid);
	} else {
		r = gofer_call_peek(&c, gi->parent, gi->name);
	}
	if (r == 0)
		r = gofer_call_run(&c);
	if (r == 0 && (c.n_attrs != 1 || c.attrs[0]->ino != gi->ino || c.attrs[0]->dev != gi->dev ||
		       ((c.attrs[0]->mode ^ gi->inode.mode) & S_IFMT)))
		r = gofer_stale(gi);
	else if (r == -ENOENT)
		r = gofer_stale(gi);
	if (r == 0)
		gofer_attr_set(gi, c.attrs[0], until);
	gofer_call_end(&c);
	return r;
}

/* Where many files of a directory are looked at, all are asked for at once. */
static void refresh_many(struct gofer_inode *dir)
{
	uint64_t now = gofer_now();

	if (!dir || dir->too_big || dir->gone)
		return;
	if (now >= dir->refreshes_until) {
		dir->refreshes_until = gofer_until(dir->fs);
		dir->refreshes = 0;
	}
	/* A few of many are cheaper one by one. */
	if (++dir->refreshes < MAX(GOFER_REFRESHES, dir->listing ? dir->listing->n / 16 : 0))
		return;
	dir->refreshes = 0;
	gofer_listing_prefetch(dir);
}

int gofer_attrs_update(struct gofer_inode *gi)
{
	struct gofer_hfd *h = gi->wr ? gi->wr : gi->rd;

	if (gi->pend.valid)
		return 0; /* they were true when it was put off; who wants the whole truth settles first */
	if (gofer_now() < gi->attr_until)
		return 0;
	if (h)
		return refresh_from_fd(gi, h);
	if (gi->gone || (!gi->fid && !gi->parent))
		return 0;
	if (!S_ISDIR(gi->inode.mode))
		refresh_many(gi->parent);
	if (gofer_now() < gi->attr_until)
		return 0;
	return refresh_from_gofer(gi);
}

int gofer_refresh(struct inode *in)
{
	struct gofer_inode *gi = gofer_inode(in);

	/* An open file whose attributes have to be read from its fd is up to date by that. */
	if (!(gi->wr || gi->rd) || gofer_now() < gi->attr_until)
		gofer_check(gi->fs);
	return gofer_attrs_update(gi);
}

static void inode_free(struct gofer_inode *gi)
{
	struct gofer_conn *c = gi->fs->conn;

	if (c->unopened == gi)
		c->unopened = NULL;
	table_remove(gi);
	gofer_listing_drop(gi);
	gofer_hfds_fini(gi);
	gofer_watch_drop(gi);
	gofer_fid_clear(gi);
	gofer_place_clear(gi);
	free(gi->link);
	slab_free(&inodes, gi);
}

/* The put of the parent may end that as well, and so on: a queue instead of recursion as deep as the tree. */
void gofer_inode_destroy(struct inode *in)
{
	static struct list queue = LIST_INIT(queue);
	static bool running;

	list_add_tail(&queue, &gofer_inode(in)->put_node);
	if (running)
		return;
	running = true;
	while (!list_empty(&queue)) {
		struct gofer_inode *gi = list_first_entry(&queue, struct gofer_inode, put_node);

		list_del(&gi->put_node);
		inode_free(gi);
	}
	running = false;
}
