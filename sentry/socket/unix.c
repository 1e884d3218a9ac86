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
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <poll.h>
#include <asm/ioctls.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/list.h"
#include "sentry/kernel/cred.h"
#include "sentry/kernel/task.h"
#include "sentry/socket/sock.h"
#include "sentry/vfs/dentry.h"
#include "sentry/vfs/nameops.h"
#include "sentry/vfs/uio.h"
#include "sentry/vfs/vfs.h"

#define CHUNK_MAX       65536u /* bytes of a stream message */
#define INFLIGHT_MAX    16384u /* files in all queues */
#define ABSTRACT_BUCKETS 64
#define SUN_PATH_OFF    offsetof(struct sockaddr_un, sun_path)

enum unix_state { UNIX_NEW, UNIX_LISTENING, UNIX_CONNECTED, UNIX_CLOSED };

struct unix_msg {
	struct list node;
	struct linux_ucred cred;
	struct sock_addr from;
	struct file **fds;
	unsigned n_fds;
	uint32_t len, off;
	uint8_t data[];
};

struct unix_sock {
	struct sock sock;
	enum unix_state state;
	struct unix_sock *peer;    /* counted */
	struct list senders;       /* datagram sockets that are connected to this one ... */
	struct list sender_node;   /* ... and where it is itself on its peer's */
	struct list rxq;
	uint32_t rx_bytes;         /* what can be read */
	uint32_t rx_mem;           /* what the queue takes up: that is bounded */
	bool rd_shut, wr_shut;
	struct sock_addr addr;     /* bound name */
	struct inode *inode;       /* of a bound path; counted */
	struct list abstract_node;
	struct list backlog, backlog_node;
	unsigned n_backlog, max_backlog;
	struct linux_ucred cred;   /* of who made or connected it: SO_PEERCRED of the other side */
	struct linux_ucred peer_cred;
};

static struct list abstract[ABSTRACT_BUCKETS];
static unsigned n_inflight;
static const struct sock_ops unix_ops;

static struct unix_sock *unix_of(struct sock *s)
{
	return container_of(s, struct unix_sock, sock);
}

static struct linux_ucred cred_of(const struct task *t)
{
	return (struct linux_ucred){ t->tg->tgid, t->cred->euid, t->cred->egid };
}

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

static void queue_drop(struct unix_sock *u)
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

/* How many bytes a message may have that the queue of @to still takes. */
static uint32_t rx_room(const struct unix_sock *to)
{
	uint32_t used = to->rx_mem + msg_mem(0);

	return used < to->sock.rcvbuf ? to->sock.rcvbuf - used : 0;
}

static void wake_all(struct unix_sock *u, uint32_t ev)
{
	waitq_wake_n(&u->sock.wq, ev, WAITQ_WAKE_ALL);
}

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
	u->cred = cred_of(t);
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

/* The length of the path part, 0 for an abstract or empty name. NUL-terminates into @path. */
static int addr_path(const struct sock_addr *a, char *path, size_t cap)
{
	size_t n;

	if (a->len <= SUN_PATH_OFF || a->un.sun_path[0] == '\0')
		return 0;
	n = strnlen(a->un.sun_path, a->len - SUN_PATH_OFF);
	if (n >= cap)
		return -EINVAL;
	memcpy(path, a->un.sun_path, n);
	path[n] = '\0';
	return (int)n;
}

static struct list *abstract_bucket(const struct sock_addr *a)
{
	uint32_t h = 5381;

	if (!abstract[0].next) {
		for (int i = 0; i < ABSTRACT_BUCKETS; i++)
			list_init(&abstract[i]);
	}
	for (uint32_t i = SUN_PATH_OFF; i < a->len; i++)
		h = h * 33 + a->raw[i];
	return &abstract[h % ABSTRACT_BUCKETS];
}

static struct unix_sock *abstract_find(const struct sock_addr *a, int type)
{
	struct unix_sock *u;

	list_for_each_entry(u, abstract_bucket(a), abstract_node) {
		if ((type < 0 || u->sock.type == type) && u->addr.len == a->len && !memcmp(u->addr.raw, a->raw, a->len))
			return u;
	}
	return NULL;
}

/* unix(7) "Autobind feature": an abstract name of five hexadecimal digits. */
static int autobind(struct unix_sock *u)
{
	static uint32_t next;

	for (uint32_t tries = 0; tries < 0x100000; tries++) {
		struct sock_addr a = { 0 };
		char digits[6];

		a.un.sun_family = AF_UNIX;
		snprintf(digits, sizeof(digits), "%05x", next++ & 0xfffff);
		memcpy(a.un.sun_path + 1, digits, 5);
		a.len = SUN_PATH_OFF + 6;
		if (abstract_find(&a, u->sock.type))
			continue;
		u->addr = a;
		list_add_tail(abstract_bucket(&a), &u->abstract_node);
		return 0;
	}
	return -ENOSPC;
}

