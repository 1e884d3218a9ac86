/* SPDX-License-Identifier: Apache-2.0 */
/* poll, select and epoll: errors, readiness, timeouts, edges, nesting. */
#include "tests/guest/gt.h"

#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

static void nap(int ms)
{
	struct timespec ts = { 0, ms * 1000000l };

	nanosleep(&ts, NULL);
}

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void on_signal(int sig)
{
}

static void polls(void)
{
	struct pollfd p[4];
	struct rlimit rl;
	int a[2], b[2];
	int64_t t0;

	CHECK_OK(pipe(a));
	CHECK_OK(pipe(b));
	CHECK_ERR(syscall(SYS_poll, BAD_PTR, 1, 0), EFAULT);
	CHECK_OK(getrlimit(RLIMIT_NOFILE, &rl));
	CHECK_ERR(syscall(SYS_poll, p, (unsigned)rl.rlim_cur + 1, 0), EINVAL);
	CHECK_EQ(poll(NULL, 0, 0), 0);
	p[0] = (struct pollfd){ .fd = -1, .events = POLLIN, .revents = 77 };
	p[1] = (struct pollfd){ .fd = 9999, .events = POLLIN };
	p[2] = (struct pollfd){ .fd = a[0], .events = POLLIN };
	p[3] = (struct pollfd){ .fd = a[1], .events = POLLOUT };
	CHECK_EQ(poll(p, 4, -1), 2);
	CHECK(p[0].revents == 0 && p[1].revents == POLLNVAL && p[2].revents == 0 && p[3].revents == POLLOUT);
	t0 = now_ms();
	CHECK_EQ(poll(p + 2, 1, 50), 0);
	CHECK(now_ms() - t0 >= 49);
	CHECK_EQ(p[2].revents, 0);
	if (fork() == 0) {
		nap(40);
		_exit(write(a[1], "x", 1) != 1);
	}
	t0 = now_ms();
	CHECK_EQ(poll(p + 2, 1, 5000), 1);
	CHECK_EQ(p[2].revents, POLLIN);
	CHECK(now_ms() - t0 < 15000);
	CHECK_OK(wait(NULL));
	/* Files are always ready; events that were not asked for are not told, but hang-ups are. */
	p[0] = (struct pollfd){ .fd = (int)CHECK_OK(open("f", O_CREAT | O_RDWR, 0600)), .events = POLLIN | POLLOUT };
	CHECK_EQ(poll(p, 1, 0), 1);
	CHECK_EQ(p[0].revents, POLLIN | POLLOUT);
	close(b[1]);
	p[0] = (struct pollfd){ .fd = b[0] };
	CHECK_EQ(poll(p, 1, 0), 1);
	CHECK_EQ(p[0].revents, POLLHUP);
	p[0] = (struct pollfd){ .fd = (int)CHECK_OK(open("f", O_PATH)), .events = POLLIN };
	CHECK_EQ(poll(p, 1, 0), 1);
	CHECK_EQ(p[0].revents, POLLNVAL);
}

static void masks(void)
{
	struct sigaction sa = { .sa_handler = on_signal };
	struct timespec ts = { 5, 0 }, zero = { 0, 0 }, bad = { 0, 1000000000 };
	struct pollfd p = { .events = POLLIN };
	sigset_t set, none;
	int a[2];

	CHECK_OK(pipe(a));
	p.fd = a[0];
	sigemptyset(&none);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	CHECK_OK(sigaction(SIGUSR1, &sa, NULL));
	CHECK_OK(sigprocmask(SIG_BLOCK, &set, NULL));
	CHECK_OK(raise(SIGUSR1));
	CHECK_ERR(ppoll(&p, 1, &ts, &none), EINTR);
	CHECK_EQ(ppoll(&p, 1, &zero, &none), 0);
	CHECK_OK(raise(SIGUSR1));
	CHECK_EQ(ppoll(&p, 1, &zero, &set), 0); /* still blocked */
	CHECK_ERR(ppoll(&p, 1, &ts, &none), EINTR);
	CHECK_ERR(ppoll(&p, 1, &bad, NULL), EINVAL);
	CHECK_ERR(syscall(SYS_ppoll, &p, 1, NULL, &set, 4), EINVAL);
	CHECK_ERR(syscall(SYS_ppoll, &p, 1, BAD_PTR, NULL, 8), EFAULT);
	/* The remaining time is written back by the call itself. */
	ts = (struct timespec){ 0, 30000000 };
	CHECK_EQ(syscall(SYS_ppoll, &p, 1, &ts, NULL, 8), 0);
	CHECK(ts.tv_sec == 0 && ts.tv_nsec == 0);
}

