/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiters hang in a hash table by key. A wait is a struct futex_wait in task->op.data with one
 * waiter a word; a wake takes the waiter off its bucket, marks it and makes the task run its call
 * again, which finds the mark. A wake that meets a time-out or a signal wins, as on Linux.
 *
 * No wake is lost although the word is compared by a copy: the guest changes the word first and
 * calls FUTEX_WAKE then, and calls are handled one after another. If the copy still had the old
 * value, the FUTEX_WAKE is yet to come and finds the waiter.
 */
#include "sentry/kernel/futex.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/bug.h"
#include "base/hash.h"
#include "sentry/kernel/futex_freeze.h"
#include "sentry/kernel/futex_priv.h"
#include "sentry/kernel/restart.h"
#include "sentry/kernel/task.h"
#include "sentry/kernel/timer.h"
#include "sentry/kernel/uaccess.h"
#include "sentry/mm/mm.h"

#define N_BUCKETS 1024u

static struct list buckets[N_BUCKETS];
static unsigned n_pi_waiters;

static struct list *bucket(const struct futex_key *k)
{
	uint64_t h = hash_u64((uint64_t)(uintptr_t)k->object * 31 + k->offset);
	struct list *b = &buckets[h % N_BUCKETS];

	if (!b->next)
		list_init(b);
	return b;
}

bool futex_key_equal(const struct futex_key *a, const struct futex_key *b)
{
	return a->object == b->object && a->offset == b->offset;
}

int futex_get_key(struct task *t, uaddr_t a, bool shared, struct futex_key *k)
{
	if (a % sizeof(uint32_t))
		return -EINVAL;
	if (a >= GUEST_TASK_SIZE)
		return -EFAULT;
	if (shared && mm_shared_object(t->mm, a, &k->object, &k->offset))
		return 0;
	/* Linux looks the page of a shared one up. */
	if (shared && mm_prot_at(t->mm, a) <= PROT_NONE)
		return -EFAULT;
	/* Private memory is keyed by address even when asked for as shared: no other process can have it. */
	*k = (struct futex_key){ .object = t->mm, .offset = a };
	return 0;
}

void futex_enqueue(struct futex_waiter *w)
{
	w->woken = false;
	if (w->pi)
		n_pi_waiters++;
	list_add_tail(bucket(&w->key), &w->node);
}

static void unqueue(struct futex_waiter *w)
{
	if (list_empty(&w->node))
		return;
	list_del(&w->node);
	if (w->pi)
		n_pi_waiters--;
}

void futex_unqueue_all(struct futex_wait *fw)
{
	for (unsigned i = 0; i < fw->n; i++)
		unqueue(&fw->w[i]);
	fw->queued = false;
}

static void wait_free(void *data)
{
	struct futex_wait *fw = data;

	futex_thaw(fw->w[0].task); /* a call that failed while it held the others */
	futex_unqueue_all(fw);
	free(fw);
}

struct futex_wait *futex_wait_hold(struct task *t, unsigned n)
{
	struct futex_wait *fw = t->op.data;

	if (fw) {
		BUG_ON(fw->n != n); /* the same call with the same arguments */
		return fw;
	}
	fw = calloc(1, sizeof(*fw) + n * sizeof(fw->w[0]));
	if (!fw)
		return NULL;
	fw->n = n;
	for (unsigned i = 0; i < n; i++) {
		list_init(&fw->w[i].node);
		fw->w[i].task = t;
	}
	task_op_hold(t, fw, wait_free);
	return fw;
}

void futex_wake_waiter(struct futex_waiter *w)
{
	unqueue(w);
	w->woken = true;
	task_wake(w->task);
}

int futex_wake_key(const struct futex_key *k, int n, uint32_t bitset)
{
	struct futex_waiter *w, *tmp;
	int woken = 0;

	list_for_each_entry_safe(w, tmp, bucket(k), node) {
		if (!futex_key_equal(&w->key, k))
			continue;
		if (w->pi)
			return -EINVAL;
		if (!(w->bitset & bitset))
			continue;
		futex_wake_waiter(w);
		if (++woken >= n)
			break;
	}
	return woken;
}

int64_t futex_wake_bitset(struct task *t, uaddr_t a, bool shared, int n, uint32_t bitset)
{
	struct futex_key k;
	int r;

	if (!bitset)
		return -EINVAL;
	r = futex_get_key(t, a, shared, &k);
	return r < 0 ? r : futex_wake_key(&k, n, bitset);
}

