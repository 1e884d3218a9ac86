/* SPDX-License-Identifier: Apache-2.0 */
#include "sentry/socket/msg.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "sentry/kernel/clock.h"
#include "sentry/kernel/cred.h"
#include "sentry/kernel/restart.h"
#include "sentry/kernel/sig.h"
#include "sentry/kernel/task.h"
#include "sentry/kernel/uaccess.h"
#include "sentry/vfs/fdtable.h"
#include "sentry/vfs/uio.h"

#define CONTROL_MAX 20480u /* net.core.optmem_max */

int sock_addr_in(struct task *t, uaddr_t p, uint32_t len, struct sock_addr *a)
{
	if (len > SOCK_NAME_MAX)
		return -EINVAL;
	memset(a, 0, sizeof(*a));
	a->len = len;
	return copy_in(t, p, a->raw, len);
}

int sock_addr_out(struct task *t, uaddr_t p, uaddr_t lenp, const struct sock_addr *a)
{
	uint32_t len;

	if (!p)
		return 0;
	if (copy_in(t, lenp, &len, sizeof(len)))
		return -EFAULT;
	if ((int32_t)len < 0)
		return -EINVAL;
	if (copy_out(t, p, a->raw, MIN(len, a->len)) || copy_out(t, lenp, &a->len, sizeof(a->len)))
		return -EFAULT;
	return 0;
}

/* A call that waits: what it began with, so that it goes on with that, and what it must keep. */
struct sock_wait {
	struct file *file;     /* counted */
	struct sock *full;     /* counted; NULL: waits on the socket's own queue */
	struct sock_addr name; /* of connect: read once */
};

static void sock_wait_free(void *data)
{
	struct sock_wait *w = data;

	file_put(w->file);
	sock_put(w->full);
	free(w);
}

/* That of an earlier run of the call, or NULL. */
static struct sock_wait *sock_wait_peek(const struct task *t)
{
	return t->op.restarted && t->op.data && t->op.data_free == sock_wait_free ? t->op.data : NULL;
}

int sock_call_file(struct task *t, int fd, struct file **f, struct sock **s)
{
	struct sock_wait *w = sock_wait_peek(t);
	int err;

	if (w) {
		*f = file_get(w->file);
	} else {
		err = fd_get(t, fd, f);
		if (err)
			return err;
	}
	*s = sock_of_file(*f);
	if (*s)
		return 0;
	file_put(*f);
	return -ENOTSOCK;
}

/* Consumes @full. */
static int64_t sock_wait(struct task *t, struct file *f, uint32_t events, uint64_t timeo, struct sock *full,
			 const struct sock_addr *name)
{
	struct sock_wait *w = task_timed_out(t) ? NULL : calloc(1, sizeof(*w));

	if (!w) {
		sock_put(full);
		return task_timed_out(t) ? -EAGAIN : -ENOMEM;
	}
	w->file = file_get(f);
	w->full = full;
	if (name)
		w->name = *name;
	task_op_hold(t, w, sock_wait_free);
	if (timeo)
		task_deadline(t, ns_add_sat(clock_mono_ns(), timeo));
	if (task_wait_on(t, full ? &full->wq : &sock_of_file(f)->wq, events | POLLERR | POLLHUP))
		return -ENOMEM;
	return task_block(t, timeo ? -EINTR : -ERESTARTSYS);
}

int64_t sock_block(struct task *t, struct file *f, uint32_t events, uint64_t timeo)
{
	return sock_wait(t, f, events, timeo, NULL, NULL);
}

static int64_t connect_call(struct task *t, struct file *f, struct sock *s, const struct sock_addr *name)
{
	int r = s->ops->connect ? s->ops->connect(s, t, name) : -EOPNOTSUPP;
	struct sock *full = sock_take_full(s);

	if (r == -EAGAIN && full && !(f->flags & O_NONBLOCK))
		return sock_wait(t, f, POLLOUT, s->sndtimeo, full, name);
	sock_put(full);
	return r;
}

