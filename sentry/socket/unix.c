/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AF_UNIX sockets: unix(7). Stream, datagram and seqpacket; addresses in the file system and abstract ones. They exist
 * inside the sandbox only.
 *
 * States of a stream or seqpacket socket: NEW -> LISTENING, or NEW -> CONNECTED by connect (its server half waits in
 * the listener's backlog, already connected) -> CLOSED. Peers hold a counted reference on each other; unlinking takes
 * both. A message lies in the receiver's queue with the credentials and files that came with it.
 *
 * Who waits for room in another's queue: a stream on its own wait queue, which the peer wakes; so does a datagram
 * socket that is connected (it is on its receiver's list of senders); a datagram with an address, and a connect, on the
 * wait queue of the receiver or listener (sock.full).
 */
#include "sentry/socket/unix_priv.h"

#include <asm/ioctls.h>
#include <errno.h>
#include <linux/sockios.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

static const struct sock_ops unix_ops;

static struct unix_sock *unix_new(struct task *t, int type)
{
	struct unix_sock *u = calloc(1, sizeof(*u));

	if (!u)
		return NULL;
	sock_init(&u->sock, &unix_ops, AF_UNIX, type, 0);
	list_init(&u->rxq);
	list_init(&u->senders);
	list_init(&u->sender_node);
	list_init(&u->abstract_node);
	list_init(&u->backlog);
	list_init(&u->backlog_node);
	u->cred = unix_cred_of(t);
	return u;
}

static int unix_create(struct task *t, int type, int protocol, struct sock **ret)
{
	struct unix_sock *u;

	if (protocol && protocol != AF_UNIX)
		return -EPROTONOSUPPORT;
	if (type == SOCK_RAW)
		type = SOCK_DGRAM;
	if (type != SOCK_STREAM && type != SOCK_DGRAM && type != SOCK_SEQPACKET)
		return -ESOCKTNOSUPPORT;
	u = unix_new(t, type);
	if (!u)
		return -ENOMEM;
	*ret = &u->sock;
	return 0;
}

static void unix_link(struct unix_sock *a, struct unix_sock *b)
{
	sock_get(&a->sock);
	sock_get(&b->sock);
	a->peer = b;
	b->peer = a;
	a->state = b->state = UNIX_CONNECTED;
	a->peer_cred = b->cred;
	b->peer_cred = a->cred;
}

static int unix_pair(struct task *t, int type, int protocol, struct sock *ret[2])
{
	int err = unix_create(t, type, protocol, &ret[0]);

	if (err)
		return err;
	err = unix_create(t, type, protocol, &ret[1]);
	if (err) {
		sock_put(ret[0]);
		return err;
	}
	unix_link(unix_of(ret[0]), unix_of(ret[1]));
	return 0;
}

static void unix_unlink_peer(struct unix_sock *u)
{
	struct unix_sock *p = u->peer;

	u->peer = NULL;
	list_del(&u->sender_node);
	if (p)
		sock_put(&p->sock);
}

static int dgram_connect(struct unix_sock *u, struct task *t, const struct sock_addr *a)
{
	struct unix_sock *to;
	int err;

	if (a->len >= sizeof(a->sa.sa_family) && a->sa.sa_family == AF_UNSPEC) {
		unix_unlink_peer(u);
		u->state = UNIX_NEW;
		return 0;
	}
	err = unix_resolve(t, a, SOCK_DGRAM, &to);
	if (err)
		return err;
	if (!unix_may_send(u, to)) {
		sock_put(&to->sock);
		return -EPERM;
	}
	unix_unlink_peer(u);
	u->peer = to; /* the reference of unix_resolve */
	list_add_tail(&to->senders, &u->sender_node);
	u->state = UNIX_CONNECTED;
	return 0;
}

static int unix_connect(struct sock *s, struct task *t, const struct sock_addr *a)
{
	struct unix_sock *u = unix_of(s), *to, *half;
	int err;

	if (s->type == SOCK_DGRAM)
		return dgram_connect(u, t, a);
	if (a->len <= SUN_PATH_OFF || a->sa.sa_family != AF_UNIX)
		return -EINVAL;
	err = unix_resolve(t, a, s->type, &to);
	if (err)
		return err;
	err = -ECONNREFUSED;
	if (to->state != UNIX_LISTENING || to->rd_shut)
		goto out;
	err = -EAGAIN;
	if (to->n_backlog > to->max_backlog) {
		s->full = sock_get(&to->sock);
		goto out;
	}
	/* Linux looks at the other side first. */
	err = u->state == UNIX_CONNECTED ? -EISCONN : -EINVAL;
	if (u->state != UNIX_NEW)
		goto out;
	err = -ENOMEM;
	half = unix_new(t, s->type);
	if (!half)
		goto out;
	half->cred = to->cred;
	half->addr = to->addr;
	u->cred = unix_cred_of(t);
	unix_link(u, half);
	list_add_tail(&to->backlog, &half->backlog_node);
	to->n_backlog++;
	unix_wake_all(to, POLLIN);
	unix_wake_all(u, POLLOUT);
	err = 0;
out:
	sock_put(&to->sock);
	return err;
}

static int unix_listen(struct sock *s, struct task *t, int backlog)
{
	struct unix_sock *u = unix_of(s);

	if (s->type == SOCK_DGRAM)
		return -EOPNOTSUPP;
	if (!u->addr.len || (u->state != UNIX_NEW && u->state != UNIX_LISTENING))
		return -EINVAL;
	u->state = UNIX_LISTENING;
	u->max_backlog = backlog < 0 || backlog > 4096 ? 4096 : (unsigned)backlog;
	u->cred = unix_cred_of(t);
	return 0;
}

static int unix_accept(struct sock *s, struct sock **ret)
{
	struct unix_sock *u = unix_of(s), *half;

	if (s->type == SOCK_DGRAM)
		return -EOPNOTSUPP;
	if (u->state != UNIX_LISTENING || u->rd_shut)
		return -EINVAL;
	if (list_empty(&u->backlog))
		return -EAGAIN;
	half = list_first_entry(&u->backlog, struct unix_sock, backlog_node);
	list_del(&half->backlog_node);
	u->n_backlog--;
	unix_wake_all(u, POLLOUT);
	*ret = &half->sock; /* the backlog's reference */
	return 0;
}

static int unix_getname(struct sock *s, bool peer, struct sock_addr *a)
{
	struct unix_sock *u = unix_of(s);

	if (peer) {
		if (u->state != UNIX_CONNECTED || !u->peer)
			return -ENOTCONN;
		u = u->peer;
	}
	*a = u->addr;
	if (!a->len) {
		a->len = sizeof(a->un.sun_family);
		a->un.sun_family = AF_UNIX;
	}
	return 0;
}

static int unix_shutdown(struct sock *s, int how)
{
	struct unix_sock *u = unix_of(s), *p = u->peer;

	if (how == SHUT_RD || how == SHUT_RDWR)
		u->rd_shut = true;
	if (how == SHUT_WR || how == SHUT_RDWR)
		u->wr_shut = true;
	unix_wake_all(u, POLLIN | POLLOUT | POLLRDHUP | POLLHUP);
	if (p && s->type != SOCK_DGRAM)
		unix_wake_all(p, POLLIN | POLLOUT | POLLRDHUP | POLLHUP);
	return 0;
}

static uint32_t unix_poll(struct sock *s)
{
	struct unix_sock *u = unix_of(s), *p = u->peer;
	bool gone = s->type != SOCK_DGRAM && u->state == UNIX_CONNECTED && (!p || p->state == UNIX_CLOSED);
	bool no_rx = u->rd_shut || gone || (s->type != SOCK_DGRAM && p && p->wr_shut);
	bool no_tx = u->wr_shut || gone || (s->type != SOCK_DGRAM && p && p->rd_shut);
	uint32_t ev = 0;

	if (u->state == UNIX_LISTENING)
		return list_empty(&u->backlog) ? 0 : POLLIN | POLLRDNORM;
	if (!list_empty(&u->rxq) || no_rx)
		ev |= POLLIN | POLLRDNORM;
	if (no_rx)
		ev |= POLLRDHUP;
	if ((no_rx && no_tx) || (u->state == UNIX_NEW && s->type != SOCK_DGRAM))
		ev |= POLLHUP;
	/* A datagram goes whole: room for one of middling size. */
	if (gone || !p || (s->type == SOCK_DGRAM ? p->rx_mem <= p->sock.rcvbuf / 2 : unix_rx_room(p) > 0))
		ev |= POLLOUT | POLLWRNORM;
	return ev;
}

static int unix_getsockopt(struct sock *s, int level, int name, void *val, uint32_t *len)
{
	struct unix_sock *u = unix_of(s);
	const struct linux_ucred none = { 0, (uint32_t)-1, (uint32_t)-1 };
	const struct linux_ucred *c = u->state == UNIX_CONNECTED && s->type != SOCK_DGRAM ? &u->peer_cred : &none;
	int v = u->state == UNIX_LISTENING;

	if (level != SOL_SOCKET)
		return -EOPNOTSUPP;
	if (u->state == UNIX_LISTENING)
		c = &u->cred;
	if (name == SO_PEERCRED) {
		*len = MIN(*len, (uint32_t)sizeof(*c));
		memcpy(val, c, *len);
		return 0;
	}
	if (name == SO_ACCEPTCONN) {
		*len = MIN(*len, (uint32_t)sizeof(v));
		memcpy(val, &v, *len);
		return 0;
	}
	return -ENOPROTOOPT;
}

static int unix_ioctl(struct sock *s, uint32_t cmd, int *value)
{
	struct unix_sock *u = unix_of(s);

	if (cmd == SIOCOUTQ)
		*value = u->peer ? (int)u->peer->rx_bytes : 0;
	else if (s->type == SOCK_STREAM)
		*value = (int)u->rx_bytes;
	else
		*value = list_empty(&u->rxq) ? 0 : (int)list_first_entry(&u->rxq, struct unix_msg, node)->len;
	return u->state == UNIX_LISTENING ? -EINVAL : 0;
}

static void unix_close(struct sock *s)
{
	struct unix_sock *u = unix_of(s), *p = u->peer;
	bool unread = !list_empty(&u->rxq);

	while (!list_empty(&u->backlog)) {
		struct unix_sock *half = list_first_entry(&u->backlog, struct unix_sock, backlog_node);

		list_del(&half->backlog_node);
		if (half->peer)
			half->peer->sock.err = -ECONNRESET; /* connected, but never accepted */
		unix_close(&half->sock);
		sock_put(&half->sock);
	}
	unix_unbind(u);
	u->state = UNIX_CLOSED;
	unix_queue_drop(u);
	u->peer = NULL;
	list_del(&u->sender_node);
	unix_wake_senders(u, POLLOUT | POLLERR);
	/* Also those that wait for room here: there will be none. */
	unix_wake_all(u, POLLOUT | POLLERR);
	if (!p)
		return;
	if (s->type != SOCK_DGRAM) {
		if (unread && !p->sock.err)
			p->sock.err = -ECONNRESET;
		unix_wake_all(p, POLLIN | POLLOUT | POLLHUP | POLLRDHUP);
		if (p->peer == u) {
			p->peer = NULL;
			sock_put(&u->sock); /* the caller holds another */
		}
	}
	sock_put(&p->sock);
}

static void unix_destroy(struct sock *s)
{
	struct unix_sock *u = unix_of(s);

	unix_unbind(u);
	unix_queue_drop(u);
	unix_unlink_peer(u);
	free(u);
}

static const struct sock_ops unix_ops = {
	.bind = unix_bind,
	.connect = unix_connect,
	.listen = unix_listen,
	.accept = unix_accept,
	.getname = unix_getname,
	.send = unix_send,
	.recv = unix_recv,
	.shutdown = unix_shutdown,
	.poll = unix_poll,
	.getsockopt = unix_getsockopt,
	.ioctl = unix_ioctl,
	.close = unix_close,
	.destroy = unix_destroy,
};

const struct sock_family unix_family = { .family = AF_UNIX, .create = unix_create, .pair = unix_pair };
