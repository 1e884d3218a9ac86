/* SPDX-License-Identifier: Apache-2.0 */
/* Operations that find files and tell about them. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "base/host/at.h"
#include "gofer/gofer.h"
#include "gofer/watch.h"

GOFER_OP(op_attach)
{
	struct grant *gr = grant_peek(&g->grants, q->attach->grant);
	struct statx stx;
	int fd, ret;

	if (!gr)
		return -ENOENT;
	if (gr->revoked)
		return -EACCES;
	ret = fid_reserve(&g->fids, q->attach->new_fid);
	if (ret < 0)
		return ret;
	fd = node_pin(g->nodes, gr->root);
	if (fd < 0)
		return fd;
	ret = host_statx(fd, "", AT_EMPTY_PATH, NODE_STX_MASK, &stx);
	node_unpin(g->nodes, gr->root);
	if (ret < 0)
		return ret;
	reply_attr(r, &stx);
	return fid_install(g->nodes, &g->fids, q->attach->new_fid, node_get(gr->root));
}

static int read_link(struct gofer *g, struct node *n, struct reply *r)
{
	ssize_t len;
	int fd;

	static_assert(GOFER_DATA_MAX >= PATH_MAX, "a link fits");
	fd = node_pin(g->nodes, n);
	if (fd < 0)
		return fd;
	len = host_readlinkat(fd, "", (char *)r->data, PATH_MAX);
	node_unpin(g->nodes, n);
	if (len < 0)
		return (int)len;
	r->msg.data.len = (size_t)len;
	return 0;
}

/* Only the attributes of a name: no fd is kept. */
static int peek_name(struct gofer *g, struct node *dir, const char *name, struct statx *stx)
{
	int fd = node_pin(g->nodes, dir), r;

	if (fd < 0)
		return fd;
	r = host_statx(fd, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, NODE_STX_MASK, stx);
	node_unpin(g->nodes, dir);
	return r;
}

/* One component. *ret is one reference when @want, else NULL. */
static int walk_one(struct gofer *g, struct node *dir, const char *name, bool want, struct statx *stx,
                    struct node **ret)
{
	struct file_id id;
	int r = gofer_check_name(name);

	*ret = NULL;
	if (r < 0)
		return r;
	if (dir->fmt != S_IFDIR)
		return -ENOTDIR;
	if (dir->flags & NODE_BARRED)
		return -ENOENT;
	if (mark_hides(dir->mark, name)) {
		/* No denial worth telling: the guest has its own in that place, or there is nothing anyway. */
		if (mark_unlisted(dir->mark, name) &&
		    (mark_child(dir->mark, name) || peek_name(g, dir, name, stx) < 0))
			return -ENOENT;
		/* That it is there, when it is only not shown, is nothing to tell. */
		g->reply.msg.hidden_name = !mark_unlisted(dir->mark, name);
		gofer_deny(g, dir, name, "lookup", "hide", "hidden");
		return -ENOENT;
	}
	r = want ? 0 : peek_name(g, dir, name, stx);
	if (r == 0 && (want || S_ISLNK(stx->stx_mode)))
		r = node_walk(g->nodes, dir, name, stx, ret);
	if (r < 0)
		return r;
	file_id_from_statx(&id, stx);
	if (grant_hides_id(&g->grants, &id)) {
		node_put(g->nodes, *ret);
		*ret = NULL;
		gofer_deny(g, dir, name, "lookup", "hide", "another name of a hidden file");
		return -ENOENT;
	}
	return 0;
}

/* The watch of @dir, 0: none can be had. */
static uint32_t watch_node(struct gofer *g, struct node *dir)
{
	uint32_t id;
	int fd;

	if (dir->watch || !g->watches)
		return dir->watch ? dir->watch->id : 0;
	fd = node_pin(g->nodes, dir);
	if (fd < 0)
		return 0;
	id = watch_dir(g->watches, dir, fd);
	node_unpin(g->nodes, dir);
	return id;
}

int op_walk(struct gofer *g, const Sbx__Gofer__Walk *w, struct reply *r)
{
	struct node *dir;
	int ret;

	if (!w->n_names || w->n_names > GOFER_WALK_MAX || (w->n_new_fids && w->n_new_fids != w->n_names))
		return -EINVAL;
	ret = gofer_fid(g, w->fid, &dir);
	if (ret < 0)
		return ret;
	node_get(dir);
	for (size_t i = 0; i < w->n_names; i++) {
		uint32_t fid = w->n_new_fids ? w->new_fids[i] : 0;
		struct statx stx;
		struct node *n;

		r->watches[r->msg.n_watches++] = w->watch ? watch_node(g, dir) : 0;
		ret = fid ? fid_reserve(&g->fids, fid) : 0;
		if (ret == 0)
			ret = walk_one(g, dir, w->names[i], fid || i + 1 < w->n_names, &stx, &n);
		if (ret < 0)
			break;
		if (n) {
			node_put(g->nodes, dir);
			dir = n;
		}
		if (fid)
			ret = fid_install(g->nodes, &g->fids, fid, node_get(n));
		if (ret < 0)
			break;
		reply_attr(r, &stx);
		r->msg.walked++;
	}
	/* Who walked to a link wants to know where it leads. */
	if (dir->fmt == S_IFLNK && r->msg.walked)
		(void)read_link(g, dir, r);
	node_put(g->nodes, dir);
	return ret;
}

GOFER_OP(op_getattr)
{
	struct statx stx;
	struct node *n;
	int fd, ret;

	ret = gofer_fid(g, q->getattr->fid, &n);
	if (ret < 0)
		return ret;
	fd = node_pin(g->nodes, n);
	if (fd < 0)
		return fd;
	ret = host_statx(fd, "", AT_EMPTY_PATH, NODE_STX_MASK, &stx);
	node_unpin(g->nodes, n);
	if (ret == 0)
		reply_attr(r, &stx);
	return ret;
}

GOFER_OP(op_readlink)
{
	struct node *n;
	int ret;

	ret = gofer_fid(g, q->readlink->fid, &n);
	if (ret < 0)
		return ret;
	return n->fmt == S_IFLNK ? read_link(g, n, r) : -EINVAL;
}

GOFER_OP(op_statfs)
{
	Sbx__Gofer__StatFsReply *s = &r->statfs;
	struct statfs sf;
	struct node *n;
	int fd, ret;

	ret = gofer_fid(g, q->statfs->fid, &n);
	if (ret < 0)
		return ret;
	fd = node_pin(g->nodes, n);
	if (fd < 0)
		return fd;
	ret = host_fstatfs(fd, &sf);
	node_unpin(g->nodes, n);
	if (ret < 0)
		return ret;
	sbx__gofer__stat_fs_reply__init(s);
	s->type = (uint64_t)sf.f_type;
	s->bsize = (uint64_t)sf.f_bsize;
	s->blocks = sf.f_blocks;
	s->bfree = sf.f_bfree;
	s->bavail = sf.f_bavail;
	s->files = sf.f_files;
	s->ffree = sf.f_ffree;
	s->namelen = (uint64_t)sf.f_namelen;
	r->msg.statfs = s;
	return 0;
}
