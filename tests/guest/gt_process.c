/* SPDX-License-Identifier: Apache-2.0 */
/* Processes: making them, waiting for them, who inherits them; sessions and process groups. */
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "gt_child.h"

#ifndef P_PIDFD
#define P_PIDFD 3
#endif

static long clone_raw(unsigned long flags, void *sp, int *ptid, int *ctid)
{
	return syscall(SYS_clone, flags, sp, ptid, ctid, 0);
}

static long clone3_raw(void *args, size_t size)
{
	return syscall(SYS_clone3, args, size);
}

static void clone_hostile(void)
{
	static const unsigned long bad[] = {
		CLONE_THREAD,
		CLONE_THREAD | CLONE_VM,
		CLONE_SIGHAND,
		CLONE_FS | CLONE_NEWNS,
		CLONE_PIDFD | CLONE_PARENT_SETTID,
		CLONE_PIDFD | CLONE_DETACHED,
		CLONE_NEWUSER | CLONE_FS,
		CLONE_NEWPID | CLONE_THREAD | CLONE_SIGHAND | CLONE_VM,
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		long r = clone_raw(bad[i] | SIGCHLD, NULL, NULL, NULL);

		if (r == 0)
			_exit(9);
		if (r != -1 || errno != EINVAL)
			gt_fail(__FILE__, __LINE__, "clone(%#lx) gave %ld errno %d", bad[i], r, errno);
	}
	/* CLONE_PARENT_SETTID to a bad address is not an error; a pidfd to one is. */
	CHECK_ERR(clone_raw(CLONE_PIDFD | SIGCHLD, NULL, BAD_PTR, NULL), EFAULT);
	CHECK_ERR(waitpid(-1, NULL, 0), ECHILD);
}

static void clone3_hostile(void)
{
	struct clone_args a = { .exit_signal = SIGCHLD };
	char *edge = gt_edge_page();
	char big[256] = { 0 };

	CHECK_ERR(clone3_raw(&a, 0), EINVAL);
	CHECK_ERR(clone3_raw(&a, 63), EINVAL);
	CHECK_ERR(clone3_raw(&a, 4097), E2BIG);
	CHECK_ERR(clone3_raw(BAD_PTR, sizeof(a)), EFAULT);
	CHECK_ERR(clone3_raw(edge + 4096 - 64, 72), EFAULT);
	memcpy(big, &a, sizeof(a));
	big[200] = 1;
	CHECK_ERR(clone3_raw(big, sizeof(big)), E2BIG);
	a.exit_signal = 65;
	CHECK_ERR(clone3_raw(&a, sizeof(a)), EINVAL);
	a.exit_signal = 0x100 | SIGCHLD;
	CHECK_ERR(clone3_raw(&a, sizeof(a)), EINVAL);
	a = (struct clone_args){ .exit_signal = SIGCHLD, .flags = CLONE_DETACHED };
	CHECK_ERR(clone3_raw(&a, sizeof(a)), EINVAL);
	a = (struct clone_args){ .exit_signal = SIGCHLD, .flags = CSIGNAL };
	CHECK_ERR(clone3_raw(&a, sizeof(a)), EINVAL);
	a = (struct clone_args){ .exit_signal = SIGCHLD, .flags = 1ull << 40 };
	CHECK_ERR(clone3_raw(&a, sizeof(a)), EINVAL);
	a = (struct clone_args){ .exit_signal = SIGCHLD, .stack_size = 4096 };
	CHECK_ERR(clone3_raw(&a, sizeof(a)), EINVAL);
	a = (struct clone_args){ .exit_signal = SIGCHLD, .stack = 4096 };
	CHECK_ERR(clone3_raw(&a, sizeof(a)), EINVAL);
	a = (struct clone_args){ .exit_signal = SIGCHLD, .set_tid_size = 1 };
	CHECK_ERR(clone3_raw(&a, sizeof(a)), EINVAL);
	a = (struct clone_args){ .flags = CLONE_THREAD | CLONE_VM | CLONE_SIGHAND, .exit_signal = SIGCHLD };
	CHECK_ERR(clone3_raw(&a, sizeof(a)), EINVAL);
	a = (struct clone_args){ .exit_signal = SIGCHLD, .flags = CLONE_SIGHAND | CLONE_VM | CLONE_CLEAR_SIGHAND };
	CHECK_ERR(clone3_raw(&a, sizeof(a)), EINVAL);
	CHECK_ERR(waitpid(-1, NULL, 0), ECHILD);
}

