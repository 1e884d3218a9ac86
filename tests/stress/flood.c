/* SPDX-License-Identifier: Apache-2.0 */
/* Uses up one resource of its sandbox: `flood WHAT` prints how much there was and the errno that ended it. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 200000

static int report(long n, int err)
{
	printf("%ld %s\n", n, err ? strerrorname_np(err) : "no limit");
	fflush(stdout);
	return 0;
}

static int many_forks(void)
{
	long n = 0;
	pid_t pid;

	while ((pid = fork()) > 0)
		n++;
	if (pid == 0) {
		pause();
		_exit(0);
	}
	report(n, errno);
	signal(SIGTERM, SIG_IGN);
	kill(0, SIGTERM);
	while (wait(NULL) > 0)
		;
	pid = fork(); /* the table is free again */
	if (pid == 0)
		_exit(0);
	return pid < 0;
}

static __attribute__((noreturn)) int bomb(void)
{
	for (;;)
		(void)fork();
}

static void *sleeper(void *arg)
{
	pause();
	return NULL;
}

static int threads(void)
{
	pthread_attr_t a;
	pthread_t t;
	long n = 0;
	int r;

	pthread_attr_init(&a);
	pthread_attr_setstacksize(&a, 64 * 1024);
	while (!(r = pthread_create(&t, &a, sleeper, NULL)))
		n++;
	return report(n, r);
}

static int max_fds(void)
{
	struct rlimit rl;

	getrlimit(RLIMIT_NOFILE, &rl);
	rl.rlim_cur = rl.rlim_max;
	return setrlimit(RLIMIT_NOFILE, &rl);
}

static int fds_of(int (*make)(void))
{
	long n = 0;

	max_fds();
	while (n < ROUNDS && make() >= 0)
		n++;
	return report(n, n < ROUNDS ? errno : 0);
}

static const char *place = ".", *file_to_open = "/usr/bin/env";

static int make_file(void)
{
	return open(file_to_open, O_RDONLY);
}

static int make_epoll(void)
{
	static int last = -1;
	struct epoll_event ev = { .events = EPOLLIN };
	int fd = epoll_create1(0);

	if (fd >= 0 && last >= 0)
		(void)epoll_ctl(fd, EPOLL_CTL_ADD, last, &ev);
	last = fd;
	return fd;
}

static int make_pipe(void)
{
	static char junk[65536];
	int p[2];

	if (pipe2(p, O_NONBLOCK) < 0)
		return -1;
	(void)!write(p[1], junk, sizeof(junk));
	return p[0];
}

static int make_socket(void)
{
	static char junk[65536];
	int p[2];

	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, p) < 0)
		return -1;
	while (write(p[1], junk, sizeof(junk)) > 0)
		;
	return p[0];
}

static int make_eventfd(void)
{
	return eventfd(0, 0);
}

static int make_timerfd(void)
{
	struct itimerspec its = { .it_value.tv_sec = 1000 };
	int fd = timerfd_create(CLOCK_MONOTONIC, 0);

	timerfd_settime(fd, 0, &its, NULL);
	return fd;
}

static int make_memfd(void)
{
	int fd = memfd_create("x", 0);

	if (fd >= 0 && ftruncate(fd, 1 << 16) == 0)
		(void)!mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return fd;
}

/* Descriptors in flight: each message carries the fd of the last socket. */
static int make_inflight(void)
{
	static int last = 0;
	char buf[CMSG_SPACE(sizeof(int))] = "", c = 0;
	struct iovec iov = { &c, 1 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = buf, .msg_controllen = sizeof(buf) };
	struct cmsghdr *cm = CMSG_FIRSTHDR(&m);
	int p[2];

	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, p) < 0)
		return -1;
	*cm = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS };
	memcpy(CMSG_DATA(cm), &last, sizeof(int));
	if (sendmsg(p[0], &m, 0) < 0)
		return -1;
	if (last)
		close(last);
	close(p[0]);
	last = p[1];
	return 0;
}

