/* SPDX-License-Identifier: Apache-2.0 */
/* Fast user-space locks: futex(2), get_robust_list(2), set_tid_address(2). */
#ifndef SBX_SENTRY_KERNEL_FUTEX_H
#define SBX_SENTRY_KERNEL_FUTEX_H

#include <stdbool.h>
#include <stdint.h>

#include "base/macros.h"
#include "platform/platform.h"

struct mm;
struct task;

/* What makes two addresses the same futex. Compared and hashed by value; pads are zero. */
struct futex_key {
	const void *object; /* the mm (private), or the memory object behind a shared mapping */
	uint64_t offset;    /* the address, or the byte offset in the object */
};

/*
 * Given by sentry/mm, optional (weak): the key of a word at @a that may be shared: for a MAP_SHARED mapping its object and
 * offset, for private memory @mm and @a. 0, or -EFAULT when nothing is mapped there. While no definition is linked the key is
 * always mm and address: right within a process.
 */
int mm_futex_key(struct mm *mm, uaddr_t a, struct futex_key *k) __attribute__((weak));

/*
 * The task leaves its address space, by exit or execve(2): marks the robust mutexes that it holds, clears and wakes
 * clear_tid. Called while t->mm is still the old one; harmless when the memory is gone. Waiters of @t itself are
 * dropped with task->op.
 */
void futex_mm_release(struct task *t);

/* Wakes up to @n waiters of the word at @a in @t's address space (private key and shared key). */
int futex_wake(struct task *t, uaddr_t a, unsigned n);

#endif
