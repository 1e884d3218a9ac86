/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests to the gofer: the leader sends one and waits for its answer.
 *
 * A call is built on the caller's stack: gofer_call_init, the operation's fields in c->req, ids by gofer_call_fid
 * (which puts a walk in front when the inode has none), gofer_call_run, use of c->rep, gofer_call_end.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/bug.h"
#include "base/host/file.h"
#include "base/host/sched.h"
#include "base/log.h"
#include "sentry/fs/gofer_priv.h"
#include "sentry/kernel/kernel.h"

uint64_t gofer_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts); /* vDSO: no host call */
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

static int stack_push(uint32_t **stack, uint32_t *n, uint32_t *cap, uint32_t v)
{
	if (*n == *cap) {
		uint32_t c = *cap ? *cap * 2 : 64;
		uint32_t *p = realloc(*stack, c * sizeof(*p));

		if (!p)
			return -ENOMEM;
		*stack = p;
		*cap = c;
	}
	(*stack)[(*n)++] = v;
	return 0;
}

uint32_t gofer_fid_new(struct gofer_conn *c)
{
	if (c->n_free)
		return c->free_fids[--c->n_free];
	return c->next_fid++;
}

/* An id that the gofer does not know (any more). */
static void fid_release(struct gofer_conn *c, uint32_t fid)
{
	(void)stack_push(&c->free_fids, &c->n_free, &c->cap_free, fid); /* without memory the number is lost, no more */
}

void gofer_fid_drop(struct gofer_conn *c, uint32_t fid)
{
	if (fid)
		(void)stack_push(&c->clunks, &c->n_clunks, &c->cap_clunks, fid); /* as above */
}

void gofer_call_init(struct gofer_call *c, struct gofer_conn *conn)
{
	memset(c, 0, offsetof(struct gofer_call, bind));
	c->subject = c->from = NULL;
	c->n_alloc = 0;
	c->rep = NULL;
	c->n_attrs = 0;
	c->conn = conn;
	c->fd = -1;
	c->lost_fd = false;
	c->hides = false;
	sbx__gofer__request__init(&c->req);
	sbx__gofer__walk__init(&c->walk);
	c->walk.names = c->names;
	c->walk.new_fids = c->new_fids;
}

/* Starts the walk at the nearest ancestor with an id; its names end with @gi's. */
static int walk_prefix(struct gofer_call *c, struct gofer_inode *gi)
{
	struct gofer_inode *x = gi;
	unsigned n = 0;
	int r;

	while (!x->fid) {
		if (!x->parent)
			return -ESTALE;
		n++;
		x = x->parent;
	}
	if (n > GOFER_CALL_WALK_MAX - 1) {
		/* Too deep for one request: from the top, in steps. */
		unsigned skip = n - (GOFER_CALL_WALK_MAX - 1);

		for (x = gi; skip < n; n--)
			x = x->parent;
		r = gofer_bind(x);
		return r < 0 ? r : walk_prefix(c, gi);
	}
	BUG_ON(c->req.walk);
	c->from = x;
	c->walk.watch = !gi->fs->sb.stable;
	c->walk.fid = x->fid;
	c->walk.n_names = c->n_bind = n;
	if (!n)
		return 0;
	c->req.walk = &c->walk;
	for (x = gi; n--; x = x->parent) {
		c->bind[n] = x;
		c->names[n] = x->name;
		c->new_fids[n] = gofer_fid_new(c->conn);
	}
	c->walk.n_new_fids = c->walk.n_names;
	return 0;
}

int gofer_call_fid(struct gofer_call *c, struct gofer_inode *gi, uint32_t *fid)
{
	int r = walk_prefix(c, gi);

	c->subject = gi;
	if (r < 0)
		return r;
	*fid = c->n_bind ? c->new_fids[c->n_bind - 1] : gi->fid;
	return 0;
}

