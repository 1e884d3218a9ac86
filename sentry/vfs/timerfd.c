/* SPDX-License-Identifier: Apache-2.0 */
/* A timer that is read. As on Linux a periodic one is armed again when its expiry is read or asked
 * for: the periods that went by are added then, so that a short interval costs nothing while nobody
 * looks. */
#include "sentry/vfs/timerfd.h"

#include <errno.h>
#include <poll.h>
#include <time.h>

#include "sentry/kernel/clock.h"
#include "sentry/kernel/timer.h"
#include "sentry/kernel/waitq.h"
#include "sentry/vfs/file.h"
#include "sentry/vfs/uio.h"

struct timerfd {
	struct file file;
	struct waitq wq;
	struct ktimer kt;  /* kt.when: the next or the last expiry */
	uint64_t interval;
	uint64_t ticks;    /* expiries not yet read */
	int clock;
	bool expired;      /* kt fired and was not armed again */
};

static struct timerfd *to_timerfd(struct file *f)
{
	return container_of(f, struct timerfd, file);
}

static void timerfd_fire(struct ktimer *kt)
{
	struct timerfd *td = container_of(kt, struct timerfd, kt);

	td->expired = true;
	td->ticks++;
	waitq_wake(&td->wq, POLLIN);
}

/* Counts the periods since the expiry and arms the next. */
static void rearm(struct timerfd *td)
{
	uint64_t now = clock_mono_ns(), n = 0;

	if (!td->expired || !td->interval)
		return;
	if (now >= td->kt.when)
		n = (now - td->kt.when) / td->interval + 1;
	td->ticks += n ? n - 1 : 0;
	if (ktimer_arm(&td->kt, ns_add_sat(td->kt.when, n * td->interval)) < 0)
		return; /* it stays expired: the next read tries again */
	td->expired = false;
}

static ssize_t timerfd_read(struct file *f, struct uio *u, uint64_t *pos)
{
	struct timerfd *td = to_timerfd(f);
	uint64_t ticks;
	ssize_t n;

	(void)pos;
	if (u->resid < sizeof(ticks))
		return -EINVAL;
	if (!td->ticks)
		return -EAGAIN;
	rearm(td);
	ticks = td->ticks;
	td->ticks = 0;
	n = uio_copy_to(u, &ticks, sizeof(ticks));
	return n < 0 ? n : (n == (ssize_t)sizeof(ticks) ? n : -EFAULT);
}

static uint32_t timerfd_poll(struct file *f, struct waitq **q)
{
	struct timerfd *td = to_timerfd(f);

	*q = &td->wq;
	return td->ticks ? POLLIN : 0;
}

static void timerfd_release(struct file *f)
{
	struct timerfd *td = to_timerfd(f);

	ktimer_cancel(&td->kt);
	waitq_fini(&td->wq);
}

static const struct file_ops timerfd_file_ops = {
	.file_size = sizeof(struct timerfd),
	.read = timerfd_read,
	.poll = timerfd_poll,
	.release = timerfd_release,
};

static int base_clock(int clock)
{
	switch (clock) {
	case CLOCK_REALTIME:
	case CLOCK_REALTIME_ALARM:
		return CLOCK_REALTIME;
	case CLOCK_MONOTONIC:
		return CLOCK_MONOTONIC;
	case CLOCK_BOOTTIME:
	case CLOCK_BOOTTIME_ALARM:
		return CLOCK_BOOTTIME;
	default:
		return -1;
	}
}

int timerfd_create_file(int clock, uint32_t flags, struct file **ret)
{
	struct inode *in;
	struct timerfd *td;
	struct file *f;

	if (base_clock(clock) < 0)
		return -EINVAL;
	in = anon_inode_create(0600);
	if (!in)
		return -ENOMEM;
	f = file_create(&timerfd_file_ops, in, flags);
	inode_put(in);
	if (!f)
		return -ENFILE;
	f->anon_name = "anon_inode:[timerfd]";
	td = to_timerfd(f);
	td->clock = base_clock(clock);
	waitq_init(&td->wq);
	ktimer_init(&td->kt, timerfd_fire);
	*ret = f;
	return 0;
}

static void get_value(struct timerfd *td, struct timerfd_value *v)
{
	uint64_t now;

	rearm(td);
	now = clock_mono_ns();
	v->interval = td->interval;
	v->value = td->kt.index ? (td->kt.when > now ? td->kt.when - now : 1) : 0;
}

int timerfd_set(struct file *f, bool absolute, const struct timerfd_value *v,
		struct timerfd_value *old)
{
	struct timerfd *td = to_timerfd(f);
	uint64_t when;

	if (f->ops != &timerfd_file_ops)
		return -EINVAL;
	if (old)
		get_value(td, old);
	ktimer_cancel(&td->kt);
	td->expired = false;
	td->ticks = 0;
	td->interval = v->interval;
	if (!v->value)
		return 0;
	when = absolute ? clock_to_mono(td->clock, v->value)
			: ns_add_sat(clock_mono_ns(), v->value);
	if (when <= clock_mono_ns()) { /* ready at once, with no turn of the leader in between */
		td->kt.when = when ? when : clock_mono_ns();
		timerfd_fire(&td->kt);
		return 0;
	}
	return ktimer_arm(&td->kt, when);
}

int timerfd_get(struct file *f, struct timerfd_value *v)
{
	if (f->ops != &timerfd_file_ops)
		return -EINVAL;
	get_value(to_timerfd(f), v);
	return 0;
}
