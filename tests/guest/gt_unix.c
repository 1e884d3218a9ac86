/* SPDX-License-Identifier: Apache-2.0 */
/* AF_UNIX sockets: names, streams, datagrams, records, descriptors and credentials in messages. */
#include "tests/guest/gt.h"

#include <poll.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>

static socklen_t name_addr(struct sockaddr_un *a, const char *path)
{
	memset(a, 0, sizeof(*a));
	a->sun_family = AF_UNIX;
	strcpy(a->sun_path, path);
	return sizeof(*a);
}

static socklen_t abstract_addr(struct sockaddr_un *a, const char *tag)
{
	memset(a, 0, sizeof(*a));
	a->sun_family = AF_UNIX;
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			   (size_t)snprintf(a->sun_path + 1, 60, "gt-%s-%d", tag, (int)getpid()));
}

static int server(int type, const struct sockaddr_un *a, socklen_t len)
{
	int s = (int)CHECK_OK(socket(AF_UNIX, type, 0));

	CHECK_OK(bind(s, (const void *)a, len));
	if (type != SOCK_DGRAM)
		CHECK_OK(listen(s, 5));
	return s;
}

static short events_of(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN | POLLOUT | POLLRDHUP };

	CHECK(poll(&p, 1, 0) >= 0);
	return p.revents;
}

static void nap(int ms)
{
	struct timespec ts = { 0, ms * 1000000l };

	nanosleep(&ts, NULL);
}

static void hostile(void)
{
	struct sockaddr_un a;
	char buf[8];
	int s, sv[2];
	socklen_t len;

	CHECK_ERR(socket(AF_UNIX, 77, 0), EINVAL);
	CHECK_ERR(socket(AF_UNIX, SOCK_STREAM, 5), EPROTONOSUPPORT);
	CHECK_ERR(socket(9999, SOCK_STREAM, 0), EAFNOSUPPORT);
	CHECK_ERR(syscall(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, BAD_PTR), EFAULT);
	s = (int)CHECK_OK(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
	CHECK_EQ(fcntl(s, F_GETFD), FD_CLOEXEC);
	CHECK_EQ(fcntl(s, F_GETFL), O_RDWR | O_NONBLOCK);
	CHECK_ERR(bind(s, BAD_PTR, 20), EFAULT);
	CHECK_ERR(bind(s, (void *)&a, 1), EINVAL);
	CHECK_ERR(bind(s, (void *)&a, 200), EINVAL);
	name_addr(&a, "none/x");
	CHECK_ERR(bind(s, (void *)&a, sizeof(a)), ENOENT);
	name_addr(&a, "x");
	a.sun_family = AF_INET;
	CHECK_ERR(bind(s, (void *)&a, sizeof(a)), EINVAL);
	CHECK_ERR(connect(s, (void *)&a, sizeof(a)), EINVAL);
	name_addr(&a, "x");
	CHECK_ERR(connect(s, (void *)&a, sizeof(a)), ENOENT);
	CHECK_OK(close((int)CHECK_OK(open("x", O_CREAT | O_RDWR, 0600))));
	CHECK_ERR(connect(s, (void *)&a, sizeof(a)), ECONNREFUSED);
	CHECK_ERR(bind(s, (void *)&a, sizeof(a)), EADDRINUSE);
	CHECK_ERR(listen(s, 1), EINVAL); /* not bound */
	CHECK_ERR(accept(s, NULL, NULL), EINVAL);
	CHECK_ERR(send(s, "x", 1, MSG_NOSIGNAL), ENOTCONN);
	CHECK_ERR(recv(s, buf, 1, 0), EINVAL);
	CHECK_OK(shutdown(s, SHUT_RDWR));
	CHECK_ERR(recv(s, buf, 1, 0), EINVAL);
	CHECK_ERR(send(s, "x", 1, MSG_NOSIGNAL), ENOTCONN);
	CHECK_ERR(shutdown(s, 9), EINVAL);
	len = sizeof(a);
	CHECK_ERR(getpeername(s, (void *)&a, &len), ENOTCONN);
	CHECK_ERR(bind(1, (void *)&a, sizeof(a)), ENOTSOCK);
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, sv));
	CHECK_ERR(connect(sv[0], (void *)name_addr, 0), EINVAL);
	CHECK_ERR(send(sv[0], BAD_PTR, 10, 0), EFAULT);
	CHECK_EQ(send(sv[0], "abc", 3, 0), 3);
	CHECK_ERR(recv(sv[1], BAD_PTR, 3, 0), EFAULT);
	CHECK_ERR(lseek(sv[0], 0, SEEK_SET), ESPIPE);
	CHECK_ERR(syscall(SYS_sendmsg, sv[0], BAD_PTR, 0), EFAULT);
	CHECK_ERR(syscall(SYS_recvmsg, sv[0], BAD_PTR, 0), EFAULT);
	CHECK_ERR(open("sock-none", O_RDONLY), ENOENT);
}

