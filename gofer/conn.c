/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connection to the sentry: requests are parsed into an arena, answered from preallocated arrays, one after the
 * other. What cannot be parsed, or comes before Hello, ends the connection and with it the process: the monitor then
 * ends the sandbox.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/host/file.h"
#include "base/log.h"
#include "base/wire/wire.h"
#include "gofer/gofer.h"
#include "gofer/watch.h"

#define HOT_MS 20 /* how long the control socket and the audit counts may wait while requests come in */

#define REQ(x) SBX__GOFER__REQUEST__OP_##x

struct op_desc {
	const char *name;
	GOFER_OP((*fn));
};

static const struct op_desc ops[] = {
	[REQ(ATTACH)] = { "attach", op_attach },
	[REQ(GETATTR)] = { "getattr", op_getattr },
	[REQ(SETATTR)] = { "setattr", op_setattr },
	[REQ(OPEN)] = { "open", op_open },
	[REQ(CREATE)] = { "create", op_create },
	[REQ(MKDIR)] = { "mkdir", op_mkdir },
	[REQ(SYMLINK)] = { "symlink", op_symlink },
	[REQ(LINK)] = { "link", op_link },
	[REQ(UNLINK)] = { "unlink", op_unlink },
	[REQ(RENAME)] = { "rename", op_rename },
	[REQ(TMPFILE)] = { "tmpfile", op_tmpfile },
	[REQ(MKNOD)] = { "mknod", op_mknod },
	[REQ(READLINK)] = { "readlink", op_readlink },
	[REQ(READDIR)] = { "readdir", op_readdir },
	[REQ(STATFS)] = { "statfs", op_statfs },
	[REQ(GETXATTR)] = { "getxattr", op_getxattr },
	[REQ(SETXATTR)] = { "setxattr", op_setxattr },
	[REQ(LISTXATTR)] = { "listxattr", op_listxattr },
	[REQ(REMOVEXATTR)] = { "removexattr", op_removexattr },
	[REQ(FSYNC)] = { "fsync", op_fsync },
};

int gofer_server_create(unsigned fd_budget, struct gofer **ret)
{
	struct gofer *g = calloc(1, sizeof(*g));
	int r;

	if (!g)
		return -ENOMEM;
	g->nodes = node_table_create(fd_budget);
	r = g->nodes ? protect_create(&g->protect) : -ENOMEM;
	if (r < 0) {
		gofer_server_destroy(g);
		return r;
	}
	audit_init(&g->audit, -1, false);
	for (unsigned i = 0; i < GOFER_STREAMS; i++)
		g->streams[i].fd = -1;
	*ret = g;
	return 0;
}

void gofer_server_destroy(struct gofer *g)
{
	if (!g)
		return;
	for (unsigned i = 0; i < GOFER_STREAMS; i++) {
		if (g->streams[i].node)
			host_close(g->streams[i].fd);
	}
	watch_destroy(g->watches);
	if (g->nodes) {
		fid_table_fini(g->nodes, &g->fids);
		grant_table_fini(&g->grants, g->nodes);
	}
	node_table_destroy(g->nodes);
	protect_destroy(g->protect);
	free(g);
}

static int add_grant(struct gofer *g, const Sbx__Control__Grant *cg, bool clone, struct sbx_err *err)
{
	bool writable = cg->mode == SBX__CONTROL__GRANT_MODE__GRANT_RW;
	char *path;
	int fd, r;

	fd = grant_open_root(cg->path, clone, writable, &path, err);
	if (fd < 0)
		return fd;
	r = grant_add(&g->grants, g->nodes, cg->id, path, writable, fd, err);
	free(path);
	if (r == 0)
		r = grant_show_only(grant_peek(&g->grants, cg->id), cg->only, cg->n_only, err);
	return r;
}

int gofer_configure(struct gofer *g, const Sbx__Control__GoferConfig *cfg, bool clone, struct sbx_err *err)
{
	int r;

	for (size_t i = 0; i < cfg->n_grants; i++) {
		r = add_grant(g, cfg->grants[i], clone, err);
		if (r < 0)
			return r;
	}
	r = grant_cover(&g->grants);
	if (r < 0)
		return sbx_fail(err, r, "grants");
	if (cfg->n_hide > HIDE_MAX)
		return sbx_fail(err, -E2BIG, "hidden paths");
	for (size_t i = 0; i < cfg->n_hide && g->grants.n; i++) {
		r = grant_hide(&g->grants, cfg->hide[i], err);
		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < cfg->n_protect; i++) {
		r = protect_add(g->protect, cfg->protect[i]);
		if (r < 0)
			return sbx_fail(err, r, "protect '%s'", cfg->protect[i]);
	}
	return 0;
}

static int hello(struct gofer *g, const Sbx__Gofer__Request *q, struct reply *r)
{
	if (g->greeted || q->hello->version != SBX__GOFER__VERSION__VERSION_CURRENT)
		return -EPROTO;
	g->greeted = true;
	r->fd = watch_poll_fd(g->watches);
	return 0;
}

static void reply_reset(struct reply *r)
{
	sbx__gofer__reply__init(&r->msg);
	r->fd = -1;
	r->close_fd = false;
	r->n_attrs = r->n_entries = 0;
	r->name_bytes = 0;
	r->msg.attrs = r->attr_ptrs;
	r->msg.entries = r->entry_ptrs;
	r->msg.data.data = r->data;
	r->msg.watches = r->watches;
	r->msg.hidden = r->hidden;
	r->msg.done = r->done_ptrs;
}

