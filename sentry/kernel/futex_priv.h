/* SPDX-License-Identifier: Apache-2.0 */
/* What futex.c and futex_pi.c share. */
#ifndef SBX_SENTRY_KERNEL_FUTEX_PRIV_H
#define SBX_SENTRY_KERNEL_FUTEX_PRIV_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "sentry/kernel/futex.h"

struct task;

struct futex_waiter {
	struct list node;  /* on a bucket; alone when woken or not waiting */
	struct futex_key key;
	struct task *task; /* borrowed: the wait lives in its op */
	uint32_t bitset;
	bool woken;
	bool pi;           /* waits for a PI lock; FUTEX_WAKE must not touch it */
	pid_t owner;       /* pi: the thread that holds the lock */
};

/* A wait in progress: task->op.data of the call. */
struct futex_wait {
	unsigned n;
	bool queued; /* the waiters are, or have been woken */
	struct futex_waiter w[];
};

/* The key of the aligned word at @a. -EINVAL: not aligned, -EFAULT. */
MUST_CHECK int futex_get_key(struct task *t, uaddr_t a, bool shared, struct futex_key *k);
bool futex_key_equal(const struct futex_key *a, const struct futex_key *b);

/* The wait of @t's call: the one of an earlier run, or a new one with @n waiters; NULL: no
 * memory. */
struct futex_wait *futex_wait_hold(struct task *t, unsigned n);
void futex_enqueue(struct futex_waiter *w); /* by w->key */
void futex_unqueue_all(struct futex_wait *fw);
void futex_wake_waiter(struct futex_waiter *w);
/* Wakes up to @n (at least one) waiters with a common bit; -EINVAL when a PI waiter is
 * among them. */
int futex_wake_key(const struct futex_key *k, int n, uint32_t bitset);
/* Does the first waiter wait for something else than a PI lock? */
bool futex_first_is_other(const struct futex_key *k);
/* The first PI waiter, or NULL; and of all keys, the first whose lock @owner holds. */
struct futex_waiter *futex_pi_first(const struct futex_key *k);
struct futex_waiter *futex_pi_owned_by(pid_t owner);
/* Lets the remaining PI waiters of @k know their owner. */
void futex_pi_set_owner(const struct futex_key *k, pid_t owner);

#endif
