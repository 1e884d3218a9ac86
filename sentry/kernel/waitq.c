/* SPDX-License-Identifier: Apache-2.0 */
#include "sentry/kernel/waitq.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/bug.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/restart.h"
#include "sentry/kernel/sig.h"
#include "sentry/kernel/task.h"

/* A larger array of waiters is freed when the call ends, a smaller one is kept for the next. */
#define MORE_WAITERS_KEPT 64u
#define MORE_WAITERS_MAX  (1u << 20) /* far above any fd limit */

void waitq_init(struct waitq *q)
{
	list_init(&q->waiters);
}

void waitq_fini(struct waitq *q)
{
	BUG_ON(!list_empty(&q->waiters));
}

void waitq_add(struct waitq *q, struct waiter *w)
{
	list_add_tail(&q->waiters, &w->node);
}

void waitq_remove(struct waiter *w)
{
	list_del(&w->node);
}

unsigned waitq_wake_n(struct waitq *q, uint32_t events, unsigned n)
{
	uint32_t always = events & (POLLERR | POLLHUP);
	struct waiter *w, *tmp;
	unsigned woken = 0;

	list_for_each_entry_safe(w, tmp, &q->waiters, node) {
		if (!(w->events & events) && !always)
			continue;
		if (w->exclusive) {
			if (!n)
				continue;
			n--;
		}
		w->wake(w, events);
		woken++;
	}
	return woken;
}

static void task_waiter_wake(struct waiter *w, uint32_t events)
{
	(void)events; /* the call looks for itself when it runs again */
	task_wake(container_of(w, struct task_waiter, w)->task);
}

/* Grows op->more_waiters; its members are queued, so their neighbours are told the new places. */
static int more_waiters_grow(struct sysop *op)
{
	unsigned used = op->n_waiters - TASK_WAITERS_INLINE;
	unsigned cap = op->cap_more ? op->cap_more * 2 : 8;
	struct task_waiter *more;

	if (cap > MORE_WAITERS_MAX)
		return -ENOMEM;
	more = malloc(cap * sizeof(*more));
	if (!more)
		return -ENOMEM;
	for (unsigned i = 0; i < used; i++) {
		struct list *old = &op->more_waiters[i].w.node;

		more[i] = op->more_waiters[i];
		if (list_empty(old)) {
			list_init(&more[i].w.node);
		} else {
			old->prev->next = &more[i].w.node;
			old->next->prev = &more[i].w.node;
		}
	}
	free(op->more_waiters);
	op->more_waiters = more;
	op->cap_more = cap;
	return 0;
}

int task_wait_on(struct task *t, struct waitq *q, uint32_t events)
{
	struct sysop *op = &t->op;
	struct task_waiter *tw;

	if (op->n_waiters < TASK_WAITERS_INLINE) {
		tw = &op->inline_waiters[op->n_waiters];
	} else {
		unsigned i = op->n_waiters - TASK_WAITERS_INLINE;

		if (i == op->cap_more) {
			int r = more_waiters_grow(op);

			if (r < 0)
				return r;
		}
		tw = &op->more_waiters[i];
	}
	op->n_waiters++;
	tw->task = t;
	tw->w.events = events;
	tw->w.exclusive = false;
	tw->w.wake = task_waiter_wake;
	waitq_add(q, &tw->w);
	return 0;
}

static void op_deadline_fire(struct ktimer *kt)
{
	struct task *t = container_of(kt, struct task, op.timer);

	t->op.timed_out = true;
	task_wake(t);
}

void task_deadline(struct task *t, uint64_t abs_ns)
{
	struct sysop *op = &t->op;

	if (abs_ns == UINT64_MAX || op->has_deadline)
		return;
	op->has_deadline = true;
	ktimer_init(&op->timer, op_deadline_fire);
	if (ktimer_arm(&op->timer, abs_ns) < 0) {
		/* No memory for the timer: better early than never. */
		op->timed_out = true;
		op->woken = true;
	}
}

bool task_timed_out(const struct task *t)
{
	return t->op.timed_out;
}

void task_wait_undo(struct task *t, bool keep_deadline)
{
	struct sysop *op = &t->op;

	for (unsigned i = 0; i < op->n_waiters; i++) {
		if (i < TASK_WAITERS_INLINE)
			waitq_remove(&op->inline_waiters[i].w);
		else
			waitq_remove(&op->more_waiters[i - TASK_WAITERS_INLINE].w);
	}
	op->n_waiters = 0;
	op->woken = false;
	if (op->cap_more > MORE_WAITERS_KEPT && !keep_deadline) {
		free(op->more_waiters);
		op->more_waiters = NULL;
		op->cap_more = 0;
	}
	if (op->input_wait)
		kernel_note_input_wait(t, false);
	if (op->has_deadline && !keep_deadline) {
		ktimer_cancel(&op->timer);
		op->has_deadline = false;
	}
}

static int64_t task_park(struct task *t)
{
	t->state = TASK_BLOCKED;
	if (t->op.woken)
		task_wake(t);
	return SYS_BLOCKED;
}

int64_t task_block(struct task *t, int64_t intr)
{
	if (sig_pending(t)) {
		/* The deadline goes with the call's end, or is kept for a restart (ERESTART_BLOCK). */
		task_wait_undo(t, true);
		return intr;
	}
	return task_park(t);
}

int64_t task_block_killable(struct task *t)
{
	return task_park(t);
}

void task_wake(struct task *t)
{
	if (t->state == TASK_BLOCKED) {
		t->state = TASK_RUNNABLE;
		list_add_tail(&kernel.runq, &t->runq_node);
	} else if (t->state == TASK_RUNNING) {
		t->op.woken = true;
	}
}
