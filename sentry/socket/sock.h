/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sockets: what the system calls see of every family. A socket is counted, because it can exist without a file (in a
 * backlog). Ops never block: -EAGAIN makes the system call wait on wq, unless it is nonblocking.
 */
#ifndef SBX_SENTRY_SOCKET_SOCK_H
#define SBX_SENTRY_SOCKET_SOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/ref.h"
#include "sentry/kernel/waitq.h"
#include "sentry/vfs/file.h"

struct task;
struct uio;

#define SOCK_FDS_MAX  253           /* SCM_MAX_FD */
#define SOCK_BUF_DEF  212992u       /* net.core.wmem_default */
#define SOCK_BUF_MAX  (4u << 20)
#define SOCK_NAME_MAX 128u          /* struct sockaddr_storage */

struct sock_addr {
	uint32_t len; /* 0: none */
	union {
		struct sockaddr sa;
		struct sockaddr_un un;
		uint8_t raw[SOCK_NAME_MAX];
	};
};

struct linux_ucred {
	int32_t pid;
	uint32_t uid, gid;
};

/* A message in or out. Files are counted references that the side which takes them owns. */
struct sock_msg {
	struct uio *uio;
	struct sock_addr name; /* out: destination (len 0: connected); in: the sender */
	int flags;             /* MSG_* of the call */
	int out_flags;         /* in: MSG_TRUNC, MSG_CTRUNC, MSG_EOR */
	bool has_cred;
	struct linux_ucred cred;
	struct file **fds;     /* out: given away on success; in: filled, SOCK_FDS_MAX places, or NULL */
	unsigned n_fds;
};

struct sock;

struct sock_ops {
	int (*bind)(struct sock *s, struct task *t, const struct sock_addr *a);
	int (*connect)(struct sock *s, struct task *t, const struct sock_addr *a);
	int (*listen)(struct sock *s, struct task *t, int backlog);
	int (*accept)(struct sock *s, struct sock **ret); /* one reference */
	int (*getname)(struct sock *s, bool peer, struct sock_addr *a);
	/* Bytes moved, possibly fewer than the uio holds on stream sockets. -EPIPE without raising SIGPIPE. */
	ssize_t (*send)(struct sock *s, struct task *t, struct sock_msg *m);
	ssize_t (*recv)(struct sock *s, struct task *t, struct sock_msg *m);
	int (*shutdown)(struct sock *s, int how);
	uint32_t (*poll)(struct sock *s);
	/* Options that sock_setsockopt() does not know. -ENOPROTOOPT */
	int (*setsockopt)(struct sock *s, int level, int name, const void *val, uint32_t len);
	int (*getsockopt)(struct sock *s, int level, int name, void *val, uint32_t *len);
	int (*ioctl)(struct sock *s, uint32_t cmd, int *value); /* FIONREAD, SIOCOUTQ */
	/* The file is closed. */
	void (*close)(struct sock *s);
	/* The last reference went. */
	void (*destroy)(struct sock *s);
};

struct sock {
	struct ref ref;
	const struct sock_ops *ops;
	int family, type, protocol;
	struct waitq wq;
	struct sock *full;            /* counted: whose queue had no room when connect or send said -EAGAIN; the system
				       * call takes it. NULL: our own wq tells */
	int err;                      /* SO_ERROR */
	uint32_t sndbuf, rcvbuf;
	uint64_t rcvtimeo, sndtimeo;  /* ns; 0: none */
	bool passcred, reuseaddr, keepalive, broadcast;
	int linger_on, linger_s;
	int priority;
};

struct sock_family {
	int family;
	/* type without SOCK_* flags. *ret: one reference. */
	int (*create)(struct task *t, int type, int protocol, struct sock **ret);
	int (*pair)(struct task *t, int type, int protocol, struct sock *ret[2]); /* NULL: -EOPNOTSUPP */
};

extern const struct sock_family unix_family, inet_family, inet6_family;

void sock_init(struct sock *s, const struct sock_ops *ops, int family, int type, int protocol);
struct sock *sock_get(struct sock *s);
void sock_put(struct sock *s);
/* s->full with its reference, or NULL. */
struct sock *sock_take_full(struct sock *s);

/* The family's table entry, or NULL. */
const struct sock_family *sock_family_lookup(int family);

/* A file for @s (the reference is consumed on success and failure). flags: O_NONBLOCK. */
int sock_file_create(struct sock *s, uint32_t flags, struct file **ret);
/* The socket of a file: borrowed from it, or NULL when it is none. */
struct sock *sock_of_file(struct file *f);

int sock_setsockopt(struct sock *s, int level, int name, const void *val, uint32_t len);
int sock_getsockopt(struct sock *s, int level, int name, void *val, uint32_t *len);

#endif