static void selects(void)
{
	struct timeval tv = { 0, 30000 };
	fd_set r, w, x;
	int a[2], big;

	CHECK_OK(pipe(a));
	FD_ZERO(&r);
	FD_ZERO(&w);
	FD_ZERO(&x);
	FD_SET(a[0], &r);
	FD_SET(a[1], &w);
	CHECK_EQ(select(20, &r, &w, &x, NULL), 1);
	CHECK(!FD_ISSET(a[0], &r) && FD_ISSET(a[1], &w));
	FD_SET(a[0], &r);
	CHECK_EQ(select(20, &r, NULL, NULL, &tv), 0);
	CHECK(tv.tv_sec == 0 && tv.tv_usec == 0 && !FD_ISSET(a[0], &r));
	FD_ZERO(&w);
	FD_SET(a[1], &w);
	CHECK_ERR(syscall(SYS_select, 20, NULL, &w, NULL, (long[]){ INT64_MAX, 1999999 }), EINVAL);
	CHECK_EQ(syscall(SYS_select, 20, NULL, &w, NULL, (long[]){ INT64_MAX, 999999 }), 1);
	FD_SET(15, &r);
	CHECK_ERR(select(20, &r, NULL, NULL, &tv), EBADF);
	CHECK_ERR(select(-1, NULL, NULL, NULL, &tv), EINVAL);
	CHECK_ERR(syscall(SYS_select, 20, BAD_PTR, NULL, NULL, &tv), EFAULT);
	tv.tv_sec = -1;
	CHECK_ERR(syscall(SYS_select, 0, NULL, NULL, NULL, &tv), EINVAL);
	FD_ZERO(&r);
	big = (int)CHECK_OK(fcntl(a[0], F_DUPFD, 900));
	CHECK_EQ(write(a[1], "x", 1), 1);
	FD_SET(big, &r);
	FD_SET(a[0], &r);
	CHECK_EQ(select(big + 1, &r, NULL, NULL, NULL), 2);
	close(a[1]);
	FD_ZERO(&r);
	FD_SET(a[0], &r);
	CHECK_EQ(select(a[0] + 1, &r, NULL, &x, NULL), 1);
}

static int ep_add(int ep, int fd, uint32_t events, uint64_t data)
{
	struct epoll_event ev = { .events = events, .data.u64 = data };

	return epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev);
}

static int ep_mod(int ep, int fd, uint32_t events, uint64_t data)
{
	struct epoll_event ev = { .events = events, .data.u64 = data };

	return epoll_ctl(ep, EPOLL_CTL_MOD, fd, &ev);
}

