/* SPDX-License-Identifier: Apache-2.0 */
/* clone(2) and its kin. */
#ifndef SBX_SENTRY_KERNEL_CLONE_H
#define SBX_SENTRY_KERNEL_CLONE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "platform/platform.h"

struct task;

struct clone_request {
	uint64_t flags;      /* CLONE_*, without the exit signal */
	int exit_signal;     /* 0: none */
	uaddr_t stack;       /* the child's stack pointer; 0: the parent's */
	uint64_t tls;
	uaddr_t parent_tid;  /* where CLONE_PARENT_SETTID stores */
	uaddr_t child_tid;   /* CLONE_CHILD_SETTID, CLONE_CHILD_CLEARTID */
	uaddr_t pidfd;       /* where CLONE_PIDFD stores */
	pid_t set_tid;       /* the number wanted; 0: any */
};

/* Checks as copy_process() of Linux does. 0, -EINVAL or -EPERM. */
int clone_check(const struct task *t, const struct clone_request *rq);

/* Does @t's call run again because it waits for a child that it has made? Then only task_clone() is to be called, with
 * any request. */
bool task_clone_waits(const struct task *t);

/* Makes and starts the child: its number, -errno, a restart code, or SYS_BLOCKED (vfork). */
int64_t task_clone(struct task *t, const struct clone_request *rq);

#endif