int gofer_call_peek(struct gofer_call *c, struct gofer_inode *dir, const char *name)
{
	int r = walk_prefix(c, dir);

	c->subject = dir;
	if (r < 0)
		return r;
	c->req.walk = &c->walk;
	c->names[c->n_bind] = (char *)(uintptr_t)name;
	c->new_fids[c->n_bind] = 0;
	c->walk.n_names = c->walk.n_new_fids = c->n_bind + 1;
	return 0;
}

int gofer_call_new_fid(struct gofer_call *c, uint32_t *fid)
{
	BUG_ON(c->n_alloc == ARRAY_SIZE(c->alloc));
	*fid = c->alloc[c->n_alloc++] = gofer_fid_new(c->conn);
	return 0;
}

void gofer_fid_clear(struct gofer_inode *gi)
{
	gofer_watch_clear(gi);
	gofer_fid_drop(gi->fs->conn, gi->fid);
	gi->fid = 0;
}

static int conn_die(struct gofer_conn *c, const char *why)
{
	if (!c->dead)
		log_err(CH_FS, "the connection to the gofer ended: %s", why);
	c->dead = true;
	return -EIO;
}

static int receive(struct gofer_call *c)
{
	struct gofer_conn *conn = c->conn;
	struct wire_arena arena = { .base = conn->arena, .cap = sizeof(conn->arena) };
	struct wire_msg m = { .buf = conn->buf, .cap = sizeof(conn->buf) };
	int r = wire_recv(conn->sock, &m);

	if (r == -EMFILE)
		c->lost_fd = true;
	else if (r <= 0)
		return conn_die(conn, r ? strerror(-r) : "it has gone");
	if (m.n_fds > 1 || gofer_reply_parse(conn->buf, m.len, &arena, &c->rep) < 0 || c->rep->tag != c->req.tag) {
		wire_close_fds(&m);
		c->rep = NULL;
		return conn_die(conn, "a reply that is not of the protocol");
	}
	if (m.n_fds)
		c->fd = m.fds[0];
	return 0;
}

static int send_request(struct gofer_call *c)
{
	struct gofer_conn *conn = c->conn;
	uint32_t n = MIN(conn->n_clunks, (uint32_t)GOFER_CLUNKS_MAX);
	struct wire_msg m = { .buf = conn->buf };
	int r;

	c->req.tag = ++conn->tag;
	c->req.cpu = host_cpu_current() + 1;
	gofer_defer_send(c);
	c->req.n_clunk = n;
	c->req.clunk = n ? conn->clunks + (conn->n_clunks - n) : NULL;
	if (sbx__gofer__request__get_packed_size(&c->req) > sizeof(conn->buf))
		return -E2BIG;
	m.len = sbx__gofer__request__pack(&c->req, conn->buf);
	r = wire_send(conn->sock, &m);
	if (r < 0)
		return conn_die(conn, strerror(-r));
	for (conn->n_clunks -= n; n; n--)
		fid_release(conn, c->req.clunk[n - 1]);
	return 0;
}

/* The directories in which names were looked up: where the walk began, and the first @bound that got ids. */
static void take_watches(struct gofer_call *c, unsigned bound)
{
	const Sbx__Gofer__Reply *rep = c->rep;

	for (size_t i = 0; i < MIN((size_t)bound + 1, rep->n_watches) && c->req.walk; i++)
		gofer_watch_set(i ? c->bind[i - 1] : c->from, rep->watches[i]);
}

/* Gives the inodes that the walk reached their ids. -ESTALE: the host has something else there. */
static int take_walk(struct gofer_call *c)
{
	const Sbx__Gofer__Reply *rep = c->rep;
	unsigned walked = rep->walked, i;
	int r = 0;

	if (walked > c->walk.n_names || walked > rep->n_attrs)
		return conn_die(c->conn, "a walk beyond its names");
	for (i = 0; i < MIN(walked, c->n_bind); i++) {
		struct gofer_inode *gi = c->bind[i];
		const Sbx__Gofer__Attr *a = rep->attrs[i];

		if (a->dev != gi->dev || a->ino != gi->ino) {
			r = gofer_stale(gi);
			break;
		}
		gi->fid = c->new_fids[i];
		c->new_fids[i] = 0;
	}
	take_watches(c, i);
	/* What is left was bound by the gofer but is not ours, or was never bound. */
	for (unsigned k = i; k < c->n_bind; k++) {
		if (k < walked)
			gofer_fid_drop(c->conn, c->new_fids[k]);
		else
			fid_release(c->conn, c->new_fids[k]);
	}
	if (r == 0 && walked < c->n_bind)
		r = rep->error == ENOENT || rep->error == ENOTDIR ? gofer_stale(c->bind[walked]) : 0;
	c->n_bind = 0;
	c->attrs = rep->n_attrs ? rep->attrs + i : NULL;
	c->n_attrs = (unsigned)rep->n_attrs - i;
	return r;
}