static void epoll_errors(void)
{
	struct epoll_event ev = { .events = EPOLLIN };
	int ep, ep2, p[2], f;

	CHECK_ERR(epoll_create(0), EINVAL);
	CHECK_ERR(epoll_create1(1), EINVAL);
	ep = (int)CHECK_OK(epoll_create1(EPOLL_CLOEXEC));
	ep2 = (int)CHECK_OK(epoll_create(1));
	CHECK_OK(pipe(p));
	f = (int)CHECK_OK(open("f", O_CREAT | O_RDWR, 0600));
	CHECK_ERR(epoll_ctl(-1, EPOLL_CTL_ADD, p[0], &ev), EBADF);
	CHECK_ERR(epoll_ctl(ep, EPOLL_CTL_ADD, -1, &ev), EBADF);
	CHECK_ERR(epoll_ctl(p[1], EPOLL_CTL_ADD, p[0], &ev), EINVAL);
	CHECK_ERR(epoll_ctl(ep, EPOLL_CTL_ADD, p[0], BAD_PTR), EFAULT);
	CHECK_ERR(epoll_ctl(ep, 99, p[0], &ev), EINVAL);
	CHECK_ERR(epoll_ctl(ep, EPOLL_CTL_ADD, f, &ev), EPERM);
	CHECK_ERR(epoll_ctl(ep, EPOLL_CTL_ADD, ep, &ev), EINVAL);
	CHECK_ERR(epoll_ctl(ep, EPOLL_CTL_DEL, p[0], NULL), ENOENT);
	CHECK_ERR(ep_mod(ep, p[0], EPOLLIN, 0), ENOENT);
	CHECK_OK(ep_add(ep, p[0], EPOLLIN, 1));
	CHECK_ERR(ep_add(ep, p[0], EPOLLIN, 1), EEXIST);
	CHECK_ERR(ep_add(ep, p[1], EPOLLEXCLUSIVE | EPOLLONESHOT, 0), EINVAL);
	CHECK_ERR(ep_mod(ep, p[0], EPOLLEXCLUSIVE | EPOLLIN, 0), EINVAL);
	CHECK_ERR(epoll_wait(ep, &ev, 0, 0), EINVAL);
	CHECK_ERR(epoll_wait(ep, &ev, -1, 0), EINVAL);
	CHECK_ERR(epoll_wait(ep, &ev, 1 << 28, 0), EINVAL);
	CHECK_ERR(epoll_wait(p[0], &ev, 1, 0), EINVAL);
	CHECK_ERR(epoll_wait(-1, &ev, 1, 0), EBADF);
	CHECK_EQ(epoll_wait(ep, &ev, 1, 0), 0);
	CHECK_EQ(write(p[1], "x", 1), 1);
	CHECK_ERR(epoll_wait(ep, BAD_PTR, 1, 0), EFAULT);
	CHECK_EQ(epoll_wait(ep, &ev, 1, 0), 1);
	CHECK_ERR(read(ep, &ev, 8), EINVAL);
	/* A loop of instances is found, and too deep a nest. */
	CHECK_OK(ep_add(ep, ep2, EPOLLIN, 0));
	CHECK_ERR(ep_add(ep2, ep, EPOLLIN, 0), ELOOP);
	for (int i = 0; i < 3; i++) {
		int outer = (int)CHECK_OK(epoll_create1(0));

		CHECK_OK(ep_add(outer, ep, EPOLLIN, 0));
		ep = outer;
	}
	ep2 = (int)CHECK_OK(epoll_create1(0));
	CHECK_ERR(ep_add(ep2, ep, EPOLLIN, 0), ELOOP);
}

