/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SBX_BASE_HOST_SCHED_H
#define SBX_BASE_HOST_SCHED_H

#include <sys/types.h>

#include "base/macros.h"

/* Processors that this process may run on, at least 1. */
unsigned host_cpu_count(void);
/* The processor that the caller runs on; by the vDSO, no host call. */
unsigned host_cpu_current(void);
/* Which processors the calling thread may use now, for host_cpu_unbind. */
MUST_CHECK int host_cpu_remember(void);
/* Binds a thread (0: the calling one) to one processor, or lets it go to all that were remembered. 0 or -errno. */
MUST_CHECK int host_cpu_bind(pid_t tid, unsigned cpu);
MUST_CHECK int host_cpu_unbind(pid_t tid);
/* Asks for short turns for the calling thread and what it makes: as much time as before, but soon when it wakes up. For
 * those whom somebody waits for in each call. Linux 6.12; without it nothing happens. */
void host_sched_short_turns(void);

#endif