int futex_wake(struct task *t, uaddr_t a, unsigned n)
{
	struct futex_key priv, shared;
	int woken = 0;

	if (futex_get_key(t, a, false, &priv) < 0)
		return 0;
	woken = MAX(futex_wake_key(&priv, (int)n, FUTEX_BITSET_MATCH_ANY), 0);
	if (woken < (int)n && futex_get_key(t, a, true, &shared) == 0 &&
	    !futex_key_equal(&priv, &shared))
		woken += MAX(futex_wake_key(&shared, (int)n - woken, FUTEX_BITSET_MATCH_ANY), 0);
	return woken;
}

bool futex_first_is_other(const struct futex_key *k)
{
	struct futex_waiter *w;

	list_for_each_entry(w, bucket(k), node)
		if (futex_key_equal(&w->key, k))
			return !w->pi;
	return false;
}

struct futex_waiter *futex_pi_first(const struct futex_key *k)
{
	struct futex_waiter *w;

	list_for_each_entry(w, bucket(k), node)
		if (w->pi && futex_key_equal(&w->key, k))
			return w;
	return NULL;
}

struct futex_waiter *futex_pi_owned_by(pid_t owner)
{
	struct futex_waiter *w;

	for (unsigned i = 0; n_pi_waiters && i < N_BUCKETS; i++) {
		if (!buckets[i].next)
			continue;
		list_for_each_entry(w, &buckets[i], node)
			if (w->pi && w->owner == owner)
				return w;
	}
	return NULL;
}

void futex_pi_set_owner(const struct futex_key *k, pid_t owner)
{
	struct futex_waiter *w;

	list_for_each_entry(w, bucket(k), node)
		if (w->pi && futex_key_equal(&w->key, k))
			w->owner = owner;
}

/* Index of a woken waiter, or -1. */
static int woken_index(const struct futex_wait *fw)
{
	for (unsigned i = 0; i < fw->n; i++)
		if (fw->w[i].woken)
			return (int)i;
	return -1;
}

/* Queues all waiters if each word still has its value: 0, -EAGAIN, -EFAULT, -EINVAL. */
static int wait_setup(struct task *t, struct futex_wait *fw, const struct futex_wait_arg *args)
{
	uint32_t now;
	int r;

	for (unsigned i = 0; i < fw->n; i++) {
		struct futex_waiter *w = &fw->w[i];

		r = futex_get_key(t, args[i].addr, args[i].shared, &w->key);
		if (!r)
			r = copy_in(t, args[i].addr, &now, sizeof(now));
		if (!r && now != args[i].val)
			r = -EAGAIN;
		if (r < 0) {
			futex_unqueue_all(fw);
			return r;
		}
		w->bitset = args[i].bitset;
		futex_enqueue(w);
	}
	fw->queued = true;
	return 0;
}

/* One run of a waiting call. @intr: what it returns when a signal interrupts it. */
static int64_t wait_run(struct task *t, const struct futex_wait_arg *args, unsigned n,
			uint64_t deadline, int64_t intr)
{
	struct futex_wait *fw = futex_wait_hold(t, n);
	int64_t r;
	int i;

	if (!fw)
		return -ENOMEM;
	if (fw->queued) {
		i = woken_index(fw);
		if (i >= 0)
			return i;
	}
	if (task_timed_out(t) && t->op.restarted)
		return -ETIMEDOUT;
	if (!fw->queued) {
		r = wait_setup(t, fw, args);
		if (r < 0)
			return r;
	}
	if (deadline != UINT64_MAX && deadline <= clock_mono_ns())
		return -ETIMEDOUT;
	task_deadline(t, deadline);
	r = task_block(t, intr);
	if (r != SYS_BLOCKED)
		futex_unqueue_all(fw);
	return r;
}

int64_t futex_wait(struct task *t, const struct futex_wait_arg *arg, uint64_t deadline)
{
	if (!arg->bitset)
		return -EINVAL;
	return wait_run(t, arg, 1, deadline,
			deadline == UINT64_MAX ? -ERESTARTSYS : -ERESTART_BLOCK);
}

int64_t futex_wait_many(struct task *t, const struct futex_wait_arg *args, unsigned n,
			uint64_t deadline)
{
	return wait_run(t, args, n, deadline, -ERESTARTSYS);
}

