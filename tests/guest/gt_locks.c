/* SPDX-License-Identifier: Apache-2.0 */
/* flock(2), POSIX record locks, open file description locks: conflicts, waiting, release, deadlock. */
#include "tests/guest/gt_dirs.h"

#include <sys/file.h>

static int fd;

static void open_file(void)
{
	fd = (int)CHECK_OK(open("f", O_CREAT | O_RDWR, 0644));
}

static int lock_on(int d, int cmd, int type, off_t start, off_t len)
{
	struct flock fl = { .l_type = (short)type, .l_whence = SEEK_SET, .l_start = start, .l_len = len };

	return fcntl(d, cmd, &fl);
}

static void nap(int ms)
{
	struct timespec ts = { 0, ms * 1000000l };

	nanosleep(&ts, NULL);
}

/* A child that does fn and then waits for its end, with the lock held; fn has run when this returns. */
static pid_t holder(void (*fn)(void), int *go)
{
	int up[2], down[2];
	char c;
	pid_t pid;

	CHECK_OK(pipe(up));
	CHECK_OK(pipe(down));
	pid = (pid_t)CHECK_OK(fork());
	if (!pid) {
		close(down[1]);
		fn();
		if (write(up[1], "r", 1) != 1 || read(down[0], &c, 1) < 0)
			_exit(1);
		_exit(0);
	}
	close(up[1]);
	CHECK_EQ(read(up[0], &c, 1), 1);
	close(down[0]);
	*go = down[1];
	return pid;
}

static void reap(pid_t pid)
{
	int st;

	CHECK_EQ(waitpid(pid, &st, 0), pid);
	CHECK_EQ(st, 0);
}

static void hostile(void)
{
	struct flock fl = { .l_type = F_WRLCK };
	int ro, wo, p[2];

	open_file();
	ro = (int)CHECK_OK(open("f", O_RDONLY));
	wo = (int)CHECK_OK(open("f", O_WRONLY));
	CHECK_ERR(fcntl(-1, F_SETLK, &fl), EBADF);
	CHECK_ERR(fcntl(fd, F_SETLK, BAD_PTR), EFAULT);
	CHECK_ERR(fcntl(fd, F_GETLK, BAD_PTR), EFAULT);
	CHECK_ERR(lock_on(fd, F_SETLK, 77, 0, 0), EINVAL);
	CHECK_ERR(lock_on(fd, F_SETLK, F_WRLCK, -1, 0), EINVAL);
	CHECK_ERR(lock_on(fd, F_SETLK, F_WRLCK, 5, -6), EINVAL);
	CHECK_ERR(lock_on(fd, F_SETLK, F_WRLCK, INT64_MIN, -1), EINVAL);
	CHECK_ERR(fcntl(fd, F_SETOWN_EX, (int[]){ F_OWNER_PGRP, INT32_MIN }), ESRCH);
	CHECK_ERR(lock_on(fd, F_SETLK, F_WRLCK, INT64_MAX, INT64_MAX), EOVERFLOW);
	fl.l_whence = 9;
	CHECK_ERR(fcntl(fd, F_SETLK, &fl), EINVAL);
	CHECK_ERR(lock_on(fd, F_GETLK, F_UNLCK, 0, 0), EINVAL);
	CHECK_ERR(lock_on(ro, F_SETLK, F_WRLCK, 0, 0), EBADF);
	CHECK_ERR(lock_on(wo, F_SETLK, F_RDLCK, 0, 0), EBADF);
	CHECK_OK(lock_on(ro, F_GETLK, F_WRLCK, 0, 0));
	fl = (struct flock){ .l_type = F_WRLCK, .l_pid = 5 };
	CHECK_ERR(fcntl(fd, F_OFD_SETLK, &fl), EINVAL);
	CHECK_ERR(flock(-1, LOCK_SH), EBADF);
	CHECK_ERR(flock(fd, 0), EINVAL);
	CHECK_ERR(flock(fd, LOCK_SH | LOCK_EX), EINVAL);
	CHECK_ERR(flock(fd, 64), EINVAL);
	CHECK_ERR(flock((int)CHECK_OK(open("f", O_PATH)), LOCK_SH), EBADF);
	CHECK_OK(flock(ro, LOCK_EX));
	CHECK_OK(flock(ro, LOCK_UN));
	CHECK_OK(flock(ro, LOCK_UN | LOCK_NB));
	CHECK_OK(pipe(p));
	CHECK_OK(flock(p[0], LOCK_EX));
	CHECK_OK(flock((int)CHECK_OK(open(".", O_RDONLY)), LOCK_EX | LOCK_NB));
}

