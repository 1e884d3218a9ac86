/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dentry cache. States of a dentry and who moves them:
 *
 *   in use, hashed     found by dentry_lookup(); held by a walk, a file, a cached child
 *   unused, hashed     dentry_put() of the last reference: on the LRU until found again or shrunk
 *   in use, unhashed   dentry_remove() or dentry_drop() while others hold it: freed by the last dentry_put()
 *
 * A dentry holds its parent, so only leaves are on the LRU and shrinking goes upwards. Counts are plain integers: all
 * of this is under the kernel lock.
 *
 * A directory has at most one dentry (inode->alias). When the file system finds a directory under another name than the
 * cached one (the host renamed it), the old dentry moves there with all that is below it.
 */
#include "sentry/vfs/dentry.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/slab.h"
#include "sentry/kernel/kernel.h"
#include "sentry/vfs/walk.h"

#define HASH_START 1024u
#define HASH_MAX   65536u

static struct slab dentries = SLAB_INIT(dentries, struct dentry);
static struct dentry **table;
static uint32_t table_size; /* power of two */
static uint32_t n_hashed;
static struct list lru = LIST_INIT(lru); /* the most recently used first */

static uint32_t hash_name(const char *name, size_t len)
{
	return (uint32_t)hash_bytes(&kernel.hash_key, name, len);
}

static struct dentry **bucket(const struct dentry *parent, uint32_t hash)
{
	return &table[(hash ^ (uint32_t)((uintptr_t)parent >> 6)) & (table_size - 1)];
}

static void hash_link(struct dentry *d)
{
	struct dentry **b = bucket(d->parent, d->name_hash);

	d->hash_next = *b;
	d->hash_pprev = b;
	if (*b)
		(*b)->hash_pprev = &d->hash_next;
	*b = d;
}

static void hash_unlink(struct dentry *d)
{
	*d->hash_pprev = d->hash_next;
	if (d->hash_next)
		d->hash_next->hash_pprev = d->hash_pprev;
	d->hash_pprev = NULL;
}

/* Doubles the table; without memory it stays as it is and chains get longer. */
static bool hash_grow(uint32_t size)
{
	struct dentry **old = table, **n = calloc(size, sizeof(*n));
	uint32_t old_size = table_size;

	if (!n)
		return false;
	table = n;
	table_size = size;
	for (uint32_t i = 0; i < old_size; i++) {
		struct dentry *d = old[i], *next;

		for (; d; d = next) {
			next = d->hash_next;
			hash_link(d);
		}
	}
	free(old);
	return true;
}

static void dentry_hash(struct dentry *d)
{
	if (n_hashed >= table_size && table_size < HASH_MAX)
		(void)hash_grow(table_size * 2);
	hash_link(d);
	d->hashed = true;
	n_hashed++;
}

static void dentry_unhash(struct dentry *d)
{
	if (!d->hashed)
		return;
	hash_unlink(d);
	d->hashed = false;
	n_hashed--;
}

static struct dentry *find(const struct dentry *parent, uint32_t hash, const char *name, size_t len)
{
	struct dentry *d;

	for (d = *bucket(parent, hash); d; d = d->hash_next)
		if (d->name_hash == hash && d->parent == parent && d->name_len == len && !memcmp(d->name, name, len))
			return d;
	return NULL;
}

static void clear_inode(struct dentry *d)
{
	struct inode *in = d->inode;

	if (in && in->alias == d)
		in->alias = NULL;
	d->inode = NULL;
	inode_put(in);
}

/* Frees an unused dentry; its reference on the parent is left to the caller. */
static void dentry_free(struct dentry *d)
{
	dentry_unhash(d);
	list_del(&d->lru_node);
	list_del(&d->sibling);
	if (dentry_is_root(d)) {
		if (d->inode->sb->root_dentry == d)
			d->inode->sb->root_dentry = NULL;
	} else if (d->name != d->inline_name) {
		free(d->name);
	}
	clear_inode(d);
	kernel.counters.dentries--;
	slab_free(&dentries, d);
}

static void free_upwards(struct dentry *d)
{
	struct dentry *parent = dentry_is_root(d) ? NULL : d->parent;

	dentry_free(d);
	dentry_put(parent);
}

struct dentry *dentry_get(struct dentry *d)
{
	if (d->ref.n++ == 0)
		list_del(&d->lru_node);
	return d;
}

void dentry_put(struct dentry *d)
{
	while (d) {
		struct dentry *parent = dentry_is_root(d) ? NULL : d->parent;

		BUG_ON(d->ref.n == 0);
		if (--d->ref.n)
			return;
		if (d->hashed) {
			list_add(&lru, &d->lru_node);
			return;
		}
		dentry_free(d);
		d = parent;
	}
}

void dcache_shrink(unsigned target)
{
	while (kernel.counters.dentries > target && !list_empty(&lru))
		free_upwards(list_last_entry(&lru, struct dentry, lru_node));
}

