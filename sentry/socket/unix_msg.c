/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of AF_UNIX sockets: the receiver's queue, sending, receiving, files that go along. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "sentry/socket/unix_priv.h"
#include "sentry/vfs/uio.h"

#define CHUNK_MAX    65536u /* bytes of a stream message */
#define INFLIGHT_MAX 16384u /* files in all queues */

static unsigned n_inflight;

/*
 * @m is on no list. A file that goes with it may be a socket whose queue holds messages with files, and so on as deep
 * as the guest likes: a queue instead of recursion.
 */
static void msg_free(struct unix_msg *m)
{
	static struct list dying = LIST_INIT(dying);
	static bool running;

	list_add_tail(&dying, &m->node);
	if (running)
		return;
	running = true;
	while (!list_empty(&dying)) {
		m = list_first_entry(&dying, struct unix_msg, node);
		list_del(&m->node);
		for (unsigned i = 0; i < m->n_fds; i++)
			file_put(m->fds[i]);
		n_inflight -= m->n_fds;
		free(m->fds);
		free(m);
	}
	running = false;
}

void unix_queue_drop(struct unix_sock *u)
{
	while (!list_empty(&u->rxq)) {
		struct unix_msg *m = list_first_entry(&u->rxq, struct unix_msg, node);

		list_del(&m->node);
		msg_free(m);
	}
	u->rx_bytes = u->rx_mem = 0;
}

/* As Linux's truesize: small messages do not take more memory than large ones. */
static uint32_t msg_mem(uint64_t len)
{
	return (uint32_t)(sizeof(struct unix_msg) + len);
}

uint32_t unix_rx_room(const struct unix_sock *to)
{
	uint32_t used = to->rx_mem + msg_mem(0);

	return used < to->sock.rcvbuf ? to->sock.rcvbuf - used : 0;
}

void unix_wake_senders(struct unix_sock *u, uint32_t ev)
{
	struct unix_sock *s;

	list_for_each_entry(s, &u->senders, sender_node)
		unix_wake_all(s, ev);
}

bool unix_may_send(const struct unix_sock *u, const struct unix_sock *to)
{
	return to->sock.type != SOCK_DGRAM || !to->peer || to->peer == u;
}

/* A message with up to @n bytes of the uio. */
static struct unix_msg *msg_make(struct unix_sock *u, struct task *t, struct sock_msg *m, uint32_t n, ssize_t *err)
{
	struct unix_msg *msg;
	ssize_t got = 0;

	*err = -ENOBUFS;
	msg = malloc(sizeof(*msg) + n);
	if (!msg)
		return NULL;
	if (n)
		got = uio_copy_from(m->uio, msg->data, n);
	if (got < 0 || (u->sock.type != SOCK_STREAM && (uint32_t)got != n)) {
		*err = -EFAULT;
		free(msg);
		return NULL;
	}
	list_init(&msg->node);
	msg->cred = m->has_cred ? m->cred : t ? unix_cred_of(t) : u->cred;
	msg->from = u->addr;
	msg->len = (uint32_t)got;
	msg->off = 0;
	msg->n_fds = 0;
	msg->fds = NULL;
	if (m->n_fds) {
		msg->fds = malloc(m->n_fds * sizeof(*msg->fds));
		if (!msg->fds) {
			free(msg);
			return NULL;
		}
		memcpy(msg->fds, m->fds, m->n_fds * sizeof(*msg->fds));
		msg->n_fds = m->n_fds;
		n_inflight += m->n_fds;
		m->n_fds = 0; /* given away */
	}
	*err = 0;
	return msg;
}

static void msg_deliver(struct unix_sock *to, struct unix_msg *msg)
{
	list_add_tail(&to->rxq, &msg->node);
	to->rx_bytes += msg->len;
	to->rx_mem += msg_mem(msg->len);
	unix_wake_all(to, POLLIN);
}

static ssize_t dgram_send(struct unix_sock *u, struct task *t, struct sock_msg *m, struct unix_sock *to)
{
	uint64_t n = m->uio->resid;
	struct unix_msg *msg;
	ssize_t err;

	if (n > u->sock.sndbuf)
		return -EMSGSIZE;
	if (!unix_may_send(u, to))
		return -EPERM;
	if (to->rd_shut)
		return -EPIPE;
	if (to->state == UNIX_CLOSED)
		return u->sock.type == SOCK_DGRAM ? -ECONNREFUSED : -EPIPE;
	if (to->rx_mem && MAX(n, 1u) > unix_rx_room(to)) {
		if (u->peer != to)
			u->sock.full = sock_get(&to->sock);
		return -EAGAIN;
	}
	msg = msg_make(u, t, m, (uint32_t)n, &err);
	if (!msg)
		return err;
	msg_deliver(to, msg);
	return (ssize_t)n;
}

static ssize_t stream_send(struct unix_sock *u, struct task *t, struct sock_msg *m)
{
	struct unix_sock *to = u->peer;
	ssize_t total = 0, err = 0;

	do {
		uint32_t room = unix_rx_room(to);
		uint32_t most = MIN(room, CHUNK_MAX), n = (uint32_t)MIN(m->uio->resid, (uint64_t)most);
		struct unix_msg *msg;

		if (!room) {
			err = -EAGAIN;
			break;
		}
		if (!n && !m->n_fds)
			break;
		msg = msg_make(u, t, m, n, &err);
		if (!msg)
			break;
		total += msg->len;
		msg_deliver(to, msg);
	} while (m->uio->resid);
	return total ? total : err;
}

