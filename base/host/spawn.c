/* SPDX-License-Identifier: Apache-2.0 */
#include "base/host/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/macros.h"

#define SPAWN_STACK (64 * 1024)

/* Lies at the low end of the child's stack. */
struct spawn_child {
	struct spawn s;
	int error;        /* written by the child, in our memory */
	uint32_t before;  /* 1 until the child has left our memory; the host's kernel clears it and wakes us */
};

/*
 * The child shares our memory, errno with it, while we go on: so it makes bare system calls.
 */
NO_ASAN static long bare6(long nr, long a, long b, long c, long d, long e)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "0"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
			 : "rcx", "r11", "memory");
	return ret;
}

#define BARE_(nr, a, b, c, d, e, ...) bare6((nr), (long)(a), (long)(b), (long)(c), (long)(d), (long)(e))
#define BARE(nr, ...) BARE_(nr, ##__VA_ARGS__, 0, 0, 0, 0, 0)

/* Puts fds in their places in two passes, so that no source is overwritten before it was copied. */
NO_ASAN static int place_fds(const struct spawn *s, int *exe_fd)
{
	int high[SPAWN_FDS_MAX];
	struct rlimit lim = { 0, 0 };
	long r;

	r = BARE(SYS_fcntl, s->exe_fd, F_DUPFD_CLOEXEC, SPAWN_FDS_MAX);
	if (r < 0)
		return (int)r;
	*exe_fd = (int)r;
	for (unsigned i = 0; i < s->n_fds; i++) {
		high[i] = s->fds[i] < 0 ? -1 : (int)BARE(SYS_fcntl, s->fds[i], F_DUPFD_CLOEXEC, SPAWN_FDS_MAX);
		if (s->fds[i] >= 0 && high[i] < 0)
			return high[i];
	}
	for (unsigned i = 0; i < s->n_fds; i++) {
		r = high[i] < 0 ? 0 : BARE(SYS_dup2, high[i], i);
		if (r < 0)
			return (int)r;
		if (high[i] < 0)
			BARE(SYS_close, i);
	}
	/* The rest closes at execve, so the program's own fd lives until then. Kernels before 5.11
	 * lack the flag. */
	if (BARE(SYS_close_range, s->n_fds, ~0u, CLOSE_RANGE_CLOEXEC) < 0) {
		BARE(SYS_prlimit64, 0, RLIMIT_NOFILE, NULL, &lim);
		for (unsigned fd = s->n_fds; fd < lim.rlim_cur; fd++)
			BARE(SYS_fcntl, fd, F_SETFD, FD_CLOEXEC); /* EBADF for most */
	}
	return 0;
}

/* Runs on a stack of its own in the parent's memory: only system calls, no return. The address
 * sanitizer does not know the stack; what it remembers of the addresses is of an earlier one. */
NO_ASAN static int spawn_child(void *arg)
{
	struct spawn_child *c = arg;
	const uint64_t dfl[4] = { 0 }, none = 0; /* struct sigaction and sigset_t of the host's kernel */
	int exe_fd = -1, r;

	/* What the caller ignores stays ignored over execve; handlers do not. SIGKILL and SIGSTOP
	 * fail. */
	for (int sig = 1; sig < SIGSYS; sig++)
		BARE(SYS_rt_sigaction, sig, dfl, NULL, sizeof(none));
	BARE(SYS_setsid);
	BARE(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
	r = place_fds(&c->s, &exe_fd);
	if (!r) {
		BARE(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, sizeof(none));
		r = (int)BARE(SYS_execveat, exe_fd, "", c->s.argv, c->s.envp, AT_EMPTY_PATH);
	}
	c->error = r;
	BARE(SYS_exit, 127);
	__builtin_unreachable();
}

pid_t host_spawn(const struct spawn *s, int *ret_pidfd, struct spawning *job)
{
	struct spawn_child *c;
	sigset_t all, old;
	int pidfd = -1;
	pid_t pid;

	c = mmap(NULL, SPAWN_STACK, PROT_READ | PROT_WRITE,
	         MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	if (c == MAP_FAILED)
		return -errno;
	*c = (struct spawn_child){ .s = *s, .before = 1 };
	/* No handler of ours may run in the child. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &old);
	pid = clone(spawn_child, (uint8_t *)c + SPAWN_STACK,
	            CLONE_VM | CLONE_PIDFD | CLONE_CHILD_CLEARTID | SIGCHLD, c, &pidfd, NULL, &c->before);
	if (pid < 0)
		pid = -errno;
	sigprocmask(SIG_SETMASK, &old, NULL);
	if (pid < 0) {
		munmap(c, SPAWN_STACK);
		return pid;
	}
	*job = (struct spawning){ .child = c, .pid = pid };
	*ret_pidfd = pidfd;
	return pid;
}

int host_spawn_wait(struct spawning *job)
{
	struct spawn_child *c = job->child;
	int error;

	if (!c)
		return 0;
	while (__atomic_load_n(&c->before, __ATOMIC_ACQUIRE))
		syscall(SYS_futex, &c->before, FUTEX_WAIT, 1, NULL, NULL, 0);
	error = c->error;
	munmap(c, SPAWN_STACK);
	job->child = NULL;
	if (error)
		while (waitpid(job->pid, NULL, 0) < 0 && errno == EINTR)
			;
	return error;
}

int host_pidfd_signal(int pidfd, int signo)
{
	return syscall(SYS_pidfd_send_signal, pidfd, signo, NULL, 0) < 0 ? -errno : 0;
}

pid_t host_reap(pid_t pid, int *status)
{
	pid_t r;

	do
		r = waitpid(pid, status, WNOHANG);
	while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : r;
}
