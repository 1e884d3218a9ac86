/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PI locks, robust lists and clear_tid: where the kernel writes futex words.
 *
 * A PI word holds the owner's thread id, FUTEX_WAITERS when the kernel knows waiters,
 * FUTEX_OWNER_DIED after a death. Guest code takes a free lock (0 -> tid) and gives back one
 * without waiters (tid -> 0) by itself; everything else is done here. Waiters queue in order of
 * arrival; giving the lock back writes the first waiter's id into the word and wakes it, so the
 * word is never free while somebody waits.
 *
 * Who may write when: marking FUTEX_WAITERS races with the owner's own tid -> 0, and taking a free
 * lock with another thread's 0 -> tid, so both are done in a freeze (futex_freeze.c). Handing over
 * needs none: the owner is in this call, and nobody else may change a word that names another
 * owner. Marking the word of a dead owner needs none either: living threads can only add
 * FUTEX_WAITERS before they call FUTEX_WAIT with the value they saw; if the mark is lost that call
 * finds another value, returns EAGAIN, and the thread looks again.
 */
#include <errno.h>
#include <linux/futex.h>

#include "base/log.h"
#include "sentry/kernel/futex.h"
#include "sentry/kernel/futex_freeze.h"
#include "sentry/kernel/futex_priv.h"
#include "sentry/kernel/restart.h"
#include "sentry/kernel/task.h"
#include "sentry/kernel/uaccess.h"

/* Is @tid a thread that can own a lock? */
static bool owner_lives(pid_t tid)
{
	struct task *o = task_lookup(tid);
	bool ok = o && !o->exiting && o->state != TASK_ZOMBIE;

	task_put(o);
	return ok;
}

/* With the other threads held. 0: taken; -EBUSY: @w was queued and must wait (or, without @w, it is
 * owned). */
static int take_or_queue(struct task *t, uaddr_t a, struct futex_waiter *w,
			 const struct futex_key *k)
{
	uint32_t word, new;
	pid_t owner;
	int r = copy_in(t, a, &word, sizeof(word));

	if (r < 0)
		return r;
	owner = (pid_t)(word & FUTEX_TID_MASK);
	if (owner == t->tid)
		return -EDEADLK;
	if (futex_first_is_other(k))
		return -EINVAL;
	if (!owner) {
		new = (word & FUTEX_OWNER_DIED) | (uint32_t)t->tid |
		      (futex_pi_first(k) ? FUTEX_WAITERS : 0);
		r = copy_out(t, a, &new, sizeof(new));
		if (!r)
			futex_pi_set_owner(k, t->tid);
		return r;
	}
	if (!owner_lives(owner))
		return -ESRCH;
	if (!w)
		return -EBUSY;
	new = word | FUTEX_WAITERS;
	if (new != word && (r = copy_out(t, a, &new, sizeof(new))) < 0)
		return r;
	w->key = *k;
	w->pi = true;
	w->bitset = FUTEX_BITSET_MATCH_ANY;
	w->owner = owner;
	futex_enqueue(w);
	return -EBUSY;
}

/* Blocks for the lock (or, before that, for the freeze). */
static int64_t lock_block(struct task *t, struct futex_wait *fw)
{
	int64_t r = task_block(t, -ERESTARTNOINTR);

	if (r != SYS_BLOCKED) {
		futex_thaw(t);
		if (fw)
			futex_unqueue_all(fw);
	}
	return r;
}

int64_t futex_lock_pi(struct task *t, uaddr_t a, bool shared, bool try_only, uint64_t deadline)
{
	struct futex_wait *fw = NULL;
	struct futex_key k;
	int64_t r = futex_get_key(t, a, shared, &k);

	if (r < 0)
		return r;
	if (!try_only) {
		fw = futex_wait_hold(t, 1);
		if (!fw)
			return -ENOMEM;
		if (fw->w[0].woken)
			return 0; /* the word has our id */
		task_deadline(t, deadline);
		if (task_timed_out(t)) {
			futex_thaw(t);
			return -ETIMEDOUT;
		}
		if (fw->queued)
			return lock_block(t, fw);
	}
	if (!futex_freeze(t))
		return lock_block(t, fw);
	r = take_or_queue(t, a, fw ? &fw->w[0] : NULL, &k);
	futex_thaw(t);
	if (r != -EBUSY)
		return r;
	if (try_only)
		return -EAGAIN;
	fw->queued = true;
	return lock_block(t, fw);
}

