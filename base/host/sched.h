/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SBX_BASE_HOST_SCHED_H
#define SBX_BASE_HOST_SCHED_H

/* Processors that this process may run on, at least 1. */
unsigned host_cpu_count(void);
/* The processor that the caller runs on; by the vDSO, no host call. */
unsigned host_cpu_current(void);
/* Asks for short turns for the calling thread and what it makes: as much time as before, but soon when it wakes up. For
 * those whom somebody waits for in each call. Linux 6.12; without it nothing happens. */
void host_sched_short_turns(void);

#endif
