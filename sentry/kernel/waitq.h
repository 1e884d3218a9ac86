/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one blocking primitive of the sentry. No sys_* sleeps: it registers waiters, returns SYS_BLOCKED, and is run
 * again from its start with task->op kept.
 *
 * A typical sys_* body:
 *
 *	for (;;) {
 *		n = pipe_take(...);
 *		if (n != -EAGAIN || nonblocking) return n;
 *		task_wait_on(t, &pipe->wq, POLLIN | POLLHUP);
 *		return task_block(t, -ERESTARTSYS);     -- SYS_BLOCKED, or -ERESTARTSYS when a signal is pending
 *	}
 *
 * waitq_wake() only moves the tasks to the run queue; they run when the current trap is done.
 */
#ifndef SBX_SENTRY_KERNEL_WAITQ_H
#define SBX_SENTRY_KERNEL_WAITQ_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

struct task;
struct waitq;

struct waitq {
	struct list waiters;
};

struct waiter {
	struct list node;  /* on a waitq, or alone */
	uint32_t events;   /* POLL* mask: woken when it meets the mask of the wake; POLLERR and POLLHUP always meet */
	bool exclusive;    /* a wake with n counts it */
	/* Called with the waiter still queued; it may remove itself. Must not wake other queues recursively, epoll
	 * excepted. */
	void (*wake)(struct waiter *w, uint32_t events);
};

void waitq_init(struct waitq *q);
/* No waiter may be left. */
void waitq_fini(struct waitq *q);

void waitq_add(struct waitq *q, struct waiter *w); /* at the end */
void waitq_remove(struct waiter *w);               /* harmless when not queued */

/* Wakes all nonexclusive waiters and at most @n exclusive ones that wait for any of @events. Returns how many. */
unsigned waitq_wake_n(struct waitq *q, uint32_t events, unsigned n);

static inline void waitq_wake(struct waitq *q, uint32_t events)
{
	if (!list_empty(&q->waiters))
		waitq_wake_n(q, events, 1);
}

#define WAITQ_WAKE_ALL UINT32_MAX

/* Registers the current call of @t on @q until it runs again. 0, or -ENOMEM. @q must outlive the wait: hold a reference
 * on its owner in task->op (task_op_hold) when nothing else does. */
int task_wait_on(struct task *t, struct waitq *q, uint32_t events);

/* Arms the call's deadline (CLOCK_MONOTONIC, ns) unless one is already armed by an earlier run. UINT64_MAX: none. */
void task_deadline(struct task *t, uint64_t abs_ns);
bool task_timed_out(const struct task *t);

/* Ends the run of a call that must wait. Returns SYS_BLOCKED; or @intr (a negative restart code or -EINTR) at once when
 * a signal for @t is pending, with all registrations undone. */
int64_t task_block(struct task *t, int64_t intr);

/* As task_block() for a wait that only death ends (vfork). */
int64_t task_block_killable(struct task *t);

/* Makes a blocked @t run its call again; harmless when it is not blocked. */
void task_wake(struct task *t);

/* Undoes the registrations and the deadline of @t's call: before it runs again (@keep_deadline), and when it ends. */
void task_wait_undo(struct task *t, bool keep_deadline);

#endif