/* Gives the lock at @a to @w; @flags go into the word. */
static int hand_over(struct task *t, uaddr_t a, struct futex_waiter *w, uint32_t flags)
{
	uint32_t new = (uint32_t)w->task->tid | FUTEX_WAITERS | flags;
	struct futex_key k = w->key;
	pid_t tid = w->task->tid;
	int r = copy_out(t, a, &new, sizeof(new));

	if (r < 0)
		return r;
	futex_wake_waiter(w);
	futex_pi_set_owner(&k, tid);
	return 0;
}

int64_t futex_unlock_pi(struct task *t, uaddr_t a, bool shared)
{
	const uint32_t free_word = 0;
	struct futex_waiter *w;
	struct futex_key k;
	uint32_t word;
	int r = futex_get_key(t, a, shared, &k);

	if (!r)
		r = copy_in(t, a, &word, sizeof(word));
	if (r < 0)
		return r;
	if ((pid_t)(word & FUTEX_TID_MASK) != t->tid)
		return -EPERM;
	w = futex_pi_first(&k);
	return w ? hand_over(t, a, w, 0) : copy_out(t, a, &free_word, sizeof(free_word));
}

/*
 * Robust lists: set_robust_list(2). The list is guest memory: bounded, and given up at the first
 * bad pointer.
 */

#define ROBUST_LIST_MAX 2048u

struct linux_robust_list_head {
	uint64_t next;
	int64_t futex_offset;
	uint64_t list_op_pending;
};

/* The mutex at @a may be held by the dying @t. Negative: stop the walk. */
static int mark_owner_died(struct task *t, uaddr_t a, bool pi, bool pending)
{
	struct futex_key k;
	uint32_t word, new;

	if (futex_get_key(t, a, true, &k) < 0 || copy_in(t, a, &word, sizeof(word)) < 0)
		return -EFAULT;
	if (pending && !pi && !word) {
		/* It died between releasing the mutex and waking the next: wake for it. */
		futex_wake(t, a, 1);
		return 0;
	}
	if ((pid_t)(word & FUTEX_TID_MASK) != t->tid)
		return 0;
	new = (word & FUTEX_WAITERS) | FUTEX_OWNER_DIED;
	if (copy_out(t, a, &new, sizeof(new)) < 0)
		return -EFAULT;
	if (!pi && (word & FUTEX_WAITERS))
		futex_wake(t, a, 1);
	return 0;
}

static void walk_robust_list(struct task *t)
{
	struct linux_robust_list_head head;
	uint64_t entry, next, pending;
	unsigned n = 0;

	if (copy_in(t, t->robust_list, &head, sizeof(head)) < 0)
		return;
	/* Bit 0 of a pointer tells a PI mutex. */
	pending = head.list_op_pending & ~1ull;
	entry = head.next;
	while ((entry & ~1ull) != t->robust_list && n++ < ROBUST_LIST_MAX) {
		bool pi = entry & 1, more;

		entry &= ~1ull;
		/* Before the mutex is marked: its new owner may free it. */
		more = copy_in(t, entry, &next, sizeof(next)) == 0;
		if (entry != pending &&
		    mark_owner_died(t, entry + (uint64_t)head.futex_offset, pi, false) < 0)
			return;
		if (!more)
			return;
		entry = next;
	}
	if (pending)
		(void)mark_owner_died(t, pending + (uint64_t)head.futex_offset,
				      head.list_op_pending & 1, true);
}

/* PI locks that others wait for: to the first of them, with the mark that their owner died. */
static void release_pi(struct task *t)
{
	struct futex_waiter *w;

	while ((w = futex_pi_owned_by(t->tid)) != NULL) {
		uaddr_t a = w->task->op.args.a[0];

		if (hand_over(w->task, a, w, FUTEX_OWNER_DIED) < 0)
			futex_wake_waiter(w); /* its memory is gone */
	}
}

void futex_mm_release(struct task *t)
{
	const uint32_t zero = 0;

	futex_thaw(t);
	if (!t->mm)
		return;
	if (t->robust_list)
		walk_robust_list(t);
	t->robust_list = 0;
	release_pi(t);
	if (t->clear_tid) {
		/* As Linux: when the store fails the wake is tried all the same. */
		if (copy_out(t, t->clear_tid, &zero, sizeof(zero)) < 0)
			log_dbg(CH_SIGNAL, "%d: clear_tid is not writable", t->tid);
		futex_wake(t, t->clear_tid, 1);
		t->clear_tid = 0;
	}
	if (futex_frozen_mm == t->mm)
		futex_freeze_parked(t);
}