static void lock_10_20(void)
{
	CHECK_OK(lock_on(fd, F_SETLK, F_WRLCK, 10, 10));
}

static void posix_conflicts(void)
{
	struct flock fl;
	int go;
	pid_t pid;

	open_file();
	pid = holder(lock_10_20, &go);
	CHECK_ERR(lock_on(fd, F_SETLK, F_RDLCK, 0, 0), EAGAIN);
	CHECK_ERR(lock_on(fd, F_SETLK, F_WRLCK, 19, 1), EAGAIN);
	CHECK_ERR(lock_on(fd, F_SETLK, F_WRLCK, 25, -10), EAGAIN);
	CHECK_OK(lock_on(fd, F_SETLK, F_WRLCK, 0, 10));
	CHECK_OK(lock_on(fd, F_SETLK, F_WRLCK, 20, 0));
	fl = (struct flock){ .l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 0 };
	CHECK_OK(fcntl(fd, F_GETLK, &fl));
	CHECK_EQ(fl.l_type, F_WRLCK);
	CHECK_EQ(fl.l_start, 10);
	CHECK_EQ(fl.l_len, 10);
	CHECK_EQ(fl.l_pid, pid);
	fl = (struct flock){ .l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 10 };
	CHECK_OK(fcntl(fd, F_GETLK, &fl));
	CHECK_EQ(fl.l_type, F_UNLCK);
	close(go);
	reap(pid);
	CHECK_OK(lock_on(fd, F_SETLK, F_WRLCK, 0, 0)); /* gone with its process */
}

static void hole_in_lock(void)
{
	CHECK_OK(lock_on(fd, F_SETLK, F_WRLCK, 0, 100));
	CHECK_OK(lock_on(fd, F_SETLK, F_UNLCK, 40, 20));
	CHECK_OK(lock_on(fd, F_SETLK, F_RDLCK, 80, 40));
}

static void splitting(void)
{
	struct flock fl = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 45, .l_len = 0 };
	int go;
	pid_t pid;

	open_file();
	pid = holder(hole_in_lock, &go);
	CHECK_OK(lock_on(fd, F_SETLK, F_WRLCK, 40, 20));
	CHECK_ERR(lock_on(fd, F_SETLK, F_WRLCK, 39, 1), EAGAIN);
	CHECK_ERR(lock_on(fd, F_SETLK, F_RDLCK, 60, 1), EAGAIN);
	CHECK_OK(lock_on(fd, F_SETLK, F_RDLCK, 80, 10));
	CHECK_ERR(lock_on(fd, F_SETLK, F_WRLCK, 80, 10), EAGAIN);
	CHECK_OK(lock_on(fd, F_SETLK, F_WRLCK, 120, 1));
	CHECK_OK(fcntl(fd, F_GETLK, &fl));
	CHECK_EQ(fl.l_type, F_WRLCK);
	CHECK_EQ(fl.l_start, 60);
	CHECK_EQ(fl.l_len, 20);
	close(go);
	reap(pid);
}