static void names(void)
{
	struct sockaddr_un a, b;
	socklen_t len = sizeof(b), la;
	struct stat st;
	int s, c, t;

	name_addr(&a, "sock");
	umask(027);
	s = server(SOCK_STREAM, &a, sizeof(a));
	CHECK_OK(stat("sock", &st));
	CHECK_EQ(st.st_mode, S_IFSOCK | 0750);
	CHECK_OK(getsockname(s, (void *)&b, &len));
	CHECK(len == offsetof(struct sockaddr_un, sun_path) + 5 && !strcmp(b.sun_path, "sock"));
	CHECK_ERR(bind(s, (void *)&a, sizeof(a)), EADDRINUSE);
	t = (int)CHECK_OK(socket(AF_UNIX, SOCK_STREAM, 0));
	CHECK_ERR(bind(t, (void *)&a, sizeof(a)), EADDRINUSE);
	CHECK_ERR(open("sock", O_RDWR), ENXIO);
	c = (int)CHECK_OK(socket(AF_UNIX, SOCK_DGRAM, 0));
	CHECK_ERR(connect(c, (void *)&a, sizeof(a)), EPROTOTYPE);
	CHECK_OK(connect(t, (void *)&a, sizeof(a)));
	CHECK_ERR(connect(t, (void *)&a, sizeof(a)), EISCONN);
	CHECK_OK(rename("sock", "moved"));
	name_addr(&a, "moved");
	c = (int)CHECK_OK(socket(AF_UNIX, SOCK_STREAM, 0));
	CHECK_OK(connect(c, (void *)&a, sizeof(a)));
	close(s);
	c = (int)CHECK_OK(socket(AF_UNIX, SOCK_STREAM, 0));
	CHECK_ERR(connect(c, (void *)&a, sizeof(a)), ECONNREFUSED); /* the name stays, its socket is gone */
	CHECK_OK(unlink("moved"));
	la = abstract_addr(&a, "names");
	s = server(SOCK_STREAM, &a, la);
	t = (int)CHECK_OK(socket(AF_UNIX, SOCK_STREAM, 0));
	CHECK_ERR(bind(t, (void *)&a, la), EADDRINUSE);
	CHECK_ERR(connect(t, (void *)&a, la - 1), ECONNREFUSED);
	CHECK_ERR(connect(t, (void *)&a, la + 1), ECONNREFUSED); /* a zero more is another name */
	CHECK_OK(connect(t, (void *)&a, la));
	close(s);
	s = server(SOCK_STREAM, &a, la);
	/* Autobind: a name of the kernel's choice. */
	c = (int)CHECK_OK(socket(AF_UNIX, SOCK_STREAM, 0));
	a.sun_family = AF_UNIX;
	CHECK_OK(bind(c, (void *)&a, sizeof(sa_family_t)));
	len = sizeof(b);
	CHECK_OK(getsockname(c, (void *)&b, &len));
	CHECK_EQ(len, sizeof(sa_family_t) + 6);
	CHECK_EQ(b.sun_path[0], 0);
}

