/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading directories. A few directories stay open (streams), so that reading on costs no open. A cookie is the host's
 * own (d_off): it stays good when the directory was closed in between.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/host/at.h"
#include "base/host/fdio.h"
#include "base/host/hostio.h"
#include "base/host/file.h"
#include "gofer/gofer.h"
#include "gofer/reopen.h"
#include "gofer/watch.h"

#define DENTS_BYTES (16u * 1024)

struct host_dirent {
	uint64_t ino;
	int64_t off;
	uint16_t reclen;
	uint8_t type;
	char name[];
};

static void stream_close(struct stream *s)
{
	host_close(s->fd);
	s->fd = -1;
	s->node = NULL;
}

/* The stream of @n (pinned as @fd) at @cookie. */
static int stream_get(struct gofer *g, struct node *n, int fd, uint64_t cookie, struct stream **ret)
{
	struct stream *s = &g->streams[0];
	int r;

	for (unsigned i = 0; i < GOFER_STREAMS; i++) {
		struct stream *x = &g->streams[i];

		/* The identity as well: the node may have gone and its memory be another's. */
		if (x->node == n && file_id_equal(&x->id, &n->id)) {
			s = x;
			break;
		}
		if (!x->node || (s->node && x->used < s->used))
			s = x;
	}
	if (s->node != n || !file_id_equal(&s->id, &n->id)) {
		stream_close(s);
		r = reopen_fd(fd, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
		if (r < 0)
			return r;
		s->fd = r;
		s->node = n;
		s->id = n->id;
		s->pos = 0;
	}
	s->used = ++g->stream_clock;
	/* From the start always anew: the host's file system may show a snapshot. */
	if (s->pos != cookie || !cookie) {
		int64_t at = cookie > INT64_MAX ? -EINVAL : host_lseek(s->fd, (int64_t)cookie, SEEK_SET);

		if (at < 0) {
			stream_close(s);
			return (int)at;
		}
		s->pos = cookie;
	}
	*ret = s;
	return 0;
}

/* There is room: reply_full() said so. */
static void add_entry(struct reply *r, const char *name, uint64_t cookie, uint64_t ino, uint8_t type,
		      const struct statx *stx)
{
	Sbx__Gofer__Dirent *e = &r->entries[r->n_entries];
	size_t len = strlen(name) + 1;

	sbx__gofer__dirent__init(e);
	e->name = memcpy(r->names + r->name_bytes, name, len);
	e->cookie = cookie;
	if (stx) {
		e->attr = &r->entry_attrs[r->n_entries];
		attr_from_statx(e->attr, stx);
	} else {
		e->ino = ino;
		e->dtype = type;
	}
	r->entry_ptrs[r->n_entries++] = e;
	r->name_bytes += len;
}

/* Skipped: what is hidden, and what has gone since. */
static void take_entry(struct gofer *g, struct node *n, int fd, const struct host_dirent *d, bool with_attr,
		       struct reply *r)
{
	struct file_id id;
	struct statx stx;

	if (d->name[0] == '.' && (!d->name[1] || (d->name[1] == '.' && !d->name[2]))) {
		/* The real ".." of a root would tell about the host. */
		add_entry(r, d->name, (uint64_t)d->off, n->id.ino, DT_DIR, NULL);
		return;
	}
	if (mark_hides(n->mark, d->name))
		return;
	if (with_attr || g->grants.n_hidden) {
		if (host_statx(fd, d->name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, NODE_STX_MASK, &stx) < 0)
			return;
		file_id_from_statx(&id, &stx);
		if (grant_hides_id(&g->grants, &id))
			return;
	}
	add_entry(r, d->name, (uint64_t)d->off, d->ino, d->type, with_attr ? &stx : NULL);
}

static bool reply_full(const struct reply *r)
{
	return r->n_entries == GOFER_DIR_BATCH || r->name_bytes + NODE_NAME_MAX + 1 > GOFER_NAME_BYTES;
}

static int read_entries(struct gofer *g, struct node *n, struct stream *s, int fd, bool with_attr, struct reply *r)
{
	static uint64_t buf[DENTS_BYTES / sizeof(uint64_t)];

	while (!reply_full(r)) {
		ssize_t len = host_getdents(s->fd, buf, sizeof(buf));
		const uint8_t *p = (const uint8_t *)buf, *end = p + len;

		if (len < 0)
			return (int)len;
		if (len == 0) {
			r->msg.eof = true;
			return 0;
		}
		for (; p < end && !reply_full(r); p += ((const struct host_dirent *)p)->reclen) {
			const struct host_dirent *d = (const struct host_dirent *)p;

			take_entry(g, n, fd, d, with_attr, r);
			s->pos = (uint64_t)d->off;
		}
		if (p < end) { /* read too far */
			int64_t at = host_lseek(s->fd, (int64_t)s->pos, SEEK_SET);

			return at < 0 ? (int)at : 0;
		}
	}
	return 0;
}

GOFER_OP(op_readdir)
{
	struct stream *s = NULL;
	struct node *n;
	int fd, ret;

	ret = gofer_fid(g, q->readdir->fid, &n);
	if (ret < 0)
		return ret;
	if (n->fmt != S_IFDIR)
		return -ENOTDIR;
	if (n->flags & NODE_BARRED) {
		if (!q->readdir->cookie) {
			add_entry(r, ".", 1, n->id.ino, DT_DIR, NULL);
			add_entry(r, "..", 2, n->id.ino, DT_DIR, NULL);
		}
		r->msg.eof = true;
		return 0;
	}
	fd = node_pin(g->nodes, n);
	if (fd < 0)
		return fd;
	if (q->readdir->watch)
		r->watches[r->msg.n_watches++] = watch_dir(g->watches, n, fd);
	reply_hidden(r, n);
	ret = stream_get(g, n, fd, q->readdir->cookie, &s);
	if (ret == 0) {
		ret = read_entries(g, n, s, fd, q->readdir->with_attr, r);
		if (ret < 0)
			stream_close(s);
	}
	node_unpin(g->nodes, n);
	return ret;
}
