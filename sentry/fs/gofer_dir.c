/* SPDX-License-Identifier: Apache-2.0 */
/* Names in directories: lookup, is a cached name still true, and reading. */
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "sentry/fs/gofer_priv.h"
#include "sentry/vfs/dentry.h"

#define DROPPED_TRIES 8

/* qname is not NUL terminated. */
static const char *name_str(const struct qname *q, char buf[NAME_MAX_LINUX + 1])
{
	memcpy(buf, q->s, q->len);
	buf[q->len] = '\0';
	return buf;
}

/*
 * Should this directory be listed, as many of its names are asked for? Names on the way to others do not count: that
 * there are many paths through a directory says little about its files, and a lookup of such a name looks ahead.
 */
static bool want_listing(struct gofer_inode *dir, const struct qname *q)
{
	uint64_t now = gofer_now();
	struct name_ref next;

	if (dir->too_big || (q->walk && walk_ahead(q->walk, &next, 1)))
		return false;
	if (now >= dir->misses_until) {
		dir->misses_until = gofer_until(dir->fs);
		dir->misses = 0;
	}
	return ++dir->misses >= GOFER_PREFETCH_MISSES;
}

/* From the listing: 1 with *ret, -ENOENT, or 0: it does not tell. *ask: the gofer is to be asked about just this. */
static int lookup_listed(struct gofer_inode *dir, const struct qname *q, struct gofer_inode **ret, bool *ask)
{
	struct gofer_listing *l = gofer_listing_full(dir);
	struct gofer_ent *e;
	Sbx__Gofer__Attr a;
	char name[NAME_MAX_LINUX + 1];
	int r;

	if (!l)
		return 0;
	e = gofer_listing_find(l, q->s, q->len);
	if (!e) {
		*ask = gofer_listing_hides(l, q->s, q->len);
		return *ask ? 0 : -ENOENT;
	}
	if (!(e->flags & ENT_ATTR))
		return 0;
	gofer_ent_attr(e, &a);
	r = gofer_iget(dir->fs, dir, name_str(q, name), &a, l->attr_until, ret);
	if (r < 0)
		return r;
	(*ret)->listed = true;
	return 1;
}

static int lookup_host(struct gofer_inode *dir, const struct qname *q, struct gofer_inode **ret)
{
	uint64_t until = gofer_until(dir->fs);
	char name[NAME_MAX_LINUX + 1];
	struct gofer_ahead ahead = { .n = 0 };
	struct gofer_call c;
	int r;

	gofer_call_init(&c, dir->fs->conn);
	r = gofer_call_peek(&c, dir, name_str(q, name));
	if (r == 0) {
		gofer_ahead_ask(&ahead, &c, q);
		r = gofer_call_run(&c);
	}
	if (r < 0 && c.rep && c.n_attrs && r == -(int)c.rep->error)
		r = 0; /* what is looked up is there, only not all that may come after it */
	if (r == 0 && (!c.n_attrs || c.n_attrs > 1 + ahead.n))
		r = -EIO;
	if (r == -ENOENT && c.rep && c.rep->hidden_name)
		r = -ENOENT_UNCACHED;
	if (r == -ENOENT)
		gofer_neg_add(dir, q->s, q->len);
	if (r == 0)
		r = gofer_iget(dir->fs, dir, name, c.attrs[0], until, ret);
	if (r == 0)
		gofer_ahead_got(&ahead, &c, *ret, until);
	gofer_ahead_end(&ahead, &c);
	gofer_call_end(&c);
	return r;
}

int gofer_lookup(struct inode *in, const struct qname *q, struct inode **ret)
{
	struct gofer_inode *dir = gofer_inode(in), *gi;
	bool ask = false;
	int r;

	gofer_check(dir->fs);
	if (q->len > NAME_MAX_LINUX)
		return -ENAMETOOLONG;
	if (dir->gone)
		return -ENOENT;
	r = gofer_ahead_take(dir, q, &gi);
	if (r == 0)
		r = lookup_listed(dir, q, &gi, &ask);
	if (r == 0 && !ask && want_listing(dir, q)) {
		dir->misses = 0;
		gofer_listing_prefetch(dir);
		r = lookup_listed(dir, q, &gi, &ask);
	}
	if (r == 0)
		r = lookup_host(dir, q, &gi);
	if (r < 0)
		return r;
	*ret = &gi->inode;
	return 0;
}

/* 1: the name is still that file, with its attributes brought up to date; 0: it is not, or who knows. */
static int revalidate_host(struct gofer_inode *dir, const struct qname *q, struct gofer_inode *gi)
{
	struct gofer_inode *now;
	int r = lookup_host(dir, q, &now);

	if (r < 0)
		return 0;
	r = now == gi;
	inode_put(&now->inode);
	return r;
}

int gofer_revalidate(struct inode *dir_in, const struct qname *q, struct inode *in)
{
	struct gofer_inode *dir = gofer_inode(dir_in), *gi = in ? gofer_inode(in) : NULL;
	struct gofer_listing *l;
	const struct gofer_ent *e;

	gofer_check(dir->fs);
	if (gi && gofer_now() < gi->name_until && gofer_place_is(gi, dir, q->s, q->len))
		return 1;
	l = gofer_listing_full(dir);
	if (!l)
		return gi ? revalidate_host(dir, q, gi) : gofer_neg_hit(dir, q->s, q->len);
	e = gofer_listing_find(l, q->s, q->len);
	if (!e || !gi)
		return !e && !gi;
	return e->dev == gi->dev && e->ino == gi->ino;
}