static struct dentry *dentry_alloc(void)
{
	struct dentry *d;

	if (!table && !hash_grow(HASH_START))
		return NULL;
	d = slab_alloc(&dentries);
	if (!d)
		return NULL;
	memset(d, 0, offsetof(struct dentry, inline_name));
	d->ref.n = 1;
	list_init(&d->lru_node);
	list_init(&d->children);
	list_init(&d->sibling);
	d->name = d->inline_name;
	kernel.counters.dentries++;
	return d;
}

/* Holds a new reference on @parent; not hashed. */
static struct dentry *dentry_alloc_child(struct dentry *parent, const char *name, size_t len, uint32_t hash)
{
	struct dentry *d;

	if (kernel.counters.dentries >= DENTRY_CACHE_MAX)
		dcache_shrink(DENTRY_CACHE_MAX - DENTRY_CACHE_MAX / 16);
	d = dentry_alloc();
	if (!d)
		return NULL;
	if (len >= DENTRY_INLINE_LEN) {
		d->name = malloc(len + 1);
		if (!d->name) {
			kernel.counters.dentries--;
			slab_free(&dentries, d);
			return NULL;
		}
	}
	memcpy(d->name, name, len);
	d->name[len] = '\0';
	d->name_len = (uint32_t)len;
	d->name_hash = hash;
	d->parent = dentry_get(parent);
	list_add(&parent->children, &d->sibling);
	return d;
}

struct dentry *dentry_create_root(struct inode *root)
{
	struct dentry *d = dentry_alloc();

	if (!d)
		return NULL;
	d->parent = d;
	d->name = (char *)(uintptr_t)""; /* borrowed, as of all roots */
	d->inode = inode_get(root);
	if (S_ISDIR(root->mode))
		root->alias = d;
	root->sb->root_dentry = d;
	return d;
}

struct dentry *dentry_create_loose(struct inode *in, const char *name)
{
	struct dentry *d = dentry_alloc();

	if (!d)
		return NULL;
	d->parent = d;
	d->name = (char *)(uintptr_t)name;
	d->name_len = (uint32_t)strlen(name);
	d->inode = inode_get(in);
	return d;
}

struct dentry *dentry_create_tmpfile(struct dentry *dir, struct inode *in)
{
	char name[24];
	int len = snprintf(name, sizeof(name), "#%llu", (unsigned long long)in->ino);
	struct dentry *d = dentry_alloc_child(dir, name, (size_t)len, 0);

	if (d)
		d->inode = inode_get(in);
	return d;
}

struct qname dentry_qname(const struct dentry *d)
{
	return (struct qname){ .s = d->name, .len = d->name_len, .hash = d->name_hash };
}

bool dentry_is_ancestor(const struct dentry *anc, const struct dentry *d)
{
	while (d != anc && !dentry_is_root(d))
		d = d->parent;
	return d == anc;
}

void dentry_instantiate(struct dentry *d, struct inode *in)
{
	d->inode = in;
	if (S_ISDIR(in->mode))
		in->alias = d;
}

/* Unhashes @d, which somebody may use or not. */
void dentry_drop(struct dentry *d)
{
	dentry_unhash(d);
	if (!d->ref.n)
		free_upwards(d);
}

/* Forgets the unused children of a directory that was removed: they are all negative, and pin its inode. */
static void drop_children(struct dentry *dir)
{
	struct dentry *c, *tmp;

	list_for_each_entry_safe(c, tmp, &dir->children, sibling)
		if (!c->ref.n)
			free_upwards(c);
}

void dentry_remove(struct dentry *d)
{
	if (S_ISDIR(d->inode->mode)) {
		d->dead = true;
		drop_children(d);
		dentry_unhash(d);
	} else if (d->ref.n == 1) {
		clear_inode(d);
	} else {
		dentry_unhash(d);
	}
}

static void swap_names(struct dentry *a, struct dentry *b)
{
	bool a_inline = a->name == a->inline_name, b_inline = b->name == b->inline_name;
	char *a_name = a->name, *b_name = b->name, tmp[DENTRY_INLINE_LEN];
	uint32_t len = a->name_len, hash = a->name_hash;

	memcpy(tmp, a->inline_name, sizeof(tmp));
	memcpy(a->inline_name, b->inline_name, sizeof(tmp));
	memcpy(b->inline_name, tmp, sizeof(tmp));
	a->name = b_inline ? a->inline_name : b_name;
	b->name = a_inline ? b->inline_name : a_name;
	a->name_len = b->name_len;
	b->name_len = len;
	a->name_hash = b->name_hash;
	b->name_hash = hash;
}

/* Exchanges the places of two dentries: the references on the parents change hands with them. */
static void swap_places(struct dentry *a, struct dentry *b)
{
	struct dentry *parent = a->parent;
	bool a_hashed = a->hashed, b_hashed = b->hashed;

	dentry_unhash(a);
	dentry_unhash(b);
	swap_names(a, b);
	a->parent = b->parent;
	b->parent = parent;
	list_del(&a->sibling);
	list_del(&b->sibling);
	list_add(&a->parent->children, &a->sibling);
	list_add(&b->parent->children, &b->sibling);
	if (b_hashed)
		dentry_hash(a);
	if (a_hashed)
		dentry_hash(b);
}

