/* SPDX-License-Identifier: Apache-2.0 */
#include "sentry/syscalls/timer.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>

#include "sentry/abi/signal.h"
#include "sentry/abi/time.h"
#include "sentry/kernel/clock.h"
#include "sentry/kernel/itimer.h"
#include "sentry/kernel/posix_timer.h"
#include "sentry/kernel/task.h"
#include "sentry/kernel/uaccess.h"
#include "sentry/vfs/fdtable.h"
#include "sentry/vfs/file.h"
#include "sentry/vfs/timerfd.h"

static int copy_out_itimer(struct task *t, uaddr_t dst, const struct itimer_value *v)
{
	struct linux_itimerval it = { ns_to_timeval(v->interval), ns_to_timeval(v->value) };

	return copy_out(t, dst, &it, sizeof(it));
}

int64_t sys_getitimer(struct task *t, const struct sysargs *a)
{
	struct itimer_value v;
	int r = itimer_get(t->tg, ARG_INT(a, 0), &v);

	return r < 0 ? r : copy_out_itimer(t, ARG_PTR(a, 1), &v);
}

int64_t sys_setitimer(struct task *t, const struct sysargs *a)
{
	struct linux_itimerval it;
	struct itimer_value v = { 0 }, old;
	int r;

	/* Linux: a NULL new value is all zero. */
	if (ARG_PTR(a, 1)) {
		if (copy_in(t, ARG_PTR(a, 1), &it, sizeof(it)) < 0)
			return -EFAULT;
		if (timeval_to_ns(&it.it_value, &v.value) < 0 ||
		    timeval_to_ns(&it.it_interval, &v.interval) < 0)
			return -EINVAL;
	}
	r = itimer_set(t->tg, ARG_INT(a, 0), &v, &old);
	if (!r && ARG_PTR(a, 2))
		r = copy_out_itimer(t, ARG_PTR(a, 2), &old);
	return r;
}

int64_t sys_alarm(struct task *t, const struct sysargs *a)
{
	struct itimer_value v = { .value = (uint64_t)ARG_U32(a, 0) * NSEC_PER_SEC }, old;
	int r = itimer_set(t->tg, ITIMER_REAL, &v, &old);

	if (r < 0)
		return 0; /* alarm(2) cannot fail */
	/* The nearest second, but never 0 for a timer that was on. */
	if (old.value && old.value < NSEC_PER_SEC)
		return 1;
	return (int64_t)((old.value + NSEC_PER_SEC / 2) / NSEC_PER_SEC);
}

static int copy_in_itimerspec(struct task *t, uaddr_t src, uint64_t *value, uint64_t *interval)
{
	struct linux_itimerspec it;

	if (copy_in(t, src, &it, sizeof(it)) < 0)
		return -EFAULT;
	if (timespec_to_ns(&it.it_value, value) < 0 ||
	    timespec_to_ns(&it.it_interval, interval) < 0)
		return -EINVAL;
	return 0;
}

static int copy_out_itimerspec(struct task *t, uaddr_t dst, uint64_t value, uint64_t interval)
{
	struct linux_itimerspec it = { ns_to_timespec(interval), ns_to_timespec(value) };

	return copy_out(t, dst, &it, sizeof(it));
}

int64_t sys_timer_create(struct task *t, const struct sysargs *a)
{
	struct linux_sigevent ev;
	uaddr_t uev = ARG_PTR(a, 1);
	int id;

	if (uev && copy_in(t, uev, &ev, sizeof(ev)) < 0)
		return -EFAULT;
	id = posix_timer_create(t, ARG_INT(a, 0), uev ? &ev : NULL);
	if (id < 0)
		return id;
	if (copy_out(t, ARG_PTR(a, 2), &id, sizeof(id)) < 0) {
		int r = posix_timer_delete(t->tg, id);

		return r < 0 ? r : -EFAULT;
	}
	return 0;
}

int64_t sys_timer_settime(struct task *t, const struct sysargs *a)
{
	struct posix_timer_value v, old;
	int r;

	if (!ARG_PTR(a, 2))
		return -EINVAL;
	r = copy_in_itimerspec(t, ARG_PTR(a, 2), &v.value, &v.interval);
	if (!r)
		r = posix_timer_set(t->tg, ARG_INT(a, 0), ARG_INT(a, 1) & TIMER_ABSTIME, &v, &old);
	if (!r && ARG_PTR(a, 3))
		r = copy_out_itimerspec(t, ARG_PTR(a, 3), old.value, old.interval);
	return r;
}

int64_t sys_timer_gettime(struct task *t, const struct sysargs *a)
{
	struct posix_timer_value v;
	int r = posix_timer_get(t->tg, ARG_INT(a, 0), &v);

	return r < 0 ? r : copy_out_itimerspec(t, ARG_PTR(a, 1), v.value, v.interval);
}

int64_t sys_timer_getoverrun(struct task *t, const struct sysargs *a)
{
	return posix_timer_overrun(t->tg, ARG_INT(a, 0));
}

int64_t sys_timer_delete(struct task *t, const struct sysargs *a)
{
	return posix_timer_delete(t->tg, ARG_INT(a, 0));
}

int64_t sys_timerfd_create(struct task *t, const struct sysargs *a)
{
	int flags = ARG_INT(a, 1);
	struct file *f;
	int r;

	if (flags & ~(TFD_CLOEXEC | TFD_NONBLOCK))
		return -EINVAL;
	r = timerfd_create_file(ARG_INT(a, 0), (uint32_t)(O_RDWR | (flags & O_NONBLOCK)), &f);
	return r < 0 ? r : fd_install(t, f, 0, flags & TFD_CLOEXEC);
}

int64_t sys_timerfd_settime(struct task *t, const struct sysargs *a)
{
	int flags = ARG_INT(a, 1);
	struct timerfd_value v, old;
	struct file *f;
	int r = copy_in_itimerspec(t, ARG_PTR(a, 2), &v.value, &v.interval);

	if (r < 0)
		return r;
	if (flags & ~(TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET))
		return -EINVAL;
	r = fd_get(t, ARG_INT(a, 0), &f);
	if (r < 0)
		return r;
	r = timerfd_set(f, flags & TFD_TIMER_ABSTIME, &v, &old);
	file_put(f);
	if (!r && ARG_PTR(a, 3))
		r = copy_out_itimerspec(t, ARG_PTR(a, 3), old.value, old.interval);
	return r;
}

int64_t sys_timerfd_gettime(struct task *t, const struct sysargs *a)
{
	struct timerfd_value v;
	struct file *f;
	int r = fd_get(t, ARG_INT(a, 0), &f);

	if (r < 0)
		return r;
	r = timerfd_get(f, &v);
	file_put(f);
	return r < 0 ? r : copy_out_itimerspec(t, ARG_PTR(a, 1), v.value, v.interval);
}
