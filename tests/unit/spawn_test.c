/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/host/spawn.h"
#include "tests/lib/tap.h"

static char *const no_env[] = { NULL };

/* Exit status of `sh -c @script` with @out as fd 1 and @three as fd 3; negative: could not be run. */
static int shell(const char *script, int out, int three)
{
	char *argv[] = { (char *)"sh", (char *)"-c", (char *)script, NULL };
	struct spawn s = { .argv = argv, .envp = no_env, .fds = { -1, out, 2, three }, .n_fds = 4 };
	int pidfd = -1, status = -1;
	pid_t pid;

	s.exe_fd = open("/bin/sh", O_PATH | O_CLOEXEC);
	pid = host_spawn(&s, &pidfd);
	close(s.exe_fd);
	if (pid < 0)
		return pid;
	waitpid(pid, &status, 0);
	close(pidfd);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static void test_runs(void)
{
	char buf[64] = "";
	int p[2];

	tap_ok(pipe2(p, O_CLOEXEC) == 0, "a pipe");
	tap_eq(shell("echo hello; exit 7", p[1], -1), 7, "its exit status");
	tap_ok(read(p[0], buf, sizeof(buf)) == 6 && !memcmp(buf, "hello\n", 6), "its fd 1 is what was given");
	tap_eq(shell("echo three >&3", -1, p[1]), 0, "and fd 3");
	tap_ok(read(p[0], buf, sizeof(buf)) == 6 && !memcmp(buf, "three\n", 6), "which is written to");
	tap_eq(shell("[ ! -e /proc/self/fd/0 ]", 2, -1), 0, "-1 is a closed fd");
	tap_eq(shell("for i in 4 5 6 7 8 9; do [ -e /proc/self/fd/$i ] && exit 1; done; exit 0", 2, -1), 0, "no others");
	close(p[0]);
	close(p[1]);
}

static void test_signals(void)
{
	sigset_t set, old;

	signal(SIGPIPE, SIG_IGN);
	sigfillset(&set);
	sigprocmask(SIG_SETMASK, &set, &old);
	tap_eq(shell("kill -PIPE $$; exit 0", 2, -1), 1000 + SIGPIPE, "what we ignore or block it does not");
	sigprocmask(SIG_SETMASK, &old, NULL);
	signal(SIGPIPE, SIG_DFL);
}

static void test_failure(void)
{
	char name[] = "/tmp/spawn-XXXXXX", *argv[] = { (char *)"x", NULL };
	struct spawn s = { .argv = argv, .envp = no_env, .fds = { 0, 1, 2 }, .n_fds = 3 };
	int fd = mkstemp(name), pidfd = -1;

	s.exe_fd = open(name, O_PATH | O_CLOEXEC);
	close(fd);
	tap_eq(host_spawn(&s, &pidfd), -EACCES, "a file that cannot be executed");
	chmod(name, 0755);
	tap_eq(host_spawn(&s, &pidfd), -ENOEXEC, "a file that is no program");
	unlink(name);
	close(s.exe_fd);
	s.exe_fd = -1;
	tap_eq(host_spawn(&s, &pidfd), -EBADF, "no file");
	tap_ok(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD, "and all have been reaped");
}

int main(void)
{
	test_runs();
	test_signals();
	test_failure();
	return tap_done();
}
