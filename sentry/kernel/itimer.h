/* SPDX-License-Identifier: Apache-2.0 */
/* Interval timers of a process: getitimer(2), alarm(2). REAL runs on CLOCK_MONOTONIC; VIRTUAL and
 * PROF on the group's CPU time, sampled every few milliseconds while one of them is armed. */
#ifndef SBX_SENTRY_KERNEL_ITIMER_H
#define SBX_SENTRY_KERNEL_ITIMER_H

#include <stdint.h>

#include "base/macros.h"

struct tgroup;

/* In ns; value: until the next expiry, 0: off. */
struct itimer_value {
	uint64_t value, interval;
};

void itimer_init(struct tgroup *tg);
void itimer_exit(struct tgroup *tg);

/* @which: ITIMER_REAL, _VIRTUAL, _PROF; else -EINVAL. */
MUST_CHECK int itimer_get(struct tgroup *tg, int which, struct itimer_value *v);
/* @old may be NULL. -ENOMEM when no timer can be armed. */
MUST_CHECK int itimer_set(struct tgroup *tg, int which, const struct itimer_value *v,
			  struct itimer_value *old);

#endif
