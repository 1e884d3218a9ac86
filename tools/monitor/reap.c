/* SPDX-License-Identifier: Apache-2.0 */
/*
 * We are the subreaper: whatever a dead sentry leaves behind becomes our child. So when no child is
 * left, nothing of the sandbox is alive. Children that the process had before it became sbx (a
 * shell's background jobs, then exec) are left alone.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/host/file.h"
#include "base/log.h"
#include "tools/monitor/monitor_priv.h"

#define CHILDREN_BUF (512 * 1024)

/* Our children's pids, ending with 0; NULL when the host does not tell or there is no memory. */
static pid_t *children(void)
{
	char path[64], *buf, *p;
	pid_t *v = NULL;
	size_t n = 0, len = 0;
	ssize_t r;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	fd = host_open(path, 0, 0);
	if (fd < 0)
		return NULL;
	buf = malloc(CHILDREN_BUF);
	while (buf && len < CHILDREN_BUF - 1 &&
	       (r = host_read(fd, buf + len, CHILDREN_BUF - 1 - len)) > 0)
		len += (size_t)r;
	host_close(fd);
	if (!buf)
		return NULL;
	buf[len] = '\0';
	v = malloc((len / 2 + 2) * sizeof(*v));
	for (p = buf; v && *p; n++) {
		v[n] = (pid_t)strtol(p, &p, 10);
		while (*p == ' ')
			p++;
	}
	if (v)
		v[n] = 0;
	free(buf);
	return v;
}

int reap_prepare(struct run *r, struct sbx_err *err)
{
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
		return sbx_fail(err, -errno, "become subreaper");
	/* Nearly always there is none, and waitpid says so without a look at /proc. */
	if (waitpid(-1, NULL, WNOHANG | __WALL) < 0 && errno == ECHILD)
		return 0;
	r->earlier_children = children();
	return 0;
}

static bool is_earlier(const struct run *r, pid_t pid)
{
	for (const pid_t *p = r->earlier_children; p && *p; p++) {
		if (*p == pid)
			return true;
	}
	return false;
}

/* Kills all children of ours. Returns their number and one of them, or -1 when they cannot be listed. */
static int kill_children(const struct run *r, pid_t *one)
{
	pid_t *v = children();
	int n = 0;

	if (!v)
		return -1;
	for (pid_t *p = v; *p; p++) {
		if (is_earlier(r, *p))
			continue;
		kill(*p, SIGKILL); /* our unreaped child: the number cannot be another process's */
		*one = *p;
		n++;
	}
	free(v);
	return n;
}

/* One child that has ended: its pid; 0 when none has yet, -ECHILD when there is none. */
static pid_t reap_one(struct run *r, pid_t which, int flags)
{
	pid_t pid = waitpid(which, NULL, flags | __WALL);

	if (pid < 0)
		return errno == ECHILD ? -ECHILD : 0;
	if (pid && pid == r->sentry.pid)
		r->sentry.pid = 0;
	if (pid && pid == r->gofer.pid)
		r->gofer.pid = 0;
	return pid;
}

void reap_all(struct run *r)
{
	pid_t pid, one = -1;
	int left;

	for (;;) {
		do
			pid = reap_one(r, -1, WNOHANG);
		while (pid > 0);
		if (pid == -ECHILD)
			return;
		left = kill_children(r, &one);
		if (left == 0)
			return;
		if (left < 0) {
			log_warn(CH_MONITOR,
			         "cannot list child processes: some of the sandbox may be alive");
			return;
		}
		/* It dies. Meanwhile what it leaves behind may become ours: the list is read again. */
		(void)reap_one(r, one, 0);
	}
}
