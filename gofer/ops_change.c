/* SPDX-License-Identifier: Apache-2.0 */
/* Operations that change names and attributes. Each asks check.c first; replies carry what the changed directories are
 * now. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/stat.h>

#include "base/host/at.h"
#include "gofer/gofer.h"
#include "gofer/reopen.h"
#include "gofer/watch.h"

#define SETATTR_MODE  1u
#define SETATTR_SIZE  8u
#define SETATTR_ATIME 16u
#define SETATTR_MTIME 32u
#define SETATTR_ALL   (SETATTR_MODE | SETATTR_SIZE | SETATTR_ATIME | SETATTR_MTIME)

static int set_times(int fd, const Sbx__Gofer__SetAttr *s)
{
	struct timespec ts[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_nsec = UTIME_OMIT } };

	if (s->atime_nsec >= NSEC_PER_SEC || s->mtime_nsec >= NSEC_PER_SEC)
		return -EINVAL;
	if (s->valid & SETATTR_ATIME)
		ts[0] = (struct timespec){ s->atime, s->atime_nsec };
	if (s->valid & SETATTR_MTIME)
		ts[1] = (struct timespec){ s->mtime, s->mtime_nsec };
	return host_utimensat(fd, "", ts, AT_EMPTY_PATH);
}

static int set_attrs(int fd, const struct node *n, const Sbx__Gofer__SetAttr *s)
{
	char path[REOPEN_PATH_MAX];
	int r = 0;

	reopen_path(fd, path);
	if (s->valid & SETATTR_SIZE) {
		if (n->fmt != S_IFREG)
			return n->fmt == S_IFDIR ? -EISDIR : -EINVAL;
		r = s->size > INT64_MAX ? -EINVAL : host_truncate(path, (off_t)s->size);
	}
	if (r == 0 && (s->valid & SETATTR_MODE)) {
		if (n->fmt == S_IFLNK)
			return -EOPNOTSUPP;
		r = host_fchmodat(reopen_dirfd(), path, s->mode & 01777);
	}
	if (r == 0 && (s->valid & (SETATTR_ATIME | SETATTR_MTIME)))
		r = set_times(fd, s);
	return r;
}

/* Sets attributes and tells what they are then. */
static int setattr(struct gofer *g, const Sbx__Gofer__SetAttr *s, struct statx *stx)
{
	struct node *n;
	int fd, ret;

	if (s->valid & ~SETATTR_ALL)
		return -EINVAL;
	ret = gofer_fid(g, s->fid, &n);
	if (ret == 0)
		ret = gofer_may_write(g, n, "setattr");
	if (ret < 0)
		return ret;
	fd = node_pin(g->nodes, n);
	if (fd < 0)
		return fd;
	watch_expect_attr(g, n);
	ret = set_attrs(fd, n, s);
	watch_settle(g);
	if (host_statx(fd, "", AT_EMPTY_PATH, NODE_STX_MASK, stx) < 0)
		stx->stx_mask = 0;
	node_unpin(g->nodes, n);
	return ret;
}

GOFER_OP(op_setattr)
{
	struct statx stx;
	int ret = setattr(g, q->setattr, &stx);

	if (ret == 0 && stx.stx_mask)
		reply_attr(r, &stx);
	return ret;
}

int op_before(struct gofer *g, const Sbx__Gofer__Request *q, struct reply *r)
{
	if (q->n_before > GOFER_BEFORE_MAX)
		return -EPROTO;
	for (size_t i = 0; i < q->n_before; i++) {
		Sbx__Gofer__Done *d = r->done_ptrs[i] = &r->done[i];
		struct statx stx;
		int ret = setattr(g, q->before[i], &stx);

		sbx__gofer__done__init(d);
		d->error = (uint32_t)-ret;
		if (ret == 0 && stx.stx_mask) {
			attr_from_statx(&r->done_attrs[i], &stx);
			d->attr = &r->done_attrs[i];
		}
		r->msg.n_done = i + 1;
	}
	return 0;
}

/* A name was made in @dir (pinned as @dirfd): binds @fid to it and tells the attributes of both. */
static int made(struct gofer *g, struct node *dir, int dirfd, const char *name, uint16_t fmt, uint32_t fid,
		struct reply *r)
{
	struct statx stx;
	struct node *n;
	int ret;

	watch_settle(g);
	ret = node_walk(g->nodes, dir, name, &stx, &n);

	if (ret < 0)
		return ret;
	if (n->fmt != fmt) { /* the host was faster */
		node_put(g->nodes, n);
		return -ESTALE;
	}
	reply_attr(r, &stx);
	reply_dir_attr(r, dirfd);
	reply_hidden(r, n);
	if (fid)
		return fid_install(g->nodes, &g->fids, fid, n);
	node_put(g->nodes, n);
	return 0;
}

