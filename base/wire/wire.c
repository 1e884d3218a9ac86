/* SPDX-License-Identifier: Apache-2.0 */
#include "base/wire/wire.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bug.h"

union fd_control {
	struct cmsghdr align;
	char buf[CMSG_SPACE(sizeof(int) * WIRE_FDS_MAX)];
};

int wire_send(int sock, const struct wire_msg *m)
{
	struct iovec iov = { m->buf, m->len };
	union fd_control ctl;
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1 };

	BUG_ON(m->n_fds > WIRE_FDS_MAX || m->len > WIRE_MSG_MAX);
	if (m->n_fds) {
		struct cmsghdr *c;

		memset(&ctl, 0, sizeof(ctl));
		mh.msg_control = ctl.buf;
		mh.msg_controllen = CMSG_SPACE(sizeof(int) * m->n_fds);
		c = CMSG_FIRSTHDR(&mh);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * m->n_fds);
		memcpy(CMSG_DATA(c), m->fds, sizeof(int) * m->n_fds);
	}
	for (;;) {
		ssize_t n = sendmsg(sock, &mh, MSG_NOSIGNAL);

		if (n >= 0)
			return (size_t)n == m->len ? 0 : -EPROTO;
		if (errno != EINTR)
			return -errno;
	}
}

static void take_fds(struct wire_msg *m, struct msghdr *mh)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(mh); c; c = CMSG_NXTHDR(mh, c)) {
		size_t n;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		BUG_ON(n > WIRE_FDS_MAX - m->n_fds);
		memcpy(m->fds + m->n_fds, CMSG_DATA(c), n * sizeof(int));
		m->n_fds += (unsigned)n;
	}
}

int wire_recv(int sock, struct wire_msg *m)
{
	struct iovec iov = { m->buf, m->cap };
	union fd_control ctl;
	struct msghdr mh = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = ctl.buf, .msg_controllen = sizeof(ctl.buf),
	};
	ssize_t n;

	m->len = 0;
	m->n_fds = 0;
	do
		n = recvmsg(sock, &mh, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	take_fds(m, &mh);
	if (mh.msg_flags & MSG_TRUNC) {
		wire_close_fds(m);
		return -EPROTO;
	}
	if (mh.msg_flags & MSG_CTRUNC) {
		wire_close_fds(m);
		m->len = (size_t)n;
		return -EMFILE;
	}
	if (n == 0) {
		wire_close_fds(m);
		return 0;
	}
	m->len = (size_t)n;
	return 1;
}

void wire_close_fds(struct wire_msg *m)
{
	for (unsigned i = 0; i < m->n_fds; i++) {
		if (m->fds[i] >= 0)
			close(m->fds[i]);
	}
	m->n_fds = 0;
}

void *wire_arena_alloc(void *arena, size_t size)
{
	struct wire_arena *a = arena;
	size_t need;

	if (size > a->cap)
		return NULL;
	need = ROUND_UP(size, (size_t)16);
	if (need > a->cap - a->used)
		return NULL;
	a->used += need;
	return a->base + a->used - need;
}

void wire_arena_free(void *arena, void *p)
{
	(void)arena;
	(void)p; /* taken back as a whole by wire_arena_reset */
}
