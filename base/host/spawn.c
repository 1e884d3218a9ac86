/* SPDX-License-Identifier: Apache-2.0 */
#include "base/host/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/macros.h"

#define SPAWN_STACK (64 * 1024)

struct spawn_child {
	const struct spawn *s;
	int error; /* written by the child, in our memory */
};

/* Puts fds in their places in two passes, so that no source is overwritten before it was copied. */
NO_ASAN static int place_fds(const struct spawn *s, int *exe_fd)
{
	int high[SPAWN_FDS_MAX];

	*exe_fd = fcntl(s->exe_fd, F_DUPFD_CLOEXEC, SPAWN_FDS_MAX);
	if (*exe_fd < 0)
		return -errno;
	for (unsigned i = 0; i < s->n_fds; i++) {
		high[i] = s->fds[i] < 0 ? -1 : fcntl(s->fds[i], F_DUPFD_CLOEXEC, SPAWN_FDS_MAX);
		if (s->fds[i] >= 0 && high[i] < 0)
			return -errno;
	}
	for (unsigned i = 0; i < s->n_fds; i++) {
		if (high[i] < 0)
			close((int)i);
		else if (dup2(high[i], (int)i) < 0)
			return -errno;
	}
	/* The rest closes at execve, so the program's own fd lives until then. Kernels before 5.11
	 * lack the flag. */
	if (syscall(SYS_close_range, s->n_fds, ~0u, CLOSE_RANGE_CLOEXEC) < 0) {
		for (int fd = (int)s->n_fds, end = (int)sysconf(_SC_OPEN_MAX); fd < end; fd++)
			(void)fcntl(fd, F_SETFD, FD_CLOEXEC); /* EBADF for most */
	}
	return 0;
}

/* Runs on a stack of its own in the parent's memory while the parent waits: only system calls, no
 * return. The address sanitizer does not know the stack; what it remembers of the addresses is of an earlier one. */
NO_ASAN static int spawn_child(void *arg)
{
	struct spawn_child *c = arg;
	const struct sigaction dfl = { .sa_handler = SIG_DFL };
	sigset_t none;
	int exe_fd, r;

	/* What the caller ignores stays ignored over execve; handlers do not. SIGKILL and SIGSTOP
	 * fail. */
	for (int sig = 1; sig < SIGSYS; sig++)
		(void)sigaction(sig, &dfl, NULL);
	(void)setsid();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	r = place_fds(c->s, &exe_fd);
	if (!r) {
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		syscall(SYS_execveat, exe_fd, "", c->s->argv, c->s->envp, AT_EMPTY_PATH);
		r = -errno;
	}
	c->error = r;
	_exit(127);
}

pid_t host_spawn(const struct spawn *s, int *ret_pidfd)
{
	struct spawn_child c = { .s = s };
	sigset_t all, old;
	int pidfd = -1;
	uint8_t *stack;
	pid_t pid;

	stack = mmap(NULL, SPAWN_STACK, PROT_READ | PROT_WRITE,
	             MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	if (stack == MAP_FAILED)
		return -errno;
	/* No handler of ours may run in the child. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &old);
	pid = clone(spawn_child, stack + SPAWN_STACK,
	            CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD, &c, &pidfd);
	if (pid < 0)
		pid = -errno;
	sigprocmask(SIG_SETMASK, &old, NULL);
	munmap(stack, SPAWN_STACK);
	if (pid > 0 && c.error) {
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
		close(pidfd);
		return c.error;
	}
	if (pid > 0)
		*ret_pidfd = pidfd;
	return pid;
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
