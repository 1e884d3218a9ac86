/* SPDX-License-Identifier: Apache-2.0 */
#include "sentry/socket/sock.h"

#include <asm/ioctls.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>

#include "base/bug.h"
#include "sentry/kernel/clock.h"
#include "sentry/kernel/uaccess.h"
#include "sentry/vfs/uio.h"

struct sock_file {
	struct file file;
	struct sock *sock;
};

static const struct sock_family *const families[] = { &unix_family, &inet_family, &inet6_family };

const struct sock_family *sock_family_lookup(int family)
{
	for (size_t i = 0; i < ARRAY_SIZE(families); i++) {
		if (families[i]->family == family)
			return families[i];
	}
	return NULL;
}

void sock_init(struct sock *s, const struct sock_ops *ops, int family, int type, int protocol)
{
	ref_init(&s->ref);
	waitq_init(&s->wq);
	s->ops = ops;
	s->family = family;
	s->type = type;
	s->protocol = protocol;
	s->sndbuf = s->rcvbuf = SOCK_BUF_DEF;
}

struct sock *sock_get(struct sock *s)
{
	ref_get(&s->ref);
	return s;
}

void sock_put(struct sock *s)
{
	if (!s || !ref_put(&s->ref))
		return;
	BUG_ON(s->full);
	waitq_fini(&s->wq);
	s->ops->destroy(s);
}

struct sock *sock_take_full(struct sock *s)
{
	struct sock *full = s->full;

	s->full = NULL;
	return full;
}

static struct sock *sock_of(struct file *f)
{
	return container_of(f, struct sock_file, file)->sock;
}

static ssize_t sock_file_read(struct file *f, struct uio *u, uint64_t *pos)
{
	struct sock_msg m = { .uio = u };

	return sock_of(f)->ops->recv(sock_of(f), u->task, &m);
}

/* vfs waits on the socket's own queue, which a connected one's peer wakes. */
static ssize_t sock_file_write(struct file *f, struct uio *u, uint64_t *pos)
{
	struct sock_msg m = { .uio = u };
	struct sock *s = sock_of(f);
	ssize_t n = s->ops->send(s, u->task, &m);

	sock_put(sock_take_full(s));
	return n;
}

static uint32_t sock_file_poll(struct file *f, struct waitq **q)
{
	struct sock *s = sock_of(f);

	*q = &s->wq;
	return s->ops->poll(s) | (s->err ? POLLERR : 0);
}

static int64_t sock_file_ioctl(struct file *f, struct task *t, uint32_t cmd, uint64_t arg)
{
	struct sock *s = sock_of(f);
	int value = 0, err;

	if (cmd != FIONREAD && cmd != SIOCOUTQ)
		return -ENOTTY;
	err = s->ops->ioctl ? s->ops->ioctl(s, cmd, &value) : -ENOTTY;
	return err ? err : copy_out(t, arg, &value, sizeof(value));
}

static void sock_file_release(struct file *f)
{
	struct sock *s = sock_of(f);

	if (!s)
		return;
	s->ops->close(s);
	sock_put(s);
}

static const struct file_ops sock_file_ops = {
	.file_size = sizeof(struct sock_file),
	.read = sock_file_read,
	.write = sock_file_write,
	.poll = sock_file_poll,
	.ioctl = sock_file_ioctl,
	.release = sock_file_release,
};

int sock_file_create(struct sock *s, uint32_t flags, struct file **ret)
{
	struct inode *in = anon_inode_create(S_IFSOCK | 0777);
	struct file *f = in ? file_create(&sock_file_ops, in, O_RDWR | flags) : NULL;
	int err = in ? -ENFILE : -ENOMEM;

	inode_put(in);
	if (!f) {
		s->ops->close(s);
		sock_put(s);
		return err;
	}
	container_of(f, struct sock_file, file)->sock = s;
	f->anon_name = "socket";
	*ret = f;
	return 0;
}

struct sock *sock_of_file(struct file *f)
{
	return f->ops == &sock_file_ops ? sock_of(f) : NULL;
}

static int timeo_set(uint64_t *ns, const void *val, uint32_t len)
{
	struct timeval tv;

	if (len < sizeof(tv))
		return -EINVAL;
	memcpy(&tv, val, sizeof(tv));
	if (tv.tv_usec < 0 || tv.tv_usec >= 1000000)
		return -EDOM;
	/* None, as for Linux: less than zero, or longer than anyone waits. */
	if (tv.tv_sec < 0 || (uint64_t)tv.tv_sec >= CLOCK_NS_MAX / NSEC_PER_SEC)
		*ns = 0;
	else
		*ns = (uint64_t)tv.tv_sec * NSEC_PER_SEC + (uint64_t)tv.tv_usec * 1000;
	return 0;
}