static int unix_bind(struct sock *s, struct task *t, const struct sock_addr *a)
{
	struct unix_sock *u = unix_of(s);
	char path[sizeof(a->un.sun_path) + 1];
	struct path at;
	int n, err;

	if (a->len < SUN_PATH_OFF || a->sa.sa_family != AF_UNIX || a->len > sizeof(a->un))
		return -EINVAL;
	if (a->len == SUN_PATH_OFF)
		return u->addr.len ? 0 : autobind(u);
	n = addr_path(a, path, sizeof(path));
	if (n < 0)
		return n;
	if (u->addr.len) {
		/* Linux makes the name before it looks: a taken one is told first. */
		if (n == 0 || path_walk(t, AT_FDCWD, path, 0, &at))
			return -EINVAL;
		path_put(&at);
		return -EADDRINUSE;
	}
	if (n == 0) {
		if (abstract_find(a, s->type))
			return -EADDRINUSE;
		u->addr = *a;
		list_add_tail(abstract_bucket(a), &u->abstract_node);
		return 0;
	}
	err = vfs_mknod(t, AT_FDCWD, path, S_IFSOCK | 0777, 0, &at);
	if (err)
		return err == -EEXIST ? -EADDRINUSE : err;
	u->inode = inode_get(at.dentry->inode);
	path_put(&at);
	u->inode->ipc = u;
	u->addr = *a;
	u->addr.len = (uint32_t)(SUN_PATH_OFF + (size_t)n + 1);
	u->addr.un.sun_path[n] = '\0';
	return 0;
}

/* Who is bound to @a: counted in *ret. */
static int unix_resolve(struct task *t, const struct sock_addr *a, int type, struct unix_sock **ret)
{
	char path[sizeof(a->un.sun_path) + 1];
	struct unix_sock *u = NULL;
	struct path at;
	int n, err;

	if (a->len <= SUN_PATH_OFF || a->len > sizeof(a->un) || a->sa.sa_family != AF_UNIX)
		return -EINVAL;
	n = addr_path(a, path, sizeof(path));
	if (n < 0)
		return n;
	if (n == 0) {
		u = abstract_find(a, type);
		if (!u && abstract_find(a, -1))
			return -EPROTOTYPE;
	} else {
		err = path_walk(t, AT_FDCWD, path, WALK_FOLLOW, &at);
		if (err)
			return err;
		err = vfs_permission(t->cred, at.dentry->inode, MAY_WRITE);
		if (!err && S_ISSOCK(at.dentry->inode->mode))
			u = at.dentry->inode->ipc;
		path_put(&at);
		if (err)
			return err;
	}
	if (!u)
		return -ECONNREFUSED;
	if (u->sock.type != type)
		return -EPROTOTYPE;
	sock_get(&u->sock);
	*ret = u;
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

/* Datagram sockets that are connected to @u look again. */
static void wake_senders(struct unix_sock *u, uint32_t ev)
{
	struct unix_sock *s;

	list_for_each_entry(s, &u->senders, sender_node)
		wake_all(s, ev);
}

/* A datagram socket that is connected takes messages of its peer only. */
static bool may_send(const struct unix_sock *u, const struct unix_sock *to)
{
	return to->sock.type != SOCK_DGRAM || !to->peer || to->peer == u;
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
	if (!may_send(u, to)) {
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
	u->cred = cred_of(t);
	unix_link(u, half);
	list_add_tail(&to->backlog, &half->backlog_node);
	to->n_backlog++;
	wake_all(to, POLLIN);
	wake_all(u, POLLOUT);
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
	u->cred = cred_of(t);
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
	wake_all(u, POLLOUT);
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
	msg->cred = m->has_cred ? m->cred : t ? cred_of(t) : u->cred;
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
	wake_all(to, POLLIN);
}

static ssize_t dgram_send(struct unix_sock *u, struct task *t, struct sock_msg *m, struct unix_sock *to)
{
	uint64_t n = m->uio->resid;
	struct unix_msg *msg;
	ssize_t err;

	if (n > u->sock.sndbuf)
		return -EMSGSIZE;
	if (!may_send(u, to))
		return -EPERM;
	if (to->rd_shut)
		return -EPIPE;
	if (to->state == UNIX_CLOSED)
		return u->sock.type == SOCK_DGRAM ? -ECONNREFUSED : -EPIPE;
	if (to->rx_mem && MAX(n, 1u) > rx_room(to)) {
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
		uint32_t room = rx_room(to);
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

static ssize_t unix_send(struct sock *s, struct task *t, struct sock_msg *m)
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
		wake_all(u->peer, POLLOUT);
	wake_senders(u, POLLOUT);
	wake_all(u, POLLOUT);
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

static ssize_t unix_recv(struct sock *s, struct task *t, struct sock_msg *m)
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

static int unix_shutdown(struct sock *s, int how)
{
	struct unix_sock *u = unix_of(s), *p = u->peer;

	if (how == SHUT_RD || how == SHUT_RDWR)
		u->rd_shut = true;
	if (how == SHUT_WR || how == SHUT_RDWR)
		u->wr_shut = true;
	wake_all(u, POLLIN | POLLOUT | POLLRDHUP | POLLHUP);
	if (p && s->type != SOCK_DGRAM)
		wake_all(p, POLLIN | POLLOUT | POLLRDHUP | POLLHUP);
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
	if (gone || !p || (s->type == SOCK_DGRAM ? p->rx_mem <= p->sock.rcvbuf / 2 : rx_room(p) > 0))
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

static void unbind(struct unix_sock *u)
{
	list_del(&u->abstract_node);
	if (u->inode) {
		u->inode->ipc = NULL;
		inode_put(u->inode);
		u->inode = NULL;
	}
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
	unbind(u);
	u->state = UNIX_CLOSED;
	queue_drop(u);
	u->peer = NULL;
	list_del(&u->sender_node);
	wake_senders(u, POLLOUT | POLLERR);
	/* Also those that wait for room here: there will be none. */
	wake_all(u, POLLOUT | POLLERR);
	if (!p)
		return;
	if (s->type != SOCK_DGRAM) {
		if (unread && !p->sock.err)
			p->sock.err = -ECONNRESET;
		wake_all(p, POLLIN | POLLOUT | POLLHUP | POLLRDHUP);
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

	unbind(u);
	queue_drop(u);
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
