/* SPDX-License-Identifier: Apache-2.0 */
/* Pipes, FIFOs, eventfd. */
#include "tests/guest/gt.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/uio.h>

static short events_of(int fd, short want)
{
	struct pollfd p = { .fd = fd, .events = want };

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
	char *edge = gt_edge_page(), buf[16];
	int p[2];

	CHECK_ERR(syscall(SYS_pipe, BAD_PTR), EFAULT);
	CHECK_ERR(syscall(SYS_pipe2, edge + 4092, 0), EFAULT);
	CHECK_ERR(pipe2(p, O_APPEND), EINVAL);
	CHECK_ERR(pipe2(p, -1), EINVAL);
	CHECK_OK(pipe2(p, O_CLOEXEC | O_NONBLOCK));
	CHECK_EQ(fcntl(p[0], F_GETFD), FD_CLOEXEC);
	CHECK_EQ(fcntl(p[0], F_GETFL), O_RDONLY | O_NONBLOCK);
	CHECK_EQ(fcntl(p[1], F_GETFL), O_WRONLY | O_NONBLOCK);
	CHECK_ERR(read(p[0], buf, 1), EAGAIN);
	CHECK_EQ(read(p[0], buf, 0), 0);
	CHECK_EQ(write(p[1], buf, 0), 0);
	CHECK_ERR(write(p[0], buf, 1), EBADF);
	CHECK_ERR(read(p[1], buf, 1), EBADF);
	CHECK_ERR(write(p[1], BAD_PTR, 10), EFAULT);
	CHECK_ERR(read(p[0], buf, 1), EAGAIN);
	CHECK_EQ(write(p[1], "abcdef", 6), 6);
	CHECK_ERR(read(p[0], BAD_PTR, 3), EFAULT);
	CHECK_EQ(read(p[0], edge + 4094, 2), 2);
	CHECK_EQ(read(p[0], buf, 10), 4);
	CHECK_ERR(lseek(p[0], 0, SEEK_CUR), ESPIPE);
	CHECK_ERR(pread(p[0], buf, 1, 0), ESPIPE);
	CHECK_ERR(ftruncate(p[1], 0), EINVAL);
	CHECK_ERR(fchdir(p[0]), ENOTDIR);
}

static void capacity(void)
{
	static char buf[70000];
	int p[2], n;

	CHECK_OK(pipe2(p, O_NONBLOCK));
	CHECK_EQ(fcntl(p[0], F_GETPIPE_SZ), 65536);
	CHECK_EQ(write(p[1], buf, sizeof(buf)), 65536);
	CHECK_ERR(write(p[1], buf, 1), EAGAIN);
	CHECK_OK(ioctl(p[0], FIONREAD, &n));
	CHECK_EQ(n, 65536);
	CHECK_EQ(events_of(p[1], POLLOUT), 0);
	CHECK_EQ(events_of(p[0], POLLIN), POLLIN);
	CHECK_ERR(fcntl(p[1], F_SETPIPE_SZ, 4096), EBUSY);
	CHECK_EQ(fcntl(p[1], F_SETPIPE_SZ, 100000), 131072);
	CHECK_EQ(fcntl(p[0], F_GETPIPE_SZ), 131072);
	CHECK_EQ(write(p[1], buf, sizeof(buf)), 65536);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(read(p[0], buf, 65536), 65536);
	CHECK_EQ(fcntl(p[1], F_SETPIPE_SZ, 1), 4096);
	CHECK_EQ(write(p[1], buf, 5000), 4096);
	/* Up to PIPE_BUF all or nothing. */
	CHECK_EQ(read(p[0], buf, 100), 100);
	CHECK_ERR(write(p[1], buf, 4096), EAGAIN);
	CHECK_EQ(read(p[0], buf, sizeof(buf)), 3996);
	CHECK_EQ(write(p[1], buf, 4096), 4096);
	CHECK_ERR(fcntl((int)CHECK_OK(open("/dev/null", O_RDWR)), F_GETPIPE_SZ), EBADF);
}

static volatile int sigpipes;

static void on_pipe(int sig)
{
	sigpipes++;
}

static void write_to_none(void)
{
	int p[2];

	if (pipe(p) || close(p[0]))
		_exit(1);
	_exit(write(p[1], "x", 1) != 1);
}

