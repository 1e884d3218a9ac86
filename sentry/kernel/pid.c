/* SPDX-License-Identifier: Apache-2.0 */
#include "sentry/kernel/pid.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bug.h"

#define PID_RESERVED 300 /* after the first round, as Linux: low numbers belong to what started early */

struct pid_entry {
	struct task *task; /* borrowed: the task removes itself */
	uint16_t n_pgrp, n_session;
};

/* Indexed by number; untouched pages cost nothing. */
static struct pid_entry pids[PID_MAX];
static pid_t last_pid;

static bool pid_free(pid_t pid)
{
	return !pids[pid].task && !pids[pid].n_pgrp && !pids[pid].n_session;
}

pid_t pid_alloc(void)
{
	pid_t pid = last_pid;

	for (int i = 0; i < PID_MAX; i++) {
		if (++pid >= PID_MAX)
			pid = PID_RESERVED;
		if (pid_free(pid)) {
			last_pid = pid;
			return pid;
		}
	}
	return -EAGAIN;
}

void pid_set_last(pid_t pid)
{
	last_pid = pid;
}

struct task *pid_task(pid_t pid)
{
	return pid > 0 && pid < PID_MAX ? pids[pid].task : NULL;
}

void pid_set_task(pid_t pid, struct task *t)
{
	BUG_ON(pid <= 0 || pid >= PID_MAX);
	pids[pid].task = t;
}

void pid_pgrp_add(pid_t pgid, int delta)
{
	if (pgid > 0)
		pids[pgid].n_pgrp = (uint16_t)(pids[pgid].n_pgrp + delta);
}

void pid_session_add(pid_t sid, int delta)
{
	if (sid > 0)
		pids[sid].n_session = (uint16_t)(pids[sid].n_session + delta);
}

bool pid_is_pgrp(pid_t pgid)
{
	return pgid > 0 && pgid < PID_MAX && pids[pgid].n_pgrp;
}

bool pid_is_session(pid_t sid)
{
	return sid > 0 && sid < PID_MAX && pids[sid].n_session;
}