/* The state of one open directory. */
struct gofer_dirfile {
	struct file file;
	uint32_t hint; /* index of the entry after file.pos, perhaps */
};

/* The index of the entry that @pos (a cookie) stands before, or -1. */
static int64_t find_pos(const struct gofer_listing *l, uint64_t pos, uint32_t hint)
{
	if (pos == l->start)
		return 0;
	if (hint && hint <= l->n && l->ents[hint - 1].cookie == pos && !(l->ents[hint - 1].flags & ENT_ADDED))
		return hint;
	for (uint32_t i = 0; i < l->n; i++) {
		if (l->ents[i].cookie == pos && !(l->ents[i].flags & ENT_ADDED))
			return i + 1;
	}
	return -1;
}

/* A directory so large that what was read of it is not kept. */
static bool listing_over(const struct gofer_listing *l)
{
	return l->n * sizeof(*l->ents) + l->names_len > GOFER_LISTING_MAX;
}

/* A listing that has what comes at @pos. */
static int listing_at(struct gofer_inode *dir, uint64_t pos, uint32_t hint, struct gofer_listing **ret, int64_t *index)
{
	struct gofer_listing *l;
	int r;

	if (pos == 0)
		gofer_check(dir->fs);
	l = dir->listing;
	/* From the start: what is trusted and in order; a reader that goes on keeps what it began with. */
	if (l && pos == 0 && (l->start || !l->ordered || gofer_now() >= l->until))
		l = NULL;
	*index = l ? find_pos(l, pos, hint) : -1;
	while (*index >= 0 && *index < l->n && (l->ents[*index].flags & ENT_ADDED))
		(*index)++;
	if (*index < 0 || (*index == l->n && !l->eof && listing_over(l))) {
		r = gofer_listing_reset(dir, pos, &l);
		if (r < 0)
			return r;
		*index = 0;
	}
	if (*index == l->n && !l->eof) {
		r = gofer_listing_more(l);
		if (r < 0)
			return r;
	}
	*ret = l;
	return 0;
}

static bool emit_one(struct file *f, struct dir_emit *e, const struct gofer_listing *l, const struct gofer_ent *ent)
{
	struct gofer_inode *dir = gofer_inode(f->inode);
	const char *name = l->names + ent->name;
	uint64_t ino;

	if (!(ent->flags & ENT_ATTR) && name[0] == '.' && ent->name_len <= 2 &&
	    (ent->name_len == 1 || name[1] == '.')) {
		struct inode *up = ent->name_len == 2 && dir->parent ? &dir->parent->inode : f->inode;

		ino = up->ino;
	} else {
		ino = gofer_guest_ino(dir->fs, ent->dev, ent->ino);
	}
	return e->emit(e, name, ent->name_len, ino, IFTODT(ent->mode), ent->cookie);
}

static int gofer_iterate(struct file *f, struct dir_emit *e)
{
	struct gofer_dirfile *df = container_of(f, struct gofer_dirfile, file);
	struct gofer_inode *dir = gofer_inode(f->inode);

	if (dir->gone)
		return -ENOENT;
	for (;;) {
		struct gofer_listing *l;
		int64_t at;
		int r = listing_at(dir, f->pos, df->hint, &l, &at);

		/* The host changed it meanwhile. */
		for (int i = 0; r == -ESTALE && !dir->listing && i < DROPPED_TRIES; i++)
			r = listing_at(dir, f->pos, df->hint, &l, &at);

		if (r < 0)
			return r;
		if (at >= l->n)
			return 0;
		for (uint32_t i = (uint32_t)at; i < l->n; i++) {
			const struct gofer_ent *ent = &l->ents[i];

			if (ent->flags & ENT_ADDED)
				continue;
			if (!(ent->flags & ENT_GONE) && !emit_one(f, e, l, ent))
				return 0;
			f->pos = ent->cookie;
			df->hint = i + 1;
		}
		if (l->eof)
			return 0;
	}
}

static int gofer_dir_fsync(struct file *f, bool data_only)
{
	Sbx__Gofer__Fsync s = SBX__GOFER__FSYNC__INIT;
	struct gofer_inode *dir = gofer_inode(f->inode);
	struct gofer_call c;
	int r;

	(void)data_only;
	if (dir->fs->args.read_only || dir->gone)
		return 0;
	gofer_call_init(&c, dir->fs->conn);
	c.req.op_case = SBX__GOFER__REQUEST__OP_FSYNC;
	c.req.fsync = &s;
	r = gofer_call_fid(&c, dir, &s.fid);
	if (r == 0)
		r = gofer_call_run(&c);
	gofer_call_end(&c);
	return r;
}

const struct file_ops gofer_dir_ops = {
	.file_size = sizeof(struct gofer_dirfile),
	.iterate = gofer_iterate,
	.fsync = gofer_dir_fsync,
};