static void broken(void)
{
	char buf[8];
	int p[2], st;
	pid_t pid = (pid_t)CHECK_OK(fork());

	if (!pid)
		write_to_none();
	CHECK_EQ(waitpid(pid, &st, 0), pid);
	CHECK(WIFSIGNALED(st) && WTERMSIG(st) == SIGPIPE);
	signal(SIGPIPE, on_pipe);
	CHECK_OK(pipe(p));
	CHECK_EQ(write(p[1], "rest", 4), 4);
	CHECK_EQ(events_of(p[1], POLLOUT), POLLOUT);
	CHECK_OK(close(p[1]));
	CHECK_EQ(events_of(p[0], POLLIN), POLLIN | POLLHUP);
	CHECK_EQ(read(p[0], buf, 8), 4);
	CHECK_EQ(events_of(p[0], POLLIN), POLLHUP);
	CHECK_EQ(read(p[0], buf, 8), 0);
	CHECK_OK(close(p[0]));
	CHECK_OK(pipe(p));
	CHECK_OK(close(p[0]));
	CHECK_EQ(events_of(p[1], POLLOUT), POLLOUT | POLLERR);
	CHECK_ERR(write(p[1], "x", 1), EPIPE);
	CHECK_EQ(sigpipes, 1);
	CHECK_EQ(write(p[1], "", 0), 0);
	/* A writer that waits is told when the last reader goes. */
	CHECK_OK(close(p[1]));
	CHECK_OK(pipe(p));
	pid = (pid_t)CHECK_OK(fork());
	if (!pid) {
		static char big[200000];

		close(p[0]);
		st = (int)write(p[1], big, sizeof(big));
		if (st < 65536 || st >= (int)sizeof(big))
			_exit(1);
		_exit(!(write(p[1], big, 1) == -1 && errno == EPIPE && sigpipes == 3));
	}
	close(p[1]);
	nap(50);
	CHECK_EQ(read(p[0], buf, 8), 8);
	close(p[0]);
	CHECK_EQ(waitpid(pid, &st, 0), pid);
	CHECK_EQ(st, 0);
}

/* Several writers of PIPE_BUF and less do not mix. */
static void atomic_writes(void)
{
	char buf[4096];
	int p[2], st;
	size_t total = 0;

	CHECK_OK(pipe(p));
	for (int k = 0; k < 4; k++) {
		if (fork() == 0) {
			close(p[0]);
			memset(buf, 'a' + k, sizeof(buf));
			for (int i = 0; i < 30; i++) {
				if (write(p[1], buf, 1024) != 1024)
					_exit(1);
			}
			_exit(0);
		}
	}
	close(p[1]);
	for (;;) {
		size_t got = 0;
		ssize_t n;

		while (got < 1024 && (n = CHECK_OK(read(p[0], buf + got, 1024 - got))) > 0)
			got += (size_t)n;
		if (!got)
			break;
		CHECK_EQ(got, 1024);
		for (int i = 1; i < 1024; i++)
			CHECK_EQ(buf[i], buf[0]);
		total += got;
	}
	CHECK_EQ(total, 4 * 30 * 1024);
	for (int k = 0; k < 4; k++) {
		CHECK_OK(wait(&st));
		CHECK_EQ(st, 0);
	}
}

static void on_usr1(int sig)
{
}

static void interrupted(void)
{
	struct sigaction sa = { .sa_handler = on_usr1 };
	char buf[8];
	int p[2], st;

	CHECK_OK(pipe(p));
	for (int restart = 0; restart < 2; restart++) {
		pid_t pid;

		sa.sa_flags = restart ? SA_RESTART : 0;
		CHECK_OK(sigaction(SIGUSR1, &sa, NULL));
		pid = (pid_t)CHECK_OK(fork());
		if (!pid) {
			nap(40);
			kill(getppid(), SIGUSR1);
			nap(40);
			_exit(write(p[1], "x", 1) != 1);
		}
		if (!restart)
			CHECK_ERR(read(p[0], buf, 8), EINTR);
		CHECK_EQ(read(p[0], buf, 8), 1);
		CHECK_OK(waitpid(pid, &st, 0));
	}
}

