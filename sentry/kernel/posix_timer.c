/* SPDX-License-Identifier: Apache-2.0 */
#include "sentry/kernel/posix_timer.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "sentry/abi/signal.h"
#include "sentry/kernel/clock.h"
#include "sentry/kernel/sig_priv.h"

struct posix_timer {
	struct list node; /* on tgroup.posix_timers, by id */
	struct tgroup *tg;
	int id, clock;
	int notify;          /* LINUX_SIGEV_* */
	int signo;
	struct task *
		target; /* SIGEV_THREAD_ID; NULL: the group, or the thread has gone (then silent) */
	struct ktimer kt;    /* armed: waits for the expiry kt.when */
	uint64_t interval;
	bool active;         /* set to a value; kt.when is the next or the last expiry */
	int64_t overrun;     /* of the signal that is pending */
	int overrun_last;    /* of the one delivered last */
	struct sig_entry entry;
};

static unsigned n_timers;

static struct posix_timer *peek(struct tgroup *tg, int id)
{
	struct posix_timer *pt;

	list_for_each_entry(pt, &tg->posix_timers, node)
		if (pt->id == id)
			return pt;
	return NULL;
}

/* Moves the expiry beyond @now by whole periods; returns how many. */
static uint64_t forward(struct posix_timer *pt, uint64_t now)
{
	uint64_t n;

	if (now < pt->kt.when)
		return 0;
	n = (now - pt->kt.when) / pt->interval + 1;
	pt->kt.when = ns_add_sat(pt->kt.when,
				 n * pt->interval); /* n * interval <= now - when + interval */
	return n;
}

/* The signal is taken: its overrun is known, and the next period starts. */
static void signal_taken(struct sig_entry *e, struct linux_siginfo *info)
{
	struct posix_timer *pt = container_of(e, struct posix_timer, entry);
	uint64_t n;

	if (pt->active && pt->interval) {
		n = forward(pt, clock_mono_ns());
		pt->overrun += (int64_t)MIN(n ? n - 1 : 0, (uint64_t)INT_MAX);
		if (ktimer_arm(&pt->kt, pt->kt.when) < 0)
			pt->active = false;
	} else {
		pt->active = false;
	}
	pt->overrun_last = (int)MIN(pt->overrun, (int64_t)INT_MAX);
	pt->overrun = 0;
	info->timer.overrun = pt->overrun_last;
}

static bool send_signal(struct posix_timer *pt)
{
	if (pt->notify == LINUX_SIGEV_NONE)
		return false;
	if (!(pt->notify & LINUX_SIGEV_THREAD_ID))
		return sig_send_entry(pt->tg, NULL, pt->signo, &pt->entry);
	return pt->target && sig_send_entry(pt->tg, pt->target, pt->signo, &pt->entry);
}

static void timer_fire(struct ktimer *kt)
{
	struct posix_timer *pt = container_of(kt, struct posix_timer, kt);
	uint64_t now;

	pt->overrun = 0;
	if (send_signal(pt))
		return;
	if (!pt->interval) {
		pt->active = false;
		return;
	}
	if (pt->notify == LINUX_SIGEV_NONE)
		return; /* nobody waits: get() computes */
	/* Ignored: it may be handled one day. Not more often than a tick, for nobody sees it. */
	now = clock_mono_ns();
	(void)forward(pt, now);
	if (ktimer_arm(kt, MAX(pt->kt.when, now + 1000000u)) < 0)
		pt->active = false;
}

static int check_event(struct task *t, const struct linux_sigevent *ev, struct task **target)
{
	struct task *u;

	*target = NULL;
	switch (ev->sigev_notify) {
	case LINUX_SIGEV_NONE:
		return 0;
	case LINUX_SIGEV_THREAD_ID: /* SIGEV_SIGNAL is 0 */
		u = task_lookup(ev->sigev_tid);
		if (!u || u->tg != t->tg) {
			task_put(u);
			return -EINVAL;
		}
		*target = u; /* borrowed from here on: posix_timer_exit_task() takes it back */
		task_put(u);
		break;
	case LINUX_SIGEV_SIGNAL:
	case LINUX_SIGEV_THREAD:
		break;
	default:
		return -EINVAL;
	}
	return ev->sigev_signo <= 0 || ev->sigev_signo > NSIG_LINUX ? -EINVAL : 0;
}

/* The next number that is free: they go up, as on Linux. */
static int free_id(struct sig_group *sg)
{
	int id;

	do {
		id = sg->next_timer_id;
		sg->next_timer_id = id == INT_MAX ? 0 : id + 1;
	} while (peek(sg->tg, id));
	return id;
}

