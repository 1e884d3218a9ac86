/* SPDX-License-Identifier: Apache-2.0 */
/* The notification fd. RECV takes a notification only when it returns 0: what leader_wait() asks for. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>

#include "platform/stub/hostcall.h"
#include "platform/unotify/unotify_priv.h"

/* ENOENT: the notifying thread died or was kicked before we read it; or there is nobody left. */
static int recv_vanished(struct platform *p)
{
	struct pollfd pf = { .fd = p->listener, .events = POLLIN };

	if (HOSTCALL(SYS_poll, &pf, 1, 0) == 1 && (pf.revents & POLLHUP))
		return -ENOTCONN;
	return -ENOENT;
}

int listener_recv(struct platform *p, struct seccomp_notif *n)
{
	long r;

	memset(n, 0, sizeof(*n)); /* the kernel wants zeros */
	r = leader_wait(&p->leader.wake_bits, SYS_ioctl, p->listener, SECCOMP_IOCTL_NOTIF_RECV, (long)n, 0);
	if (unlikely(r == -ENOENT))
		return recv_vanished(p);
	return (int)r;
}

static int send_resp(struct platform *p, const struct seccomp_notif_resp *resp)
{
	return (int)HOSTCALL(SYS_ioctl, p->listener, SECCOMP_IOCTL_NOTIF_SEND, resp);
}

int listener_send(struct platform *p, uint64_t id, int64_t val)
{
	struct seccomp_notif_resp resp = { .id = id, .val = val };

	return send_resp(p, &resp);
}

int listener_continue(struct platform *p, uint64_t id)
{
	struct seccomp_notif_resp resp = { .id = id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE };

	return send_resp(p, &resp);
}

int listener_addfd(struct platform *p, uint64_t id, int fd, int at)
{
	struct seccomp_notif_addfd add = { .id = id, .flags = SECCOMP_ADDFD_FLAG_SETFD, .srcfd = (uint32_t)fd,
					   .newfd = (uint32_t)at, .newfd_flags = O_CLOEXEC };

	return (int)HOSTCALL(SYS_ioctl, p->listener, SECCOMP_IOCTL_NOTIF_ADDFD, &add);
}

bool listener_id_valid(struct platform *p, uint64_t id)
{
	return HOSTCALL(SYS_ioctl, p->listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0;
}