static void streams(void)
{
	static char big[400000], in[400000];
	struct sockaddr_un a, b;
	socklen_t la = abstract_addr(&a, "streams"), len = sizeof(b);
	int s = server(SOCK_STREAM, &a, la), c, p, n, st;
	char buf[32];
	size_t total = 0;

	c = (int)CHECK_OK(socket(AF_UNIX, SOCK_STREAM, 0));
	CHECK_EQ(events_of(s), 0);
	CHECK_OK(connect(c, (void *)&a, la)); /* done before the accept */
	CHECK_EQ(write(c, "early", 5), 5);
	CHECK_EQ(events_of(s), POLLIN);
	p = (int)CHECK_OK(accept4(s, (void *)&b, &len, SOCK_CLOEXEC));
	CHECK_EQ(len, sizeof(sa_family_t));
	CHECK_EQ(fcntl(p, F_GETFD), FD_CLOEXEC);
	CHECK_EQ(fcntl(p, F_GETFL), O_RDWR);
	CHECK_OK(ioctl(p, FIONREAD, &n));
	CHECK_EQ(n, 5);
	CHECK_EQ(recv(p, buf, 2, MSG_PEEK), 2);
	CHECK_EQ(recv(p, buf, 32, 0), 5);
	CHECK_ERR(recv(p, buf, 1, MSG_DONTWAIT), EAGAIN);
	/* A stream has no borders. */
	CHECK_EQ(write(c, "ab", 2), 2);
	CHECK_EQ(write(c, "cd", 2), 2);
	CHECK_EQ(read(p, buf, 3), 3);
	CHECK_EQ(read(p, buf, 32), 1);
	if (fork() == 0) {
		nap(30);
		if (write(c, "12", 2) != 2)
			_exit(1);
		nap(30);
		_exit(write(c, "34", 2) != 2);
	}
	CHECK_EQ(recv(p, buf, 4, MSG_WAITALL), 4);
	CHECK(!memcmp(buf, "1234", 4));
	CHECK_OK(wait(&st));
	for (size_t i = 0; i < sizeof(big); i++)
		big[i] = (char)(i * 7 + i / 1000);
	if (fork() == 0)
		_exit(write(c, big, sizeof(big)) != sizeof(big));
	while (total < sizeof(in)) {
		ssize_t r = CHECK_OK(read(p, in + total, 30000));

		CHECK(r > 0);
		total += (size_t)r;
	}
	CHECK(!memcmp(big, in, sizeof(in)));
	CHECK_OK(wait(&st));
	CHECK_EQ(st, 0);
	CHECK_OK(fcntl(c, F_SETFL, O_NONBLOCK));
	while ((n = (int)write(c, big, 10000)) > 0)
		;
	CHECK_EQ(errno, EAGAIN);
	CHECK(!(events_of(c) & POLLOUT));
}