int64_t sock_connect(struct task *t, int fd, uaddr_t uaddr, uint32_t len)
{
	struct sock_wait *w = sock_wait_peek(t);
	struct sock_addr name;
	struct sock *s;
	struct file *f;
	int64_t r = sock_call_file(t, fd, &f, &s);

	if (r)
		return r;
	if (w)
		name = w->name;
	else
		r = sock_addr_in(t, uaddr, len, &name);
	if (!r)
		r = connect_call(t, f, s, &name);
	file_put(f);
	return r;
}

static bool nonblocking(const struct file *f, int flags)
{
	return (f->flags & O_NONBLOCK) || (flags & MSG_DONTWAIT);
}

static void put_fds(struct sock_msg *m)
{
	for (unsigned i = 0; i < m->n_fds; i++)
		file_put(m->fds[i]);
	m->n_fds = 0;
}

static int cred_in(struct task *t, const void *data, size_t len, struct sock_msg *m)
{
	const struct cred *c = t->cred;

	if (len != sizeof(m->cred))
		return -EINVAL;
	memcpy(&m->cred, data, sizeof(m->cred));
	if (m->cred.pid != t->tg->tgid && !cred_has_cap(c, CAP_SYS_ADMIN))
		return -EPERM;
	if (m->cred.uid != c->uid && m->cred.uid != c->euid && m->cred.uid != c->suid &&
	    !cred_has_cap(c, CAP_SETUID))
		return -EPERM;
	if (m->cred.gid != c->gid && m->cred.gid != c->egid && m->cred.gid != c->sgid &&
	    !cred_has_cap(c, CAP_SETGID))
		return -EPERM;
	m->has_cred = true;
	return 0;
}

static int rights_in(struct task *t, const void *data, size_t len, struct sock_msg *m)
{
	size_t n = len / sizeof(int);
	int fds[SOCK_FDS_MAX];

	if (n > SOCK_FDS_MAX - m->n_fds)
		return -EINVAL;
	memcpy(fds, data, n * sizeof(int));
	for (size_t i = 0; i < n; i++) {
		int err = fd_get_opath(t, fds[i], &m->fds[m->n_fds]);

		if (err)
			return err;
		m->n_fds++;
	}
	return 0;
}

/* Parses the control messages: cmsg(3). On failure m->fds holds what was taken so far. */
static int control_in(struct task *t, uaddr_t p, uint64_t len, struct sock_msg *m)
{
	uint8_t *buf;
	uint64_t off = 0;
	int err = 0;

	if (!len)
		return 0;
	if (len > CONTROL_MAX)
		return -ENOBUFS;
	buf = malloc(len);
	if (!buf)
		return -ENOBUFS;
	err = copy_in(t, p, buf, len);
	while (!err && len - off >= sizeof(struct cmsghdr)) {
		struct cmsghdr c;
		const uint8_t *data = buf + off + CMSG_ALIGN(sizeof(c));

		memcpy(&c, buf + off, sizeof(c));
		if (c.cmsg_len < CMSG_LEN(0) || c.cmsg_len > len - off) {
			err = -EINVAL;
			break;
		}
		if (c.cmsg_level == SOL_SOCKET && c.cmsg_type == SCM_RIGHTS)
			err = rights_in(t, data, c.cmsg_len - CMSG_LEN(0), m);
		else if (c.cmsg_level == SOL_SOCKET && c.cmsg_type == SCM_CREDENTIALS)
			err = cred_in(t, data, c.cmsg_len - CMSG_LEN(0), m);
		else if (c.cmsg_level == SOL_SOCKET)
			err = -EINVAL;
		off += MIN(CMSG_ALIGN(c.cmsg_len), len - off);
	}
	free(buf);
	return err;
}

