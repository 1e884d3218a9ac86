/* SPDX-License-Identifier: Apache-2.0 */
#include "sentry/kernel/cputime.h"

#include <signal.h>
#include <sys/resource.h>

#include "base/log.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/sig.h"
#include "sentry/kernel/task.h"
#include "sentry/kernel/timer.h"

#define CALIBRATE_NS 500000u
#define WATCH_NS     (100 * 1000000ull)

uint32_t cputime_mult = 1u << 22;

static struct ktimer watch_timer;

static uint64_t ns0, tsc0;

void cputime_init(void)
{
	ns0 = clock_mono_ns();
	tsc0 = __rdtsc();
}

void cputime_calibrate(void)
{
	uint64_t ns, tsc;

	do {
		ns = clock_mono_ns();
		tsc = __rdtsc();
	} while (ns - ns0 < CALIBRATE_NS);
	if (tsc > tsc0)
		cputime_mult = (uint32_t)(((ns - ns0) << 24) / (tsc - tsc0));
	if (!cputime_mult)
		cputime_mult = 1;
}

void task_times(const struct task *t, uint64_t *utime_ns, uint64_t *stime_ns)
{
	uint64_t u = t->utime_ns, now;

	if (t->state == TASK_RUNNING && t->stamp) {
		now = cputime_now();
		if (now > t->stamp)
			u += now - t->stamp;
	}
	*utime_ns = u;
	*stime_ns = t->stime_ns;
}

void tgroup_times(const struct tgroup *tg, uint64_t *utime_ns, uint64_t *stime_ns)
{
	uint64_t u = tg->utime_ns, s = tg->stime_ns, tu, ts;
	struct task *t;

	list_for_each_entry(t, &tg->tasks, tg_node) {
		task_times(t, &tu, &ts);
		u += tu;
		s += ts;
	}
	*utime_ns = u;
	*stime_ns = s;
}

void kernel_cpu_times(uint64_t *utime_ns, uint64_t *stime_ns)
{
	uint64_t u = kernel.dead_utime_ns, s = kernel.dead_stime_ns, tu, ts;
	struct tgroup *tg;

	list_for_each_entry(tg, &kernel.tgroups, all_node) {
		tgroup_times(tg, &tu, &ts);
		u += tu;
		s += ts;
	}
	*utime_ns = u;
	*stime_ns = s;
}

/* setrlimit(2), RLIMIT_CPU: SIGXCPU each second from the soft limit on, SIGKILL at the hard one. True when it acted:
 * the list of groups may then have changed. */
static bool tgroup_check_cpu(struct tgroup *tg)
{
	struct rlimit_pair *l = &tg->rlim[RLIMIT_CPU];
	uint64_t u, s, sec;

	if (l->cur == UINT64_MAX || tg->dead || tg == kernel.init)
		return false;
	tgroup_times(tg, &u, &s);
	sec = (u + s) / NSEC_PER_SEC;
	if (sec < l->cur)
		return false;
	if (sec >= l->max) {
		tgroup_exit(tg, SIGKILL);
	} else {
		l->cur = sec + 1;
		(void)sig_send_tgroup(tg, SIGXCPU, NULL); /* a full queue: it is pending already */
	}
	return true;
}

static bool check_one_rlimit(void)
{
	struct tgroup *tg;

	list_for_each_entry(tg, &kernel.tgroups, all_node) {
		if (tgroup_check_cpu(tg))
			return true;
	}
	return false;
}

static bool watch_wanted(void)
{
	struct tgroup *tg;

	if (kernel.limits.cpu_ns)
		return true;
	list_for_each_entry(tg, &kernel.tgroups, all_node) {
		if (!tg->dead && tg->rlim[RLIMIT_CPU].cur != UINT64_MAX)
			return true;
	}
	return false;
}

static void watch_fire(struct ktimer *kt)
{
	uint64_t u, s;

	(void)kt;
	if (kernel.limits.cpu_ns) {
		kernel_cpu_times(&u, &s);
		if (u + s > kernel.limits.cpu_ns) {
			kernel.counters.hit_cpu_limit = true;
			log_info(CH_TASK, "the sandbox's CPU limit is used up");
			tgroup_exit(kernel.first, SIGKILL);
			return;
		}
	}
	while (!kernel.shutting_down && check_one_rlimit())
		; /* from the start again: each group acts once, since its limit moves */
	cputime_watch();
}

void cputime_watch(void)
{
	if (watch_timer.index || kernel.shutting_down || !watch_wanted())
		return;
	ktimer_init(&watch_timer, watch_fire);
	if (ktimer_arm(&watch_timer, clock_mono_ns() + WATCH_NS) < 0)
		log_warn(CH_TASK, "no memory for the timer of the CPU limit");
}