/* Any close of the file by the process drops its POSIX locks, not those of descriptions. */
static void close_releases(void)
{
	struct flock fl = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	int other, st;

	open_file();
	CHECK_OK(lock_on(fd, F_SETLK, F_WRLCK, 0, 0));
	close((int)CHECK_OK(open("f", O_RDONLY)));
	if (fork() == 0)
		_exit(lock_on(fd, F_SETLK, F_WRLCK, 0, 0) != 0);
	CHECK_OK(wait(&st));
	CHECK_EQ(st, 0);
	CHECK_OK(fcntl(fd, F_OFD_SETLK, &fl));
	close((int)CHECK_OK(open("f", O_RDONLY)));
	other = (int)CHECK_OK(open("f", O_RDWR));
	CHECK_ERR(fcntl(other, F_OFD_SETLK, &fl), EAGAIN);
	CHECK_ERR(fcntl(other, F_SETLK, &fl), EAGAIN); /* the kinds exclude each other */
	CHECK_OK(fcntl(other, F_OFD_GETLK, &fl));
	CHECK_EQ(fl.l_type, F_WRLCK);
	CHECK_EQ(fl.l_pid, -1);
	st = (int)CHECK_OK(dup(fd));
	close(fd);
	fl = (struct flock){ .l_type = F_WRLCK, .l_whence = SEEK_SET };
	CHECK_ERR(fcntl(other, F_OFD_SETLK, &fl), EAGAIN); /* the duplicate keeps it */
	close(st);
	CHECK_OK(fcntl(other, F_OFD_SETLK, &fl));
}

static void lock_all(void)
{
	CHECK_OK(lock_on(fd, F_SETLK, F_WRLCK, 0, 0));
}

static void on_alarm(int sig)
{
}

