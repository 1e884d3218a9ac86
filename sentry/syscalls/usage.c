/* SPDX-License-Identifier: Apache-2.0 */
#include "sentry/syscalls/usage.h"

#include <errno.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/resource.h>

#include "sentry/abi/process.h"
#include "sentry/kernel/cputime.h"
#include "sentry/kernel/cred.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/task.h"
#include "sentry/kernel/uaccess.h"
#include "sentry/mm/mm.h"

/* /proc/sys/fs/nr_open: no RLIMIT_NOFILE is above. */
#define NR_OPEN 1048576u

static void rlimit_read(const struct task *t, unsigned res, struct linux_rlimit *l)
{
	l->cur = t->tg->rlim[res].cur;
	l->max = t->tg->rlim[res].max;
}

/* @t changes a limit of @target. */
static int rlimit_write(const struct task *t, struct task *target, unsigned res, const struct linux_rlimit *l)
{
	struct rlimit_pair *p = &target->tg->rlim[res];

	if (l->cur > l->max)
		return -EINVAL;
	if (res == RLIMIT_NOFILE && l->max > NR_OPEN)
		return -EPERM;
	if (l->max > p->max && !cred_has_cap(t->cred, CAP_SYS_RESOURCE))
		return -EPERM;
	/* The sandbox's own limit holds for its root user too. */
	if (res == RLIMIT_NOFILE && kernel.limits.open_files && l->max > kernel.limits.open_files && l->max > p->max)
		return -EPERM;
	p->cur = l->cur;
	p->max = l->max;
	if (res == RLIMIT_CPU) {
		/* "A zero limit ... is treated as one second." */
		if (p->cur == 0)
			p->cur = 1;
		cputime_watch();
	}
	return 0;
}

int64_t sys_getrlimit(struct task *t, const struct sysargs *a)
{
	struct linux_rlimit l;
	unsigned res = ARG_U32(a, 0);

	if (res >= RLIMIT_COUNT)
		return -EINVAL;
	rlimit_read(t, res, &l);
	return copy_out(t, ARG_PTR(a, 1), &l, sizeof(l));
}

int64_t sys_setrlimit(struct task *t, const struct sysargs *a)
{
	struct linux_rlimit l;
	unsigned res = ARG_U32(a, 0);
	int r;

	r = copy_in(t, ARG_PTR(a, 1), &l, sizeof(l));
	if (r < 0)
		return r;
	return res >= RLIMIT_COUNT ? -EINVAL : rlimit_write(t, t, res, &l);
}

/* check_prlimit_permission() of Linux: the real ids of the caller must be all of the target's. */
static bool prlimit_allowed(const struct task *t, const struct task *target)
{
	const struct cred *c = t->cred, *o = target->cred;

	return t->tg == target->tg || cred_has_cap(c, CAP_SYS_RESOURCE) ||
	       (c->uid == o->uid && c->uid == o->euid && c->uid == o->suid && c->gid == o->gid &&
		c->gid == o->egid && c->gid == o->sgid);
}

static int prlimit_apply(struct task *t, struct task *target, unsigned res, const struct linux_rlimit *new, uaddr_t old)
{
	struct linux_rlimit l;
	int r = 0;

	rlimit_read(target, res, &l);
	if (new)
		r = rlimit_write(t, target, res, new);
	if (r == 0 && old)
		r = copy_out(t, old, &l, sizeof(l));
	return r;
}

int64_t sys_prlimit64(struct task *t, const struct sysargs *a)
{
	struct linux_rlimit new;
	unsigned res = ARG_U32(a, 1);
	struct task *target;
	int64_t r = 0;

	if (ARG_PTR(a, 2))
		r = copy_in(t, ARG_PTR(a, 2), &new, sizeof(new));
	if (r < 0)
		return r;
	target = ARG_INT(a, 0) ? task_lookup(ARG_INT(a, 0)) : task_get(t);
	if (!target)
		return -ESRCH;
	if (!prlimit_allowed(t, target))
		r = -EPERM;
	else if (res >= RLIMIT_COUNT)
		r = -EINVAL;
	else
		r = prlimit_apply(t, target, res, ARG_PTR(a, 2) ? &new : NULL, ARG_PTR(a, 3));
	task_put(target);
	return r;
}