int64_t futex_requeue(struct task *t, const struct futex_requeue_arg *arg)
{
	struct futex_key from, to;
	struct futex_waiter *w, *tmp;
	struct list moved = LIST_INIT(moved);
	int done = 0, r;
	uint32_t now;

	if (arg->n_wake < 0 || arg->n_requeue < 0)
		return -EINVAL;
	r = futex_get_key(t, arg->from, arg->shared, &from);
	if (!r)
		r = futex_get_key(t, arg->to, arg->shared, &to);
	if (!r && arg->compare) {
		r = copy_in(t, arg->from, &now, sizeof(now));
		if (!r && now != arg->val)
			r = -EAGAIN;
	}
	if (r < 0)
		return r;
	list_for_each_entry_safe(w, tmp, bucket(&from), node) {
		if (!futex_key_equal(&w->key, &from))
			continue;
		if (done - arg->n_wake >= arg->n_requeue)
			break;
		/* PI waiters do not mix with others. As on Linux, what came before it is done. */
		if (w->pi) {
			r = -EINVAL;
			break;
		}
		if (done < arg->n_wake) {
			futex_wake_waiter(w);
		} else {
			list_del(&w->node);
			w->key = to;
			list_add_tail(&moved, &w->node);
		}
		done++;
	}
	list_splice_tail(bucket(&to), &moved);
	return r < 0 ? r : done;
}

/* The word of FUTEX_WAKE_OP: see futex(2), "FUTEX_WAKE_OP". */
static int apply_op(uint32_t enc, uint32_t old, uint32_t *new, bool *cond)
{
	int op = (enc >> 28) & 7, cmp = (enc >> 24) & 15;
	int32_t oparg = (int32_t)(enc << 8) >> 20, cmparg = (int32_t)(enc << 20) >> 20;
	int32_t o = (int32_t)old;
	uint32_t arg = (uint32_t)oparg;

	if (enc & ((uint32_t)FUTEX_OP_OPARG_SHIFT << 28))
		arg = 1u << (arg & 31);
	switch (op) {
	case FUTEX_OP_SET: *new = arg; break;
	case FUTEX_OP_ADD: *new = old + arg; break;
	case FUTEX_OP_OR: *new = old | arg; break;
	case FUTEX_OP_ANDN: *new = old & ~arg; break;
	case FUTEX_OP_XOR: *new = old ^ arg; break;
	default: return -ENOSYS;
	}
	switch (cmp) {
	case FUTEX_OP_CMP_EQ: *cond = o == cmparg; break;
	case FUTEX_OP_CMP_NE: *cond = o != cmparg; break;
	case FUTEX_OP_CMP_LT: *cond = o < cmparg; break;
	case FUTEX_OP_CMP_LE: *cond = o <= cmparg; break;
	case FUTEX_OP_CMP_GT: *cond = o > cmparg; break;
	case FUTEX_OP_CMP_GE: *cond = o >= cmparg; break;
	default: return -ENOSYS;
	}
	return 0;
}

/* With the other threads held: changes the word and wakes. */
static int64_t wake_op_frozen(struct task *t, const struct futex_key k[2], uaddr_t a2, int n1,
			      int n2, uint32_t op)
{
	uint32_t old, new = 0;
	bool cond = false;
	int r, woken, more;

	r = copy_in(t, a2, &old, sizeof(old));
	if (!r)
		r = apply_op(op, old, &new, &cond);
	if (!r)
		r = copy_out(t, a2, &new, sizeof(new));
	if (r < 0)
		return r;
	woken = futex_wake_key(&k[0], n1, FUTEX_BITSET_MATCH_ANY);
	if (woken < 0 || !cond)
		return woken;
	more = futex_wake_key(&k[1], n2, FUTEX_BITSET_MATCH_ANY);
	return more < 0 ? more : woken + more;
}

int64_t futex_wake_op(struct task *t, uaddr_t a1, uaddr_t a2, bool shared, int n1, int n2,
		      uint32_t op)
{
	struct futex_key k[2];
	int64_t r = futex_get_key(t, a1, shared, &k[0]);

	if (!r)
		r = futex_get_key(t, a2, shared, &k[1]);
	if (r < 0)
		return r;
	if (!futex_freeze(t)) {
		r = task_block(t, -ERESTARTNOINTR);
		if (r != SYS_BLOCKED)
			futex_thaw(t);
		return r;
	}
	r = wake_op_frozen(t, k, a2, n1, n2, op);
	futex_thaw(t);
	return r;
}