int gofer_call_run(struct gofer_call *c)
{
	int r;

	if (c->conn->dead)
		return -EIO;
	if (c->conn->unopened)
		gofer_unopened_close(c->conn);
	r = send_request(c);
	if (r == 0)
		r = receive(c);
	gofer_defer_done(c);
	if (r == 0)
		r = take_walk(c);
	if (r == 0)
		r = -(int)c->rep->error;
	c->hides = c->rep && (c->rep->n_hidden || c->rep->hides_all);
	/* The gofer finds something else at the place of the id: another look goes by the place. */
	if (r == -ESTALE && c->rep && c->rep->error == ESTALE && c->subject && c->subject->parent) {
		gofer_fid_clear(c->subject);
		(void)gofer_stale(c->subject);
	}
	return r;
}

void gofer_call_end(struct gofer_call *c)
{
	if (c->rep)
		gofer_changes(c->conn, c->rep);
	c->rep = NULL;
	/* A walk that was not answered. */
	for (unsigned i = 0; i < c->n_bind; i++)
		fid_release(c->conn, c->new_fids[i]);
	c->n_bind = 0;
	/* The gofer may have bound a new id before it failed: forgetting an unknown one is harmless. */
	for (unsigned i = 0; i < c->n_alloc; i++)
		gofer_fid_drop(c->conn, c->alloc[i]);
	c->n_alloc = 0;
	host_close(c->fd);
	c->fd = -1;
}

int gofer_bind(struct gofer_inode *gi)
{
	struct gofer_call c;
	uint32_t fid;
	int r;

	if (gi->fid)
		return 0;
	gofer_call_init(&c, gi->fs->conn);
	r = gofer_call_fid(&c, gi, &fid);
	if (r == 0)
		r = gofer_call_run(&c);
	gofer_call_end(&c);
	return r;
}

static int say_hello(struct gofer_conn *conn)
{
	Sbx__Gofer__Hello h = SBX__GOFER__HELLO__INIT;
	struct gofer_call c;
	int r;

	gofer_call_init(&c, conn);
	h.version = SBX__GOFER__VERSION__VERSION_CURRENT;
	c.req.op_case = SBX__GOFER__REQUEST__OP_HELLO;
	c.req.hello = &h;
	r = gofer_call_run(&c);
	if (r == 0) {
		conn->events = c.fd;
		c.fd = -1;
	}
	gofer_call_end(&c);
	return r;
}

int gofer_conn_create(int sock, struct gofer_conn **ret)
{
	struct gofer_conn *c = calloc(1, sizeof(*c));
	int r;

	if (!c) {
		host_close(sock);
		return -ENOMEM;
	}
	ref_init(&c->ref);
	c->sock = sock;
	c->next_fid = 1;
	c->events = -1;
	list_init(&c->idle);
	list_init(&c->listings);
	kernel_random(&c->key, sizeof(c->key));
	r = say_hello(c);
	if (r < 0) {
		gofer_conn_put(c);
		return r;
	}
	*ret = c;
	return 0;
}

void gofer_conn_put(struct gofer_conn *c)
{
	if (!c || !ref_put(&c->ref))
		return;
	if (c->defer_timer.fire)
		ktimer_cancel(&c->defer_timer);
	host_close(c->sock);
	host_close(c->events);
	free(c->watched);
	free(c->free_fids);
	free(c->clunks);
	free(c->neg);
	free(c);
}
