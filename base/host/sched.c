/* SPDX-License-Identifier: Apache-2.0 */
#include "base/host/sched.h"

#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TURN_NS 100000 /* the shortest that Linux gives */

unsigned host_cpu_count(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		return 1;
	return CPU_COUNT(&set) > 0 ? (unsigned)CPU_COUNT(&set) : 1;
}

unsigned host_cpu_current(void)
{
	int cpu = sched_getcpu();

	return cpu < 0 ? 0 : (unsigned)cpu;
}

static cpu_set_t remembered;

int host_cpu_remember(void)
{
	return sched_getaffinity(0, sizeof(remembered), &remembered) < 0 ? -errno : 0;
}

int host_cpu_bind(pid_t tid, unsigned cpu)
{
	cpu_set_t set;

	if (cpu >= CPU_SETSIZE)
		return -EINVAL;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(tid, sizeof(set), &set) < 0 ? -errno : 0;
}

int host_cpu_unbind(pid_t tid)
{
	return sched_setaffinity(tid, sizeof(remembered), &remembered) < 0 ? -errno : 0;
}

/* As in linux/sched/types.h, which older headers do not have. */
struct host_sched_attr {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
	uint32_t util_min, util_max;
};

void host_sched_short_turns(void)
{
	const struct host_sched_attr a = {
		.size = sizeof(a), .policy = SCHED_OTHER, .nice = getpriority(PRIO_PROCESS, 0), .runtime = TURN_NS,
	};

	if (sched_getscheduler(0) == SCHED_OTHER)
		(void)syscall(SYS_sched_setattr, 0, &a, 0);
}