static void levels_and_edges(void)
{
	struct epoll_event ev[4];
	char buf[8];
	int ep = (int)CHECK_OK(epoll_create1(0)), p[2], q[2];

	CHECK_OK(pipe(p));
	CHECK_OK(pipe(q));
	CHECK_OK(ep_add(ep, p[0], EPOLLIN, 0x1122334455667788));
	CHECK_EQ(epoll_wait(ep, ev, 4, 0), 0);
	CHECK_EQ(write(p[1], "ab", 2), 2);
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(epoll_wait(ep, ev, 4, 1000), 1);
		CHECK(ev[0].events == EPOLLIN && ev[0].data.u64 == 0x1122334455667788);
	}
	CHECK_OK(ep_mod(ep, p[0], EPOLLIN | EPOLLET, 5));
	CHECK_EQ(epoll_wait(ep, ev, 4, 0), 1); /* MOD looks anew */
	CHECK_EQ(epoll_wait(ep, ev, 4, 0), 0);
	CHECK_EQ(read(p[0], buf, 1), 1);
	CHECK_EQ(epoll_wait(ep, ev, 4, 0), 0); /* what is left is no edge */
	CHECK_EQ(write(p[1], "c", 1), 1);
	CHECK_EQ(epoll_wait(ep, ev, 4, 0), 1);
	CHECK_EQ(epoll_wait(ep, ev, 4, 0), 0);
	CHECK_OK(ep_mod(ep, p[0], EPOLLIN | EPOLLONESHOT, 6));
	CHECK_EQ(epoll_wait(ep, ev, 4, 0), 1);
	CHECK_EQ(write(p[1], "d", 1), 1);
	CHECK_EQ(epoll_wait(ep, ev, 4, 0), 0);
	CHECK_OK(ep_mod(ep, p[0], EPOLLIN | EPOLLONESHOT, 7));
	CHECK_EQ(epoll_wait(ep, ev, 4, 0), 1);
	CHECK_EQ(ev[0].data.u64, 7);
	/* Fair: with room for one event all ready descriptors come in turn. */
	CHECK_OK(ep_mod(ep, p[0], EPOLLIN, 1));
	CHECK_OK(ep_add(ep, q[0], EPOLLIN, 2));
	CHECK_EQ(write(q[1], "x", 1), 1);
	CHECK_EQ(epoll_wait(ep, ev, 1, 0), 1);
	CHECK_EQ(epoll_wait(ep, ev + 1, 1, 0), 1);
	CHECK(ev[0].data.u64 != ev[1].data.u64);
	CHECK_OK(close(q[1]));
	CHECK_OK(epoll_ctl(ep, EPOLL_CTL_DEL, p[0], NULL));
	CHECK_EQ(epoll_wait(ep, ev, 4, 0), 1);
	CHECK_EQ(ev[0].events, EPOLLIN | EPOLLHUP);
}

/* A watched descriptor is gone when its last duplicate is. */
static void closed(void)
{
	struct epoll_event ev[2];
	int ep = (int)CHECK_OK(epoll_create1(0)), p[2], d;

	CHECK_OK(pipe(p));
	d = (int)CHECK_OK(dup(p[0]));
	CHECK_OK(ep_add(ep, p[0], EPOLLIN, 1));
	CHECK_OK(ep_add(ep, d, EPOLLIN, 2)); /* another descriptor of it is another watch */
	CHECK_EQ(write(p[1], "x", 1), 1);
	CHECK_EQ(epoll_wait(ep, ev, 2, 0), 2);
	CHECK_OK(close(p[0]));
	CHECK_EQ(epoll_wait(ep, ev, 2, 0), 2); /* the description lives */
	CHECK_OK(close(d));
	CHECK_EQ(epoll_wait(ep, ev, 2, 0), 0);
}

static void nested(void)
{
	struct epoll_event ev;
	struct pollfd pf;
	int in = (int)CHECK_OK(epoll_create1(0)), out = (int)CHECK_OK(epoll_create1(0)), e;
	uint64_t v = 1;

	e = (int)CHECK_OK(eventfd(0, EFD_NONBLOCK));
	CHECK_OK(ep_add(in, e, EPOLLIN, 10));
	CHECK_OK(ep_add(out, in, EPOLLIN, 20));
	CHECK_EQ(epoll_wait(out, &ev, 1, 0), 0);
	CHECK_EQ(write(e, &v, 8), 8);
	pf = (struct pollfd){ .fd = out, .events = POLLIN };
	CHECK_EQ(poll(&pf, 1, 0), 1);
	CHECK_EQ(epoll_wait(out, &ev, 1, 1000), 1);
	CHECK_EQ(ev.data.u64, 20);
	CHECK_EQ(epoll_wait(in, &ev, 1, 0), 1);
	CHECK_EQ(ev.data.u64, 10);
	CHECK_EQ(read(e, &v, 8), 8);
	CHECK_EQ(epoll_wait(out, &ev, 1, 0), 0);
	if (fork() == 0) {
		nap(40);
		v = 1;
		_exit(write(e, &v, 8) != 8);
	}
	CHECK_EQ(epoll_wait(out, &ev, 1, 5000), 1);
	CHECK_OK(wait(NULL));
}