static void on_usr1(int sig)
{
}

static void clone3_right(void)
{
	int pidfd = -1, ptid = 0;
	struct clone_args a = { .exit_signal = SIGCHLD };
	siginfo_t si;
	long pid;

	a.flags = CLONE_PIDFD | CLONE_PARENT_SETTID | CLONE_CLEAR_SIGHAND;
	a.pidfd = (uintptr_t)&pidfd;
	a.parent_tid = (uintptr_t)&ptid;
	gt_handle(SIGUSR1, on_usr1, 0);
	pid = clone3_raw(&a, sizeof(a));
	CHECK(pid >= 0);
	if (!pid) {
		struct sigaction sa;

		sigaction(SIGUSR1, NULL, &sa);
		_exit(sa.sa_handler == SIG_DFL ? 33 : 34);
	}
	CHECK_EQ(ptid, pid);
	CHECK(fcntl(pidfd, F_GETFD) & FD_CLOEXEC);
	CHECK_OK(waitid(P_PIDFD, pidfd, &si, WEXITED));
	CHECK_EQ(si.si_pid, pid);
	CHECK_EQ(si.si_status, 33);
	CHECK_EQ(si.si_code, CLD_EXITED);
}

/* Each kind of sharing, seen from the parent. */
static char stack_mem[65536] __attribute__((aligned(16)));
static volatile int shared_word;

static int ret_zero(void *arg)
{
	return 0;
}

static int share_child(void *arg)
{
	shared_word = 7;
	close(0);
	CHECK_OK(chdir("/"));
	umask(0123);
	signal(SIGUSR2, SIG_IGN);
	return 5;
}

static void clone_shares(void)
{
	static const int flags[] = { 0, CLONE_VM, CLONE_FS, CLONE_FILES, CLONE_VM | CLONE_SIGHAND,
				     CLONE_VM | CLONE_VFORK, CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND };

	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
		int f = flags[i];

		CHECK_EXIT(CHILD({
			struct sigaction sa;
			char cwd[100];
			pid_t pid;

			CHECK(dup2(1, 0) == 0);
			umask(022);
			pid = clone(share_child, stack_mem + sizeof(stack_mem), f | SIGCHLD, NULL);
			CHECK(pid > 0);
			CHECK_EXIT(pid, 5);
			CHECK_EQ(shared_word, f & CLONE_VM ? 7 : 0);
			CHECK_EQ(fcntl(0, F_GETFD) < 0, !!(f & CLONE_FILES));
			CHECK(getcwd(cwd, sizeof(cwd)));
			CHECK_EQ(!strcmp(cwd, "/"), !!(f & CLONE_FS));
			CHECK_EQ(umask(0) == 0123, !!(f & CLONE_FS));
			CHECK_OK(sigaction(SIGUSR2, NULL, &sa));
			CHECK_EQ(sa.sa_handler == SIG_IGN, !!(f & CLONE_SIGHAND));
		}), 0);
	}
}

static void clone_tids(void)
{
	volatile int *w = gt_shared(4096);
	int ptid = 0;
	int ctid = -5;
	long pid = clone_raw(CLONE_PARENT_SETTID | CLONE_CHILD_SETTID | SIGCHLD, NULL, &ptid, &ctid);

	CHECK(pid >= 0);
	if (!pid) {
		CHECK_EQ(ctid, getpid());
		_exit(0);
	}
	CHECK_EQ(ptid, pid);
	CHECK_EQ(ctid, -5);
	CHECK_EXIT(pid, 0);
	*w = 99;
	pid = clone(ret_zero, stack_mem + sizeof(stack_mem), CLONE_CHILD_CLEARTID | CLONE_VM | SIGCHLD, NULL, NULL,
	            NULL, w);
	CHECK_EXIT(pid, 0);
	WAIT_FOR(*w == 0);
	/* Bad addresses of these are ignored. */
	pid = clone_raw(CLONE_PARENT_SETTID | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD, NULL, BAD_PTR,
	                BAD_PTR);
	CHECK(pid >= 0);
	if (!pid)
		_exit(3);
	CHECK_EXIT(pid, 3);
}

