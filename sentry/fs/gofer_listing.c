/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was read of a directory: names with attributes, in the host's order. One that was read from the start to the end
 * answers lookups, also of names that are not there, without asking the gofer; so a walk over a tree costs a round trip
 * a directory.
 *
 * A listing may also be a part from the middle (start is not 0): it then only serves readers. Names that we make are
 * added for lookups (ENT_ADDED) but cannot be put in order: a reader that starts anew reads the directory again.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sentry/fs/gofer_priv.h"

static size_t listing_bytes(const struct gofer_listing *l)
{
	return sizeof(*l) + l->cap * sizeof(*l->ents) + l->names_cap + l->n_buckets * sizeof(*l->buckets) +
	       l->n_hidden * sizeof(*l->hidden);
}

void gofer_listing_drop(struct gofer_inode *dir)
{
	struct gofer_listing *l = dir->listing;

	if (!l)
		return;
	dir->listing = NULL;
	dir->fs->conn->listing_bytes -= listing_bytes(l);
	list_del(&l->lru);
	free(l->ents);
	free(l->names);
	free(l->buckets);
	free(l->hidden);
	free(l);
}

int gofer_listing_reset(struct gofer_inode *dir, uint64_t cookie, struct gofer_listing **ret)
{
	struct gofer_conn *c = dir->fs->conn;
	struct gofer_listing *l;

	gofer_listing_drop(dir);
	while (c->listing_bytes > GOFER_LISTING_BYTES && !list_empty(&c->listings))
		gofer_listing_drop(list_last_entry(&c->listings, struct gofer_listing, lru)->dir);
	l = calloc(1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	l->dir = dir;
	l->start = l->next = cookie;
	l->ordered = true;
	l->until = gofer_name_until(dir);
	l->attr_until = gofer_until(dir->fs);
	list_init(&l->lru);
	list_add(&c->listings, &l->lru);
	c->listing_bytes += listing_bytes(l);
	dir->listing = l;
	*ret = l;
	return 0;
}

struct gofer_listing *gofer_listing_full(struct gofer_inode *dir)
{
	struct gofer_listing *l = dir->listing;

	if (!l || !l->eof || l->start || gofer_now() >= l->until)
		return NULL;
	list_del(&l->lru);
	list_add(&dir->fs->conn->listings, &l->lru);
	return l;
}

static uint32_t ent_hash(const struct gofer_listing *l, const char *name, size_t len)
{
	return (uint32_t)hash_bytes(&l->dir->fs->conn->key, name, len);
}

static void bucket_insert(struct gofer_listing *l, uint32_t i)
{
	uint32_t *b = &l->buckets[l->ents[i].hash & (l->n_buckets - 1)];

	l->ents[i].next = *b;
	*b = i + 1;
}

/* Room for @n more entries with names of @len bytes together: both of one reply, or one name. */
static int reserve(struct gofer_listing *l, size_t n, size_t len)
{
	uint32_t cap = l->cap ? l->cap : 16, names_cap = l->names_cap ? l->names_cap : 512;

	while (cap < l->n + n)
		cap *= 2;
	while (names_cap < l->names_len + len)
		names_cap *= 2;
	if (cap > l->cap) {
		struct gofer_ent *e = realloc(l->ents, cap * sizeof(*e));
		uint32_t *b;

		if (!e)
			return -ENOMEM;
		l->ents = e;
		b = calloc(cap, sizeof(*b));
		if (!b)
			return -ENOMEM;
		free(l->buckets);
		l->buckets = b;
		l->cap = l->n_buckets = cap; /* a power of two, as 16 is */
		for (uint32_t i = 0; i < l->n; i++) {
			if (!(l->ents[i].flags & ENT_GONE))
				bucket_insert(l, i);
		}
	}
	if (names_cap > l->names_cap) {
		char *p = realloc(l->names, names_cap);

		if (!p)
			return -ENOMEM;
		l->names = p;
		l->names_cap = names_cap;
	}
	return 0;
}

struct gofer_ent *gofer_listing_find(struct gofer_listing *l, const char *name, size_t len)
{
	uint32_t h = ent_hash(l, name, len);

	for (uint32_t i = l->n_buckets ? l->buckets[h & (l->n_buckets - 1)] : 0; i; i = l->ents[i - 1].next) {
		struct gofer_ent *e = &l->ents[i - 1];

		if (e->hash == h && e->name_len == len && !memcmp(l->names + e->name, name, len) &&
		    !(e->flags & ENT_GONE))
			return e;
	}
	return NULL;
}

/* A new entry; its bytes are accounted for. NULL: no memory. */
static struct gofer_ent *ent_append(struct gofer_listing *l, const char *name, size_t len)
{
	struct gofer_conn *c = l->dir->fs->conn;
	size_t before = listing_bytes(l);
	struct gofer_ent *e;
	int r = reserve(l, 1, len);

	c->listing_bytes += listing_bytes(l) - before;
	if (r < 0)
		return NULL;
	e = &l->ents[l->n];
	memset(e, 0, sizeof(*e));
	e->hash = ent_hash(l, name, len);
	e->name = l->names_len;
	e->name_len = (uint8_t)len;
	memcpy(l->names + l->names_len, name, len);
	l->names_len += (uint32_t)len;
	bucket_insert(l, l->n++);
	return e;
}

static void ent_set_attr(struct gofer_ent *e, const Sbx__Gofer__Attr *a)
{
	e->flags |= ENT_ATTR;
	e->dev = a->dev;
	e->ino = a->ino;
	e->rdev = a->rdev;
	e->size = a->size;
	e->blocks = a->blocks;
	e->mode = a->mode;
	e->nlink = a->nlink;
	e->uid = a->uid;
	e->gid = a->gid;
	e->atime = a->atime;
	e->mtime = a->mtime;
	e->ctime = a->ctime;
	e->btime = a->btime;
	e->atime_nsec = a->atime_nsec;
	e->mtime_nsec = a->mtime_nsec;
	e->ctime_nsec = a->ctime_nsec;
	e->btime_nsec = a->btime_nsec;
}

void gofer_ent_attr(const struct gofer_ent *e, Sbx__Gofer__Attr *a)
{
	sbx__gofer__attr__init(a);
	a->dev = e->dev;
	a->ino = e->ino;
	a->rdev = e->rdev;
	a->size = e->size;
	a->blocks = e->blocks;
	a->mode = e->mode;
	a->nlink = e->nlink;
	a->uid = e->uid;
	a->gid = e->gid;
	a->atime = e->atime;
	a->mtime = e->mtime;
	a->ctime = e->ctime;
	a->btime = e->btime;
	a->atime_nsec = e->atime_nsec;
	a->mtime_nsec = e->mtime_nsec;
	a->ctime_nsec = e->ctime_nsec;
	a->btime_nsec = e->btime_nsec;
}

/* Takes over one entry of a reply. */
static int take_entry(struct gofer_listing *l, const Sbx__Gofer__Dirent *d)
{
	size_t len = strlen(d->name);
	struct gofer_ent *e = l->ordered ? NULL : gofer_listing_find(l, d->name, len);
	struct gofer_inode *gi;
	uint64_t until;

	if (e) /* we made it while the directory was being read */
		e->flags |= ENT_GONE;
	e = ent_append(l, d->name, len);
	if (!e)
		return -ENOMEM;
	e->cookie = d->cookie;
	if (!d->attr) {
		e->mode = S_IFDIR; /* "." and ".." */
		return 0;
	}
	ent_set_attr(e, d->attr);
	gi = gofer_inode_peek(l->dir->fs, d->attr->dev, d->attr->ino);
	if (!gi || !gofer_place_is(gi, l->dir, d->name, len))
		return 0;
	gi->listed = true;
	if (gi->wr && gi->wr->changed)
		return 0; /* what we know is newer */
	until = MIN(l->attr_until, gofer_until(l->dir->fs));
	if (until >= gi->attr_until)
		gofer_attr_set(gi, d->attr, until);
	gi->name_until = gofer_name_until(l->dir);
	return 0;
}

/* All at once, so that a directory of some hundred names is not copied again and again as it grows. */
static int reserve_reply(struct gofer_listing *l, const Sbx__Gofer__Reply *rep)
{
	size_t before = listing_bytes(l), len = 0;
	int r;

	for (size_t i = 0; i < rep->n_entries; i++)
		len += strlen(rep->entries[i]->name);
	r = reserve(l, rep->n_entries, len);
	l->dir->fs->conn->listing_bytes += listing_bytes(l) - before;
	return r;
}

static int take_hidden(struct gofer_listing *l, const Sbx__Gofer__Reply *rep)
{
	l->hides_all = rep->hides_all;
	if (l->hidden || !rep->n_hidden)
		return 0;
	l->hidden = malloc(rep->n_hidden * sizeof(*l->hidden));
	if (!l->hidden)
		return -ENOMEM;
	memcpy(l->hidden, rep->hidden, rep->n_hidden * sizeof(*l->hidden));
	l->n_hidden = (uint32_t)rep->n_hidden;
	l->dir->fs->conn->listing_bytes += l->n_hidden * sizeof(*l->hidden);
	return 0;
}

bool gofer_listing_hides(const struct gofer_listing *l, const char *name, size_t len)
{
	static const struct hash_key no_key;
	uint32_t h;

	if (!l->n_hidden || l->hides_all)
		return l->hides_all;
	h = (uint32_t)hash_bytes(&no_key, name, len);
	for (uint32_t i = 0; i < l->n_hidden; i++) {
		if (l->hidden[i] == h)
			return true;
	}
	return false;
}

int gofer_listing_more(struct gofer_listing *l)
{
	Sbx__Gofer__ReadDir rd = SBX__GOFER__READ_DIR__INIT;
	struct gofer_inode *dir = l->dir;
	struct gofer_call c;
	uint64_t next = l->next;
	int r;

	gofer_call_init(&c, dir->fs->conn);
	c.req.op_case = SBX__GOFER__REQUEST__OP_READDIR;
	c.req.readdir = &rd;
	rd.cookie = next;
	rd.with_attr = true;
	rd.watch = !dir->fs->sb.stable;
	r = gofer_call_fid(&c, dir, &rd.fid);
	if (r == 0)
		r = gofer_call_run(&c);
	/* A stale place drops listings. */
	if (r == 0 && dir->listing != l)
		r = -ESTALE;
	if (r == 0 && c.rep->n_watches > (c.req.walk ? c.walk.n_names : 0))
		gofer_watch_set(dir, c.rep->watches[c.rep->n_watches - 1]);
	if (r == 0 && !next) { /* the first of it: its watch began before it was read */
		l->until = gofer_name_until(dir);
		r = take_hidden(l, c.rep);
	}
	if (r == 0)
		r = reserve_reply(l, c.rep);
	for (size_t i = 0; r == 0 && i < c.rep->n_entries; i++) {
		r = take_entry(l, c.rep->entries[i]);
		next = c.rep->entries[i]->cookie;
	}
	if (r == 0) {
		l->next = next;
		l->eof = c.rep->eof || !c.rep->n_entries;
	}
	gofer_call_end(&c);
	return r == 0 && dir->listing != l ? -ESTALE : r; /* by what others did */
}

void gofer_listing_prefetch(struct gofer_inode *dir)
{
	struct gofer_listing *l;

	if (dir->too_big || gofer_listing_reset(dir, 0, &l) < 0)
		return;
	while (!l->eof && l->n < GOFER_PREFETCH_MAX) {
		if (gofer_listing_more(l) < 0) {
			gofer_listing_drop(dir);
			return;
		}
	}
	dir->too_big = !l->eof;
}

void gofer_listing_add(struct gofer_inode *dir, const char *name, size_t len, const struct gofer_inode *gi)
{
	struct gofer_listing *l = dir->listing;
	struct gofer_ent *e;

	if (!l)
		return;
	gofer_listing_remove(dir, name, len);
	l->ordered = false;
	e = ent_append(l, name, len);
	if (!e) { /* one that does not know all names must not answer */
		gofer_listing_drop(dir);
		return;
	}
	/* Without attributes: they change at once. The identity is enough for the dentry cache. */
	e->flags = ENT_ADDED;
	e->dev = gi->dev;
	e->ino = gi->ino;
	e->mode = gi->inode.mode;
}

void gofer_listing_remove(struct gofer_inode *dir, const char *name, size_t len)
{
	struct gofer_ent *e = dir->listing ? gofer_listing_find(dir->listing, name, len) : NULL;

	if (e)
		e->flags |= ENT_GONE;
}
