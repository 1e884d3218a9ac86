/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of tasks, process groups and sessions. A number is free only when it is none of the three, as Linux's
 * struct pid; numbers are handed out in a cycle, so that a number is not reused soon. */
#ifndef SBX_SENTRY_KERNEL_PID_H
#define SBX_SENTRY_KERNEL_PID_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/macros.h"

struct task;

#define PID_MAX 32768 /* as /proc/sys/kernel/pid_max of a small Linux: no number is that or larger */

/* A free number, or -EAGAIN. It is taken only by pid_set_task(). */
MUST_CHECK pid_t pid_alloc(void);
/* Borrowed, or NULL. */
struct task *pid_task(pid_t pid);
/* Borrows @t, or clears with NULL. */
void pid_set_task(pid_t pid, struct task *t);

/* Members of the process group and session; pid 0 is ignored. */
void pid_pgrp_add(pid_t pgid, int delta);
void pid_session_add(pid_t sid, int delta);
bool pid_is_pgrp(pid_t pgid);
bool pid_is_session(pid_t sid);

/* For tests: the number that was handed out last. */
void pid_set_last(pid_t pid);

#endif
