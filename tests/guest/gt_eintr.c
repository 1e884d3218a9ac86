/* SPDX-License-Identifier: Apache-2.0 */
/* What a handler does to a call that waits, with SA_RESTART and without. */
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "gt_child.h"

static volatile sig_atomic_t hits;
static volatile sig_atomic_t order[64];

static void count(int sig)
{
	if (hits < 64)
		order[hits] = sig;
	hits++;
}

/* Blocking calls: what each does when a handler runs in it, with and without SA_RESTART. */
static int pipe_fds[2], sock_fds[2];

static long block_read(void)
{
	char c;

	return read(pipe_fds[0], &c, 1);
}

static long block_write(void)
{
	static char big[65536];

	/* Full first: a call that has written a part gives its count. */
	fcntl(pipe_fds[1], F_SETFL, O_NONBLOCK);
	while (write(pipe_fds[1], big, sizeof(big)) > 0)
		;
	fcntl(pipe_fds[1], F_SETFL, 0);
	return write(pipe_fds[1], big, 1);
}

static long block_recv(void)
{
	char c;

	return recv(sock_fds[0], &c, 1, 0);
}

static long block_recv_timeout(void)
{
	char c;

	setsockopt(sock_fds[0], SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){ 5, 0 }, sizeof(struct timeval));
	return recv(sock_fds[0], &c, 1, 0);
}

static long block_wait(void)
{
	return waitpid(-1, NULL, 0) > 0 ? 1 : -1;
}

static long block_poll(void)
{
	return poll(&(struct pollfd){ .fd = pipe_fds[0], .events = POLLIN }, 1, 3000);
}

static long block_select(void)
{
	fd_set f;

	FD_ZERO(&f);
	FD_SET(pipe_fds[0], &f);
	return select(pipe_fds[0] + 1, &f, NULL, NULL, &(struct timeval){ 3, 0 });
}

static long block_epoll(void)
{
	struct epoll_event ev = { .events = EPOLLIN };
	int ep = epoll_create1(0);

	epoll_ctl(ep, EPOLL_CTL_ADD, pipe_fds[0], &ev);
	return epoll_wait(ep, &ev, 1, 3000);
}

static long block_nanosleep(void)
{
	return nanosleep(&(struct timespec){ 0, 300 * MS }, NULL) == 0 ? 1 : -1;
}

static long block_pause(void)
{
	return pause();
}

static long block_sigtimedwait(void)
{
	return sigtimedwait(SET(SIGUSR2), NULL, &(struct timespec){ 2, 0 });
}

static long block_sigsuspend(void)
{
	return sigsuspend(SET(0));
}

static long block_futex(void)
{
	int w = 0;

	return syscall(SYS_futex, &w, 0, 0, &(struct timespec){ 2, 0 }, NULL, 0);
}

static long block_futex_forever(void)
{
	static int *w;

	if (!w)
		w = gt_shared(4096);
	if (fork() == 0) {
		gt_sleep_ms(300);
		*w = 1;
		syscall(SYS_futex, w, 1, 1, NULL, NULL, 0);
		_exit(0);
	}
	if (syscall(SYS_futex, w, 0, 0, NULL, NULL, 0) == 0 || errno == EAGAIN)
		return 1;
	return -1;
}

static long block_flock(void)
{
	int fd = open("lock", O_RDWR | O_CREAT, 0600);

	return fcntl(fd, F_SETLKW, (&(struct flock){ .l_type = F_WRLCK })) == 0 ? 1 : -1;
}

static long block_eventfd(void)
{
	uint64_t v;

	return read(eventfd(0, 0), &v, 8);
}

static long block_connectless_accept(void)
{
	int s = socket(AF_UNIX, SOCK_STREAM, 0);

	if (bind(s, (struct sockaddr *)&(struct {
			 sa_family_t f;
			 char n[10];
		 }){ AF_UNIX, "\0gt-acc" },
	         9) ||
	    listen(s, 1))
		return 99;
	return accept(s, NULL, NULL);
}