static int the_ep, the_pipe[2];

static void *waiter(void *arg)
{
	struct epoll_event ev;

	return (void *)(long)epoll_wait(the_ep, &ev, 1, 5000);
}

static void while_waiting(void)
{
	struct sigaction sa = { .sa_handler = on_signal };
	struct epoll_event ev;
	pthread_t th;
	void *ret;
	int64_t t0;

	the_ep = (int)CHECK_OK(epoll_create1(0));
	CHECK_OK(pipe(the_pipe));
	/* A descriptor that is added while another thread waits wakes it. */
	CHECK_EQ(pthread_create(&th, NULL, waiter, NULL), 0);
	nap(40);
	CHECK_EQ(write(the_pipe[1], "x", 1), 1);
	CHECK_OK(ep_add(the_ep, the_pipe[0], EPOLLIN, 1));
	CHECK_EQ(pthread_join(th, &ret), 0);
	CHECK_EQ((long)ret, 1);
	CHECK_OK(epoll_ctl(the_ep, EPOLL_CTL_DEL, the_pipe[0], NULL));
	t0 = now_ms();
	CHECK_EQ(epoll_wait(the_ep, &ev, 1, 60), 0);
	CHECK(now_ms() - t0 >= 59 && now_ms() - t0 < 15000);
	CHECK_OK(sigaction(SIGUSR1, &sa, NULL));
	if (fork() == 0) {
		nap(30);
		kill(getppid(), SIGUSR1);
		_exit(0);
	}
	CHECK_ERR(epoll_wait(the_ep, &ev, 1, 5000), EINTR);
	CHECK_OK(wait(NULL));
}

/* A waiter is woken by each source that has a queue. */
static void sources(void)
{
	struct itimerspec its = { .it_value.tv_nsec = 30000000 };
	struct epoll_event ev;
	int ep = (int)CHECK_OK(epoll_create1(0)), tf, sv[2];
	uint64_t v;

	tf = (int)CHECK_OK(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK));
	CHECK_ERR(read(tf, &v, 8), EAGAIN);
	CHECK_OK(timerfd_settime(tf, 0, &its, NULL));
	CHECK_OK(ep_add(ep, tf, EPOLLIN, 1));
	CHECK_EQ(epoll_wait(ep, &ev, 1, 5000), 1);
	CHECK_EQ(ev.data.u64, 1);
	CHECK_EQ(read(tf, &v, 8), 8);
	CHECK_EQ(v, 1);
	CHECK_EQ(epoll_wait(ep, &ev, 1, 0), 0);
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, sv));
	CHECK_OK(ep_add(ep, sv[0], EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, 2));
	CHECK_EQ(epoll_wait(ep, &ev, 1, 0), 1);
	CHECK_EQ(ev.events, EPOLLOUT);
	CHECK_EQ(epoll_wait(ep, &ev, 1, 0), 0);
	if (fork() == 0) {
		nap(30);
		_exit(write(sv[1], "x", 1) != 1);
	}
	CHECK_EQ(epoll_wait(ep, &ev, 1, 5000), 1);
	CHECK_EQ(ev.events, EPOLLIN | EPOLLOUT);
	CHECK_OK(wait(NULL));
	CHECK_OK(close(sv[1]));
	CHECK_EQ(epoll_wait(ep, &ev, 1, 5000), 1);
	CHECK_EQ(ev.events, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLHUP);
}

static const struct gt_case cases[] = {
	{ "polls", polls },
	{ "masks", masks },
	{ "selects", selects },
	{ "epoll_errors", epoll_errors },
	{ "levels_and_edges", levels_and_edges },
	{ "closed", closed },
	{ "nested", nested },
	{ "while_waiting", while_waiting },
	{ "sources", sources },
	{ NULL, NULL },
};

GT_MAIN(cases)
