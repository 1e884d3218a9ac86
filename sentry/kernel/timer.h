/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel timers on CLOCK_MONOTONIC nanoseconds (a heap; the leader arms one host timer for the earliest). */
#ifndef SBX_SENTRY_KERNEL_TIMER_H
#define SBX_SENTRY_KERNEL_TIMER_H

#include <stdbool.h>
#include <stdint.h>

struct ktimer {
	uint64_t when;  /* absolute, ns */
	uint32_t index; /* 1 + place in the heap; 0: not armed */
	void (*fire)(struct ktimer *kt); /* runs from the leader, timer already disarmed; may arm it again */
};

void ktimer_init(struct ktimer *kt, void (*fire)(struct ktimer *kt));
/* Arms or moves. 0, or -ENOMEM (only when it was not armed). */
int ktimer_arm(struct ktimer *kt, uint64_t when);
void ktimer_cancel(struct ktimer *kt); /* harmless when not armed */

uint64_t clock_mono_ns(void);
uint64_t clock_real_ns(void);
uint64_t clock_boot_ns(void); /* of the host; the guest's uptime counts from kernel.boot_ns */

/* Runs what is due at @now; returns the next deadline or UINT64_MAX. */
uint64_t ktimer_run(uint64_t now);
uint64_t ktimer_next(void); /* the earliest deadline, or UINT64_MAX */

#endif
