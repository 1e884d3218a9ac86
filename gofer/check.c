/* SPDX-License-Identifier: Apache-2.0 */
/* The questions that operations ask before they touch the host: is the id good, is the name good, is it allowed. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/hash.h"
#include "base/host/at.h"
#include "gofer/gofer.h"

#define PATH_DEPTH_MAX 2048 /* components of a path that protect patterns are compared with */

int gofer_fid(struct gofer *g, uint32_t fid, struct node **ret)
{
	struct node *n = fid_peek(&g->fids, fid);

	if (!n)
		return -EBADF;
	if (n->grant->revoked)
		return -EACCES;
	*ret = n;
	return 0;
}

int gofer_fid_dir(struct gofer *g, uint32_t fid, struct node **ret)
{
	int r = gofer_fid(g, fid, ret);

	if (r < 0)
		return r;
	if ((*ret)->fmt != S_IFDIR)
		return -ENOTDIR;
	return (*ret)->flags & NODE_BARRED ? -EACCES : 0;
}

int gofer_check_name(const char *name)
{
	size_t len = strlen(name);

	if (len > NODE_NAME_MAX)
		return -ENAMETOOLONG;
	if (!len || !strcmp(name, ".") || !strcmp(name, "..") || strchr(name, '/'))
		return -EINVAL;
	return 0;
}

void reply_attr(struct reply *r, const struct statx *stx)
{
	Sbx__Gofer__Attr *a;

	if (r->n_attrs == GOFER_ATTRS_MAX)
		return;
	a = r->attr_ptrs[r->n_attrs] = &r->attrs[r->n_attrs];
	r->n_attrs++;
	attr_from_statx(a, stx);
}

void attr_from_statx(Sbx__Gofer__Attr *a, const struct statx *stx)
{
	sbx__gofer__attr__init(a);
	a->ino = stx->stx_ino;
	a->dev = (uint64_t)stx->stx_dev_major << 32 | stx->stx_dev_minor;
	a->mode = stx->stx_mode;
	a->nlink = stx->stx_nlink;
	a->uid = stx->stx_uid;
	a->gid = stx->stx_gid;
	a->rdev = makedev(stx->stx_rdev_major, stx->stx_rdev_minor);
	a->size = stx->stx_size;
	a->blocks = stx->stx_blocks;
	a->blksize = stx->stx_blksize;
	a->atime = stx->stx_atime.tv_sec;
	a->atime_nsec = stx->stx_atime.tv_nsec;
	a->mtime = stx->stx_mtime.tv_sec;
	a->mtime_nsec = stx->stx_mtime.tv_nsec;
	a->ctime = stx->stx_ctime.tv_sec;
	a->ctime_nsec = stx->stx_ctime.tv_nsec;
	if (stx->stx_mask & STATX_BTIME) {
		a->btime = stx->stx_btime.tv_sec;
		a->btime_nsec = stx->stx_btime.tv_nsec;
	}
}

void reply_hidden(struct reply *r, const struct node *n)
{
	static const struct hash_key no_key;

	if (!n->mark)
		return;
	r->msg.hides_all = n->mark->flags & MARK_HIDE_CHILDREN;
	for (const struct mark *c = n->mark->child; c && !r->msg.hides_all; c = c->next) {
		if (!(c->flags & MARK_HIDE))
			continue;
		if (r->msg.n_hidden == GOFER_HIDDEN_MAX)
			r->msg.hides_all = true;
		else
			r->hidden[r->msg.n_hidden++] = (uint32_t)hash_bytes(&no_key, c->name, strlen(c->name));
	}
}

void reply_dir_attr(struct reply *r, int dirfd)
{
	struct statx stx;

	if (host_statx(dirfd, "", AT_EMPTY_PATH, NODE_STX_MASK, &stx) == 0)
		reply_attr(r, &stx);
}

void gofer_deny(struct gofer *g, const struct node *n, const char *name, const char *op, const char *rule,
		const char *reason)
{
	const struct audit_event ev = { .op = op, .mode = "", .rule = rule, .reason = reason };
	char buf[PATH_MAX];

	audit_note(&g->audit, &ev, grant_path(n, name, buf, sizeof(buf)));
}