static void vfork_order(void)
{
	volatile int *w = gt_shared(4096);
	pid_t pid;

	*w = 0;
	pid = vfork();
	CHECK(pid >= 0);
	if (!pid) {
		gt_sleep_ms(30);
		*w = 1;
		_exit(6);
	}
	CHECK_EQ(*w, 1);
	CHECK_EXIT(pid, 6);
	pid = vfork();
	if (!pid) {
		execl("/bin/sh", "sh", "-c", "exit 7", (char *)NULL);
		_exit(1);
	}
	CHECK_EXIT(pid, 7);
	/* A child killed before it execs lets the parent go on. */
	pid = vfork();
	if (!pid) {
		raise(SIGKILL);
		_exit(1);
	}
	CHECK_KILLED(pid, SIGKILL);
}

static void exit_codes(void)
{
	CHECK_EXIT(CHILD(_exit(0)), 0);
	CHECK_EXIT(CHILD(_exit(255)), 255);
	CHECK_EXIT(CHILD(_exit(256 + 3)), 3);
	CHECK_EXIT(CHILD(_exit(-1)), 255);
	CHECK_EXIT(CHILD(syscall(SYS_exit, 17)), 17);
	CHECK_KILLED(CHILD(raise(SIGTERM)), SIGTERM);
	CHECK_KILLED(CHILD(raise(SIGRTMIN + 3)), SIGRTMIN + 3);
	CHECK_KILLED(CHILD(abort()), SIGABRT);
}

static void wait_hostile(void)
{
	pid_t pid = CHILD(_exit(4));
	siginfo_t si;
	int st;

	CHECK_ERR(syscall(SYS_wait4, pid, &st, 0x10, NULL), EINVAL);
	CHECK_ERR(syscall(SYS_wait4, pid, &st, WEXITED, NULL), EINVAL);
	CHECK_ERR(syscall(SYS_wait4, INT32_MIN, &st, 0, NULL), ESRCH);
	CHECK_ERR(waitpid(pid + 1, &st, 0), ECHILD);
	CHECK_ERR(waitpid(-99999, &st, 0), ECHILD);
	CHECK_ERR(waitid(P_PID, pid, &si, 0), EINVAL);
	CHECK_ERR(waitid(P_PID, pid, &si, WNOHANG), EINVAL);
	CHECK_ERR(waitid(P_PID, pid, &si, WEXITED | 0x100), EINVAL);
	CHECK_ERR(waitid(P_PID, 0, &si, WEXITED), EINVAL);
	CHECK_ERR(waitid(P_PID, -1, &si, WEXITED), EINVAL);
	CHECK_ERR(waitid(P_PGID, -1, &si, WEXITED), EINVAL);
	CHECK_ERR(waitid(7, pid, &si, WEXITED), EINVAL);
	CHECK_ERR(waitid(P_PIDFD, -1, &si, WEXITED), EINVAL);
	CHECK_ERR(waitid(P_PIDFD, 1000, &si, WEXITED), EBADF);
	CHECK_ERR(waitid(P_PIDFD, 1, &si, WEXITED), EBADF);
	/* A bad status pointer is found once the child is gone. */
	CHECK_ERR(syscall(SYS_wait4, pid, BAD_PTR, 0, NULL), EFAULT);
	CHECK_ERR(waitpid(pid, &st, 0), ECHILD);
	pid = CHILD(_exit(4));
	CHECK_ERR(syscall(SYS_waitid, P_PID, pid, BAD_PTR, WEXITED, NULL), EFAULT);
	CHECK_ERR(waitpid(pid, &st, 0), ECHILD);
	pid = CHILD(_exit(4));
	CHECK_ERR(syscall(SYS_wait4, pid, &st, 0, BAD_PTR), EFAULT);
	CHECK_ERR(waitpid(-1, &st, 0), ECHILD);
}