int posix_timer_create(struct task *t, int clock, const struct linux_sigevent *ev)
{
	struct sig_group *sg = sig_group(t->tg);
	struct linux_sigevent dflt = { .sigev_signo = SIGALRM, .sigev_notify = LINUX_SIGEV_SIGNAL };
	struct task *target;
	struct posix_timer *pt;
	int r = clock_timer_check(clock);

	if (r < 0)
		return r;
	r = check_event(t, ev ? ev : &dflt, &target);
	if (r < 0)
		return r;
	if (sg->n_timers >= task_rlimit(t, RLIMIT_SIGPENDING) || n_timers >= POSIX_TIMERS_MAX)
		return -EAGAIN;
	pt = calloc(1, sizeof(*pt));
	if (!pt)
		return -EAGAIN;
	pt->tg = t->tg;
	pt->id = free_id(sg);
	pt->clock = clock;
	pt->notify = ev ? ev->sigev_notify : dflt.sigev_notify;
	pt->signo = ev ? ev->sigev_signo : dflt.sigev_signo;
	pt->target = target;
	ktimer_init(&pt->kt, timer_fire);
	list_init(&pt->entry.node);
	pt->entry.taken = signal_taken;
	pt->entry.info.si_signo = pt->signo;
	pt->entry.info.si_code = LINUX_SI_TIMER;
	pt->entry.info.timer.timerid = pt->id;
	pt->entry.info.timer.value = ev ? ev->sigev_value : (uint64_t)(uint32_t)pt->id;
	list_add_tail(&t->tg->posix_timers, &pt->node);
	sg->n_timers++;
	n_timers++;
	return pt->id;
}

static void get_value(struct posix_timer *pt, struct posix_timer_value *v)
{
	uint64_t now = clock_mono_ns();

	v->interval = pt->interval;
	v->value = 0;
	if (!pt->active)
		return;
	if (pt->interval && now >= pt->kt.when && !pt->kt.index) {
		uint64_t n = forward(pt, now);

		if (!list_empty(&pt->entry.node))
			pt->overrun +=
				(int64_t)MIN(n, (uint64_t)INT_MAX); /* told with the signal */
	}
	if (pt->kt.when > now)
		v->value = pt->kt.when - now;
	else if (pt->notify != LINUX_SIGEV_NONE)
		v->value = 1; /* 0 would say that it is off */
}

int posix_timer_get(struct tgroup *tg, int id, struct posix_timer_value *v)
{
	struct posix_timer *pt = peek(tg, id);

	if (!pt)
		return -EINVAL;
	get_value(pt, v);
	return 0;
}

static void disarm(struct posix_timer *pt)
{
	ktimer_cancel(&pt->kt);
	sigqueue_remove_entry(&pt->entry);
	pt->active = false;
	pt->interval = 0;
	pt->overrun = 0;
	pt->overrun_last = 0;
}

int posix_timer_set(struct tgroup *tg, int id, bool absolute, const struct posix_timer_value *v,
		    struct posix_timer_value *old)
{
	struct posix_timer *pt = peek(tg, id);
	uint64_t when;

	if (!pt)
		return -EINVAL;
	if (old)
		get_value(pt, old);
	disarm(pt);
	pt->interval = v->interval;
	if (!v->value)
		return 0;
	when = absolute ? clock_to_mono(pt->clock, v->value)
			: ns_add_sat(clock_mono_ns(), v->value);
	if (ktimer_arm(&pt->kt, when) < 0)
		return -ENOMEM;
	pt->active = true;
	return 0;
}

int posix_timer_overrun(struct tgroup *tg, int id)
{
	struct posix_timer *pt = peek(tg, id);

	return pt ? pt->overrun_last : -EINVAL;
}

static void destroy(struct posix_timer *pt)
{
	disarm(pt);
	list_del(&pt->node);
	sig_group(pt->tg)->n_timers--;
	n_timers--;
	free(pt);
}

int posix_timer_delete(struct tgroup *tg, int id)
{
	struct posix_timer *pt = peek(tg, id);

	if (!pt)
		return -EINVAL;
	destroy(pt);
	return 0;
}

void posix_timer_exit(struct tgroup *tg)
{
	struct posix_timer *pt, *tmp;

	list_for_each_entry_safe(pt, tmp, &tg->posix_timers, node)
		destroy(pt);
}

void posix_timer_exit_task(struct task *t)
{
	struct posix_timer *pt;

	if (!t->tg->shared_pending)
		return;
	list_for_each_entry(pt, &t->tg->posix_timers, node)
		if (pt->target == t)
			pt->target = NULL;
}