static void ends(void)
{
	struct sockaddr_un a;
	socklen_t la = abstract_addr(&a, "ends");
	char buf[8];
	int sv[2], s, c, st, err;
	socklen_t len = sizeof(err);

	signal(SIGPIPE, SIG_IGN);
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, sv));
	CHECK_EQ(write(sv[0], "last", 4), 4);
	CHECK_OK(shutdown(sv[0], SHUT_WR));
	CHECK_ERR(write(sv[0], "x", 1), EPIPE);
	CHECK_EQ(events_of(sv[1]), POLLIN | POLLOUT | POLLRDHUP);
	CHECK_EQ(read(sv[1], buf, 8), 4);
	CHECK_EQ(read(sv[1], buf, 8), 0);
	CHECK_EQ(write(sv[1], "back", 4), 4);
	CHECK_EQ(read(sv[0], buf, 8), 4);
	CHECK_OK(shutdown(sv[1], SHUT_WR));
	CHECK_EQ(events_of(sv[0]), POLLIN | POLLOUT | POLLRDHUP | POLLHUP);
	CHECK_OK(shutdown(sv[0], SHUT_RDWR));
	/* Closing with unread data resets the other side. */
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, sv));
	CHECK_EQ(write(sv[0], "unread", 6), 6);
	CHECK_OK(close(sv[1]));
	CHECK_ERR(read(sv[0], buf, 8), ECONNRESET);
	CHECK_EQ(read(sv[0], buf, 8), 0);
	CHECK_ERR(write(sv[0], "x", 1), EPIPE);
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, sv));
	CHECK_EQ(write(sv[1], "data", 4), 4);
	CHECK_OK(close(sv[1]));
	CHECK_EQ(events_of(sv[0]), POLLIN | POLLOUT | POLLRDHUP | POLLHUP);
	CHECK_EQ(read(sv[0], buf, 8), 4);
	CHECK_EQ(read(sv[0], buf, 8), 0);
	/* SIGPIPE, unless asked not to. */
	if (fork() == 0) {
		signal(SIGPIPE, SIG_DFL);
		if (send(sv[0], "x", 1, MSG_NOSIGNAL) != -1 || errno != EPIPE)
			_exit(1);
		_exit(send(sv[0], "x", 1, 0) ? 2 : 3);
	}
	CHECK_OK(wait(&st));
	CHECK(WIFSIGNALED(st) && WTERMSIG(st) == SIGPIPE);
	/* A listener that goes takes those who wait in its queue along. */
	s = server(SOCK_STREAM, &a, la);
	c = (int)CHECK_OK(socket(AF_UNIX, SOCK_STREAM, 0));
	CHECK_OK(connect(c, (void *)&a, la));
	CHECK_OK(close(s));
	CHECK_ERR(read(c, buf, 8), ECONNRESET);
	CHECK_EQ(read(c, buf, 8), 0);
	CHECK_OK(getsockopt(c, SOL_SOCKET, SO_ERROR, &err, &len));
	CHECK_EQ(err, 0);
}

static void backlog(void)
{
	struct sockaddr_un a;
	socklen_t la = abstract_addr(&a, "backlog");
	int s = (int)CHECK_OK(socket(AF_UNIX, SOCK_STREAM, 0)), c, st;

	CHECK_OK(bind(s, (void *)&a, la));
	c = (int)CHECK_OK(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0));
	CHECK_ERR(connect(c, (void *)&a, la), ECONNREFUSED);
	CHECK_OK(listen(s, 1));
	for (int i = 0; i < 2; i++)
		CHECK_OK(connect((int)CHECK_OK(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0)), (void *)&a, la));
	CHECK_ERR(connect(c, (void *)&a, la), EAGAIN);
	if (fork() == 0) {
		c = socket(AF_UNIX, SOCK_STREAM, 0);
		_exit(connect(c, (void *)&a, la) != 0); /* waits for room */
	}
	nap(40);
	for (int i = 0; i < 3; i++)
		CHECK_OK(close((int)CHECK_OK(accept(s, NULL, NULL))));
	CHECK_OK(wait(&st));
	CHECK_EQ(st, 0);
	CHECK_OK(fcntl(s, F_SETFL, O_NONBLOCK));
	CHECK_ERR(accept(s, NULL, NULL), EAGAIN);
}

