/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looking ahead: the lookup of one component of a path asks for those that follow it in the same message. What came
 * back is kept for the lookups that come next, and is not true any more once another message was sent. The directories
 * on the way get ids, because what is asked of them later needs one; the last name is looked at by attributes, as ever.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sentry/fs/gofer_priv.h"
#include "sentry/vfs/dentry.h"
#include "sentry/vfs/vfs.h"

static void found_put(struct gofer_found *f)
{
	inode_put(&f->dir->inode);
	if (f->gi)
		inode_put(&f->gi->inode);
}

static struct gofer_conn *holder; /* the one that has something found */

void gofer_ahead_clear(struct gofer_conn *c)
{
	while (c->n_found)
		found_put(&c->found[--c->n_found]);
	if (holder == c) {
		holder = NULL;
		vfs_drop_ahead = NULL;
	}
}

static void drop(void)
{
	if (holder)
		gofer_ahead_clear(holder);
}

int gofer_ahead_take(struct gofer_inode *dir, const struct qname *q, struct gofer_inode **ret)
{
	struct gofer_conn *c = dir->fs->conn;

	if (c->found_tag != c->tag)
		return 0;
	for (unsigned i = 0; i < c->n_found; i++) {
		const struct gofer_found *f = &c->found[i];

		if (f->dir != dir || f->len != q->len || memcmp(f->name, q->s, q->len) || gofer_now() >= f->until)
			continue;
		if (!f->gi)
			return f->hidden ? -ENOENT_UNCACHED : -ENOENT;
		if (!gofer_place_is(f->gi, dir, q->s, q->len))
			return 0;
		inode_get(&f->gi->inode);
		*ret = f->gi;
		return 1;
	}
	return 0;
}

void gofer_ahead_ask(struct gofer_ahead *a, struct gofer_call *c, const struct qname *q)
{
	struct name_ref names[GOFER_AHEAD_MAX];
	unsigned at = (unsigned)c->walk.n_names, max = MIN(GOFER_CALL_WALK_MAX - at, (unsigned)GOFER_AHEAD_MAX);

	a->first = c->n_bind;
	a->n = q->walk ? walk_ahead(q->walk, names, max) : 0;
	for (unsigned i = 0; i < a->n; i++) {
		memcpy(a->names[i], names[i].s, names[i].len);
		a->names[i][names[i].len] = '\0';
		c->names[at + i] = a->names[i];
		c->new_fids[at + i] = 0;
		/* The one before has to be a directory now. */
		c->new_fids[at + i - 1] = gofer_fid_new(c->conn);
	}
	c->walk.n_names = c->walk.n_new_fids = at + a->n;
}

/* A reply that ends at a symlink tells where it leads. */
static void take_link(struct gofer_inode *gi, const Sbx__Gofer__Reply *rep)
{
	if (!gi->link && S_ISLNK(gi->inode.mode))
		(void)gofer_link_set(gi, &rep->data); /* else it is asked for when it is needed */
}

/* The @i-th name of the walk is @gi, and the next was looked up in it. */
static void give_fid(struct gofer_inode *gi, struct gofer_call *c, unsigned i)
{
	if (gi->fid || !c->new_fids[i])
		return;
	gi->fid = c->new_fids[i];
	c->new_fids[i] = 0;
	if (i + 1 < c->rep->n_watches)
		gofer_watch_set(gi, c->rep->watches[i + 1]);
}

static void note(struct gofer_inode *dir, const char *name, struct gofer_inode *gi, uint64_t until, bool hidden)
{
	struct gofer_conn *c = dir->fs->conn;
	struct gofer_found *f = &c->found[c->n_found];

	if (c->n_found == GOFER_AHEAD_MAX)
		return;
	c->n_found++;
	holder = c;
	vfs_drop_ahead = drop;
	f->dir = gofer_inode(inode_get(&dir->inode));
	f->gi = gi ? gofer_inode(inode_get(&gi->inode)) : NULL;
	f->until = until;
	f->hidden = hidden;
	f->len = (uint32_t)strlen(name);
	memcpy(f->name, name, f->len);
}

void gofer_ahead_got(struct gofer_ahead *a, struct gofer_call *c, struct gofer_inode *gi, uint64_t until)
{
	const Sbx__Gofer__Reply *rep = c->rep;
	struct gofer_inode *dir = gi, *in;

	gofer_ahead_clear(c->conn);
	c->conn->found_tag = c->conn->tag;
	inode_get(&dir->inode);
	give_fid(dir, c, a->first);
	for (unsigned i = 0; i < a->n && S_ISDIR(dir->inode.mode); i++) {
		if (i + 1 >= c->n_attrs) {
			if (rep->error == ENOENT && rep->walked == a->first + 1 + i) {
				if (!rep->hidden_name)
					gofer_neg_add(dir, a->names[i], strlen(a->names[i]));
				note(dir, a->names[i], NULL, until, rep->hidden_name);
			}
			break;
		}
		if (gofer_iget(dir->fs, dir, a->names[i], c->attrs[i + 1], until, &in) < 0)
			break;
		give_fid(in, c, a->first + 1 + i);
		note(dir, a->names[i], in, until, false);
		inode_put(&dir->inode);
		dir = in;
	}
	if (rep->walked == a->first + c->n_attrs)
		take_link(dir, rep);
	inode_put(&dir->inode);
}

void gofer_ahead_end(struct gofer_ahead *a, struct gofer_call *c)
{
	/* Some the gofer has bound, some it may not have: forgetting an unknown one is harmless. */
	for (unsigned i = 0; i < a->n; i++) {
		gofer_fid_drop(c->conn, c->new_fids[a->first + i]);
		c->new_fids[a->first + i] = 0;
	}
	a->n = 0;
}