static void fifos(void)
{
	char buf[16];
	int r, w, rw;

	CHECK_OK(mkfifo("p", 0600));
	CHECK_ERR(mkfifo("p", 0600), EEXIST);
	CHECK_ERR(open("p", O_WRONLY | O_NONBLOCK), ENXIO);
	r = (int)CHECK_OK(open("p", O_RDONLY | O_NONBLOCK));
	CHECK_EQ(read(r, buf, 1), 0); /* no writer yet: an end, not EAGAIN */
	CHECK_EQ(events_of(r, POLLIN), 0);
	w = (int)CHECK_OK(open("p", O_WRONLY | O_NONBLOCK));
	CHECK_ERR(read(r, buf, 1), EAGAIN);
	CHECK_EQ(write(w, "one", 3), 3);
	CHECK_OK(close(w));
	CHECK_EQ(events_of(r, POLLIN), POLLIN | POLLHUP);
	CHECK_EQ(read(r, buf, 16), 3);
	CHECK_EQ(read(r, buf, 16), 0);
	CHECK_EQ(events_of(r, POLLIN), POLLHUP);
	w = (int)CHECK_OK(open("p", O_WRONLY));
	CHECK_EQ(events_of(r, POLLIN), 0);
	CHECK_EQ(write(w, "kept", 4), 4);
	CHECK_OK(close(r));
	CHECK_OK(close(w));
	rw = (int)CHECK_OK(open("p", O_RDWR | O_NONBLOCK));
	CHECK_ERR(read(rw, buf, 1), EAGAIN); /* what was in it is gone with its last user */
	CHECK_EQ(write(rw, "self", 4), 4);
	CHECK_EQ(read(rw, buf, 16), 4);
	CHECK_ERR(open("p", O_RDONLY | O_DIRECTORY), ENOTDIR);
	CHECK_ERR(lseek(rw, 0, SEEK_SET), ESPIPE);
	CHECK_OK(close((int)CHECK_OK(open("p", O_RDWR | O_TRUNC))));
	CHECK_ERR(truncate("p", 0), EINVAL);
	CHECK_OK(unlink("p"));
	CHECK_EQ(write(rw, "x", 1), 1);
}

static void fifo_rendezvous(void)
{
	struct sigaction sa = { .sa_handler = on_usr1 };
	char buf[16];
	int fd, st;
	pid_t pid;

	CHECK_OK(mkfifo("p", 0600));
	pid = (pid_t)CHECK_OK(fork());
	if (!pid) {
		fd = open("p", O_RDONLY);
		_exit(!(read(fd, buf, 16) == 2 && read(fd, buf, 16) == 0));
	}
	nap(40);
	fd = (int)CHECK_OK(open("p", O_WRONLY));
	CHECK_EQ(write(fd, "hi", 2), 2);
	CHECK_OK(close(fd));
	CHECK_OK(waitpid(pid, &st, 0));
	CHECK_EQ(st, 0);
	CHECK_OK(sigaction(SIGALRM, &sa, NULL));
	ualarm(40000, 0);
	CHECK_ERR(open("p", O_WRONLY), EINTR);
	alarm(GT_TIMEOUT);
}

static void eventfds(void)
{
	uint64_t v;
	int fd;
	char buf[4];
	pid_t pid;

	CHECK_ERR(eventfd(0, 0x10), EINVAL);
	fd = (int)CHECK_OK(eventfd(3, EFD_NONBLOCK | EFD_CLOEXEC));
	CHECK_ERR(read(fd, buf, 4), EINVAL);
	CHECK_ERR(write(fd, buf, 4), EINVAL);
	CHECK_EQ(events_of(fd, POLLIN | POLLOUT), POLLIN | POLLOUT);
	CHECK_EQ(read(fd, &v, 8), 8);
	CHECK_EQ(v, 3);
	/* Never two numbers a call: the first one before Linux 6.9, none since. */
	if (write(fd, (uint64_t[]){ 5, 6 }, 16) == 8) {
		CHECK_EQ(read(fd, &v, 8), 8);
		CHECK_EQ(v, 5);
	}
	CHECK_ERR(read(fd, &v, 8), EAGAIN);
	CHECK_ERR(read(fd, &v, 8), EAGAIN);
	v = UINT64_MAX;
	CHECK_ERR(write(fd, &v, 8), EINVAL);
	v = UINT64_MAX - 1;
	CHECK_EQ(write(fd, &v, 8), 8);
	CHECK_EQ(events_of(fd, POLLIN | POLLOUT), POLLIN);
	v = 1;
	CHECK_ERR(write(fd, &v, 8), EAGAIN);
	v = 0;
	CHECK_EQ(write(fd, &v, 8), 8);
	CHECK_EQ(read(fd, &v, 8), 8);
	fd = (int)CHECK_OK(eventfd(2, EFD_SEMAPHORE));
	CHECK_EQ(read(fd, &v, 8), 8);
	CHECK_EQ(v, 1);
	CHECK_EQ(read(fd, &v, 8), 8);
	pid = (pid_t)CHECK_OK(fork());
	if (!pid) {
		nap(30);
		v = 1;
		_exit(write(fd, &v, 8) != 8);
	}
	CHECK_EQ(read(fd, &v, 8), 8);
	CHECK_OK(waitpid(pid, NULL, 0));
}

static const struct gt_case cases[] = {
	{ "hostile", hostile },
	{ "capacity", capacity },
	{ "broken", broken },
	{ "atomic_writes", atomic_writes },
	{ "interrupted", interrupted },
	{ "fifos", fifos },
	{ "fifo_rendezvous", fifo_rendezvous },
	{ "eventfds", eventfds },
	{ NULL, NULL },
};

GT_MAIN(cases)