static void datagrams(void)
{
	struct sockaddr_un a, b, from;
	socklen_t la = abstract_addr(&a, "dgram-a"), lb = abstract_addr(&b, "dgram-b"), len = sizeof(from);
	struct iovec iov = { (char[4]){ 0 }, 4 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
	char buf[32];
	int s = server(SOCK_DGRAM, &a, la), c = server(SOCK_DGRAM, &b, lb), t;

	CHECK_ERR(send(c, "x", 1, 0), ENOTCONN);
	CHECK_EQ(sendto(c, "hello", 5, 0, (void *)&a, la), 5);
	CHECK_EQ(sendto(c, "", 0, 0, (void *)&a, la), 0);
	CHECK_EQ(sendto(c, "longer", 6, 0, (void *)&a, la), 6);
	CHECK_EQ(recvfrom(s, buf, 32, 0, (void *)&from, &len), 5);
	CHECK(len == lb && !memcmp(&from, &b, lb));
	CHECK_EQ(recv(s, buf, 32, 0), 0);
	CHECK_EQ(recv(s, buf, 2, MSG_PEEK | MSG_TRUNC), 6);
	CHECK_EQ(recvmsg(s, &m, 0), 4);
	CHECK_EQ(m.msg_flags, MSG_TRUNC);
	CHECK_ERR(recv(s, buf, 1, MSG_DONTWAIT), EAGAIN); /* the rest of it is lost */
	CHECK_OK(connect(c, (void *)&a, la));
	CHECK_EQ(send(c, "1", 1, 0), 1);
	t = (int)CHECK_OK(socket(AF_UNIX, SOCK_DGRAM, 0));
	CHECK_ERR(sendto(t, "x", 1, 0, (void *)&b, lb), EPERM); /* b listens to a alone */
	CHECK_OK(close(s));
	CHECK_ERR(send(c, "x", 1, 0), ECONNREFUSED);
	CHECK_ERR(sendto(t, "x", 1, 0, (void *)&a, la), ECONNREFUSED);
	CHECK_ERR(listen(t, 1), EOPNOTSUPP);
	CHECK_ERR(accept(t, NULL, NULL), EOPNOTSUPP);
}

static void records(void)
{
	char buf[16];
	int sv[2];

	CHECK_OK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sv));
	CHECK_EQ(write(sv[0], "first", 5), 5);
	CHECK_EQ(write(sv[0], "2", 1), 1);
	CHECK_EQ(read(sv[1], buf, 3), 3);
	CHECK_EQ(read(sv[1], buf, 16), 1);
	CHECK_EQ(buf[0], '2');
	CHECK_OK(close(sv[0]));
	CHECK_EQ(read(sv[1], buf, 16), 0);
}

static int send_fds(int s, const int *fds, unsigned n, const char *text)
{
	char ctl[CMSG_SPACE(sizeof(int) * 300)] = { 0 };
	struct iovec iov = { (char *)(uintptr_t)text, strlen(text) };
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = ctl, .msg_controllen = CMSG_SPACE(n * sizeof(int))
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(n * sizeof(int));
	memcpy(CMSG_DATA(c), fds, n * sizeof(int));
	return (int)sendmsg(s, &m, 0);
}

/* Receives and gives the number of descriptors. */
static int recv_fds(int s, int *fds, unsigned room, int flags, int *msg_flags, ssize_t *len)
{
	char ctl[CMSG_SPACE(sizeof(int) * 300)] = { 0 }, buf[64];
	struct iovec iov = { buf, sizeof(buf) };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = ctl,
			    .msg_controllen = room ? CMSG_LEN(room * sizeof(int)) : 0 };
	struct cmsghdr *c;
	int n;

	*len = CHECK_OK(recvmsg(s, &m, flags));
	*msg_flags = m.msg_flags;
	c = CMSG_FIRSTHDR(&m);
	if (!c)
		return 0;
	CHECK(c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS);
	n = (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
	memcpy(fds, CMSG_DATA(c), (size_t)n * sizeof(int));
	return n;
}