void gofer_allow(struct gofer *g, const struct node *n, const char *op, const char *mode)
{
	const struct audit_event ev = { .op = op, .mode = mode, .rule = "grant", .reason = "", .allow = true };
	char buf[PATH_MAX];

	if (g->audit.allows)
		audit_note(&g->audit, &ev, grant_path(n, NULL, buf, sizeof(buf)));
}

/* Runs the patterns over the path of @name in @n (NULL: of @n itself), both as it is on the host and as it is in the
 * grant. */
static int protect_run(struct gofer *g, const struct node *n, const char *name, struct protect_state st[2])
{
	static const struct node *chain[PATH_DEPTH_MAX];
	const char *p = n->grant->path;
	unsigned depth = 0;

	for (const struct node *x = n; x->parent; x = x->parent) {
		if (depth == PATH_DEPTH_MAX)
			return -ENAMETOOLONG;
		chain[depth++] = x;
	}
	protect_start(g->protect, &st[0], false);
	protect_start(g->protect, &st[1], true);
	while (*p) {
		size_t len = strcspn(p, "/");

		if (len)
			protect_feed(g->protect, &st[1], p, len);
		p += len + (p[len] == '/');
	}
	while (depth--) {
		protect_feed(g->protect, &st[0], chain[depth]->name, chain[depth]->name_len);
		protect_feed(g->protect, &st[1], chain[depth]->name, chain[depth]->name_len);
	}
	if (name) {
		protect_feed(g->protect, &st[0], name, strlen(name));
		protect_feed(g->protect, &st[1], name, strlen(name));
	}
	return 0;
}

static bool protect_hit(struct gofer *g, const struct node *n, const char *name, const char *op,
			const struct protect_state st[2])
{
	for (int i = 0; i < 2; i++) {
		if (st[i].matched >= 0) {
			gofer_deny(g, n, name, op, protect_pattern(g->protect, (unsigned)st[i].matched), "protected");
			return true;
		}
	}
	return false;
}

int gofer_may_change(struct gofer *g, struct node *dir, const char *name, const char *op, bool link)
{
	const struct mark *m = mark_child(dir->mark, name);
	struct protect_state st[2];
	int r;

	if (!dir->grant->writable) {
		gofer_deny(g, dir, name, op, "grant", "read-only");
		return -EROFS;
	}
	if (mark_hides(dir->mark, name)) {
		gofer_deny(g, dir, name, op, "hide", "hidden");
		return -EACCES;
	}
	if (mark_pins(m))
		return -EBUSY;
	if (!protect_count(g->protect))
		return 0;
	r = protect_run(g, dir, name, st);
	if (r < 0)
		return r;
	if (protect_hit(g, dir, name, op, st))
		return -EACCES;
	if (link && (protect_on_the_way(g->protect, &st[0]) || protect_on_the_way(g->protect, &st[1]))) {
		gofer_deny(g, dir, name, op, "protect", "a link that leads to a protected place");
		return -EACCES;
	}
	return 0;
}

int gofer_may_write(struct gofer *g, struct node *n, const char *op)
{
	struct protect_state st[2];
	int r;

	if (!n->grant->writable) {
		gofer_deny(g, n, NULL, op, "grant", "read-only");
		return -EROFS;
	}
	if (n->flags & NODE_BARRED)
		return -EACCES;
	if (!protect_count(g->protect) || (n->flags & NODE_NAMELESS))
		return 0;
	r = protect_run(g, n, NULL, st);
	if (r < 0)
		return r;
	return protect_hit(g, n, NULL, op, st) ? -EACCES : 0;
}

int gofer_may_move_dir(struct gofer *g, struct node *odir, const char *oname, struct node *ndir, const char *nname)
{
	static struct protect_state a[2], b[2];
	int r;

	if (!protect_count(g->protect))
		return 0;
	r = protect_run(g, odir, oname, a);
	if (r == 0)
		r = protect_run(g, ndir, nname, b);
	if (r < 0)
		return r;
	if (protect_equal(g->protect, &a[0], &b[0]) && protect_equal(g->protect, &a[1], &b[1]))
		return 0;
	gofer_deny(g, odir, oname, "rename", "protect", "a directory that may have protected files");
	return -EACCES;
}