/* Checks that come before a name is made. On success *dirfd is *dir's, pinned. */
static int before_make(struct gofer *g, uint32_t fid, const char *name, uint32_t new_fid, const char *op,
		       struct node **dir, int *dirfd)
{
	int ret = gofer_check_name(name);

	if (ret == 0)
		ret = gofer_fid_dir(g, fid, dir);
	if (ret == 0)
		ret = gofer_may_change(g, *dir, name, op, !strcmp(op, "symlink"));
	if (ret == 0 && new_fid)
		ret = fid_reserve(&g->fids, new_fid);
	if (ret < 0)
		return ret;
	*dirfd = node_pin(g->nodes, *dir);
	return *dirfd < 0 ? *dirfd : 0;
}

GOFER_OP(op_mkdir)
{
	const Sbx__Gofer__Mkdir *m = q->mkdir;
	struct node *dir;
	int dirfd, ret;

	ret = before_make(g, m->fid, m->name, m->new_fid, "mkdir", &dir, &dirfd);
	if (ret < 0)
		return ret;
	watch_expect(g->watches, dir, IN_CREATE, m->name, false);
	ret = host_mkdirat(dirfd, m->name, m->mode & 01777);
	if (ret == 0)
		ret = made(g, dir, dirfd, m->name, S_IFDIR, m->new_fid, r);
	node_unpin(g->nodes, dir);
	return ret;
}

GOFER_OP(op_symlink)
{
	const Sbx__Gofer__Symlink *s = q->symlink;
	struct node *dir;
	int dirfd, ret;

	if (!s->target[0])
		return -ENOENT;
	if (strlen(s->target) >= PATH_MAX)
		return -ENAMETOOLONG;
	ret = before_make(g, s->fid, s->name, s->new_fid, "symlink", &dir, &dirfd);
	if (ret < 0)
		return ret;
	watch_expect(g->watches, dir, IN_CREATE, s->name, false);
	ret = host_symlinkat(s->target, dirfd, s->name);
	if (ret == 0)
		ret = made(g, dir, dirfd, s->name, S_IFLNK, s->new_fid, r);
	node_unpin(g->nodes, dir);
	return ret;
}

GOFER_OP(op_mknod)
{
	const Sbx__Gofer__Mknod *m = q->mknod;
	uint32_t fmt = m->mode & S_IFMT;
	struct node *dir;
	int dirfd, ret;

	if (fmt != S_IFIFO && fmt != S_IFSOCK)
		return -EPERM;
	ret = before_make(g, m->fid, m->name, m->new_fid, "mknod", &dir, &dirfd);
	if (ret < 0)
		return ret;
	watch_expect(g->watches, dir, IN_CREATE, m->name, false);
	ret = host_mknodat(dirfd, m->name, fmt | (m->mode & 01777), 0);
	if (ret == 0)
		ret = made(g, dir, dirfd, m->name, (uint16_t)fmt, m->new_fid, r);
	node_unpin(g->nodes, dir);
	return ret;
}

/* The file of @n gets the name @name in @dir. */
static int link_node(struct gofer *g, struct node *dir, const char *name, struct node *n, struct reply *r)
{
	char path[REOPEN_PATH_MAX];
	int dirfd, fd, ret;

	dirfd = node_pin(g->nodes, dir);
	if (dirfd < 0)
		return dirfd;
	fd = ret = node_pin(g->nodes, n);
	if (fd >= 0) {
		/* By the magic link: the file itself, whatever is at its name now. */
		watch_expect(g->watches, dir, IN_CREATE, name, false);
		ret = host_linkat(reopen_dirfd(), reopen_path(fd, path), dirfd, name, AT_SYMLINK_FOLLOW);
		if (ret == 0) {
			node_named(g->nodes, n, dir, name);
			watch_settle(g);
			reply_dir_attr(r, fd);
			reply_dir_attr(r, dirfd);
		}
		node_unpin(g->nodes, n);
	}
	node_unpin(g->nodes, dir);
	return ret;
}

GOFER_OP(op_link)
{
	const Sbx__Gofer__Link *l = q->link;
	struct node *dir, *n;
	int ret;

	ret = gofer_check_name(l->name);
	if (ret == 0)
		ret = gofer_fid_dir(g, l->fid, &dir);
	if (ret == 0)
		ret = gofer_fid(g, l->target_fid, &n);
	if (ret < 0)
		return ret;
	if (n->grant != dir->grant) {
		gofer_deny(g, dir, l->name, "link", "grant", "from another grant");
		return -EXDEV;
	}
	if (n->fmt != S_IFREG && n->fmt != S_IFLNK && n->fmt != S_IFIFO)
		return -EPERM;
	/* A second name for a protected file would be a way to write to it. */
	ret = gofer_may_write(g, n, "link");
	if (ret == 0)
		ret = gofer_may_change(g, dir, l->name, "link", n->fmt == S_IFLNK);
	return ret < 0 ? ret : link_node(g, dir, l->name, n, r);
}

