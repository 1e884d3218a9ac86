/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linux changes a futex word with a locked instruction. Guest memory is written from outside here,
 * by a copy, which cannot be atomic against a guest thread that changes the same word at the same
 * time. Where the kernel's part of the futex protocol is a read-modify-write that guest code may
 * race with (FUTEX_WAKE_OP, taking or marking a PI lock), the other threads of the address space
 * are kept out of guest code for that time.
 *
 * A thread that runs guest code (TASK_RUNNING) is interrupted and held in its exit path
 * (sig_deliver()); one whose call ends meanwhile is held there too; a blocked one cannot touch
 * memory. When none is left running the asking call is run again and has the words for itself until
 * futex_thaw(). One freeze at a time; others wait for their turn.
 *
 * A platform that can hold all guest code at once (platform_ops.hold) does so instead, until the call
 * has ended: nobody is parked, and nobody else can reach the words either.
 *
 * Limits of the rest. Other address spaces that share the page are not held: for a word in shared memory the
 * operation is exact only within the process, as the words are changed by at most one process at a
 * time in each protocol that uses them (the owner of a PI lock excepted). A guest that keeps a
 * thread from stopping loses the guarantee after FREEZE_PATIENCE_NS: it hurts nobody but itself.
 * Words of dead owners (robust list) need no freeze: see futex_pi.c.
 */
#include "sentry/kernel/futex_freeze.h"

#include <poll.h>

#include "sentry/kernel/kernel.h"
#include "sentry/kernel/sig_priv.h"
#include "sentry/kernel/waitq.h"

#define FREEZE_POLL_NS     200000u   /* a thread that blocks instead of stopping is noticed so */
#define FREEZE_PATIENCE_NS 20000000u

struct mm *futex_frozen_mm;
struct task *futex_freeze_for;

static struct {
	uint64_t give_up;
	struct ktimer poll;
	struct waitq turn; /* calls that wait for another freeze to end */
	bool init_done;
} freeze;

/* Interrupts the others that run guest code, or only counts them. */
static unsigned others_running(struct task *t, bool interrupt)
{
	struct tgroup *tg;
	struct task *u;
	unsigned n = 0;

	list_for_each_entry(tg, &kernel.tgroups, all_node)
		list_for_each_entry(u, &tg->tasks, tg_node) {
			if (u == t || u->mm != t->mm || u->state != TASK_RUNNING || u->exiting)
				continue;
			n++;
			if (interrupt)
				sig_kick(u);
		}
	return n;
}

static bool all_held(void)
{
	return !others_running(futex_freeze_for, false) || clock_mono_ns() >= freeze.give_up;
}

static void poll_fire(struct ktimer *kt)
{
	if (!futex_freeze_for)
		return;
	if (all_held() || ktimer_arm(kt, clock_mono_ns() + FREEZE_POLL_NS) < 0)
		task_wake(futex_freeze_for);
}

static void thaw_held(void *data)
{
	futex_thaw(data);
}

bool futex_freeze(struct task *t)
{
	if (kernel.plat->hold) {
		kernel.plat->hold(kernel.platform);
		return true;
	}
	if (!freeze.init_done) {
		waitq_init(&freeze.turn);
		ktimer_init(&freeze.poll, poll_fire);
		freeze.init_done = true;
	}
	if (futex_freeze_for == t)
		return all_held();
	if (!others_running(t, false))
		return true; /* and none starts before this call ends: the leader is here */
	if (futex_freeze_for)
		return task_wait_on(t, &freeze.turn, POLLIN) <
		       0; /* no memory to wait: do without */
	/* However the call ends, the others go on. A wait for a PI lock sees to that by itself. */
	if (!t->op.data)
		task_op_hold(t, t, thaw_held);
	futex_frozen_mm = t->mm;
	futex_freeze_for = t;
	freeze.give_up = clock_mono_ns() + FREEZE_PATIENCE_NS;
	if (ktimer_arm(&freeze.poll, clock_mono_ns() + FREEZE_POLL_NS) < 0) {
		futex_thaw(t);
		return true;
	}
	others_running(t, true);
	return false;
}

void futex_freeze_parked(struct task *t)
{
	(void)t;
	if (futex_freeze_for && !others_running(futex_freeze_for, false))
		task_wake(futex_freeze_for);
}

void futex_thaw(struct task *t)
{
	struct tgroup *tg;
	struct task *u;

	if (futex_freeze_for != t)
		return;
	ktimer_cancel(&freeze.poll);
	futex_frozen_mm = NULL;
	futex_freeze_for = NULL;
	list_for_each_entry(tg, &kernel.tgroups, all_node)
		list_for_each_entry(u, &tg->tasks, tg_node) {
			struct sig_thread *st = sig_thread(u);

			if (!st || !st->frozen || u->state != TASK_STOPPED)
				continue;
			u->state = TASK_RUNNABLE;
			list_add_tail(&kernel.runq, &u->runq_node);
		}
	waitq_wake(&freeze.turn, POLLIN);
}