static void waitid_matrix(void)
{
	siginfo_t si;
	struct rusage ru;
	int st;
	pid_t pid = CHILD(pause());

	memset(&si, 0xff, sizeof(si));
	CHECK_EQ(waitid(P_PID, pid, &si, WEXITED | WNOHANG), 0);
	CHECK_EQ(si.si_pid, 0);
	CHECK_EQ(si.si_signo, 0);
	CHECK_EQ(waitpid(pid, &st, WNOHANG), 0);
	CHECK_OK(kill(pid, SIGSTOP));
	CHECK_OK(waitid(P_PID, pid, &si, WSTOPPED));
	CHECK_EQ(si.si_signo, SIGCHLD);
	CHECK_EQ(si.si_code, CLD_STOPPED);
	CHECK_EQ(si.si_status, SIGSTOP);
	CHECK_EQ(si.si_pid, pid);
	CHECK_EQ(si.si_uid, getuid());
	CHECK_EQ(waitpid(pid, &st, WNOHANG | WUNTRACED), 0);
	CHECK_OK(kill(pid, SIGCONT));
	CHECK_OK(waitid(P_PID, pid, &si, WCONTINUED | WNOWAIT));
	CHECK_EQ(si.si_code, CLD_CONTINUED);
	CHECK_EQ(si.si_status, SIGCONT);
	CHECK_EQ(waitpid(pid, &st, WCONTINUED), pid);
	CHECK(WIFCONTINUED(st));
	CHECK_EQ(waitpid(pid, &st, WCONTINUED | WNOHANG), 0);
	CHECK_OK(kill(pid, SIGTERM));
	CHECK_OK(waitid(P_ALL, 0, &si, WEXITED | WNOWAIT));
	CHECK_EQ(si.si_code, CLD_KILLED);
	CHECK_EQ(si.si_status, SIGTERM);
	CHECK_EQ(syscall(SYS_waitid, P_PGID, 0, &si, WEXITED | WNOWAIT, &ru), 0);
	CHECK_EQ(si.si_pid, pid);
	CHECK_EQ(syscall(SYS_waitid, P_PID, pid, NULL, WEXITED, NULL), 0);
	CHECK_ERR(waitid(P_ALL, 0, &si, WEXITED | WNOHANG), ECHILD);
}

static void wait_groups(void)
{
	pid_t a = CHILD(setpgid(0, 0); pause());
	pid_t b = CHILD(pause());
	int st;

	setpgid(a, a);
	CHECK_EQ(waitpid(-a, &st, WNOHANG), 0);
	CHECK_EQ(waitpid(0, &st, WNOHANG), 0);
	CHECK_OK(kill(-a, SIGKILL));
	CHECK_EQ(waitpid(-a, &st, 0), a);
	CHECK_ERR(waitpid(-a, &st, 0), ECHILD);
	CHECK_OK(kill(b, SIGKILL));
	CHECK_EQ(waitpid(0, &st, 0), b);
}

static void wait_clone_kinds(void)
{
	int st;
	pid_t pid = clone(ret_zero, stack_mem + sizeof(stack_mem), 0, NULL); /* no exit signal: a "clone child" */

	CHECK(pid > 0);
	CHECK_ERR(waitpid(pid, &st, 0), ECHILD);
	CHECK_EQ(waitpid(pid, &st, __WCLONE), pid);
	pid = clone(ret_zero, stack_mem + sizeof(stack_mem), SIGCHLD, NULL);
	CHECK_ERR(waitpid(pid, &st, __WCLONE), ECHILD);
	CHECK_EQ(waitpid(pid, &st, __WALL), pid);
}

