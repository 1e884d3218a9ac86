/* SPDX-License-Identifier: Apache-2.0 */
#include "sentry/kernel/kernel.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/host/random.h"
#include "base/host/sched.h"
#include "base/log.h"
#include "sentry/kernel/cputime.h"
#include "sentry/kernel/task_priv.h"
#include "sentry/kernel/timer.h"

struct kernel kernel;
struct sbx_mutex lc_kernel;

#define RANDOM_POOL   4096u
#define RANDOM_DIRECT 1024u /* a larger request goes to the host at once */

static struct {
	uint8_t buf[RANDOM_POOL];
	size_t left; /* unused bytes, at the end */
} pool;

void kernel_random(void *buf, size_t n)
{
	uint8_t *p;

	if (n > RANDOM_DIRECT) {
		host_random(buf, n);
		return;
	}
	if (pool.left < n) {
		host_random(pool.buf, sizeof(pool.buf));
		pool.left = sizeof(pool.buf);
	}
	p = pool.buf + sizeof(pool.buf) - pool.left;
	memcpy(buf, p, n);
	/* What was given out is forgotten. */
	memset(p, 0, n);
	pool.left -= n;
}

int kernel_init(const struct kernel_limits *limits, const struct kernel_report_ops *report)
{
	kernel.limits = *limits;
	kernel.report = report;
	list_init(&kernel.tgroups);
	list_init(&kernel.runq);
	kernel_random(&kernel.hash_key, sizeof(kernel.hash_key));
	memcpy(kernel.hostname, "sandbox", sizeof("sandbox"));
	memcpy(kernel.domainname, "(none)", sizeof("(none)"));
	kernel.boot_ns = clock_boot_ns();
	kernel.n_cpus = MIN(host_cpu_count(), TASK_CPU_WORDS * 64u);
	cputime_init();
	return init_create();
}

static struct tgroup *find_live(void)
{
	struct tgroup *tg;

	list_for_each_entry(tg, &kernel.tgroups, all_node) {
		if (tg->n_tasks)
			return tg;
	}
	return NULL;
}

void kernel_shutdown(void)
{
	struct tgroup *tg;

	if (kernel.shutting_down)
		return;
	kernel.shutting_down = true;
	while ((tg = find_live()))
		tgroup_exit(tg, SIGKILL);
	tgroup_put(kernel.first);
	kernel.first = NULL;
	if (kernel.plat)
		kernel.plat->stop(kernel.platform);
}

void kernel_first_exited(int wait_status)
{
	struct tgroup *tg;

	list_for_each_entry(tg, &kernel.tgroups, all_node) {
		if (tg->n_tasks)
			log_info(CH_TASK, "still runs: pid %d %s", tg->tgid, tg->exe_path ? tg->exe_path : "?");
	}
	if (kernel.report && kernel.report->exited)
		kernel.report->exited(wait_status);
	kernel_shutdown();
}
