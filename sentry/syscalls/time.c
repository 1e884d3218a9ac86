/* SPDX-License-Identifier: Apache-2.0 */
#include "sentry/syscalls/time.h"

#include <errno.h>
#include <string.h>
#include <sys/timex.h>
#include <time.h>

#include "sentry/abi/time.h"
#include "sentry/kernel/clock.h"
#include "sentry/kernel/restart.h"
#include "sentry/kernel/task.h"
#include "sentry/kernel/timer.h"
#include "sentry/kernel/uaccess.h"

static_assert(sizeof(struct timex) == 208, "struct timex");

/* Until @deadline on CLOCK_MONOTONIC, which op.scratch[0] keeps over restarts. @urem: where the
 * rest goes, 0: nowhere. */
static int64_t sleep_until(struct task *t, uint64_t deadline, uaddr_t urem, int64_t intr)
{
	struct linux_timespec rest;
	uint64_t now = clock_mono_ns();
	int64_t r;

	if (!t->op.scratch[0])
		t->op.scratch[0] = MAX(deadline, 1u);
	deadline = t->op.scratch[0];
	if (task_timed_out(t) || deadline <= now)
		return 0;
	task_deadline(t, deadline);
	r = task_block(t, intr);
	if (r == SYS_BLOCKED || !urem)
		return r;
	rest = ns_to_timespec(deadline - now);
	return copy_out(t, urem, &rest, sizeof(rest)) < 0 ? -EFAULT : r;
}

int64_t sys_nanosleep(struct task *t, const struct sysargs *a)
{
	struct linux_timespec ts;
	uint64_t ns;

	if (copy_in(t, ARG_PTR(a, 0), &ts, sizeof(ts)) < 0)
		return -EFAULT;
	if (timespec_to_ns(&ts, &ns) < 0)
		return -EINVAL;
	return sleep_until(t, ns_add_sat(clock_mono_ns(), ns), ARG_PTR(a, 1), -ERESTART_BLOCK);
}

int64_t sys_clock_nanosleep(struct task *t, const struct sysargs *a)
{
	int clock = ARG_INT(a, 0);
	bool absolute = ARG_INT(a, 1) & TIMER_ABSTIME;
	struct linux_timespec ts;
	uint64_t ns;
	int r = clock_timer_check(clock);

	if (r < 0)
		return r;
	if (copy_in(t, ARG_PTR(a, 2), &ts, sizeof(ts)) < 0)
		return -EFAULT;
	if (timespec_to_ns(&ts, &ns) < 0)
		return -EINVAL;
	if (absolute)
		return sleep_until(t, clock_to_mono(clock, ns), 0, -ERESTARTNOHAND);
	return sleep_until(t, ns_add_sat(clock_mono_ns(), ns), ARG_PTR(a, 3), -ERESTART_BLOCK);
}

int64_t sys_clock_gettime(struct task *t, const struct sysargs *a)
{
	struct linux_timespec ts;
	uint64_t ns;
	int r = clock_read(t, ARG_INT(a, 0), &ns);

	if (r < 0)
		return r;
	ts = ns_to_timespec(ns);
	return copy_out(t, ARG_PTR(a, 1), &ts, sizeof(ts));
}

int64_t sys_clock_getres(struct task *t, const struct sysargs *a)
{
	struct linux_timespec ts;
	uint64_t ns;
	int r = clock_resolution(t, ARG_INT(a, 0), &ns);

	if (r < 0)
		return r;
	ts = ns_to_timespec(ns);
	return ARG_PTR(a, 1) ? copy_out(t, ARG_PTR(a, 1), &ts, sizeof(ts)) : 0;
}

/* The guest's clocks are the host's: nobody in the sandbox may set them, whatever its
 * capabilities. */
int64_t sys_clock_settime(struct task *t, const struct sysargs *a)
{
	struct linux_timespec ts;
	uint64_t ns;

	if (!clock_is_settable(ARG_INT(a, 0)))
		return -EINVAL;
	if (copy_in(t, ARG_PTR(a, 1), &ts, sizeof(ts)) < 0)
		return -EFAULT;
	return timespec_to_ns(&ts, &ns) < 0 ? -EINVAL : -EPERM;
}

int64_t sys_settimeofday(struct task *t, const struct sysargs *a)
{
	struct linux_timeval tv;
	struct linux_timezone tz;
	uint64_t ns;

	if (ARG_PTR(a, 0) && copy_in(t, ARG_PTR(a, 0), &tv, sizeof(tv)) < 0)
		return -EFAULT;
	if (ARG_PTR(a, 0) && timeval_to_ns(&tv, &ns) < 0)
		return -EINVAL;
	if (ARG_PTR(a, 1) && copy_in(t, ARG_PTR(a, 1), &tz, sizeof(tz)) < 0)
		return -EFAULT;
	return -EPERM;
}

/* Reading the state is allowed: an unsynchronised clock. Changing it is not. */
static int64_t adjust(struct task *t, uaddr_t utx)
{
	struct linux_timeval now = ns_to_timeval(clock_real_ns());
	struct timex tx;

	if (copy_in(t, utx, &tx, sizeof(tx)) < 0)
		return -EFAULT;
	if (tx.modes)
		return -EPERM;
	memset(&tx, 0, sizeof(tx));
	tx.status = STA_UNSYNC;
	tx.maxerror = tx.esterror = 16000000;
	tx.constant = 2;
	tx.precision = 1;
	tx.tolerance = 32768000;
	tx.tick = 10000;
	tx.time.tv_sec = now.tv_sec;
	tx.time.tv_usec = now.tv_usec;
	return copy_out(t, utx, &tx, sizeof(tx)) < 0 ? -EFAULT : TIME_ERROR;
}

int64_t sys_adjtimex(struct task *t, const struct sysargs *a)
{
	return adjust(t, ARG_PTR(a, 0));
}

int64_t sys_clock_adjtime(struct task *t, const struct sysargs *a)
{
	uint64_t ns;

	if (clock_read(t, ARG_INT(a, 0), &ns) < 0)
		return -EINVAL;
	return ARG_INT(a, 0) == CLOCK_REALTIME ? adjust(t, ARG_PTR(a, 1)) : -EOPNOTSUPP;
}

int64_t sys_gettimeofday(struct task *t, const struct sysargs *a)
{
	const struct linux_timezone tz = { 0 };
	struct linux_timeval tv = ns_to_timeval(clock_real_ns());

	if (ARG_PTR(a, 0) && copy_out(t, ARG_PTR(a, 0), &tv, sizeof(tv)) < 0)
		return -EFAULT;
	if (ARG_PTR(a, 1) && copy_out(t, ARG_PTR(a, 1), &tz, sizeof(tz)) < 0)
		return -EFAULT;
	return 0;
}

int64_t sys_time(struct task *t, const struct sysargs *a)
{
	uint64_t ns = 0;
	int64_t now;
	/* Linux: the coarse clock's, as the times of files. */
	int r = clock_read(t, CLOCK_REALTIME_COARSE, &ns);

	if (r < 0)
		return r;
	now = (int64_t)(ns / NSEC_PER_SEC);
	if (ARG_PTR(a, 0) && copy_out(t, ARG_PTR(a, 0), &now, sizeof(now)) < 0)
		return -EFAULT;
	return now;
}