/* Carries out what the request asks for: 0, an error for the peer, or -EPROTO. */
static int dispatch(struct gofer *g, const Sbx__Gofer__Request *q, struct reply *r)
{
	int ret;

	if (q->op_case == REQ(HELLO))
		return hello(g, q, r);
	if (!g->greeted)
		return -EPROTO;
	if (q->sync)
		watch_gather(g);
	for (size_t i = 0; i < q->n_clunk; i++)
		fid_clunk(g->nodes, &g->fids, q->clunk[i]);
	ret = op_before(g, q, r);
	if (ret < 0)
		return ret;
	if (q->walk) {
		ret = op_walk(g, q->walk, r);
		if (ret < 0)
			return ret;
	}
	if (q->op_case == SBX__GOFER__REQUEST__OP__NOT_SET) {
		log_dbg(CH_GOFER, "%s: 0", q->walk ? "walk" : q->sync ? "sync" : "nothing");
		return 0;
	}
	r->msg.data.len = 0;
	if ((unsigned)q->op_case >= ARRAY_SIZE(ops) || !ops[q->op_case].fn)
		return -EPROTO;
	ret = ops[q->op_case].fn(g, q, r);
	log_dbg(CH_GOFER, "%s: %d", ops[q->op_case].name, ret);
	return ret == -EPROTO ? -EIO : ret; /* EPROTO of a host file system is not the peer's fault */
}

ssize_t gofer_handle(struct gofer *g, const uint8_t *req, size_t len, uint8_t *out, int *fd, bool *close_fd)
{
	struct wire_arena arena = { .base = g->arena, .cap = sizeof(g->arena) };
	ProtobufCAllocator alloc = { wire_arena_alloc, wire_arena_free, &arena };
	struct reply *r = &g->reply;
	Sbx__Gofer__Request *q;
	int ret;

	*fd = -1;
	q = sbx__gofer__request__unpack(&alloc, len, req);
	if (!q)
		return -EPROTO;
	g->peer_cpu = q->cpu;
	reply_reset(r);
	ret = dispatch(g, q, r);
	watch_expect_nothing(g->watches);
	if (ret == -EPROTO)
		return ret;
	if (ret < 0) {
		if (r->close_fd)
			host_close(r->fd);
		r->fd = -1;
		r->msg.error = (uint32_t)-ret;
	}
	r->msg.tag = q->tag;
	r->msg.n_attrs = r->n_attrs;
	r->msg.n_entries = r->n_entries;
	watch_tell(g, r);
	*fd = r->fd;
	*close_fd = r->close_fd;
	return (ssize_t)sbx__gofer__reply__pack(&r->msg, out);
}

static int serve_one(struct gofer *g, int sock, uint8_t *in, uint8_t *out)
{
	struct wire_msg m = { .buf = in, .cap = WIRE_MSG_MAX }, a = { .buf = out, .cap = WIRE_MSG_MAX };
	bool close_fd;
	int fd, r = wire_recv(sock, &m);
	ssize_t len;

	if (r <= 0)
		return r;
	if (m.n_fds) { /* the sentry has nothing to give */
		wire_close_fds(&m);
		return -EPROTO;
	}
	len = gofer_handle(g, in, m.len, out, &fd, &close_fd);
	if (len < 0)
		return (int)len;
	a.len = (size_t)len;
	if (fd >= 0) {
		a.fds[0] = fd;
		a.n_fds = 1;
	}
	r = wire_send(sock, &a);
	if (fd >= 0 && close_fd)
		host_close(fd);
	follow_request(&g->follow, g->peer_cpu);
	return r < 0 ? r : 1;
}

void gofer_socket_time(struct gofer *g, int sock)
{
	const struct timeval tv = { .tv_usec = HOT_MS * 1000 };

	g->timed = setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)) == 0;
}

static uint64_t coarse_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* Serves requests as they come, without a poll for each, until there has been none for a while or a while is over.
 * Returns as serve_one(). */
static int serve_some(struct gofer *g, int sock)
{
	static uint8_t in[WIRE_MSG_MAX], out[WIRE_MSG_MAX];
	uint64_t end = coarse_ms() + HOT_MS;
	int r;

	do
		r = serve_one(g, sock, in, out);
	while (r > 0 && g->timed && coarse_ms() < end);
	return r == -EAGAIN ? 1 : r;
}

int gofer_serve(struct gofer *g, int sock, int control)
{
	struct pollfd p[2] = {
		{ .fd = sock, .events = POLLIN },
		{ .fd = control, .events = POLLIN },
	};
	int r;

	for (;;) {
		int wait = audit_timeout(&g->audit);

		if (wait >= 0) /* what is due, also while requests leave no rest */
			audit_flush(&g->audit, false);
		r = poll(p, ARRAY_SIZE(p), wait);
		if (r < 0 && errno != EINTR)
			return -errno;
		if (r <= 0 || p[1].revents)
			audit_flush(&g->audit, p[1].revents != 0);
		if (r <= 0)
			continue;
		if (p[1].revents) /* the monitor has gone: it says nothing after the configuration */
			return 0;
		r = serve_some(g, sock);
		if (r <= 0) {
			audit_flush(&g->audit, true);
			return r;
		}
	}
}