/* Sends all of a stream's bytes over as many runs as that takes: progress is kept in task->op. */
static int64_t send_call(struct task *t, struct file *f, struct sock_msg *m)
{
	struct sock *s = sock_of_file(f);
	uint64_t done = t->op.progress;
	struct sock *full;
	ssize_t n;

	if (done) {
		uio_skip(m->uio, done);
		if (!m->uio->resid) /* made shorter meanwhile */
			return (int64_t)done;
	}
	for (;;) {
		n = s->ops->send(s, t, m);
		if (n < 0)
			break;
		t->op.progress += (uint64_t)n;
		if (s->type != SOCK_STREAM || !m->uio->resid)
			return (int64_t)t->op.progress;
	}
	full = sock_take_full(s);
	if (n == -EAGAIN && !nonblocking(f, m->flags)) {
		int64_t r = sock_wait(t, f, POLLOUT, s->sndtimeo, full, NULL);

		if (r == SYS_BLOCKED || !t->op.progress)
			return r;
		return (int64_t)t->op.progress;
	}
	sock_put(full);
	if (t->op.progress)
		return (int64_t)t->op.progress;
	if (n == -EPIPE && !(m->flags & MSG_NOSIGNAL))
		sig_send_self(t, SIGPIPE);
	return n;
}

int64_t sock_sendmsg(struct task *t, struct file *f, struct linux_msghdr *hdr, int flags)
{
	struct uio_seg segs[16], *more = NULL;
	struct file *fds[SOCK_FDS_MAX];
	struct uio u;
	struct sock_msg m = { .uio = &u, .flags = flags, .fds = fds };
	int64_t r;

	if (hdr->iovlen > UIO_MAX_IOV)
		return -EMSGSIZE;
	if (hdr->iovlen > ARRAY_SIZE(segs)) {
		more = malloc(hdr->iovlen * sizeof(*more));
		if (!more)
			return -ENOMEM;
	}
	r = uio_init_iov(&u, t, more ? more : segs, (unsigned)MAX(hdr->iovlen, (uint64_t)ARRAY_SIZE(segs)), hdr->iov,
			 hdr->iovlen);
	if (!r && hdr->name)
		r = sock_addr_in(t, hdr->name, hdr->namelen, &m.name);
	/* Files and credentials go with the first byte: not again when the rest is sent. */
	if (!r && hdr->control && !t->op.progress)
		r = control_in(t, hdr->control, hdr->controllen, &m);
	if (!r)
		r = send_call(t, f, &m);
	put_fds(&m);
	free(more);
	return r;
}

int64_t sock_sendto(struct task *t, struct file *f, uaddr_t buf, uint64_t n, int flags, const struct sock_addr *to)
{
	struct uio_seg seg;
	struct uio u;
	struct sock_msg m = { .uio = &u, .flags = flags };

	uio_init_user(&u, t, &seg, buf, n);
	if (to)
		m.name = *to;
	return send_call(t, f, &m);
}

/* One message, or with MSG_WAITALL on a stream as many bytes as were asked for. */
static int64_t recv_call(struct task *t, struct file *f, struct sock_msg *m)
{
	struct sock *s = sock_of_file(f);
	bool all = (m->flags & MSG_WAITALL) && s->type == SOCK_STREAM && !(m->flags & MSG_PEEK);
	ssize_t n;

	if (t->op.progress) {
		uio_skip(m->uio, t->op.progress);
		if (!m->uio->resid) /* as above */
			return (int64_t)t->op.progress;
	}
	for (;;) {
		n = s->ops->recv(s, t, m);
		if (n <= 0)
			break;
		t->op.progress += (uint64_t)n;
		if (!all || !m->uio->resid || m->n_fds)
			return (int64_t)t->op.progress;
	}
	if (n == -EAGAIN && !nonblocking(f, m->flags)) {
		int64_t r = sock_block(t, f, POLLIN | POLLRDHUP, s->rcvtimeo);

		if (r == SYS_BLOCKED || !t->op.progress)
			return r;
	}
	return t->op.progress ? (int64_t)t->op.progress : n;
}

/* Appends one control message to @buf, cut to what fits. */
static void control_add(uint8_t *buf, uint64_t cap, uint64_t *off, int type, const void *data, size_t n, int *out_flags)
{
	struct cmsghdr c = { .cmsg_level = SOL_SOCKET, .cmsg_type = type, .cmsg_len = CMSG_LEN(n) };

	if (cap - *off < CMSG_LEN(n)) {
		*out_flags |= MSG_CTRUNC;
		return;
	}
	memcpy(buf + *off, &c, sizeof(c));
	memcpy(buf + *off + CMSG_LEN(0), data, n);
	*off += MIN(CMSG_SPACE(n), cap - *off);
}