static void waiting(void)
{
	struct sigaction sa = { .sa_handler = on_alarm };
	struct timespec a, b;
	int go;
	pid_t pid, w;

	open_file();
	pid = holder(lock_all, &go);
	w = (pid_t)CHECK_OK(fork());
	if (!w) {
		close(go);
		clock_gettime(CLOCK_MONOTONIC, &a);
		if (lock_on(fd, F_SETLKW, F_WRLCK, 5, 1))
			_exit(1);
		clock_gettime(CLOCK_MONOTONIC, &b);
		_exit((b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000 < 20);
	}
	nap(60);
	CHECK_OK(sigaction(SIGUSR1, &sa, NULL));
	if (fork() == 0) {
		close(go);
		nap(40);
		kill(getppid(), SIGUSR1);
		_exit(0);
	}
	CHECK_ERR(lock_on(fd, F_SETLKW, F_WRLCK, 5, 1), EINTR);
	close(go);
	reap(pid);
	reap(w);
	wait(NULL);
}

/* Two processes, each waiting for what the other holds: the second to ask is told. */
static void deadlock(void)
{
	int ready[2], st;
	char c;
	pid_t pid;

	open_file();
	CHECK_OK(pipe(ready));
	CHECK_OK(lock_on(fd, F_SETLK, F_WRLCK, 0, 1));
	pid = (pid_t)CHECK_OK(fork());
	if (!pid) {
		if (lock_on(fd, F_SETLK, F_WRLCK, 1, 1) || write(ready[1], "x", 1) != 1)
			_exit(1);
		_exit(lock_on(fd, F_SETLKW, F_WRLCK, 0, 1) != 0);
	}
	CHECK_EQ(read(ready[0], &c, 1), 1);
	nap(60);
	CHECK_ERR(lock_on(fd, F_SETLKW, F_WRLCK, 1, 1), EDEADLK);
	CHECK_OK(lock_on(fd, F_SETLK, F_UNLCK, 0, 1));
	CHECK_EQ(waitpid(pid, &st, 0), pid);
	CHECK_EQ(st, 0);
	CHECK_OK(lock_on(fd, F_SETLKW, F_WRLCK, 0, 2));
}

static void take_flock(void)
{
	int d = (int)CHECK_OK(open("f", O_RDONLY));

	CHECK_OK(flock(d, LOCK_EX));
}

static void flocks(void)
{
	int a, b, d, go, st;
	pid_t pid;

	open_file();
	a = (int)CHECK_OK(open("f", O_RDWR));
	b = (int)CHECK_OK(open("f", O_RDWR));
	CHECK_OK(flock(a, LOCK_SH));
	CHECK_OK(flock(b, LOCK_SH));
	CHECK_ERR(flock(b, LOCK_EX | LOCK_NB), EWOULDBLOCK);
	CHECK_OK(flock(a, LOCK_UN));
	CHECK_OK(flock(b, LOCK_EX | LOCK_NB));
	CHECK_ERR(flock(a, LOCK_SH | LOCK_NB), EWOULDBLOCK);
	CHECK_OK(lock_on(a, F_SETLK, F_WRLCK, 0, 0)); /* flock and fcntl do not see each other */
	d = (int)CHECK_OK(dup(b));
	close(b);
	CHECK_ERR(flock(a, LOCK_SH | LOCK_NB), EWOULDBLOCK);
	if (fork() == 0)
		_exit(flock(d, LOCK_UN) != 0); /* the child has the same description */
	CHECK_OK(wait(&st));
	CHECK_EQ(st, 0);
	CHECK_OK(flock(a, LOCK_EX | LOCK_NB));
	CHECK_OK(flock(d, LOCK_UN));
	CHECK_OK(flock(a, LOCK_UN));
	pid = holder(take_flock, &go);
	CHECK_ERR(flock(a, LOCK_EX | LOCK_NB), EWOULDBLOCK);
	if (fork() == 0) {
		close(go);
		_exit(flock(a, LOCK_EX) != 0);
	}
	nap(50);
	close(go);
	reap(pid);
	CHECK_OK(wait(&st));
	CHECK_EQ(st, 0);
	CHECK_ERR(flock(d, LOCK_SH | LOCK_NB), EWOULDBLOCK); /* a's, taken by the child */
}

/* A POSIX lock is kept across execve, is not inherited by fork, and goes with a descriptor that closes at exec. */
static void exec_and_fork(void)
{
	int st, go;
	pid_t pid;

	open_file();
	CHECK_OK(lock_on(fd, F_SETLK, F_WRLCK, 0, 0));
	if (fork() == 0)
		_exit(lock_on(fd, F_SETLK, F_WRLCK, 0, 0) != -1);
	CHECK_OK(wait(&st));
	CHECK_EQ(st, 0);
	CHECK_OK(lock_on(fd, F_SETLK, F_UNLCK, 0, 0));
	for (int cloexec = 0; cloexec < 2; cloexec++) {
		int up[2], hold[2];
		char c;

		CHECK_OK(pipe(up));
		CHECK_OK(pipe(hold));
		pid = (pid_t)CHECK_OK(fork());
		if (!pid) {
			lock_all();
			fcntl(fd, F_SETFD, cloexec ? FD_CLOEXEC : 0);
			dup2(hold[0], 0);
			dup2(up[1], 1);
			close(hold[1]);
			execl("/bin/sh", "sh", "-c", "echo; read x; exit 0", (char *)NULL);
			_exit(1);
		}
		CHECK_EQ(read(up[0], &c, 1), 1);
		if (cloexec)
			CHECK_OK(lock_on(fd, F_SETLK, F_WRLCK, 0, 0));
		else
			CHECK_ERR(lock_on(fd, F_SETLK, F_WRLCK, 0, 0), EAGAIN);
		go = hold[1];
		close(go);
		reap(pid);
	}
}

static const struct gt_case cases[] = {
	{ "hostile", hostile },
	{ "posix_conflicts", posix_conflicts },
	{ "splitting", splitting },
	{ "close_releases", close_releases },
	{ "waiting", waiting },
	{ "deadlock", deadlock },
	{ "flocks", flocks },
	{ "exec_and_fork", exec_and_fork },
	{ NULL, NULL },
};

GT_MAIN_DIRS(cases)