static int int_option_set(struct sock *s, int name, int v)
{
	switch (name) {
	case SO_SNDBUF:
		s->sndbuf = MIN(MAX((uint32_t)(v < 0 ? 0 : v), 2304u), SOCK_BUF_MAX / 2) * 2;
		return 0;
	case SO_RCVBUF:
		s->rcvbuf = MIN(MAX((uint32_t)(v < 0 ? 0 : v), 1152u), SOCK_BUF_MAX / 2) * 2;
		return 0;
	case SO_PASSCRED:
		s->passcred = v;
		return 0;
	case SO_REUSEADDR:
		s->reuseaddr = v;
		return 0;
	case SO_KEEPALIVE:
		s->keepalive = v;
		return 0;
	case SO_BROADCAST:
		s->broadcast = v;
		return 0;
	case SO_PRIORITY:
		if (v < 0 || v > 6)
			return -EPERM;
		s->priority = v;
		return 0;
	case SO_REUSEPORT:
	case SO_OOBINLINE:
	case SO_DONTROUTE:
	case SO_TIMESTAMP:
	case SO_TIMESTAMPNS:
		return 0; /* accepted, nothing to change here */
	default:
		return -ENOPROTOOPT;
	}
}

int sock_setsockopt(struct sock *s, int level, int name, const void *val, uint32_t len)
{
	int v;

	if (level != SOL_SOCKET)
		return s->ops->setsockopt ? s->ops->setsockopt(s, level, name, val, len) : -ENOPROTOOPT;
	if (name == SO_RCVTIMEO)
		return timeo_set(&s->rcvtimeo, val, len);
	if (name == SO_SNDTIMEO)
		return timeo_set(&s->sndtimeo, val, len);
	if (name == SO_LINGER) {
		if (len < 2 * sizeof(int))
			return -EINVAL;
		memcpy(&s->linger_on, val, sizeof(int));
		memcpy(&s->linger_s, (const char *)val + sizeof(int), sizeof(int));
		return 0;
	}
	if (len < sizeof(int))
		return -EINVAL;
	memcpy(&v, val, sizeof(v));
	return int_option_set(s, name, v);
}

static void option_out(void *val, uint32_t *len, const void *src, uint32_t n)
{
	*len = MIN(*len, n);
	memcpy(val, src, *len);
}

static int int_option_get(struct sock *s, int name, int *v)
{
	switch (name) {
	case SO_TYPE:
		*v = s->type;
		return 0;
	case SO_DOMAIN:
		*v = s->family;
		return 0;
	case SO_PROTOCOL:
		*v = s->protocol;
		return 0;
	case SO_ERROR:
		*v = -s->err;
		s->err = 0;
		return 0;
	case SO_SNDBUF:
		*v = (int)s->sndbuf;
		return 0;
	case SO_RCVBUF:
		*v = (int)s->rcvbuf;
		return 0;
	case SO_PASSCRED:
		*v = s->passcred;
		return 0;
	case SO_REUSEADDR:
		*v = s->reuseaddr;
		return 0;
	case SO_KEEPALIVE:
		*v = s->keepalive;
		return 0;
	case SO_BROADCAST:
		*v = s->broadcast;
		return 0;
	case SO_PRIORITY:
		*v = s->priority;
		return 0;
	case SO_REUSEPORT:
	case SO_OOBINLINE:
	case SO_DONTROUTE:
	case SO_TIMESTAMP:
	case SO_TIMESTAMPNS:
		*v = 0;
		return 0;
	default:
		return -ENOPROTOOPT;
	}
}

int sock_getsockopt(struct sock *s, int level, int name, void *val, uint32_t *len)
{
	int v[2], err;

	if (level == SOL_SOCKET && (name == SO_RCVTIMEO || name == SO_SNDTIMEO)) {
		uint64_t ns = name == SO_RCVTIMEO ? s->rcvtimeo : s->sndtimeo;
		struct timeval tv = { (time_t)(ns / NSEC_PER_SEC), (suseconds_t)(ns % NSEC_PER_SEC / 1000) };

		option_out(val, len, &tv, sizeof(tv));
		return 0;
	}
	if (level == SOL_SOCKET && name == SO_LINGER) {
		v[0] = s->linger_on;
		v[1] = s->linger_s;
		option_out(val, len, v, sizeof(v));
		return 0;
	}
	err = level == SOL_SOCKET ? int_option_get(s, name, v) : -ENOPROTOOPT;
	if (!err) {
		option_out(val, len, v, sizeof(int));
		return 0;
	}
	return s->ops->getsockopt ? s->ops->getsockopt(s, level, name, val, len) : err;
}