ssize_t unix_send(struct sock *s, struct task *t, struct sock_msg *m)
{
	struct unix_sock *u = unix_of(s), *to;
	ssize_t r;

	if (m->flags & MSG_OOB)
		return -EOPNOTSUPP;
	if (m->n_fds && n_inflight + m->n_fds > INFLIGHT_MAX)
		return -ETOOMANYREFS;
	if (u->wr_shut && u->state == UNIX_CONNECTED)
		return -EPIPE;
	if (s->type == SOCK_DGRAM && m->name.len) {
		r = unix_resolve(t, &m->name, SOCK_DGRAM, &to);
		if (r)
			return r;
		r = dgram_send(u, t, m, to);
		sock_put(&to->sock);
		return r;
	}
	if (m->name.len && s->type != SOCK_DGRAM)
		return u->state == UNIX_CONNECTED ? -EISCONN : -EOPNOTSUPP;
	if (u->state != UNIX_CONNECTED)
		return -ENOTCONN;
	to = u->peer;
	if (!to || to->state == UNIX_CLOSED || to->rd_shut) {
		if (s->type != SOCK_DGRAM)
			return -EPIPE;
		return -ECONNREFUSED;
	}
	return s->type == SOCK_STREAM ? stream_send(u, t, m) : dgram_send(u, t, m, to);
}

/* Hands the files of a message over, or drops them when there is no room. */
static void take_fds(struct unix_msg *msg, struct sock_msg *m, bool peek)
{
	if (!msg->n_fds)
		return;
	if (!m->fds) {
		m->out_flags |= MSG_CTRUNC;
		return;
	}
	for (unsigned i = 0; i < msg->n_fds; i++)
		m->fds[i] = peek ? file_get(msg->fds[i]) : msg->fds[i];
	m->n_fds = msg->n_fds;
	if (!peek) {
		n_inflight -= msg->n_fds;
		msg->n_fds = 0;
	}
}

/* The message leaves the queue, with what was not read of it. */
static void msg_done(struct unix_sock *u, struct unix_msg *msg)
{
	list_del(&msg->node);
	u->rx_bytes -= msg->len - msg->off;
	u->rx_mem -= msg_mem(msg->len);
	msg_free(msg);
	/* Room for the writer; a datagram's writer waits on the receiver's queue. */
	if (u->peer)
		unix_wake_all(u->peer, POLLOUT);
	unix_wake_senders(u, POLLOUT);
	unix_wake_all(u, POLLOUT);
}

static void from_msg(struct sock_msg *m, const struct unix_msg *msg)
{
	m->cred = msg->cred;
	m->has_cred = true;
	m->name = msg->from;
}

static ssize_t packet_recv(struct unix_sock *u, struct sock_msg *m)
{
	struct unix_msg *msg = list_first_entry(&u->rxq, struct unix_msg, node);
	bool peek = m->flags & MSG_PEEK;
	uint64_t want = m->uio->resid;
	ssize_t n = 0;

	if (msg->len && want)
		n = uio_copy_to(m->uio, msg->data, msg->len);
	if (n < 0)
		return n;
	if (want < msg->len)
		m->out_flags |= MSG_TRUNC;
	if (u->sock.type == SOCK_SEQPACKET)
		m->out_flags |= MSG_EOR;
	from_msg(m, msg);
	take_fds(msg, m, peek);
	if (m->flags & MSG_TRUNC)
		n = msg->len;
	if (!peek)
		msg_done(u, msg);
	return n;
}

static bool same_sender(const struct linux_ucred *a, const struct linux_ucred *b)
{
	return a->pid == b->pid && a->uid == b->uid && a->gid == b->gid;
}

static ssize_t stream_recv(struct unix_sock *u, struct sock_msg *m)
{
	bool peek = m->flags & MSG_PEEK;
	struct unix_msg *msg, *tmp;
	ssize_t total = 0;

	list_for_each_entry_safe(msg, tmp, &u->rxq, node) {
		bool had_fds = msg->n_fds;
		ssize_t n;

		/* Bytes of different senders, or around passed files, are not joined. */
		if (total && (had_fds || (u->sock.passcred && !same_sender(&m->cred, &msg->cred))))
			break;
		n = msg->len > msg->off ? uio_copy_to(m->uio, msg->data + msg->off, msg->len - msg->off) : 0;
		if (n < 0)
			return total ? total : n;
		if (!total)
			from_msg(m, msg);
		take_fds(msg, m, peek);
		total += n;
		if (!peek) {
			msg->off += (uint32_t)n;
			u->rx_bytes -= (uint32_t)n;
			if (msg->off == msg->len)
				msg_done(u, msg);
		}
		if (had_fds || !m->uio->resid)
			break;
	}
	return total;
}

ssize_t unix_recv(struct sock *s, struct task *t, struct sock_msg *m)
{
	struct unix_sock *u = unix_of(s);

	if (m->flags & MSG_OOB)
		return -EOPNOTSUPP;
	if (list_empty(&u->rxq)) {
		if (s->err) {
			int err = s->err;

			s->err = 0;
			return err;
		}
		if (s->type != SOCK_DGRAM && u->state != UNIX_CONNECTED)
			return s->type == SOCK_STREAM ? -EINVAL : -ENOTCONN;
		if (u->rd_shut)
			return 0;
		if (s->type == SOCK_DGRAM)
			return -EAGAIN;
		return u->peer && u->peer->state != UNIX_CLOSED && !u->peer->wr_shut ? -EAGAIN : 0;
	}
	return s->type == SOCK_STREAM ? stream_recv(u, m) : packet_recv(u, m);
}
