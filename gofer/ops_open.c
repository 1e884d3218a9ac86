/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations that give the sentry a host fd. An fd is all that the sentry needs to read or write the file for as long
 * as it likes, so what it may do is decided here: an fd of a read-only grant, or of a protected file, is never
 * writable.
 */
#include <errno.h>
#include <fcntl.h>

#include "base/host/at.h"
#include "base/host/fdio.h"
#include "base/host/hostio.h"
#include "base/host/file.h"
#include "gofer/gofer.h"
#include "gofer/reopen.h"
#include "gofer/watch.h"

/* O_NONBLOCK: a lease held on the file must not stop us. */
#define OPEN_ALWAYS (O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

static int openable(struct gofer *g, const struct node *n)
{
	switch (n->fmt) {
	case S_IFREG:
		if (n->flags & NODE_BARRED) {
			gofer_deny(g, n, NULL, "open", "grant", "belongs to another grant");
			return -EACCES;
		}
		return 0;
	case S_IFDIR:
		return -EISDIR;
	case S_IFLNK:
		return -ELOOP;
	default:
		gofer_deny(g, n, NULL, "open", "special", "device, FIFO or socket of the host");
		return -ENXIO;
	}
}

GOFER_OP(op_open)
{
	const Sbx__Gofer__Open *o = q->open;
	bool write = (o->flags & O_ACCMODE) != O_RDONLY || (o->flags & O_TRUNC);
	struct node *n;
	struct statx stx;
	int fd, ret;

	if ((o->flags & ~(uint32_t)(O_ACCMODE | O_TRUNC)) || (o->flags & O_ACCMODE) == O_ACCMODE)
		return -EINVAL;
	ret = gofer_fid(g, o->fid, &n);
	if (ret == 0)
		ret = openable(g, n);
	if (ret == 0 && write)
		ret = gofer_may_write(g, n, "open");
	if (ret < 0)
		return ret;
	fd = node_pin(g->nodes, n);
	if (fd < 0)
		return fd;
	ret = reopen_fd(fd, (int)o->flags | OPEN_ALWAYS);
	node_unpin(g->nodes, n);
	if (ret < 0)
		return ret;
	r->fd = ret;
	r->close_fd = true;
	ret = host_statx(r->fd, "", AT_EMPTY_PATH, NODE_STX_MASK, &stx);
	if (ret < 0)
		return ret;
	reply_attr(r, &stx);
	gofer_allow(g, n, "open", write ? "w" : "r");
	return 0;
}

/* The new file is open as r->fd: gives it @fid and tells its attributes. */
static int bind_new(struct gofer *g, struct node *dir, const char *name, uint32_t fid, struct reply *r)
{
	struct statx stx;
	struct node *n;
	int ret = node_adopt(g->nodes, dir, name, r->fd, &stx, &n);

	if (ret < 0)
		return ret;
	reply_attr(r, &stx);
	if (!fid) {
		node_put(g->nodes, n);
		return 0;
	}
	return fid_install(g->nodes, &g->fids, fid, n);
}

GOFER_OP(op_create)
{
	const Sbx__Gofer__Create *c = q->create;
	const struct open_how how = {
		.flags = O_CREAT | O_EXCL | O_RDWR | O_NOFOLLOW | OPEN_ALWAYS,
		.mode = c->mode & 01777, /* a file that a sandbox made does not run as its owner */
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	struct node *dir;
	int dirfd, ret;

	ret = gofer_check_name(c->name);
	if (ret == 0)
		ret = gofer_fid_dir(g, c->fid, &dir);
	if (ret == 0)
		ret = gofer_may_change(g, dir, c->name, "create", false);
	if (ret == 0 && c->new_fid)
		ret = fid_reserve(&g->fids, c->new_fid);
	if (ret < 0)
		return ret;
	dirfd = node_pin(g->nodes, dir);
	if (dirfd < 0)
		return dirfd;
	watch_expect(g->watches, dir, IN_CREATE, c->name, false);
	ret = host_openat2(dirfd, c->name, &how);
	if (ret >= 0) {
		watch_settle(g);
		r->fd = ret;
		r->close_fd = true;
		ret = bind_new(g, dir, c->name, c->new_fid, r);
		reply_dir_attr(r, dirfd);
	}
	node_unpin(g->nodes, dir);
	return ret;
}

GOFER_OP(op_tmpfile)
{
	const Sbx__Gofer__Tmpfile *t = q->tmpfile;
	const struct open_how how = {
		.flags = O_TMPFILE | O_RDWR | O_NONBLOCK | O_CLOEXEC,
		.mode = t->mode & 01777,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	struct node *dir;
	int dirfd, ret;

	ret = gofer_fid_dir(g, t->fid, &dir);
	if (ret < 0)
		return ret;
	if (!dir->grant->writable)
		return -EROFS;
	ret = t->new_fid ? fid_reserve(&g->fids, t->new_fid) : 0;
	if (ret < 0)
		return ret;
	dirfd = node_pin(g->nodes, dir);
	if (dirfd < 0)
		return dirfd;
	ret = host_openat2(dirfd, ".", &how);
	node_unpin(g->nodes, dir);
	if (ret < 0)
		return ret;
	r->fd = ret;
	r->close_fd = true;
	return bind_new(g, dir, NULL, t->new_fid, r);
}

GOFER_OP(op_fsync)
{
	struct node *n;
	int fd, file, ret;

	ret = gofer_fid_dir(g, q->fsync->fid, &n);
	if (ret < 0)
		return ret;
	fd = node_pin(g->nodes, n);
	if (fd < 0)
		return fd;
	file = reopen_fd(fd, O_RDONLY | O_DIRECTORY | OPEN_ALWAYS);
	node_unpin(g->nodes, n);
	if (file < 0)
		return file;
	ret = host_fsync(file, false);
	host_close(file);
	return ret;
}
