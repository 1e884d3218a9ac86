/* SPDX-License-Identifier: Apache-2.0 */
#include "sentry/kernel/clock.h"

#include <errno.h>
#include <time.h>

#include "base/host/clock.h"
#include "sentry/kernel/task.h"
#include "sentry/kernel/timer.h"

#ifndef CLOCK_TAI
#define CLOCK_TAI 11
#endif

/* A negative clock is a CPU clock of a process or thread: ~pid << 3 | thread << 2 | kind;
 * clock_getcpuclockid(3). */
#define CPUCLOCK_PID(id)        ((pid_t)~((id) >> 3))
#define CPUCLOCK_PERTHREAD(id)  ((id) & 4)
#define CPUCLOCK_WHICH(id)      ((id) & 3)
#define CPUCLOCK_PROF  0
#define CPUCLOCK_VIRT  1
#define CPUCLOCK_SCHED 2

#define COARSE_RESOLUTION_NS 4000000u

static uint64_t cpu_pick(int which, uint64_t u, uint64_t s)
{
	return which == CPUCLOCK_VIRT ? u : u + s;
}

static int thread_clock(struct task *t, pid_t tid, int which, uint64_t *ns)
{
	struct task *u = tid ? task_lookup(tid) : task_get(t);
	uint64_t ut, st;

	if (!u)
		return -EINVAL;
	if (u->tg != t->tg) {
		task_put(u);
		return -EINVAL;
	}
	task_times(u, &ut, &st);
	task_put(u);
	*ns = cpu_pick(which, ut, st);
	return 0;
}

static int process_clock(struct task *t, pid_t pid, int which, uint64_t *ns)
{
	struct tgroup *tg = pid ? tgroup_lookup(pid) : tgroup_get(t->tg);
	uint64_t ut, st;

	if (!tg)
		return -EINVAL;
	tgroup_times(tg, &ut, &st);
	tgroup_put(tg);
	*ns = cpu_pick(which, ut, st);
	return 0;
}

static int cpu_clock(struct task *t, int id, uint64_t *ns)
{
	if (id == CLOCK_PROCESS_CPUTIME_ID)
		return process_clock(t, 0, CPUCLOCK_SCHED, ns);
	if (id == CLOCK_THREAD_CPUTIME_ID)
		return thread_clock(t, 0, CPUCLOCK_SCHED, ns);
	if (id >= 0 || CPUCLOCK_WHICH(id) > CPUCLOCK_SCHED)
		return -EINVAL; /* 3 is a clock device's descriptor: there are none */
	if (CPUCLOCK_PERTHREAD(id))
		return thread_clock(t, CPUCLOCK_PID(id), CPUCLOCK_WHICH(id), ns);
	return process_clock(t, CPUCLOCK_PID(id), CPUCLOCK_WHICH(id), ns);
}

int clock_read(struct task *t, int id, uint64_t *ns)
{
	switch (id) {
	case CLOCK_REALTIME:
		*ns = clock_real_ns();
		return 0;
	case CLOCK_MONOTONIC:
		*ns = clock_mono_ns();
		return 0;
	case CLOCK_MONOTONIC_RAW:
	case CLOCK_REALTIME_COARSE:
	case CLOCK_MONOTONIC_COARSE:
	case CLOCK_BOOTTIME:
	case CLOCK_TAI:
		return host_clock_ns(id, ns);
	case CLOCK_REALTIME_ALARM:
		*ns = clock_real_ns();
		return 0;
	case CLOCK_BOOTTIME_ALARM:
		return host_clock_ns(CLOCK_BOOTTIME, ns);
	default:
		return cpu_clock(t, id, ns);
	}
}

int clock_resolution(struct task *t, int id, uint64_t *ns)
{
	uint64_t now;
	int r = clock_read(t, id, &now);

	if (r < 0)
		return r;
	*ns = id == CLOCK_REALTIME_COARSE || id == CLOCK_MONOTONIC_COARSE ? COARSE_RESOLUTION_NS
									  : 1;
	return 0;
}

bool clock_is_settable(int id)
{
	return id == CLOCK_REALTIME;
}

int clock_timer_check(int id)
{
	switch (id) {
	case CLOCK_REALTIME:
	case CLOCK_MONOTONIC:
	case CLOCK_BOOTTIME:
	case CLOCK_TAI:
		return 0;
	case CLOCK_MONOTONIC_RAW:
	case CLOCK_REALTIME_COARSE:
	case CLOCK_MONOTONIC_COARSE:
		return -EOPNOTSUPP;
	case CLOCK_REALTIME_ALARM:
	case CLOCK_BOOTTIME_ALARM:
		return -EOPNOTSUPP; /* as on a machine without a wake-up clock */
	default:
		return id == CLOCK_PROCESS_CPUTIME_ID || id == CLOCK_THREAD_CPUTIME_ID || id < 0
			       ? -EOPNOTSUPP
			       : -EINVAL;
	}
}

uint64_t clock_timer_now(int id)
{
	uint64_t ns;

	if (id == CLOCK_MONOTONIC)
		return clock_mono_ns();
	if (id == CLOCK_REALTIME)
		return clock_real_ns();
	return host_clock_ns(id, &ns) < 0 ? clock_mono_ns() : ns;
}

uint64_t clock_to_mono(int id, uint64_t ns)
{
	uint64_t now, mono;

	if (ns >= CLOCK_NS_MAX)
		return UINT64_MAX;
	if (id == CLOCK_MONOTONIC)
		return ns;
	now = clock_timer_now(id);
	mono = clock_mono_ns();
	if (ns >= now)
		return ns_add_sat(mono, ns - now);
	return now - ns < mono ? mono - (now - ns) : 0;
}

int timespec_to_ns(const struct linux_timespec *ts, uint64_t *ns)
{
	if (ts->tv_sec < 0 || ts->tv_nsec < 0 || ts->tv_nsec >= (int64_t)NSEC_PER_SEC)
		return -EINVAL;
	if ((uint64_t)ts->tv_sec >= CLOCK_NS_MAX / NSEC_PER_SEC)
		*ns = CLOCK_NS_MAX;
	else
		*ns = (uint64_t)ts->tv_sec * NSEC_PER_SEC + (uint64_t)ts->tv_nsec;
	return 0;
}

int timeval_to_ns(const struct linux_timeval *tv, uint64_t *ns)
{
	struct linux_timespec ts = { .tv_sec = tv->tv_sec };

	if (tv->tv_usec < 0 || tv->tv_usec >= 1000000)
		return -EINVAL;
	ts.tv_nsec = tv->tv_usec * 1000;
	return timespec_to_ns(&ts, ns);
}

struct linux_timespec ns_to_timespec(uint64_t ns)
{
	return (struct linux_timespec){ (int64_t)(ns / NSEC_PER_SEC),
					(int64_t)(ns % NSEC_PER_SEC) };
}

struct linux_timeval ns_to_timeval(uint64_t ns)
{
	return (struct linux_timeval){ (int64_t)(ns / NSEC_PER_SEC),
				       (int64_t)(ns % NSEC_PER_SEC) / 1000 };
}