/* Installs received files; those that find no room, in the table or in the buffer, are dropped. */
static void rights_out(struct task *t, struct sock_msg *m, uint8_t *buf, uint64_t cap, uint64_t *off)
{
	uint64_t room = cap - *off > CMSG_LEN(0) ? (cap - *off - CMSG_LEN(0)) / sizeof(int) : 0;
	int fds[SOCK_FDS_MAX];
	unsigned n = 0;

	for (unsigned i = 0; i < m->n_fds; i++) {
		int fd = -1;

		if (n < room && n == i)
			fd = fd_install(t, m->fds[i], 0, m->flags & MSG_CMSG_CLOEXEC);
		else
			file_put(m->fds[i]);
		if (fd < 0)
			m->out_flags |= MSG_CTRUNC;
		else
			fds[n++] = fd;
	}
	m->n_fds = 0;
	if (n)
		control_add(buf, cap, off, SCM_RIGHTS, fds, n * sizeof(int), &m->out_flags);
}

static int control_out(struct task *t, struct sock *s, struct linux_msghdr *hdr, struct sock_msg *m)
{
	uint64_t cap = hdr->control ? MIN(hdr->controllen, (uint64_t)CONTROL_MAX) : 0, off = 0;
	uint8_t *buf = calloc(1, cap ? cap : 1);
	int err = 0;

	if (!buf) {
		put_fds(m);
		return -ENOMEM;
	}
	if (s->passcred && s->family == AF_UNIX && m->has_cred)
		control_add(buf, cap, &off, SCM_CREDENTIALS, &m->cred, sizeof(m->cred), &m->out_flags);
	if (m->n_fds)
		rights_out(t, m, buf, cap, &off);
	if (off)
		err = copy_out(t, hdr->control, buf, off);
	hdr->controllen = off;
	free(buf);
	return err;
}

static int name_out(struct task *t, struct linux_msghdr *hdr, const struct sock_addr *a)
{
	int err = 0;

	if (hdr->name)
		err = copy_out(t, hdr->name, a->raw, MIN(hdr->namelen, a->len));
	hdr->namelen = a->len;
	return err;
}

int64_t sock_recvmsg(struct task *t, struct file *f, struct linux_msghdr *hdr, int flags)
{
	struct uio_seg segs[16], *more = NULL;
	struct file *fds[SOCK_FDS_MAX];
	struct sock *s = sock_of_file(f);
	struct uio u;
	struct sock_msg m = { .uio = &u, .flags = flags, .fds = fds };
	int64_t r;
	int err;

	if (hdr->iovlen > UIO_MAX_IOV)
		return -EMSGSIZE;
	if (hdr->iovlen > ARRAY_SIZE(segs)) {
		more = malloc(hdr->iovlen * sizeof(*more));
		if (!more)
			return -ENOMEM;
	}
	r = uio_init_iov(&u, t, more ? more : segs, (unsigned)MAX(hdr->iovlen, (uint64_t)ARRAY_SIZE(segs)), hdr->iov,
			 hdr->iovlen);
	if (!r)
		r = recv_call(t, f, &m);
	if (r >= 0) {
		err = name_out(t, hdr, &m.name);
		if (!err)
			err = control_out(t, s, hdr, &m);
		hdr->flags = m.out_flags | (flags & MSG_CMSG_CLOEXEC);
		if (err)
			r = err;
	}
	put_fds(&m);
	free(more);
	return r;
}

int64_t sock_recvfrom(struct task *t, struct file *f, uaddr_t buf, uint64_t n, int flags, struct sock_addr *from)
{
	struct uio_seg seg;
	struct uio u;
	struct sock_msg m = { .uio = &u, .flags = flags };
	int64_t r;

	uio_init_user(&u, t, &seg, buf, n);
	r = recv_call(t, f, &m);
	if (r >= 0)
		*from = m.name;
	return r;
}
