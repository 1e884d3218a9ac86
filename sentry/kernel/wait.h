/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for children: wait4(2), waitid(2). */
#ifndef SBX_SENTRY_KERNEL_WAIT_H
#define SBX_SENTRY_KERNEL_WAIT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct task;
struct tgroup;

enum wait_which { WAIT_ANY, WAIT_PID, WAIT_PGID };

struct wait_request {
	enum wait_which which;
	pid_t id;
	unsigned options;    /* WEXITED, WSTOPPED, WCONTINUED, WNOHANG, WNOWAIT, __WALL, __WCLONE, __WNOTHREAD */
	bool nonblock;       /* a non-blocking pidfd: -EAGAIN instead of waiting */
};

struct wait_result {
	pid_t pid;
	uid_t uid;
	int code;            /* CLD_* */
	int status;          /* exit code, or signal; the core bit is in code */
	int wstatus;         /* as of wait4(2) */
	uint64_t utime_ns, stime_ns, max_rss_kib;
};

/* Looks for a child event and, without WNOWAIT, consumes it. The child's pid with *res filled; 0: none yet (WNOHANG);
 * -ECHILD; -EAGAIN; SYS_BLOCKED or a restart code. */
int64_t task_wait(struct task *t, const struct wait_request *rq, struct wait_result *res);

#endif