static void descriptors(void)
{
	char buf[16];
	int sv[2], p[2], fds[300], got[300], fl;
	ssize_t len;

	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, sv));
	CHECK_OK(pipe(p));
	CHECK_EQ(send_fds(sv[0], p, 2, "two"), 3);
	CHECK_EQ(recv_fds(sv[1], got, 2, MSG_CMSG_CLOEXEC, &fl, &len), 2);
	CHECK_EQ(fcntl(got[0], F_GETFD), FD_CLOEXEC);
	CHECK_EQ(fl & ~MSG_CMSG_CLOEXEC, 0);
	CHECK_EQ(write(got[1], "through", 7), 7);
	CHECK_EQ(read(p[0], buf, 16), 7);
	/* Room for one: the other is dropped, and the message says so. */
	CHECK_EQ(send_fds(sv[0], p, 2, "two"), 3);
	CHECK_EQ(recv_fds(sv[1], got, 1, 0, &fl, &len), 1);
	CHECK_EQ(fl, MSG_CTRUNC);
	CHECK_EQ(send_fds(sv[0], p, 2, "two"), 3);
	CHECK_EQ(recv_fds(sv[1], got, 0, 0, &fl, &len), 0);
	CHECK_EQ(fl, MSG_CTRUNC);
	/* Data of messages with descriptors does not run together. */
	CHECK_EQ(send_fds(sv[0], p, 1, "aa"), 2);
	CHECK_EQ(send_fds(sv[0], p, 1, "bb"), 2);
	CHECK_EQ(recv_fds(sv[1], got, 2, 0, &fl, &len), 1);
	CHECK_EQ(len, 2);
	CHECK_EQ(read(sv[1], buf, 16), 2);
	fds[0] = 9999;
	CHECK_ERR(send_fds(sv[0], fds, 1, "x"), EBADF);
	for (int i = 0; i < 300; i++)
		fds[i] = p[0];
	CHECK_ERR(send_fds(sv[0], fds, 254, "x"), EINVAL);
	CHECK_EQ(send_fds(sv[0], fds, 253, "x"), 1);
	CHECK_EQ(recv_fds(sv[1], got, 253, 0, &fl, &len), 253);
	/* A description in flight lives, even after every close. */
	CHECK_EQ(send_fds(sv[0], p + 1, 1, "w"), 1);
	for (int i = 3; i < 1000; i++) {
		if (i != sv[0] && i != sv[1] && i != p[0])
			close(i);
	}
	CHECK_EQ(recv_fds(sv[1], got, 1, 0, &fl, &len), 1);
	CHECK_EQ(write(got[0], "alive", 5), 5);
	CHECK_EQ(close(got[0]), 0);
	CHECK_EQ(read(p[0], buf, 16), 5);
	CHECK_EQ(read(p[0], buf, 16), 0);
	close(sv[0]);
	close(sv[1]);
}

/* Sockets that lie in each other's queues, as deep as the kernel lets them. */
static void nested(void)
{
	int sv[2], inner = (int)CHECK_OK(socket(AF_UNIX, SOCK_STREAM, 0)), depth = 0;

	for (; depth < 12000; depth++) {
		CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, sv));
		if (send_fds(sv[0], &inner, 1, "x") != 1)
			break;
		close(inner);
		close(sv[0]);
		inner = sv[1];
	}
	CHECK(depth == 12000 || errno == ETOOMANYREFS);
	CHECK_OK(close(inner));
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, sv));
	CHECK_EQ(write(sv[0], "x", 1), 1);
}

/* Small messages take their place in a queue, too: their number is bounded. */
static void small_messages(void)
{
	static const int types[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET };

	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
		bool dgram = types[i] == SOCK_DGRAM;
		int sv[2], n = 0;
		char c = 'x';

		CHECK_OK(socketpair(AF_UNIX, types[i] | SOCK_NONBLOCK, 0, sv));
		CHECK(events_of(sv[0]) & POLLOUT);
		while (send(sv[0], &c, dgram ? 0 : 1, 0) >= 0 && n < 20000)
			n++;
		CHECK_EQ(errno, EAGAIN);
		CHECK(n > 0 && n < 20000);
		CHECK(!(events_of(sv[0]) & POLLOUT));
		for (int k = 0; k < n; k++)
			CHECK_EQ(recv(sv[1], &c, 1, 0), dgram ? 0 : 1);
		CHECK_ERR(recv(sv[1], &c, 1, 0), EAGAIN);
		CHECK(events_of(sv[0]) & POLLOUT);
		CHECK_EQ(send(sv[0], &c, 1, 0), 1);
		close(sv[0]);
		close(sv[1]);
	}
}

