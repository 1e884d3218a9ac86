/* SPDX-License-Identifier: Apache-2.0 */
/* One sendmsg or recvmsg of the guest: copies struct msghdr, addresses and control messages in and out. */
#ifndef SBX_SENTRY_SOCKET_MSG_H
#define SBX_SENTRY_SOCKET_MSG_H

#include <stdint.h>

#include "platform/platform.h"
#include "sentry/socket/sock.h"

struct file;
struct task;

struct linux_msghdr {
	uint64_t name;
	uint32_t namelen, pad0;
	uint64_t iov, iovlen;
	uint64_t control, controllen;
	int32_t flags, pad1;
};

/* An address argument of @len bytes. -EINVAL when it is too long. */
MUST_CHECK int sock_addr_in(struct task *t, uaddr_t p, uint32_t len, struct sock_addr *a);
/* Writes an address cut to the length at @lenp, and its real length there; a null @p is allowed. */
MUST_CHECK int sock_addr_out(struct task *t, uaddr_t p, uaddr_t lenp, const struct sock_addr *a);

/* The blocking protocol of kernel/waitq.h. @hdr is what was copied in; recv changes it for the copy out. */
int64_t sock_sendmsg(struct task *t, struct file *f, struct linux_msghdr *hdr, int flags);
int64_t sock_recvmsg(struct task *t, struct file *f, struct linux_msghdr *hdr, int flags);

/* sendto and recvfrom: one buffer and no control messages. */
int64_t sock_sendto(struct task *t, struct file *f, uaddr_t buf, uint64_t n, int flags, const struct sock_addr *to);
int64_t sock_recvfrom(struct task *t, struct file *f, uaddr_t buf, uint64_t n, int flags, struct sock_addr *from);

/* The socket that the call of @t is about: @fd's, or, when the call runs again after sock_block(), the one it began
 * with. *f is counted; *s is the file's. -EBADF, -ENOTSOCK. */
MUST_CHECK int sock_call_file(struct task *t, int fd, struct file **f, struct sock **s);

/* connect(2): waits while the listener has no room. */
int64_t sock_connect(struct task *t, int fd, uaddr_t uaddr, uint32_t len);

/* Waits until the socket polls for one of @events; @timeo in ns, 0: none. */
int64_t sock_block(struct task *t, struct file *f, uint32_t events, uint64_t timeo);

#endif