void rusage_fill(struct linux_rusage *ru, uint64_t utime_ns, uint64_t stime_ns, uint64_t max_rss_kib)
{
	memset(ru, 0, sizeof(*ru));
	ru->utime_sec = (int64_t)(utime_ns / NSEC_PER_SEC);
	ru->utime_usec = (int64_t)(utime_ns % NSEC_PER_SEC / 1000);
	ru->stime_sec = (int64_t)(stime_ns / NSEC_PER_SEC);
	ru->stime_usec = (int64_t)(stime_ns % NSEC_PER_SEC / 1000);
	ru->maxrss = (int64_t)max_rss_kib;
}

static uint64_t self_max_rss_kib(struct task *t)
{
	struct mm_stats st;

	mm_stats(t->mm, &st);
	t->tg->max_rss_kib = MAX(t->tg->max_rss_kib, st.rss / 1024);
	return t->tg->max_rss_kib;
}

int64_t sys_getrusage(struct task *t, const struct sysargs *a)
{
	struct linux_rusage ru;
	uint64_t u, s;

	switch (ARG_INT(a, 0)) {
	case RUSAGE_SELF:
		tgroup_times(t->tg, &u, &s);
		rusage_fill(&ru, u, s, self_max_rss_kib(t));
		break;
	case RUSAGE_THREAD:
		task_times(t, &u, &s);
		rusage_fill(&ru, u, s, self_max_rss_kib(t));
		break;
	case RUSAGE_CHILDREN:
		rusage_fill(&ru, t->tg->child_utime_ns, t->tg->child_stime_ns, t->tg->child_max_rss_kib);
		break;
	default:
		return -EINVAL;
	}
	return copy_out(t, ARG_PTR(a, 1), &ru, sizeof(ru));
}

int64_t sys_times(struct task *t, const struct sysargs *a)
{
	struct linux_tms tms;
	uint64_t u, s;
	int r = 0;

	if (ARG_PTR(a, 0)) {
		tgroup_times(t->tg, &u, &s);
		tms.utime = (int64_t)(u / LINUX_NS_PER_TICK);
		tms.stime = (int64_t)(s / LINUX_NS_PER_TICK);
		tms.cutime = (int64_t)(t->tg->child_utime_ns / LINUX_NS_PER_TICK);
		tms.cstime = (int64_t)(t->tg->child_stime_ns / LINUX_NS_PER_TICK);
		r = copy_out(t, ARG_PTR(a, 0), &tms, sizeof(tms));
	}
	return r < 0 ? r : (int64_t)(clock_mono_ns() / LINUX_NS_PER_TICK);
}

/* What the guest is told of memory when the sandbox has no limit. */
#define MEMORY_SHOWN (16ull << 30)

int64_t sys_sysinfo(struct task *t, const struct sysargs *a)
{
	struct linux_sysinfo si = { .mem_unit = 1 };
	uint64_t used = 0;
	struct mm_stats st;
	struct tgroup *tg;

	si.uptime = (int64_t)((clock_boot_ns() - kernel.boot_ns) / NSEC_PER_SEC);
	si.totalram = kernel.limits.memory ? kernel.limits.memory : MEMORY_SHOWN;
	list_for_each_entry(tg, &kernel.tgroups, all_node) {
		if (!tg->n_tasks)
			continue;
		mm_stats(list_first_entry(&tg->tasks, struct task, tg_node)->mm, &st);
		used += st.rss;
	}
	used += kernel.counters.store_bytes;
	si.freeram = used < si.totalram ? si.totalram - used : 0;
	si.procs = (uint16_t)MIN(kernel.counters.tasks, 65535u);
	return copy_out(t, ARG_PTR(a, 0), &si, sizeof(si));
}
