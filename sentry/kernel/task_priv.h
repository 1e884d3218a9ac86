/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files that make, run and end tasks: task.c, clone.c, exit.c, wait.c, trap.c. */
#ifndef SBX_SENTRY_KERNEL_TASK_PRIV_H
#define SBX_SENTRY_KERNEL_TASK_PRIV_H

#include <stdbool.h>
#include <stdint.h>

#include "base/macros.h"
#include "sentry/kernel/task.h"

/* A task and a group with nothing in them but lists and counters: one reference each. NULL: no memory. */
struct task *task_alloc(void);
struct tgroup *tgroup_alloc(void);

/* Tasks whose last reference went, by runq_node; freed when no function that was handed them is on the stack. */
extern struct list graveyard;
void task_bury_slow(void);

static inline void task_bury(void)
{
	if (!list_empty(&graveyard))
		task_bury_slow();
}

/* May one more task be made for @parent's user? 0, or -EAGAIN. */
MUST_CHECK int task_limit_check(const struct task *parent);

/* Enters a complete task into the tables under @tid: it then exists for the guest. The table takes the caller's
 * reference. With a new group the task is its leader; pgid, sid and parent are set. */
void task_publish(struct task *t, pid_t tid, bool new_group);
/* Takes the number away and drops the table's reference. */
void task_unpublish(struct task *t);

/* The internal pid 1. 0, or -ENOMEM. */
MUST_CHECK int init_create(void);

/* Puts all that a task holds of others; for a half-built one too. */
void task_drop_resources(struct task *t);

/* Ends the system call in progress: registrations, deadline and data go. */
void task_op_end(struct task *t);
/* As a call that has not run yet, with the same number and arguments. */
void task_op_reset(struct task *t);

/* A zombie goes for good; its times are added to its parent's. */
void tgroup_reap(struct tgroup *tg);
/* The wait(2) status of a dead group. */
int tgroup_exit_status(const struct tgroup *tg);

/* Lets the parent of a vfork go on. */
void task_vfork_done(struct task *t);

/* The exit path: gives the outcome of a stopped task's call (ignored when !in_syscall) to the guest, after signals. A
 * new task enters the guest this way too. */
void task_leave(struct task *t, int64_t result);

/* Runs woken calls until none is left or the turn is over. */
void runq_drain(void);

/* The first process is dead. */
void kernel_first_exited(int wait_status);

#endif
