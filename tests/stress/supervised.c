/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a command as a supervisor would that watches it by a seccomp listener: under a filter that lets everything
 * through, whose listener this process holds. No other listener can then be had below. Usage: supervised COMMAND... */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog prog = { 1, &allow };
	int status;
	pid_t pid;

	if (argc < 2 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &prog) < 0) {
		perror("supervised");
		return 99;
	}
	pid = fork(); /* the listener is close-on-exec: it stays here */
	if (pid == 0) {
		execvp(argv[1], argv + 1);
		_exit(98);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
