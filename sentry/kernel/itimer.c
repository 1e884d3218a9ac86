/* SPDX-License-Identifier: Apache-2.0 */
#include "sentry/kernel/itimer.h"

#include <errno.h>
#include <signal.h>
#include <sys/time.h>

#include "sentry/kernel/clock.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/sig_priv.h"

#define CPU_TICK_NS 4000000ull
#define REAL_INTERVAL_MIN_NS 50000u /* shorter ones only coalesce, and keep the leader busy */

static void real_fire(struct ktimer *kt)
{
	struct tgroup *tg = container_of(kt, struct tgroup, itimer_real);
	uint64_t interval = tg->itimer_real_interval, now = clock_mono_ns(), when = kt->when;

	if (interval) {
		when += ((now > when ? now - when : 0) / interval + 1) * interval;
		/* It was armed just now: its place in the heap is free. */
		(void)ktimer_arm(kt, MAX(when, now + REAL_INTERVAL_MIN_NS));
	}
	(void)sig_send_tgroup(tg, SIGALRM, NULL); /* coalesces */
}

static void cpu_timer_check(struct tgroup *tg, struct cpu_itimer *it, uint64_t now, int sig)
{
	if (!it->expires || now < it->expires)
		return;
	if (it->interval)
		it->expires += ((now - it->expires) / it->interval + 1) * it->interval;
	else
		it->expires = 0;
	(void)sig_send_tgroup(tg, sig, NULL); /* coalesces */
}

static void cpu_tick_fire(struct ktimer *kt)
{
	struct sig_group *sg = container_of(kt, struct sig_group, cpu_tick);
	uint64_t u, s;

	tgroup_times(sg->tg, &u, &s);
	cpu_timer_check(sg->tg, &sg->virt, u, SIGVTALRM);
	cpu_timer_check(sg->tg, &sg->prof, u + s, SIGPROF);
	if (sg->virt.expires || sg->prof.expires)
		(void)ktimer_arm(kt, clock_mono_ns() + CPU_TICK_NS); /* as above */
}

void itimer_init(struct tgroup *tg)
{
	struct sig_group *sg = sig_group(tg);

	ktimer_init(&tg->itimer_real, real_fire);
	tg->itimer_real_interval = 0;
	ktimer_init(&sg->cpu_tick, cpu_tick_fire);
	sg->virt = sg->prof = (struct cpu_itimer){ 0 };
}

void itimer_exit(struct tgroup *tg)
{
	ktimer_cancel(&tg->itimer_real);
	ktimer_cancel(&sig_group(tg)->cpu_tick);
}

static struct cpu_itimer *cpu_timer(struct tgroup *tg, int which, uint64_t *now)
{
	struct sig_group *sg = sig_group(tg);
	uint64_t u, s;

	tgroup_times(tg, &u, &s);
	*now = which == ITIMER_VIRTUAL ? u : u + s;
	return which == ITIMER_VIRTUAL ? &sg->virt : &sg->prof;
}

/* An armed timer that is due but not yet seen shows the smallest time, as on Linux. */
static uint64_t time_left(uint64_t when, uint64_t now)
{
	return when > now ? when - now : 1000;
}

int itimer_get(struct tgroup *tg, int which, struct itimer_value *v)
{
	const struct cpu_itimer *it;
	uint64_t now;

	if (which != ITIMER_REAL && which != ITIMER_VIRTUAL && which != ITIMER_PROF)
		return -EINVAL;
	if (which == ITIMER_REAL) {
		v->interval = tg->itimer_real_interval;
		v->value = tg->itimer_real.index ? time_left(tg->itimer_real.when, clock_mono_ns())
						 : 0;
		return 0;
	}
	it = cpu_timer(tg, which, &now);
	v->interval = it->interval;
	v->value = it->expires ? time_left(it->expires, now) : 0;
	return 0;
}

int itimer_set(struct tgroup *tg, int which, const struct itimer_value *v, struct itimer_value *old)
{
	struct sig_group *sg = sig_group(tg);
	struct itimer_value before;
	struct cpu_itimer *it;
	uint64_t now;
	int r = itimer_get(tg, which, &before);

	if (r < 0)
		return r;
	if (which == ITIMER_REAL) {
		if (v->value &&
		    (r = ktimer_arm(&tg->itimer_real, ns_add_sat(clock_mono_ns(), v->value))) < 0)
			return r;
		if (!v->value)
			ktimer_cancel(&tg->itimer_real);
		tg->itimer_real_interval = v->value ? v->interval : 0;
	} else {
		if (v->value && !sg->cpu_tick.index &&
		    (r = ktimer_arm(&sg->cpu_tick, clock_mono_ns() + CPU_TICK_NS)) < 0)
			return r;
		it = cpu_timer(tg, which, &now);
		it->expires = v->value ? ns_add_sat(now, v->value) : 0;
		it->interval = v->value ? v->interval : 0;
	}
	if (old)
		*old = before;
	return 0;
}
