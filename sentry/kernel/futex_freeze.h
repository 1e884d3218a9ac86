/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeping the other threads of an address space out of guest code for the time of one
 * read-modify-write of a futex word. See futex_freeze.c.
 */
#ifndef SBX_SENTRY_KERNEL_FUTEX_FREEZE_H
#define SBX_SENTRY_KERNEL_FUTEX_FREEZE_H

#include <stdbool.h>

#include "base/macros.h"
#include "sentry/kernel/task.h"

struct mm;

extern struct mm *futex_frozen_mm;    /* NULL: no freeze; only compared */
extern struct task *futex_freeze_for; /* the thread that asked; only compared */

static inline bool futex_freeze_holds(const struct task *t)
{
	return unlikely(futex_frozen_mm) && t->mm == futex_frozen_mm && t != futex_freeze_for;
}

/* True when no other thread of t->mm can be in guest code now: until @t's call ends or blocks the
 * words are its own. False: a freeze was started or joined; the call must end its run with
 * task_block() and begin anew when it runs again. */
MUST_CHECK bool futex_freeze(struct task *t);

/* The read-modify-write is done: lets the others run. Harmless without a freeze of @t's. */
void futex_thaw(struct task *t);

/* In the exit path of a held thread: it has stopped (was parked). */
void futex_freeze_parked(struct task *t);

#endif
