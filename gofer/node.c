/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Life of a node: node_walk or node_adopt makes it with an open fd. It lives while a fid, a child or a user refers to
 * it. While it is pinned its fd stays open; else it is on the LRU and table_evict may close the fd. node_pin then opens
 * it anew from its nearest open ancestor, a component at a time, and compares the identity: a file that the host
 * replaced is -ESTALE, never silently another file.
 *
 * Nodes are found by (parent, name), so that every fid on one name shares one node and follows when it is renamed. When
 * the host put another file at the name, the old node is taken out of the table (nameless) and a new one made.
 *
 * Invariants: a node in the hash has a parent and a name; parents form no cycle (node_renamed refuses one that the
 * host's own renames could lead to); n_open counts the nodes with fd >= 0.
 */
#include "gofer/node.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/bug.h"
#include "base/host/at.h"
#include "base/host/file.h"
#include "base/log.h"
#include "base/slab.h"
#include "gofer/grant.h"
#include "gofer/reopen.h"
#include "gofer/watch.h"

#define REOPEN_BATCH 64 /* ancestors that node_pin notes at once */

struct node_table {
	struct hash_key key;
	struct list *buckets;
	uint32_t n_buckets; /* a power of two */
	uint32_t n_hashed;
	struct list lru;
	unsigned n_open, fd_budget, n_nameless_open;
};

static struct slab nodes = SLAB_INIT(nodes, struct node);

struct node_table *node_table_create(unsigned fd_budget)
{
	struct node_table *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->n_buckets = 256;
	t->buckets = malloc(t->n_buckets * sizeof(*t->buckets));
	if (!t->buckets || getrandom(&t->key, sizeof(t->key), 0) != (ssize_t)sizeof(t->key)) {
		free(t->buckets);
		free(t);
		return NULL;
	}
	for (uint32_t i = 0; i < t->n_buckets; i++)
		list_init(&t->buckets[i]);
	list_init(&t->lru);
	t->fd_budget = MAX(fd_budget, 16u);
	return t;
}

void node_table_destroy(struct node_table *t)
{
	if (!t)
		return;
	BUG_ON(t->n_hashed || t->n_open);
	free(t->buckets);
	free(t);
}

unsigned node_table_open_fds(const struct node_table *t)
{
	return t->n_open;
}

void file_id_from_statx(struct file_id *id, const struct statx *stx)
{
	id->dev = (uint64_t)stx->stx_dev_major << 32 | stx->stx_dev_minor;
	id->ino = stx->stx_ino;
}

bool file_id_equal(const struct file_id *a, const struct file_id *b)
{
	return a->ino == b->ino && a->dev == b->dev;
}

static uint32_t name_hash(const struct node_table *t, const struct node *parent, const char *name, size_t len)
{
	return (uint32_t)(hash_bytes(&t->key, name, len) ^ hash_u64((uintptr_t)parent));
}

static void table_grow(struct node_table *t)
{
	uint32_t n = t->n_buckets * 2;
	struct list *b = malloc(n * sizeof(*b));

	if (!b)
		return; /* longer chains are only slower */
	for (uint32_t i = 0; i < n; i++)
		list_init(&b[i]);
	for (uint32_t i = 0; i < t->n_buckets; i++) {
		while (!list_empty(&t->buckets[i])) {
			struct node *x = list_first_entry(&t->buckets[i], struct node, hash_node);

			list_del(&x->hash_node);
			list_add(&b[x->hash & (n - 1)], &x->hash_node);
		}
	}
	free(t->buckets);
	t->buckets = b;
	t->n_buckets = n;
}

static void hash_insert(struct node_table *t, struct node *n)
{
	if (t->n_hashed >= t->n_buckets)
		table_grow(t);
	n->hash = name_hash(t, n->parent, n->name, n->name_len);
	list_add(&t->buckets[n->hash & (t->n_buckets - 1)], &n->hash_node);
	t->n_hashed++;
}

static void hash_remove(struct node_table *t, struct node *n)
{
	if (list_empty(&n->hash_node))
		return;
	list_del(&n->hash_node);
	t->n_hashed--;
}

static struct node *hash_peek(struct node_table *t, const struct node *parent, const char *name)
{
	size_t len = strlen(name);
	uint32_t h = name_hash(t, parent, name, len);
	struct node *n;

	list_for_each_entry(n, &t->buckets[h & (t->n_buckets - 1)], hash_node) {
		if (n->hash == h && n->parent == parent && n->name_len == len && !memcmp(n->name, name, len))
			return n;
	}
	return NULL;
}

static void fd_drop(struct node_table *t, struct node *n)
{
	if (n->fd < 0)
		return;
	list_del(&n->lru);
	host_close(n->fd);
	n->fd = -1;
	t->n_open--;
	if (n->flags & NODE_NAMELESS)
		t->n_nameless_open--;
}

/* Makes room for one more fd. */
static int table_evict(struct node_table *t)
{
	while (t->n_open >= t->fd_budget) {
		if (list_empty(&t->lru))
			return -ENFILE;
		fd_drop(t, list_last_entry(&t->lru, struct node, lru));
	}
	return 0;
}

static void fd_set_open(struct node_table *t, struct node *n, int fd)
{
	n->fd = fd;
	t->n_open++;
}

/* Not pinned any more: may be evicted, unless it could not be opened again. */
static void fd_relax(struct node_table *t, struct node *n)
{
	if (n->pins || n->fd < 0 || (n->flags & NODE_ROOT))
		return;
	if ((n->flags & NODE_NAMELESS) && t->n_nameless_open <= t->fd_budget / 2)
		return;
	list_del(&n->lru);
	list_add(&t->lru, &n->lru);
}

static struct node *node_alloc(struct grant *g, const struct statx *stx)
{
	struct node *n = slab_alloc(&nodes);

	if (!n)
		return NULL;
	memset(n, 0, sizeof(*n));
	n->refs = 1;
	n->grant = g;
	n->fd = -1;
	n->fmt = stx->stx_mode & S_IFMT;
	file_id_from_statx(&n->id, stx);
	list_init(&n->hash_node);
	list_init(&n->lru);
	list_init(&n->watch_node);
	return n;
}

struct node *node_create_root(struct node_table *t, struct grant *g, int fd, const struct statx *stx)
{
	struct node *n = node_alloc(g, stx);

	if (!n) {
		host_close(fd);
		return NULL;
	}
	n->flags = NODE_ROOT;
	n->mark = g->marks;
	fd_set_open(t, n, fd);
	return n;
}

struct node *node_get(struct node *n)
{
	n->refs++;
	return n;
}

/* A loop, as a chain of parents may be long. */
void node_put(struct node_table *t, struct node *n)
{
	while (n && --n->refs == 0) {
		struct node *parent = n->parent;

		BUG_ON(n->pins);
		watch_node_gone(n);
		hash_remove(t, n);
		fd_drop(t, n);
		free(n->name);
		slab_free(&nodes, n);
		n = parent;
	}
}

static const struct open_how walk_how = {
	.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
	.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
};

static int open_component(int dirfd, const char *name, struct statx *stx)
{
	int fd = host_openat2(dirfd, name, &walk_how), r;

	if (fd < 0)
		return fd;
	r = host_statx(fd, "", AT_EMPTY_PATH, NODE_STX_MASK, stx);
	if (r < 0) {
		host_close(fd);
		return r;
	}
	return fd;
}

/* Opens @n, whose parent is open. */
static int reopen_one(struct node_table *t, struct node *n)
{
	struct file_id id;
	struct statx stx;
	int fd, r;

	r = table_evict(t);
	if (r < 0)
		return r;
	fd = open_component(n->parent->fd, n->name, &stx);
	if (fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP)
		return -ESTALE;
	if (fd < 0)
		return fd;
	file_id_from_statx(&id, &stx);
	if (!file_id_equal(&id, &n->id)) {
		host_close(fd);
		return -ESTALE;
	}
	fd_set_open(t, n, fd);
	return 0;
}

/* Opens the ancestors of @n that are evicted, and @n. */
static int reopen(struct node_table *t, struct node *n)
{
	while (n->fd < 0) {
		struct node *chain[REOPEN_BATCH];
		unsigned len = 0;
		int r = 0;

		/* A ring: of a long chain the topmost REOPEN_BATCH stay noted. */
		for (struct node *x = n; x->fd < 0; x = x->parent) {
			if (!x->parent)
				return -ESTALE;
			chain[len++ % REOPEN_BATCH] = x;
		}
		for (unsigned i = 0; i < MIN(len, (unsigned)REOPEN_BATCH) && r == 0; i++) {
			struct node *x = chain[(len - 1 - i) % REOPEN_BATCH];

			x->parent->pins++;
			list_del(&x->parent->lru);
			r = reopen_one(t, x);
			x->parent->pins--;
			fd_relax(t, x->parent);
			/* Held on no list: the next step, or node_pin, puts it there. */
		}
		if (r < 0)
			return r;
	}
	return 0;
}

int node_pin(struct node_table *t, struct node *n)
{
	if (n->fd < 0) {
		int r = reopen(t, n);

		if (r < 0)
			return r;
	}
	n->pins++;
	list_del(&n->lru);
	return n->fd;
}

void node_unpin(struct node_table *t, struct node *n)
{
	BUG_ON(!n->pins);
	n->pins--;
	fd_relax(t, n);
}

static void make_nameless(struct node_table *t, struct node *n)
{
	struct node *parent = n->parent;

	hash_remove(t, n);
	free(n->name);
	n->name = NULL;
	n->name_len = 0;
	n->parent = NULL;
	n->mark = NULL;
	n->flags |= NODE_NAMELESS;
	if (n->fd >= 0) {
		t->n_nameless_open++;
		if (t->n_nameless_open <= t->fd_budget / 2)
			list_del(&n->lru);
	}
	node_put(t, parent);
}

/* Gives @n the place @name in @dir; what the table had there goes. */
static int set_place(struct node_table *t, struct node *n, struct node *dir, const char *name)
{
	struct node *old = hash_peek(t, dir, name);
	char *copy = strdup(name);

	if (!copy)
		return -ENOMEM;
	if (old && old != n)
		make_nameless(t, old);
	n->parent = node_get(dir);
	n->name = copy;
	n->name_len = (uint16_t)strlen(name);
	n->mark = mark_child(dir->mark, name);
	hash_insert(t, n);
	return 0;
}

/* Consumes @fd, an O_PATH fd of the file at @name in @dir. */
static int node_make(struct node_table *t, struct node *dir, const char *name, int fd, const struct statx *stx,
		     struct node **ret)
{
	struct node *n = node_alloc(dir->grant, stx);
	int r;

	if (!n) {
		host_close(fd);
		return -ENOMEM;
	}
	fd_set_open(t, n, fd);
	if (name) {
		r = set_place(t, n, dir, name);
		if (r < 0) {
			node_put(t, n);
			return r;
		}
		if (grant_bars(dir, n))
			n->flags |= NODE_BARRED;
	} else {
		n->flags |= NODE_NAMELESS;
		t->n_nameless_open++;
	}
	fd_relax(t, n);
	*ret = n;
	return 0;
}

int node_walk(struct node_table *t, struct node *dir, const char *name, struct statx *stx, struct node **ret)
{
	struct file_id id;
	struct node *n;
	int dirfd, fd, r;

	dirfd = node_pin(t, dir);
	if (dirfd < 0)
		return dirfd;
	r = table_evict(t);
	if (r < 0)
		goto out;
	r = fd = open_component(dirfd, name, stx);
	if (fd < 0)
		goto out;
	r = 0;
	file_id_from_statx(&id, stx);
	n = hash_peek(t, dir, name);
	if (n && file_id_equal(&id, &n->id)) {
		if (n->fd >= 0)
			host_close(fd);
		else
			fd_set_open(t, n, fd);
		fd_relax(t, n);
		*ret = node_get(n);
		goto out;
	}
	r = node_make(t, dir, name, fd, stx, ret);
out:
	node_unpin(t, dir);
	return r;
}

int node_adopt(struct node_table *t, struct node *dir, const char *name, int fd, struct statx *stx, struct node **ret)
{
	int path_fd, r;

	r = table_evict(t);
	if (r < 0)
		return r;
	path_fd = reopen_fd(fd, O_PATH);
	if (path_fd < 0)
		return path_fd;
	r = host_statx(path_fd, "", AT_EMPTY_PATH, NODE_STX_MASK, stx);
	if (r < 0) {
		host_close(path_fd);
		return r;
	}
	return node_make(t, dir, name, path_fd, stx, ret);
}

void node_prepare_unlink(struct node_table *t, struct node *dir, const char *name)
{
	struct node *n = hash_peek(t, dir, name);

	if (n && n->fd < 0 && node_pin(t, n) >= 0)
		node_unpin(t, n);
}

void node_unlinked(struct node_table *t, struct node *dir, const char *name)
{
	struct node *n = hash_peek(t, dir, name);

	if (n)
		make_nameless(t, n);
}

static bool is_ancestor(const struct node *a, const struct node *n)
{
	for (; n; n = n->parent) {
		if (n == a)
			return true;
	}
	return false;
}

/* Moves @n (in the table) to @name in @dir. It stays alive: it has fids or children. */
static void node_move(struct node_table *t, struct node *n, struct node *dir, const char *name)
{
	struct node *old_parent = n->parent;
	char *old_name = n->name;

	hash_remove(t, n);
	if (is_ancestor(n, dir) || set_place(t, n, dir, name) < 0) {
		/* Without a known place it can only be used while its fd is open. */
		make_nameless(t, n);
		return;
	}
	free(old_name);
	node_put(t, old_parent);
}

void node_renamed(struct node_table *t, struct node *odir, const char *oname, struct node *ndir, const char *nname,
		  bool exchange)
{
	struct node *a = hash_peek(t, odir, oname), *b = hash_peek(t, ndir, nname);

	if (a == b)
		return;
	if (a)
		node_get(a);
	if (b)
		node_get(b);
	if (b && exchange) {
		hash_remove(t, b); /* so that the move of a does not take its place for gone */
		if (a)
			node_move(t, a, ndir, nname);
		node_move(t, b, odir, oname);
	} else {
		if (b)
			make_nameless(t, b);
		if (a)
			node_move(t, a, ndir, nname);
	}
	node_put(t, a);
	node_put(t, b);
}

void node_named(struct node_table *t, struct node *n, struct node *dir, const char *name)
{
	if (!(n->flags & NODE_NAMELESS) || is_ancestor(n, dir))
		return;
	if (set_place(t, n, dir, name) < 0)
		return;
	n->flags &= (uint16_t)~NODE_NAMELESS;
	if (n->fd >= 0)
		t->n_nameless_open--;
	fd_relax(t, n);
}

struct node *fid_peek(const struct fid_table *ft, uint32_t fid)
{
	return fid < ft->cap ? ft->nodes[fid] : NULL;
}

int fid_reserve(struct fid_table *ft, uint32_t fid)
{
	uint32_t cap = ft->cap ? ft->cap : 64;
	struct node **p;

	if (fid == 0 || fid >= NODE_FIDS_MAX || fid_peek(ft, fid))
		return -EBADF;
	if (fid < ft->cap)
		return 0;
	while (cap <= fid)
		cap *= 2;
	p = realloc(ft->nodes, cap * sizeof(struct node *));
	if (!p)
		return -ENOMEM;
	memset(p + ft->cap, 0, (cap - ft->cap) * sizeof(struct node *));
	ft->nodes = p;
	ft->cap = cap;
	return 0;
}

int fid_install(struct node_table *t, struct fid_table *ft, uint32_t fid, struct node *n)
{
	int r = fid_reserve(ft, fid);

	if (r < 0) {
		node_put(t, n);
		return r;
	}
	ft->nodes[fid] = n;
	return 0;
}

void fid_clunk(struct node_table *t, struct fid_table *ft, uint32_t fid)
{
	struct node *n = fid_peek(ft, fid);

	if (!n)
		return;
	ft->nodes[fid] = NULL;
	node_put(t, n);
}

void fid_table_fini(struct node_table *t, struct fid_table *ft)
{
	for (uint32_t i = 0; i < ft->cap; i++)
		node_put(t, ft->nodes[i]);
	free(ft->nodes);
	*ft = (struct fid_table){ 0 };
}
