/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Live grants: what others do to their files.
 *
 * The gofer watches a directory before it looks names up in it, so what it tells of a watched directory stays true
 * until it tells of a change. It tells changes in any reply; the sentry asks for them (gofer_check) before it uses what
 * it has cached, when gofer_conn.events says that some wait. Looking at that is a host call. It is made once in a tick
 * of the coarse clock, and whenever something was read from the host in another way (vfs_host_reads): who was told of a
 * change over a pipe finds it changed.
 *
 * Kept without end while the directory is watched: names, that a name is not there, listings, and attributes of watched
 * directories. Attributes of other files are kept for GOFER_TRUST_NS at most, and less when a change is told: no event
 * tells of a file that was changed through another hard link, or through a mapping. An inode that is open here has its
 * attributes from the host fd, which costs no round trip.
 *
 * Changes are taken over at the end of a call, after its result: whatever order they happened in, the worst that comes
 * of it is to ask once more. The dentry cache needs no telling: it asks gofer_revalidate() before each use.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/host/hostio.h"
#include "base/log.h"
#include "sentry/fs/gofer_priv.h"
#include "sentry/vfs/dentry.h"
#include "sentry/vfs/vfs.h"

#define WATCH_IDS_MAX (1u << 20) /* what a gofer may number its watches with */

void gofer_watch_drop(struct gofer_inode *gi)
{
	if (!gi->watch)
		return;
	list_del(&gi->watch_node);
	gi->watch = 0;
	gi->fs->conn->n_live--;
}

/* Nothing that is known of @dir and the names in it is known any more. */
static void forget_dir(struct gofer_inode *dir)
{
	gofer_touched(dir);
	gofer_listing_drop(dir);
	gofer_neg_forget_all(dir);
}

/* What is in @dir (NULL: anywhere) and was to be kept without end is kept no longer. */
static void forget_children(struct gofer_fs *fs, const struct gofer_inode *dir)
{
	for (uint32_t i = 0; i < fs->n_buckets; i++) {
		struct gofer_inode *gi;

		list_for_each_entry(gi, &fs->buckets[i], hash_node) {
			if (!dir || gi->parent == dir)
				gi->name_until = gi->attr_until = 0;
		}
	}
}


void gofer_watch_clear(struct gofer_inode *gi)
{
	if (!gi->watch)
		return;
	gofer_watch_drop(gi);
	forget_dir(gi);
	forget_children(gi->fs, gi);
}

static bool table_fits(struct gofer_conn *c, uint32_t id)
{
	uint32_t n = c->n_watched ? c->n_watched : 64;
	struct list *t;

	if (id < c->n_watched)
		return true;
	if (id >= WATCH_IDS_MAX)
		return false;
	while (n <= id)
		n *= 2;
	t = malloc(n * sizeof(*t));
	if (!t)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		list_init(&t[i]);
		while (i < c->n_watched && !list_empty(&c->watched[i])) {
			struct list *x = c->watched[i].next;

			list_del(x);
			list_add(&t[i], x);
		}
	}
	free(c->watched);
	c->watched = t;
	c->n_watched = n;
	return true;
}

void gofer_watch_set(struct gofer_inode *gi, uint32_t id)
{
	struct gofer_conn *c = gi->fs->conn;

	if (gi->watch == id || !S_ISDIR(gi->inode.mode) || gi->fs->sb.stable || c->events < 0)
		return;
	gofer_watch_clear(gi);
	if (!id || !table_fits(c, id))
		return;
	gi->watch = id;
	list_add(&c->watched[id], &gi->watch_node);
	c->n_live++;
}

uint64_t gofer_name_until(const struct gofer_inode *dir)
{
	return dir->watch ? GOFER_FOREVER : gofer_until(dir->fs);
}

uint64_t gofer_attr_until(const struct gofer_inode *gi)
{
	/* The parent's watch tells when it is removed. */
	return gi->watch && gi->parent && gi->parent->watch ? GOFER_FOREVER : gofer_until(gi->fs);
}

/* Somebody did something with @name in @dir. */
static void name_changed(struct gofer_inode *dir, const char *name, bool replaced, const Sbx__Gofer__Attr *a)
{
	size_t len = strlen(name);
	struct inode *in = dcache_peek(&dir->inode, name, len);
	struct gofer_listing *l = dir->listing;
	struct gofer_ent *e = l ? gofer_listing_find(l, name, len) : NULL;

	if (e)
		e->flags &= (uint8_t)~ENT_ATTR;
	if (in) {
		struct gofer_inode *gi = gofer_inode(in);

		gi->attr_until = 0;
		/* They are as new as the change; an fd that was written to knows better. */
		if (a && (!gi->wr || !gi->wr->changed))
			gofer_attr_set(gi, a, gofer_attr_until(gi));
		if (replaced)
			gi->name_until = 0;
	}
	if (!replaced)
		return;
	gofer_touched(dir);
	gofer_listing_drop(dir);
	gofer_neg_forget(dir, name, len);
}

static void take_change(struct gofer_inode *dir, const Sbx__Gofer__Change *ch)
{
	if (ch->what & SBX__GOFER__CHANGE_KIND__CHANGE_ENDED)
		gofer_watch_clear(dir);
	else if (*ch->name)
		name_changed(dir, ch->name, ch->what & SBX__GOFER__CHANGE_KIND__CHANGE_NAME, ch->attr);
	else
		gofer_touched(dir);
}

static void forget_all(struct gofer_conn *c)
{
	for (uint32_t i = 0; i < c->n_watched; i++) {
		while (!list_empty(&c->watched[i])) {
			struct gofer_inode *dir = list_first_entry(&c->watched[i], struct gofer_inode, watch_node);

			if (dir->fs->forgotten != c->tag)
				forget_children(dir->fs, NULL);
			dir->fs->forgotten = c->tag;
			gofer_watch_drop(dir);
			forget_dir(dir);
		}
	}
}

void gofer_changes(struct gofer_conn *c, const Sbx__Gofer__Reply *rep)
{
	if (rep->lost) {
		log_dbg(CH_FS, "changes of live grants were lost");
		forget_all(c);
		return;
	}
	for (size_t i = 0; i < rep->n_changes; i++) {
		const Sbx__Gofer__Change *ch = rep->changes[i];
		struct gofer_inode *gi, *next;

		if (ch->watch >= c->n_watched)
			continue;
		list_for_each_entry_safe(gi, next, &c->watched[ch->watch], watch_node)
			take_change(gi, ch);
	}
}

void gofer_check(struct gofer_fs *fs)
{
	struct gofer_conn *c = fs->conn;
	struct gofer_call call;
	uint64_t now;

	if (fs->sb.stable || !c->n_live || c->dead)
		return;
	now = gofer_now();
	if (c->checked == now && c->checked_reads == vfs_host_reads)
		return;
	c->checked = now;
	c->checked_reads = vfs_host_reads;
	if (!(host_poll_now(c->events, POLLIN) & POLLIN))
		return;
	gofer_call_init(&call, c);
	call.req.sync = true;
	if (gofer_call_run(&call) < 0)
		log_dbg(CH_FS, "asking for changes failed");
	gofer_call_end(&call);
}