static const struct {
	const char *name;
	long (*fn)(void);
	bool restarts; /* with SA_RESTART; then something ends it later */
} blockers[] = {
	{ "read", block_read, true },
	{ "write", block_write, true },
	{ "recv", block_recv, true },
	{ "recv_timeout", block_recv_timeout, false },
	{ "wait", block_wait, true },
	{ "poll", block_poll, false },
	{ "select", block_select, false },
	{ "epoll", block_epoll, false },
	{ "nanosleep", block_nanosleep, false },
	{ "pause", block_pause, false },
	{ "sigtimedwait", block_sigtimedwait, false },
	{ "sigsuspend", block_sigsuspend, false },
	{ "futex", block_futex, false },
	{ "futex_forever", block_futex_forever, true },
	{ "setlkw", block_flock, true },
	{ "eventfd", block_eventfd, true },
	{ "accept", block_connectless_accept, true },
};

static void block_once(size_t i, int sa_flags)
{
	bool restarts = blockers[i].restarts && (sa_flags & SA_RESTART);
	pid_t self = getpid(), helper, lock_holder = 0;
	int ready[2];
	long r;

	CHECK_OK(pipe(pipe_fds));
	CHECK_OK(pipe(ready));
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, sock_fds));
	if (blockers[i].fn == block_flock) {
		lock_holder = CHILD({
			int fd = open("lock", O_RDWR | O_CREAT, 0600);
			CHECK_OK(fcntl(fd, F_SETLK, (&(struct flock){ .l_type = F_WRLCK })));
			CHECK_EQ(write(ready[1], "x", 1), 1);
			gt_sleep_ms(400);
		});
		CHECK_EQ(read(ready[0], &r, 1), 1);
	}
	gt_handle(SIGUSR1, count, sa_flags);
	helper = CHILD({
		gt_sleep_ms(80);
		kill(self, SIGUSR1);
		gt_sleep_ms(80);
		if (!restarts)
			_exit(0);
		if (blockers[i].fn == block_write) {
			char buf[65536];
			CHECK(read(pipe_fds[0], buf, sizeof(buf)) > 0);
		} else if (write(pipe_fds[1], "x", 1) != 1 || write(sock_fds[1], "x", 1) != 1) {
			_exit(1);
		}
		/* A call that nothing of this ends: a second handler, which does not restart. */
		if (blockers[i].fn == block_eventfd || blockers[i].fn == block_connectless_accept)
			kill(self, SIGALRM);
	});
	gt_handle(SIGALRM, count, 0);
	errno = 0;
	r = blockers[i].fn();
	if (blockers[i].fn == block_eventfd || blockers[i].fn == block_connectless_accept) {
		CHECK_EQ(r, -1);
		CHECK_EQ(errno, EINTR);
		CHECK_EQ(hits, restarts ? 2 : 1);
	} else if (restarts) {
		CHECK_EQ(r, 1);
		CHECK_EQ(hits, 1);
	} else {
		CHECK_EQ(r, -1);
		CHECK_EQ(errno, EINTR);
		CHECK_EQ(hits, 1);
	}
	kill(helper, SIGKILL);
	if (lock_holder)
		kill(lock_holder, SIGKILL);
}

static void interrupt_each(int sa_flags)
{
	pid_t pids[32];
	size_t n = sizeof(blockers) / sizeof(*blockers);
	int bad = 0;

	for (size_t i = 0; i < n; i++) {
		char dir[20];

		sprintf(dir, "d%zu", i);
		mkdir(dir, 0755);
		pids[i] = CHILD({
			CHECK_OK(chdir(dir));
			alarm(8);
			block_once(i, sa_flags);
		});
		/* The abstract name is one. */
		if (i % 4 == 3)
			gt_sleep_ms(100);
	}
	for (size_t i = 0; i < n; i++) {
		int st = gt_status(pids[i]);

		if (st) {
			printf("# %s: status %#x\n", blockers[i].name, st);
			bad++;
		}
	}
	CHECK_EQ(bad, 0);
}

static void eintr(void)
{
	interrupt_each(0);
}

static void restart(void)
{
	interrupt_each(SA_RESTART);
}

static const struct gt_case cases[] = {
	{ "eintr", eintr },
	{ "restart", restart },
	{ NULL, NULL },
};
GT_MAIN(cases)
