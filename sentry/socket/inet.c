/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AF_INET and AF_INET6 without a network: there is no interface, so every destination is unreachable, at once and with
 * the error that a host without routes gives. Programs that only make, bind or configure sockets go on.
 */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "sentry/socket/sock.h"

struct inet_sock {
	struct sock sock;
	struct sock_addr addr;
};

static struct inet_sock *inet_of(struct sock *s)
{
	return container_of(s, struct inet_sock, sock);
}

static uint32_t addr_size(const struct sock *s)
{
	return s->family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
}

/* Addresses that a host without interfaces has: none but the wildcard. */
static int inet_bind(struct sock *s, struct task *t, const struct sock_addr *a)
{
	static const struct in6_addr any6;
	struct sockaddr_in in4;
	struct sockaddr_in6 in6;

	if (a->len < addr_size(s))
		return -EINVAL;
	if (a->sa.sa_family != s->family)
		return -EAFNOSUPPORT;
	if (s->family == AF_INET) {
		memcpy(&in4, a->raw, sizeof(in4));
		if (in4.sin_addr.s_addr != htonl(INADDR_ANY))
			return -EADDRNOTAVAIL;
	} else {
		memcpy(&in6, a->raw, sizeof(in6));
		if (memcmp(&in6.sin6_addr, &any6, sizeof(any6)))
			return -EADDRNOTAVAIL;
	}
	inet_of(s)->addr = *a;
	inet_of(s)->addr.len = addr_size(s);
	return 0;
}

static int inet_connect(struct sock *s, struct task *t, const struct sock_addr *a)
{
	if (a->len < sizeof(a->sa.sa_family))
		return -EINVAL;
	if (a->sa.sa_family == AF_UNSPEC)
		return 0;
	if (a->sa.sa_family != s->family)
		return -EAFNOSUPPORT;
	return a->len < addr_size(s) ? -EINVAL : -ENETUNREACH;
}

static int inet_getname(struct sock *s, bool peer, struct sock_addr *a)
{
	if (peer)
		return -ENOTCONN;
	*a = inet_of(s)->addr;
	a->len = addr_size(s);
	a->sa.sa_family = (sa_family_t)s->family;
	return 0;
}

static ssize_t inet_send(struct sock *s, struct task *t, struct sock_msg *m)
{
	if (s->type == SOCK_STREAM)
		return -EPIPE;
	return m->name.len ? -ENETUNREACH : -EDESTADDRREQ;
}

static ssize_t inet_recv(struct sock *s, struct task *t, struct sock_msg *m)
{
	return s->type == SOCK_STREAM ? -ENOTCONN : -EAGAIN;
}

static uint32_t inet_poll(struct sock *s)
{
	return s->type == SOCK_STREAM ? POLLOUT | POLLHUP : POLLOUT | POLLWRNORM;
}

static int inet_setsockopt(struct sock *s, int level, int name, const void *val, uint32_t len)
{
	return level == IPPROTO_TCP || level == IPPROTO_IP || level == IPPROTO_IPV6 ? 0 : -ENOPROTOOPT;
}

static void inet_close(struct sock *s)
{
}

static void inet_destroy(struct sock *s)
{
	free(inet_of(s));
}

static const struct sock_ops inet_ops = {
	.bind = inet_bind,
	.connect = inet_connect,
	.getname = inet_getname,
	.send = inet_send,
	.recv = inet_recv,
	.poll = inet_poll,
	.setsockopt = inet_setsockopt,
	.close = inet_close,
	.destroy = inet_destroy,
};

static int inet_any_create(int family, int type, int protocol, struct sock **ret)
{
	struct inet_sock *i;

	if (type == SOCK_RAW)
		return -EPERM;
	if (type != SOCK_STREAM && type != SOCK_DGRAM)
		return -ESOCKTNOSUPPORT;
	if (protocol && protocol != (type == SOCK_STREAM ? IPPROTO_TCP : IPPROTO_UDP))
		return -EPROTONOSUPPORT;
	i = calloc(1, sizeof(*i));
	if (!i)
		return -ENOMEM;
	sock_init(&i->sock, &inet_ops, family, type, type == SOCK_STREAM ? IPPROTO_TCP : IPPROTO_UDP);
	*ret = &i->sock;
	return 0;
}

static int inet_create(struct task *t, int type, int protocol, struct sock **ret)
{
	return inet_any_create(AF_INET, type, protocol, ret);
}

static int inet6_create(struct task *t, int type, int protocol, struct sock **ret)
{
	return inet_any_create(AF_INET6, type, protocol, ret);
}

const struct sock_family inet_family = { .family = AF_INET, .create = inet_create };
const struct sock_family inet6_family = { .family = AF_INET6, .create = inet6_create };
