/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/monitor/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/host/file.h"
#include "base/host/spawn.h"
#include "base/macros.h"

/* In the build tree the helpers lie beside sbx. An installed tree may have been moved as a whole. */
static int open_program(const char *name)
{
	static const char *const places[] = { "", "../libexec/sbx/" };
	char path[PATH_MAX + 64];
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX);
	char *slash;
	int fd;

	path[MAX(n, 0)] = '\0';
	slash = strrchr(path, '/');
	for (size_t i = 0; slash && i < ARRAY_SIZE(places); i++) {
		snprintf(slash + 1, sizeof(path) - (size_t)(slash + 1 - path), "%s%s", places[i], name);
		fd = host_open(path, O_PATH, 0);
		if (fd != -ENOENT && fd != -ENOTDIR)
			return fd;
	}
	snprintf(path, sizeof(path), "%s/%s", SBX_LIBEXECDIR, name);
	return host_open(path, O_PATH, 0);
}

int helper_start(struct helper *h, int peer, int null, struct sbx_err *err)
{
	/* Dynamic builds need nothing from the environment; sanitizers read options from it in
	 * their own builds. */
	char *argv[] = { (char *)h->name, NULL }, *envp[] = { NULL };
	struct spawn s = { .argv = argv, .envp = envp, .n_fds = 5 };
	int sv[2];
	pid_t pid;

	s.exe_fd = open_program(h->name);
	if (s.exe_fd < 0)
		return sbx_fail(err, s.exe_fd, "%s is not beside sbx and not in %s", h->name,
		                SBX_LIBEXECDIR);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) < 0) {
		host_close(s.exe_fd);
		return sbx_fail(err, -errno, "control socket");
	}
	s.fds[0] = s.fds[1] = null;
	s.fds[2] = STDERR_FILENO;
	s.fds[3] = sv[1];
	s.fds[4] = peer;
	pid = host_spawn(&s, &h->pidfd);
	host_close(s.exe_fd);
	host_close(sv[1]);
	if (pid < 0) {
		host_close(sv[0]);
		return sbx_fail(err, pid, "start %s", h->name);
	}
	h->pid = pid;
	h->control = sv[0];
	return 0;
}

bool helper_reap(struct helper *h)
{
	if (h->pid && host_reap(h->pid, &h->status) != 0)
		h->pid = 0;
	return !h->pid;
}

void helper_kill(struct helper *h)
{
	if (h->pid)
		host_pidfd_signal(h->pidfd, SIGKILL); /* ESRCH: it has ended already */
}

void helper_fini(struct helper *h)
{
	host_close(h->pidfd);
	host_close(h->control);
	h->pidfd = h->control = -1;
}