static void reparenting(void)
{
	volatile pid_t *w = gt_shared(4096);
	pid_t pid;

	CHECK_OK(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0));
	pid = CHILD({
		w[0] = getpid();
		if (fork() == 0) {
			WAIT_FOR(getppid() != w[0]);
			w[1] = getppid();
			_exit(8);
		}
	});
	CHECK_EXIT(pid, 0);
	{
		int st;
		pid_t orphan = waitpid(-1, &st, 0);

		CHECK(orphan > 0 && orphan != pid);
		CHECK_EQ(WEXITSTATUS(st), 8);
		CHECK_EQ(w[1], getpid());
	}
	/* Not a subreaper: init (or an outer reaper) takes it. */
	CHECK_OK(prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0));
	w[1] = 0;
	pid = CHILD({
		w[0] = getpid();
		if (fork() == 0) {
			WAIT_FOR(getppid() != w[0]);
			w[1] = getppid();
			_exit(8);
		}
	});
	CHECK_EXIT(pid, 0);
	WAIT_FOR(w[1]);
	CHECK(w[1] != getpid() && w[1] != w[0]);
	CHECK_ERR(waitpid(-1, NULL, 0), ECHILD);
}

static void subreaper_not_inherited(void)
{
	int v = 5;

	CHECK_OK(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0));
	CHECK_OK(prctl(PR_GET_CHILD_SUBREAPER, &v, 0, 0, 0));
	CHECK_EQ(v, 1);
	CHECK_EXIT(CHILD({
		CHECK_OK(prctl(PR_GET_CHILD_SUBREAPER, &v, 0, 0, 0));
		CHECK_EQ(v, 0);
	}), 0);
	CHECK_ERR(prctl(PR_GET_CHILD_SUBREAPER, BAD_PTR, 0, 0, 0), EFAULT);
}

/* The session that the test was started in may be of another pid namespace, where getsid() is 0: so one of our own. */
static void sessions(void)
{
	pid_t old = getpid();

	CHECK_EQ(getpgrp() == old ? 0 : setpgid(0, 0), 0);
	CHECK_EXIT(CHILD({
		CHECK(getpgrp() != getpid());
		CHECK_EQ(setsid(), getpid());
		CHECK_EQ(getsid(0), getpid());
		CHECK_EQ(getpgrp(), getpid());
		CHECK_ERR(setsid(), EPERM);
		CHECK_ERR(setpgid(0, 0), EPERM); /* a session leader */
		CHECK_EXIT(CHILD({
			CHECK_EQ(getsid(0), getppid());
			CHECK_EQ(setpgid(0, 0), 0);
			CHECK_ERR(setsid(), EPERM); /* a group leader */
			CHECK_ERR(setpgid(0, old), EPERM); /* a group of another session */
		}), 0);
	}), 0);
	CHECK_ERR(getsid(-1), ESRCH);
	CHECK_ERR(getsid(99999999), ESRCH);
	CHECK_ERR(getpgid(-1), ESRCH);
	CHECK_ERR(getpgid(99999999), ESRCH);
}

static void setpgid_rules(void)
{
	pid_t pid;
	int p[2];

	CHECK_ERR(setpgid(-1, 1), ESRCH);
	CHECK_ERR(setpgid(0, -1), EINVAL);
	CHECK_ERR(setpgid(99999999, 0), ESRCH);
	CHECK_ERR(setpgid(getppid(), 0), ESRCH);
	CHECK_ERR(setpgid(0, 99999999), EPERM);
	pid = CHILD(pause());
	CHECK_OK(setpgid(pid, pid));
	CHECK_EQ(getpgid(pid), pid);
	CHECK_OK(setpgid(pid, getpgrp()));
	CHECK_EQ(getpgid(pid), getpgrp());
	CHECK_OK(kill(pid, SIGKILL));
	CHECK_KILLED(pid, SIGKILL);
	/* After its exec the parent may no longer. */
	CHECK_OK(pipe2(p, O_CLOEXEC));
	pid = CHILD(execl("/bin/sleep", "sleep", "100", (char *)NULL));
	close(p[1]);
	CHECK_EQ(read(p[0], &p[1], 1), 0); /* closed by the exec */
	CHECK_ERR(setpgid(pid, pid), EACCES);
	CHECK_OK(kill(pid, SIGKILL));
	CHECK_KILLED(pid, SIGKILL);
	/* In another session. */
	CHECK_OK(pipe(p));
	pid = CHILD(setsid(); close(p[1]); close(p[0]); pause());
	close(p[1]);
	CHECK_EQ(read(p[0], &p[1], 1), 0);
	CHECK_ERR(setpgid(pid, pid), EPERM);
	CHECK_OK(kill(pid, SIGKILL));
	CHECK_KILLED(pid, SIGKILL);
}