void dentry_exchange(struct dentry *a, struct dentry *b)
{
	swap_places(a, b);
}

void dentry_rename(struct dentry *d, struct dentry *target)
{
	struct inode *replaced = target->inode;

	swap_places(d, target);
	/* @target now has the old name, at which there is nothing. */
	if (replaced)
		dentry_remove(target);
}

/* Brings @d, the dentry of a directory, to where @fresh was going to be. False when that would make a loop. */
static bool splice_alias(struct dentry *d, struct dentry *fresh)
{
	if (dentry_is_root(d) || dentry_is_ancestor(d, fresh))
		return false;
	dentry_unhash(d);
	swap_places(d, fresh);
	dentry_hash(d);
	d->dead = false;
	return true;
}

/* The dentry for what lookup found. Consumes @fresh and the reference on @in. */
static int attach(struct dentry *fresh, struct inode *in, struct dentry **ret)
{
	struct dentry *d = in && S_ISDIR(in->mode) ? in->alias : NULL;

	if (d) {
		dentry_get(d);
		inode_put(in);
		if (!splice_alias(d, fresh)) {
			dentry_put(d);
			dentry_put(fresh);
			return -ELOOP;
		}
		dentry_put(fresh);
		*ret = d;
		return 0;
	}
	if (in)
		dentry_instantiate(fresh, in);
	dentry_hash(fresh);
	*ret = fresh;
	return 0;
}

static int lookup_slow(struct dentry *parent, const struct qname *q, struct dentry **ret)
{
	struct inode *dir = parent->inode, *in = NULL;
	struct dentry *fresh;
	int err;

	if (!dir->ops->lookup)
		return -ENOTDIR;
	fresh = dentry_alloc_child(parent, q->s, q->len, q->hash);
	if (!fresh)
		return -ENOMEM;
	err = dir->ops->lookup(dir, q, &in);
	fresh->ask = err == -ENOENT_UNCACHED;
	if (err && err != -ENOENT && !fresh->ask) {
		dentry_put(fresh);
		return err;
	}
	return attach(fresh, err ? NULL : in, ret);
}

static bool still_true(struct inode *dir, const struct qname *q, const struct dentry *d)
{
	if (d->ask && !d->inode)
		return false;
	/* A name that is mounted on stays, whatever the file system below says. */
	return dir->sb->stable || !dir->ops->revalidate || d->mounted || dir->ops->revalidate(dir, q, d->inode);
}

static int lookup(struct dentry *parent, struct qname q, struct dentry **ret)
{
	struct inode *dir = parent->inode;
	struct dentry *d;

	if (parent->dead)
		return -ENOENT;
	d = find(parent, q.hash, q.s, q.len);
	if (d) {
		dentry_get(d);
		if (still_true(dir, &q, d)) {
			*ret = d;
			return 0;
		}
		dentry_drop(d);
		dentry_put(d);
	}
	return lookup_slow(parent, &q, ret);
}

int dentry_lookup(struct dentry *parent, const char *name, size_t len, struct dentry **ret)
{
	return lookup(parent, (struct qname){ .s = name, .len = (uint32_t)len, .hash = hash_name(name, len) }, ret);
}

int dentry_lookup_walk(struct dentry *parent, const struct walk *w, struct dentry **ret)
{
	const struct qname q = { .s = w->name, .len = w->len, .hash = hash_name(w->name, w->len), .walk = w };

	return lookup(parent, q, ret);
}

void dcache_invalidate(struct inode *dir, const char *name, size_t len)
{
	struct dentry *parent = dir->alias, *d, *tmp;

	if (!parent || !table)
		return;
	dentry_get(parent);
	if (name) {
		d = find(parent, hash_name(name, len), name, len);
		if (d && !d->mounted)
			dentry_drop(d);
	} else {
		list_for_each_entry_safe(d, tmp, &parent->children, sibling)
			if (!d->mounted)
				dentry_drop(d);
	}
	dentry_put(parent);
}

struct inode *dcache_peek(const struct inode *dir, const char *name, size_t len)
{
	const struct dentry *d = dir->alias && table ? find(dir->alias, hash_name(name, len), name, len) : NULL;

	return d && d->inode && d->inode->sb == dir->sb ? d->inode : NULL;
}

void dcache_drop_super(struct super *sb)
{
	struct dentry *d, *tmp;
	unsigned freed;

	do {
		freed = 0;
		list_for_each_entry_safe(d, tmp, &lru, lru_node) {
			/* The parent has the superblock also for a negative one. */
			if (d->parent->inode->sb != sb)
				continue;
			free_upwards(d);
			freed++;
		}
	} while (freed);
}
