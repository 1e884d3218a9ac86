/* SPDX-License-Identifier: Apache-2.0 */
/* Fast user-space locks: futex(2), get_robust_list(2), set_tid_address(2). */
#ifndef SBX_SENTRY_KERNEL_FUTEX_H
#define SBX_SENTRY_KERNEL_FUTEX_H

#include <stdbool.h>
#include <stdint.h>

#include "base/macros.h"
#include "platform/platform.h"

struct task;

/* What makes two addresses the same futex. Compared by value. */
struct futex_key {
	const void *object; /* the mm (private), or the memory object behind a shared mapping */
	uint64_t offset;    /* the address, or the byte offset in the object */
};

/*
 * The operations of futex(2). They may be run several times for one call; @deadline is on
 * CLOCK_MONOTONIC, UINT64_MAX: none, and only looked at by the first run. All return a result of a
 * sys_* function.
 */

struct futex_wait_arg {
	uaddr_t addr;
	uint32_t val;
	uint32_t bitset;
	bool shared;
};

#define FUTEX_WAITV_MAX_WORDS 128u

/* FUTEX_WAIT and FUTEX_WAIT_BITSET, 0 when woken. */
int64_t futex_wait(struct task *t, const struct futex_wait_arg *arg, uint64_t deadline);
/* futex_waitv(2): the index of a woken one. */
int64_t futex_wait_many(struct task *t, const struct futex_wait_arg *args, unsigned n,
			uint64_t deadline);
int64_t futex_wake_bitset(struct task *t, uaddr_t a, bool shared, int n, uint32_t bitset);

struct futex_requeue_arg {
	uaddr_t from, to;
	int n_wake, n_requeue;
	bool shared;
	bool compare; /* FUTEX_CMP_REQUEUE: *from must be val */
	uint32_t val;
};
int64_t futex_requeue(struct task *t, const struct futex_requeue_arg *arg);

/* FUTEX_WAKE_OP; @op as FUTEX_OP() encodes it. */
int64_t futex_wake_op(struct task *t, uaddr_t a1, uaddr_t a2, bool shared, int n1, int n2,
		      uint32_t op);

/* Ownership as Linux keeps it in the word; no priority is inherited. */
int64_t futex_lock_pi(struct task *t, uaddr_t a, bool shared, bool try_only, uint64_t deadline);
int64_t futex_unlock_pi(struct task *t, uaddr_t a, bool shared);

/*
 * The task leaves its address space, by exit or execve(2): marks the robust mutexes that it holds,
 * clears and wakes clear_tid. Called while t->mm is still the old one; harmless when the memory is
 * gone. Waiters of @t itself are dropped with task->op.
 */
void futex_mm_release(struct task *t);

/* Wakes up to @n waiters of the word at @a in @t's address space (private key and shared key). */
int futex_wake(struct task *t, uaddr_t a, unsigned n);

#endif