/* A group that becomes orphaned with a stopped member gets SIGHUP and SIGCONT. */
static volatile sig_atomic_t got_hup, got_cont;

static void on_hup(int sig)
{
	got_hup = 1;
}

static void on_cont(int sig)
{
	got_cont = 1;
}

static void orphaned_group(void)
{
	volatile int *w = gt_shared(4096);

	CHECK_OK(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0));
	CHECK_EXIT(CHILD({
		CHECK_OK(setsid());
		pid_t stopped = CHILD({
			setpgid(0, 0);
			gt_handle(SIGHUP, on_hup, 0);
			gt_handle(SIGCONT, on_cont, 0);
			w[0] = getpid();
			raise(SIGSTOP);
			w[1] = got_hup;
			w[2] = got_cont;
			w[3] = 1;
		});
		int st;
		CHECK_EQ(waitpid(stopped, &st, WUNTRACED), stopped);
		CHECK(WIFSTOPPED(st));
	}), 0);
	CHECK_EXIT(w[0], 0);
	CHECK_EQ(w[3], 1);
	CHECK_EQ(w[1], 1);
	CHECK_EQ(w[2], 1);
}

static void orphans_do_not_stop(void)
{
	CHECK_EXIT(CHILD({
		CHECK_OK(setsid()); /* our group has no parent in the session: orphaned */
		raise(SIGTSTP);
		raise(SIGTTIN);
		raise(SIGTTOU);
	}), 0);
}

static void pdeath_signal(void)
{
	volatile pid_t *w = gt_shared(4096);
	int v = -1;

	CHECK_ERR(prctl(PR_SET_PDEATHSIG, 65, 0, 0, 0), EINVAL);
	CHECK_ERR(prctl(PR_SET_PDEATHSIG, -1, 0, 0, 0), EINVAL);
	CHECK_ERR(prctl(PR_GET_PDEATHSIG, BAD_PTR, 0, 0, 0), EFAULT);
	CHECK_OK(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0));
	CHECK_OK(prctl(PR_SET_PDEATHSIG, SIGUSR1, 0, 0, 0));
	CHECK_OK(prctl(PR_GET_PDEATHSIG, &v, 0, 0, 0));
	CHECK_EQ(v, SIGUSR1);
	CHECK_EXIT(CHILD({
		CHECK_OK(prctl(PR_GET_PDEATHSIG, &v, 0, 0, 0));
		CHECK_EQ(v, 0);
		w[0] = CHILD({
			CHECK_OK(prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0));
			w[1] = 1;
			pause();
		});
		WAIT_FOR(w[1]);
	}), 0);
	CHECK_KILLED(w[0], SIGTERM);
}

static int pidfd_open_(pid_t pid, unsigned flags)
{
	return syscall(SYS_pidfd_open, pid, flags);
}

static void pidfds(void)
{
	struct pollfd pfd = { .events = POLLIN };
	siginfo_t si = { .si_code = SI_USER };
	pid_t pid = CHILD(pause());
	int fd;

	CHECK_ERR(pidfd_open_(-1, 0), EINVAL);
	CHECK_ERR(pidfd_open_(0, 0), EINVAL);
	CHECK_ERR(pidfd_open_(pid, 1), EINVAL);
	CHECK_ERR(pidfd_open_(99999999, 0), ESRCH);
	fd = CHECK_OK(pidfd_open_(pid, 0));
	CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	CHECK_ERR(read(fd, &si, 1), EINVAL);
	CHECK_ERR(syscall(SYS_pidfd_send_signal, 1, SIGTERM, NULL, 0), EBADF);
	CHECK_ERR(syscall(SYS_pidfd_send_signal, fd, 65, NULL, 0), EINVAL);
	CHECK_ERR(syscall(SYS_pidfd_send_signal, fd, SIGTERM, BAD_PTR, 0), EFAULT);
	CHECK_ERR(syscall(SYS_pidfd_send_signal, fd, SIGTERM, NULL, 0x100), EINVAL);
	si.si_signo = SIGUSR1;
	CHECK_ERR(syscall(SYS_pidfd_send_signal, fd, SIGTERM, &si, 0), EINVAL);
	CHECK_OK(syscall(SYS_pidfd_send_signal, fd, 0, NULL, 0));
	pfd.fd = fd;
	CHECK_EQ(poll(&pfd, 1, 0), 0);
	CHECK_OK(syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0));
	CHECK_EQ(poll(&pfd, 1, 5000), 1);
	CHECK_EQ(pfd.revents & POLLIN, POLLIN);
	CHECK_OK(waitid(P_PIDFD, fd, &si, WEXITED));
	CHECK_EQ(si.si_pid, pid);
	CHECK_ERR(syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0), ESRCH);
}

