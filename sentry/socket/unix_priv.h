/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of AF_UNIX share; unix.c has the theory. */
#ifndef SBX_SENTRY_SOCKET_UNIX_PRIV_H
#define SBX_SENTRY_SOCKET_UNIX_PRIV_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "sentry/kernel/cred.h"
#include "sentry/kernel/task.h"
#include "sentry/socket/sock.h"

#define SUN_PATH_OFF offsetof(struct sockaddr_un, sun_path)

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

static inline struct unix_sock *unix_of(struct sock *s)
{
	return container_of(s, struct unix_sock, sock);
}

static inline struct linux_ucred unix_cred_of(const struct task *t)
{
	return (struct linux_ucred){ t->tg->tgid, t->cred->euid, t->cred->egid };
}

static inline void unix_wake_all(struct unix_sock *u, uint32_t ev)
{
	waitq_wake_n(&u->sock.wq, ev, WAITQ_WAKE_ALL);
}

/* unix_name.c: addresses */
int unix_bind(struct sock *s, struct task *t, const struct sock_addr *a);
void unix_unbind(struct unix_sock *u);
/* Who is bound to @a: counted in *ret. */
int unix_resolve(struct task *t, const struct sock_addr *a, int type, struct unix_sock **ret);

/* unix_msg.c: messages and queues */
ssize_t unix_send(struct sock *s, struct task *t, struct sock_msg *m);
ssize_t unix_recv(struct sock *s, struct task *t, struct sock_msg *m);
void unix_queue_drop(struct unix_sock *u);
/* How many bytes a message may have that the queue of @to still takes. */
uint32_t unix_rx_room(const struct unix_sock *to);
/* Datagram sockets that are connected to @u look again. */
void unix_wake_senders(struct unix_sock *u, uint32_t ev);
/* A datagram socket that is connected takes messages of its peer only. */
bool unix_may_send(const struct unix_sock *u, const struct unix_sock *to);

#endif