static void credentials(void)
{
	struct ucred uc, *in;
	socklen_t len = sizeof(uc);
	char ctl[CMSG_SPACE(sizeof(uc))], buf[8];
	struct iovec iov = { buf, 8 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = ctl, .msg_controllen = sizeof(ctl) };
	struct cmsghdr *c;
	int sv[2], on = 1, st;

	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, sv));
	CHECK_OK(getsockopt(sv[0], SOL_SOCKET, SO_PEERCRED, &uc, &len));
	CHECK(uc.pid == getpid() && uc.uid == geteuid() && uc.gid == getegid());
	CHECK_OK(setsockopt(sv[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)));
	if (fork() == 0)
		_exit(write(sv[0], "hi", 2) != 2);
	CHECK_OK(wait(&st));
	CHECK_EQ(recvmsg(sv[1], &m, 0), 2);
	c = CMSG_FIRSTHDR(&m);
	CHECK(c && c->cmsg_type == SCM_CREDENTIALS && c->cmsg_len == CMSG_LEN(sizeof(uc)));
	in = (struct ucred *)CMSG_DATA(c);
	CHECK(in->pid > 0 && in->pid != getpid() && in->uid == geteuid());
	/* What is sent must be true. */
	if (geteuid() == 0 && fork() == 0) {
		if (setuid(1000))
			_exit(9);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_CREDENTIALS;
		c->cmsg_len = CMSG_LEN(sizeof(uc));
		m.msg_controllen = sizeof(ctl);
		*in = (struct ucred){ getpid(), 0, getgid() };
		if (sendmsg(sv[0], &m, 0) != -1 || errno != EPERM)
			_exit(1);
		*in = (struct ucred){ getpid(), 1000, getgid() };
		_exit(sendmsg(sv[0], &m, 0) != 8);
	}
	if (geteuid() == 0) {
		CHECK_OK(wait(&st));
		CHECK_EQ(st, 0);
	}
}

static void options(void)
{
	struct timeval tv = { 0, 40000 };
	struct linger lg;
	char buf[4];
	int sv[2], v;
	socklen_t len = sizeof(v);

	CHECK_OK(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, sv));
	CHECK_OK(getsockopt(sv[0], SOL_SOCKET, SO_TYPE, &v, &len));
	CHECK_EQ(v, SOCK_DGRAM);
	CHECK_OK(getsockopt(sv[0], SOL_SOCKET, SO_DOMAIN, &v, &len));
	CHECK_EQ(v, AF_UNIX);
	CHECK_OK(getsockopt(sv[0], SOL_SOCKET, SO_ACCEPTCONN, &v, &len));
	CHECK_EQ(v, 0);
	CHECK_ERR(getsockopt(sv[0], SOL_SOCKET, 9999, &v, &len), ENOPROTOOPT);
	CHECK_ERR(getsockopt(sv[0], SOL_SOCKET, SO_TYPE, BAD_PTR, &len), EFAULT);
	CHECK_ERR(setsockopt(sv[0], SOL_SOCKET, SO_PASSCRED, &v, 1), EINVAL);
	len = sizeof(lg);
	CHECK_OK(getsockopt(sv[0], SOL_SOCKET, SO_LINGER, &lg, &len));
	v = 20000;
	CHECK_OK(setsockopt(sv[0], SOL_SOCKET, SO_SNDBUF, &v, sizeof(v)));
	len = sizeof(v);
	CHECK_OK(getsockopt(sv[0], SOL_SOCKET, SO_SNDBUF, &v, &len));
	CHECK_EQ(v, 40000);
	CHECK_OK(fcntl(sv[0], F_SETFL, 0));
	CHECK_OK(setsockopt(sv[0], SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)));
	CHECK_ERR(recv(sv[0], buf, 4, 0), EAGAIN);
	CHECK_ERR(send(sv[0], malloc(100000), 100000, 0), EMSGSIZE);
}

static const struct gt_case cases[] = {
	{ "hostile", hostile },
	{ "names", names },
	{ "streams", streams },
	{ "ends", ends },
	{ "backlog", backlog },
	{ "datagrams", datagrams },
	{ "records", records },
	{ "descriptors", descriptors },
	{ "nested", nested },
	{ "small_messages", small_messages },
	{ "credentials", credentials },
	{ "options", options },
	{ NULL, NULL },
};

GT_MAIN(cases)