static void pidfd_getfds(void)
{
	int p[2], got;
	char c = 0;
	pid_t pid;
	int fd;

	CHECK_OK(pipe(p));
	pid = CHILD(dup2(p[1], 55); pause());
	fd = CHECK_OK(pidfd_open_(pid, 0));
	close(p[1]);
	CHECK_ERR(syscall(SYS_pidfd_getfd, fd, 55, 1), EINVAL);
	CHECK_ERR(syscall(SYS_pidfd_getfd, fd, 999, 0), EBADF);
	CHECK_ERR(syscall(SYS_pidfd_getfd, 1, 55, 0), EBADF);
	for (int i = 0; (got = syscall(SYS_pidfd_getfd, fd, 55, 0)) < 0 && i < 500; i++)
		gt_sleep_ms(5);
	CHECK(got >= 0);
	CHECK_EQ(write(got, "x", 1), 1);
	CHECK_EQ(read(p[0], &c, 1), 1);
	CHECK_EQ(c, 'x');
	CHECK_OK(kill(pid, SIGKILL));
	CHECK_KILLED(pid, SIGKILL);
}

static void thread_exit_order(void)
{
	/* exit(2) of the first thread leaves the process alive until the last thread ends. */
	CHECK_EXIT(CHILD({
		static char st[16384] __attribute__((aligned(16)));
		int fl = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
		extern int exit_group_later(void *);

		CHECK(clone(exit_group_later, st + sizeof(st), fl, NULL) > 0);
		syscall(SYS_exit, 3);
	}), 44);
}

int exit_group_later(void *arg)
{
	gt_sleep_ms(20);
	syscall(SYS_exit_group, 44);
	return 0;
}

static void fork_deep(void)
{
	/* A chain of 30 and a fan of 30. */
	pid_t pid = fork();
	int depth = 0;

	if (!pid) {
		while (depth++ < 29 && (pid = fork()) == 0)
			;
		if (pid > 0)
			CHECK_EXIT(pid, depth == 29 ? 100 : 100);
		_exit(100);
	}
	CHECK_EXIT(pid, 100);
	for (int i = 0; i < 30; i++)
		(void)CHILD(_exit(0));
	for (int i = 0; i < 30; i++)
		CHECK_OK(wait(NULL));
	CHECK_ERR(wait(NULL), ECHILD);
}

static const struct gt_case cases[] = {
	{ "clone_hostile", clone_hostile },
	{ "clone3_hostile", clone3_hostile },
	{ "clone3_right", clone3_right },
	{ "clone_shares", clone_shares },
	{ "clone_tids", clone_tids },
	{ "vfork_order", vfork_order },
	{ "exit_codes", exit_codes },
	{ "wait_hostile", wait_hostile },
	{ "waitid_matrix", waitid_matrix },
	{ "wait_groups", wait_groups },
	{ "wait_clone_kinds", wait_clone_kinds },
	{ "reparenting", reparenting },
	{ "subreaper_not_inherited", subreaper_not_inherited },
	{ "sessions", sessions },
	{ "setpgid_rules", setpgid_rules },
	{ "orphaned_group", orphaned_group },
	{ "orphans_do_not_stop", orphans_do_not_stop },
	{ "pdeath_signal", pdeath_signal },
	{ "pidfds", pidfds },
	{ "pidfd_getfds", pidfd_getfds },
	{ "thread_exit_order", thread_exit_order },
	{ "fork_deep", fork_deep },
	{ NULL, NULL },
};
GT_MAIN(cases)
