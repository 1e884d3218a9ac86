/* SPDX-License-Identifier: Apache-2.0 */
/* Host processes: start, signal, reap. All return -errno. */
#ifndef SBX_BASE_HOST_SPAWN_H
#define SBX_BASE_HOST_SPAWN_H

#include <signal.h>
#include <sys/types.h>

#include "base/macros.h"

#define SPAWN_FDS_MAX 8

struct spawn {
	int exe_fd; /* the program; need not be readable by the child */
	char *const *argv;
	char *const *envp;
	int fds[SPAWN_FDS_MAX]; /* fds[i] becomes fd i of the child; -1: closed */
	unsigned n_fds;
};

/*
 * Starts a program in a session of its own, with default signal dispositions, an empty signal mask,
 * PDEATHSIG SIGKILL and no fds but those given. Neither copies the address space nor returns before
 * the program runs. Returns its pid and a pidfd (CLOEXEC) in *@pidfd, or -errno, that of execve
 * included.
 */
MUST_CHECK pid_t host_spawn(const struct spawn *s, int *pidfd);

int host_pidfd_signal(int pidfd, int signo);

/* waitpid(@pid, WNOHANG). Returns the pid, 0 when nothing ended, or -errno. */
MUST_CHECK pid_t host_reap(pid_t pid, int *status);

#endif
