/* SPDX-License-Identifier: Apache-2.0 */
/* The clocks of clock_gettime(2). They are the host's, so that the vDSO and the sentry agree; CPU
 * clocks are estimates. */
#ifndef SBX_SENTRY_KERNEL_CLOCK_H
#define SBX_SENTRY_KERNEL_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/macros.h"
#include "sentry/abi/time.h"

struct task;

#define CLOCK_NS_MAX ((uint64_t)INT64_MAX) /* about 292 years: later times mean "never" */

/* Now by the clock @id as @t names it; -EINVAL for an unknown clock or a CPU clock of a process
 * that is not there. */
MUST_CHECK int clock_read(struct task *t, int id, uint64_t *ns);
/* 0 and the resolution, or -EINVAL. */
MUST_CHECK int clock_resolution(struct task *t, int id, uint64_t *ns);
/* May it be set by somebody (then clock_settime(2) says EPERM), or by nobody (EINVAL)? */
bool clock_is_settable(int id);
/* Can timers run on it: 0, -EINVAL for an unknown clock, -EOPNOTSUPP. */
MUST_CHECK int clock_timer_check(int id);

/*
 * The CLOCK_MONOTONIC time at which clock @id (one that passed clock_timer_check) shows @ns; in the
 * past when it has passed; UINT64_MAX for never.
 */
uint64_t clock_to_mono(int id, uint64_t ns);
/* Now by such a clock. */
uint64_t clock_timer_now(int id);

/* Checks and converts: -EINVAL for negative seconds or nanoseconds out of range; clamped to
 * CLOCK_NS_MAX. */
MUST_CHECK int timespec_to_ns(const struct linux_timespec *ts, uint64_t *ns);
MUST_CHECK int timeval_to_ns(const struct linux_timeval *tv, uint64_t *ns);
struct linux_timespec ns_to_timespec(uint64_t ns);
struct linux_timeval ns_to_timeval(uint64_t ns);

static inline uint64_t ns_add_sat(uint64_t a, uint64_t b)
{
	uint64_t r;

	return __builtin_add_overflow(a, b, &r) || r > CLOCK_NS_MAX ? CLOCK_NS_MAX : r;
}

#endif
