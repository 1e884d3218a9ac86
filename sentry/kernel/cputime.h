/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPU time of guest tasks. It is an estimate: a task is charged as user time from the resume to the next trap, and as
 * system time from the trap to its answer. Where more guest threads run than there are processors, the host's
 * run queue is counted in; the limit of the sandbox (kernel_limits.cpu_ns) errs to the strict side.
 */
#ifndef SBX_SENTRY_KERNEL_CPUTIME_H
#define SBX_SENTRY_KERNEL_CPUTIME_H

#include <stdint.h>
#include <x86intrin.h>

struct task;

/*
 * Both measure the time-stamp counter against CLOCK_MONOTONIC. It takes half a millisecond, in which the sentry starts;
 * calibrate waits for what is left of it. To be called before the first task is made, whose times begin then.
 */
void cputime_init(void);
void cputime_calibrate(void);

extern uint32_t cputime_mult; /* ns a tick, times 2^24 */

/* ns since some start; the time-stamp counter costs 11 ns where the vDSO's clock costs 27. */
static inline uint64_t cputime_now(void)
{
	return (uint64_t)(((unsigned __int128)__rdtsc() * cputime_mult) >> 24);
}

/* Starts the timer that enforces the CPU limits; nothing without any. Called again when an RLIMIT_CPU is set. */
void cputime_watch(void);

#endif