GOFER_OP(op_unlink)
{
	const Sbx__Gofer__Unlink *u = q->unlink;
	struct node *dir;
	int dirfd, ret;

	ret = before_make(g, u->fid, u->name, 0, u->dir ? "rmdir" : "unlink", &dir, &dirfd);
	if (ret < 0)
		return ret;
	node_prepare_unlink(g->nodes, dir, u->name);
	watch_expect(g->watches, dir, IN_DELETE, u->name, false);
	ret = host_unlinkat(dirfd, u->name, u->dir ? AT_REMOVEDIR : 0);
	if (ret == 0) {
		node_unlinked(g->nodes, dir, u->name);
		watch_settle(g);
		reply_dir_attr(r, dirfd);
	}
	node_unpin(g->nodes, dir);
	return ret;
}

/* The type of what is at @name: 0 when there is nothing. */
static uint16_t type_at(int dirfd, const char *name)
{
	struct statx stx;

	if (host_statx(dirfd, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_TYPE, &stx) < 0)
		return 0;
	return stx.stx_mode & S_IFMT;
}

struct rename_place {
	struct node *dir;
	const char *name;
	int fd; /* pinned */
};

/* Both places may be changed, and what moves there may be there. */
static int rename_allowed(struct gofer *g, const struct rename_place *o, const struct rename_place *n, bool exchange)
{
	uint16_t otype = type_at(o->fd, o->name), ntype = exchange ? type_at(n->fd, n->name) : 0;
	int ret;

	ret = gofer_may_change(g, o->dir, o->name, "rename", ntype == S_IFLNK);
	if (ret == 0)
		ret = gofer_may_change(g, n->dir, n->name, "rename", otype == S_IFLNK);
	if (ret == 0 && (otype == S_IFDIR || ntype == S_IFDIR))
		ret = gofer_may_move_dir(g, o->dir, o->name, n->dir, n->name);
	return ret;
}

/* Which file is at a place; none is all zero. */
static struct file_id id_at(const struct rename_place *p)
{
	struct file_id id = { 0 };
	struct statx stx;

	if (host_statx(p->fd, p->name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_INO, &stx) == 0)
		file_id_from_statx(&id, &stx);
	return id;
}

static int do_rename(struct gofer *g, const struct rename_place *o, const struct rename_place *n, unsigned flags,
		     struct reply *r)
{
	bool exchange = flags & RENAME_EXCHANGE;
	int ret = rename_allowed(g, o, n, exchange);
	struct file_id id, now;

	if (ret < 0)
		return ret;
	id = n->dir->watch ? id_at(o) : (struct file_id){ 0 };
	if (!exchange)
		node_prepare_unlink(g->nodes, n->dir, n->name);
	watch_expect(g->watches, o->dir, IN_MOVED_FROM, o->name, false);
	watch_expect(g->watches, n->dir, IN_MOVED_TO, n->name, false);
	if (exchange) {
		watch_expect(g->watches, n->dir, IN_MOVED_FROM, n->name, false);
		watch_expect(g->watches, o->dir, IN_MOVED_TO, o->name, false);
	}
	ret = host_renameat2(o->fd, o->name, n->fd, n->name, flags);
	if (ret < 0)
		return ret;
	node_renamed(g->nodes, o->dir, o->name, n->dir, n->name, exchange);
	watch_settle(g);
	/* Two files that are moved to one name right after each other may have been one event. */
	now = n->dir->watch ? id_at(n) : id;
	if (!file_id_equal(&id, &now))
		watch_note(g->watches, n->dir, n->name);
	reply_dir_attr(r, o->fd);
	reply_dir_attr(r, n->fd);
	return 0;
}

GOFER_OP(op_rename)
{
	const Sbx__Gofer__Rename *m = q->rename;
	struct rename_place o = { .name = m->name }, n = { .name = m->new_name };
	int ret;

	if ((m->flags & ~(uint32_t)(RENAME_NOREPLACE | RENAME_EXCHANGE)) ||
	    m->flags == (RENAME_NOREPLACE | RENAME_EXCHANGE))
		return -EINVAL;
	ret = gofer_check_name(o.name);
	if (ret == 0)
		ret = gofer_check_name(n.name);
	if (ret == 0)
		ret = gofer_fid_dir(g, m->fid, &o.dir);
	if (ret == 0)
		ret = gofer_fid_dir(g, m->new_dir_fid, &n.dir);
	if (ret < 0)
		return ret;
	if (o.dir->grant != n.dir->grant) {
		gofer_deny(g, n.dir, n.name, "rename", "grant", "from another grant");
		return -EXDEV;
	}
	o.fd = node_pin(g->nodes, o.dir);
	if (o.fd < 0)
		return o.fd;
	n.fd = ret = node_pin(g->nodes, n.dir);
	if (n.fd >= 0) {
		ret = do_rename(g, &o, &n, m->flags, r);
		node_unpin(g->nodes, n.dir);
	}
	node_unpin(g->nodes, o.dir);
	return ret;
}