/* Each a file of its own, that the host holds open for us; afterwards others can be opened, and processes made. */
static int distinct(void)
{
	char name[4200];
	long n = 0;
	int fds[2000], fd, err;

	for (; n < 2000; n++) {
		snprintf(name, sizeof(name), "%s/%ld", place, n);
		fds[n] = open(name, O_RDONLY);
		if (fds[n] < 0)
			break;
	}
	err = errno;
	report(n, err);
	if (fork() == 0)
		_exit(0);
	for (long i = 0; i < n; i++)
		close(fds[i]);
	snprintf(name, sizeof(name), "%s/%ld", place, n);
	fd = open(name, O_RDONLY);
	return fd < 0 || err != ENFILE || fork() < 0;
}

static int posix_timers(void)
{
	struct sigevent ev = { .sigev_notify = SIGEV_NONE };
	long n = 0;
	timer_t t;

	while (n < ROUNDS && !timer_create(CLOCK_MONOTONIC, &ev, &t))
		n++;
	return report(n, n < ROUNDS ? errno : 0);
}

static int signals(void)
{
	union sigval v = { 0 };
	sigset_t set;
	long n = 0;

	sigfillset(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	while (n < ROUNDS && !sigqueue(getpid(), SIGRTMIN, v))
		n++;
	return report(n, n < ROUNDS ? errno : 0);
}

static int watches(void)
{
	int fd = inotify_init1(0);
	char name[32];
	long n = 0;

	for (; n < 20000; n++) {
		snprintf(name, sizeof(name), "d%ld", n);
		if ((mkdir(name, 0755) < 0 && errno != EEXIST) || inotify_add_watch(fd, name, IN_ALL_EVENTS) < 0)
			break;
	}
	return report(n, n < 20000 ? errno : 0);
}

static int locks(void)
{
	int fd = open("locked", O_CREAT | O_RDWR, 0644);
	long n = 0;

	for (; n < 50000; n++) {
		struct flock l = { .l_type = F_WRLCK, .l_start = n * 2, .l_len = 1 };

		if (fcntl(fd, F_SETLK, &l) < 0)
			break;
	}
	return report(n, n < 50000 ? errno : 0);
}

static int maps(void)
{
	long n = 0;

	for (; n < ROUNDS; n++) {
		if (mmap(NULL, 4096, n & 1 ? PROT_READ : PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
			break;
	}
	return report(n, n < ROUNDS ? errno : 0);
}

static int memory(void)
{
	for (long n = 0;; n++) {
		char *p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED)
			return report(n, errno);
		memset(p, 1, 1 << 20);
	}
}

static int shared_memory(void)
{
	for (long n = 0;; n++) {
		char *p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED)
			return report(n, errno);
		memset(p, 1, 1 << 20);
	}
}

/* Each child takes a little. */
static int memory_of_many(void)
{
	for (long n = 0; n < 64; n++) {
		char *p;

		if (fork())
			continue;
		p = mmap(NULL, 16 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p != MAP_FAILED)
			memset(p, 1, 16 << 20);
		pause();
	}
	pause();
	return 1;
}

/* As much as pipes hold: report() and then failure, to see what the result says. */
static int pipe_memory(void)
{
	static char buf[65536];
	long n = 0;
	int p[2];

	while (pipe2(p, O_NONBLOCK) == 0) {
		(void)fcntl(p[1], F_SETPIPE_SZ, 1 << 20);
		while (write(p[1], buf, sizeof(buf)) > 0)
			n++;
	}
	report(n >> 4, errno);
	return 1;
}

static int fill_fd(int fd)
{
	static char buf[1 << 20];
	long n = 0;
	ssize_t r;

	memset(buf, 7, sizeof(buf));
	while ((r = write(fd, buf, sizeof(buf))) > 0)
		n += r;
	return report(n >> 20, r < 0 ? errno : 0);
}

static int fill_memfd(void)
{
	return fill_fd(memfd_create("x", 0));
}

static int fill_file(void)
{
	char name[4096];

	snprintf(name, sizeof(name), "%s/filling", place);
	return fill_fd(open(name, O_CREAT | O_WRONLY, 0644));
}

static int inodes(void)
{
	char name[4200];
	long n = 0;
	int fd;

	for (; n < ROUNDS; n++) {
		snprintf(name, sizeof(name), "%s/i%ld", place, n);
		fd = open(name, O_CREAT | O_WRONLY, 0644);
		if (fd < 0)
			break;
		close(fd);
	}
	return report(n, n < ROUNDS ? errno : 0);
}

static int deep(void)
{
	long n = 0;

	if (chdir(place) < 0)
		return 1;
	while (n < 5000 && !mkdir("d", 0755) && !chdir("d"))
		n++;
	report(n, n < 5000 ? errno : 0);
	while (n-- > 0) {
		if (chdir("..") < 0 || rmdir("d") < 0)
			return 1;
	}
	return 0;
}

static int names(void)
{
	char name[5000];

	memset(name, 'n', sizeof(name));
	name[255] = '\0';
	if (open(name, O_CREAT | O_WRONLY, 0644) < 0)
		return 1;
	name[255] = 'n';
	name[256] = '\0';
	if (open(name, O_CREAT | O_WRONLY, 0644) >= 0 || errno != ENAMETOOLONG)
		return 2;
	name[256] = 'n';
	name[4999] = '\0';
	if (open(name, O_CREAT | O_WRONLY, 0644) >= 0 || errno != ENAMETOOLONG)
		return 3;
	memset(name, '/', sizeof(name));
	name[4999] = '\0';
	if (access(name, F_OK) == 0 || errno != ENAMETOOLONG)
		return 4;
	return report(0, 0);
}

static int huge_argv(void)
{
	size_t n = 200000;
	char **argv = malloc((n + 1) * sizeof(char *)), *one = malloc(200 * 1024);

	for (size_t i = 0; i < n; i++)
		argv[i] = (char *)"twenty bytes of text";
	argv[n] = NULL;
	execv("/bin/true", argv);
	if (errno != E2BIG)
		return 1;
	memset(one, 'x', 200 * 1024);
	one[200 * 1024 - 1] = '\0';
	argv[0] = one;
	argv[1] = NULL;
	execv("/bin/true", argv);
	if (errno != E2BIG)
		return 2;
	argv[0] = (char *)"true";
	argv[1] = NULL;
	execv("/bin/true", argv);
	return 3;
}

static __attribute__((noreturn)) int output(void)
{
	static char buf[65536];

	memset(buf, 'o', sizeof(buf));
	for (;;)
		(void)!write(1, buf, sizeof(buf));
}

/* A known amount: 4 MiB. */
static int output4(void)
{
	static char buf[65536];
	int sum = 0;

	memset(buf, 'o', sizeof(buf));
	for (int i = 0; i < 64; i++)
		sum += write(1, buf, sizeof(buf)) == sizeof(buf);
	return sum == 64 ? 0 : 1;
}

static int futexes(void)
{
	static int words[4096];
	long n = 0;

	for (; n < 20000; n++)
		(void)syscall(SYS_futex, &words[n % 4096], 1 /* WAKE */, 1, NULL, NULL, 0);
	return report(n, 0);
}

#define MAKER(name) \
	static int fds_##name(void) \
	{ \
		return fds_of(make_##name); \
	}
MAKER(file)
MAKER(epoll)
MAKER(pipe)
MAKER(socket)
MAKER(eventfd)
MAKER(timerfd)
MAKER(memfd)
MAKER(inflight)

static const struct {
	const char *name;
	int (*fn)(void);
} what[] = {
	{ "forks", many_forks },
	{ "bomb", bomb },
	{ "threads", threads },
	{ "file", fds_file },
	{ "epoll", fds_epoll },
	{ "pipe", fds_pipe },
	{ "socket", fds_socket },
	{ "eventfd", fds_eventfd },
	{ "timerfd", fds_timerfd },
	{ "memfd", fds_memfd },
	{ "inflight", fds_inflight },
	{ "timers", posix_timers },
	{ "signals", signals },
	{ "watches", watches },
	{ "locks", locks },
	{ "maps", maps },
	{ "memory", memory },
	{ "shared-memory", shared_memory },
	{ "memory-of-many", memory_of_many },
	{ "pipe-memory", pipe_memory },
	{ "fill-memfd", fill_memfd },
	{ "fill", fill_file },
	{ "inodes", inodes },
	{ "deep", deep },
	{ "names", names },
	{ "argv", huge_argv },
	{ "output", output },
	{ "output4", output4 },
	{ "distinct", distinct },
	{ "futexes", futexes },
};

int main(int argc, char **argv)
{
	if (argc > 2)
		place = file_to_open = argv[2];
	for (unsigned i = 0; argc > 1 && i < sizeof(what) / sizeof(what[0]); i++) {
		if (!strcmp(argv[1], what[i].name))
			return what[i].fn();
	}
	return 99;
}
