/* SPDX-License-Identifier: Apache-2.0 */
#include "sentry/syscalls/sched.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>

#include "base/host/sched.h"
#include "sentry/abi/process.h"
#include "sentry/kernel/cred.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/task.h"
#include "sentry/kernel/uaccess.h"

#define POLICY_EXT       7
#define NICE_MIN         (-20)
#define NICE_MAX         19
#define RT_PRIO_MAX      99
#define RR_INTERVAL_NS   100000000
#define FLAG_RESET       1ull /* SCHED_FLAG_RESET_ON_FORK */
#define FLAG_KEEP_POLICY 8ull
#define FLAG_KEEP_PARAMS 16ull
#define FLAGS_KNOWN      0x7full

int64_t sys_sched_yield(struct task *t, const struct sysargs *a)
{
	(void)t;
	(void)a;
	return 0;
}

static struct task *lookup_or_self(struct task *t, pid_t pid)
{
	return pid ? task_lookup(pid) : task_get(t);
}

/* sched(7): own processes, or CAP_SYS_NICE. */
static bool may_set(const struct task *t, const struct task *p)
{
	return t->cred->euid == p->cred->euid || t->cred->euid == p->cred->uid || cred_has_cap(t->cred, CAP_SYS_NICE);
}

int64_t sys_sched_getaffinity(struct task *t, const struct sysargs *a)
{
	uint32_t len = ARG_U32(a, 1);
	size_t need = ROUND_UP((kernel.n_cpus + 7) / 8, 8);
	uint64_t mask[TASK_CPU_WORDS];
	struct task *p;
	int r;

	if ((uint64_t)len * 8 < kernel.n_cpus || len & 7)
		return -EINVAL;
	p = lookup_or_self(t, ARG_INT(a, 0));
	if (!p)
		return -ESRCH;
	memcpy(mask, p->affinity, sizeof(mask));
	task_put(p);
	need = MIN(need, (size_t)len);
	r = copy_out(t, ARG_PTR(a, 2), mask, need);
	return r < 0 ? r : (int64_t)need;
}

int64_t sys_sched_setaffinity(struct task *t, const struct sysargs *a)
{
	uint64_t mask[TASK_CPU_WORDS] = { 0 }, any = 0;
	struct task *p;
	int r;

	r = copy_in(t, ARG_PTR(a, 2), mask, MIN((size_t)ARG_U32(a, 1), sizeof(mask)));
	if (r < 0)
		return r;
	p = lookup_or_self(t, ARG_INT(a, 0));
	if (!p)
		return -ESRCH;
	for (unsigned i = 0; i < TASK_CPU_WORDS * 64; i++) {
		if (i >= kernel.n_cpus)
			mask[i / 64] &= ~(1ull << (i % 64));
	}
	for (unsigned i = 0; i < TASK_CPU_WORDS; i++)
		any |= mask[i];
	if (!may_set(t, p))
		r = -EPERM;
	else if (!any)
		r = -EINVAL;
	else
		memcpy(p->affinity, mask, sizeof(mask));
	task_put(p);
	return r;
}

static bool is_rt(int policy)
{
	return policy == SCHED_FIFO || policy == SCHED_RR;
}

static bool policy_known(int policy)
{
	return is_rt(policy) || policy == SCHED_OTHER || policy == SCHED_BATCH || policy == SCHED_IDLE;
}

/* What a process may do to @p without CAP_SYS_NICE. */
static int sched_check_unprivileged(const struct task *t, const struct task *p, int policy, int prio, int nice)
{
	uint64_t rt = task_rlimit(p, RLIMIT_RTPRIO), nl = task_rlimit(p, RLIMIT_NICE);

	if (cred_has_cap(t->cred, CAP_SYS_NICE))
		return 0;
	if (is_rt(policy)) {
		if (policy != p->sched_policy && !rt)
			return -EPERM;
		if (prio > p->sched_prio && (uint64_t)prio > rt)
			return -EPERM;
	} else if (nice < p->nice && (uint64_t)(20 - nice) > nl) {
		return -EPERM;
	}
	if (p->sched_policy == SCHED_IDLE && policy != SCHED_IDLE && (uint64_t)(20 - p->nice) > nl)
		return -EPERM;
	return may_set(t, p) ? 0 : -EPERM;
}

/* sched_setscheduler(2). @policy < 0 keeps the present one. */
static int sched_set(struct task *t, pid_t pid, int policy, int prio, bool reset, int nice)
{
	struct task *p;
	int r = 0;

	if (pid < 0)
		return -EINVAL;
	p = lookup_or_self(t, pid);
	if (!p)
		return -ESRCH;
	if (policy < 0) {
		policy = p->sched_policy;
		reset = p->sched_reset_on_fork;
	}
	if (!policy_known(policy) || prio < 0 || prio > RT_PRIO_MAX || is_rt(policy) != (prio != 0))
		r = -EINVAL;
	if (r == 0)
		r = sched_check_unprivileged(t, p, policy, prio, nice == INT32_MIN ? p->nice : nice);
	if (r == 0 && p->sched_reset_on_fork && !reset && !cred_has_cap(t->cred, CAP_SYS_NICE))
		r = -EPERM;
	if (r == 0) {
		p->sched_policy = policy;
		p->sched_prio = prio;
		p->sched_reset_on_fork = reset;
		if (nice != INT32_MIN && !is_rt(policy))
			p->nice = nice;
	}
	task_put(p);
	return r;
}

int64_t sys_sched_setscheduler(struct task *t, const struct sysargs *a)
{
	struct linux_sched_param sp;
	int policy = ARG_INT(a, 1), r;

	if (policy < 0 || ARG_INT(a, 0) < 0 || !ARG_PTR(a, 2))
		return -EINVAL;
	r = copy_in(t, ARG_PTR(a, 2), &sp, sizeof(sp));
	if (r < 0)
		return r;
	return sched_set(t, ARG_INT(a, 0), policy & ~SCHED_RESET_ON_FORK, sp.priority,
			 policy & SCHED_RESET_ON_FORK, INT32_MIN);
}

int64_t sys_sched_setparam(struct task *t, const struct sysargs *a)
{
	struct linux_sched_param sp;
	int r;

	if (ARG_INT(a, 0) < 0 || !ARG_PTR(a, 1))
		return -EINVAL;
	r = copy_in(t, ARG_PTR(a, 1), &sp, sizeof(sp));
	return r < 0 ? r : sched_set(t, ARG_INT(a, 0), -1, sp.priority, false, INT32_MIN);
}

int64_t sys_sched_getscheduler(struct task *t, const struct sysargs *a)
{
	struct task *p;
	int64_t r;

	if (ARG_INT(a, 0) < 0)
		return -EINVAL;
	p = lookup_or_self(t, ARG_INT(a, 0));
	if (!p)
		return -ESRCH;
	r = p->sched_policy | (p->sched_reset_on_fork ? SCHED_RESET_ON_FORK : 0);
	task_put(p);
	return r;
}

int64_t sys_sched_getparam(struct task *t, const struct sysargs *a)
{
	struct linux_sched_param sp;
	struct task *p;

	if (ARG_INT(a, 0) < 0 || !ARG_PTR(a, 1))
		return -EINVAL;
	p = lookup_or_self(t, ARG_INT(a, 0));
	if (!p)
		return -ESRCH;
	sp.priority = p->sched_prio;
	task_put(p);
	return copy_out(t, ARG_PTR(a, 1), &sp, sizeof(sp));
}

int64_t sys_sched_getattr(struct task *t, const struct sysargs *a)
{
	struct linux_sched_attr at = { 0 };
	uint32_t size = ARG_U32(a, 2);
	struct task *p;

	if (!ARG_PTR(a, 1) || ARG_INT(a, 0) < 0 || size > PAGE_SIZE || size < LINUX_SCHED_ATTR_VER0 || ARG_U32(a, 3))
		return -EINVAL;
	p = lookup_or_self(t, ARG_INT(a, 0));
	if (!p)
		return -ESRCH;
	at.size = MIN(size, (uint32_t)sizeof(at));
	at.policy = (uint32_t)p->sched_policy;
	at.flags = p->sched_reset_on_fork ? FLAG_RESET : 0;
	if (is_rt(p->sched_policy))
		at.priority = (uint32_t)p->sched_prio;
	else
		at.nice = p->nice;
	task_put(p);
	return copy_out(t, ARG_PTR(a, 1), &at, at.size);
}

int64_t sys_sched_setattr(struct task *t, const struct sysargs *a)
{
	struct linux_sched_attr at = { 0 };
	uint32_t size;
	int r;

	if (!ARG_PTR(a, 1) || ARG_INT(a, 0) < 0 || ARG_U32(a, 2))
		return -EINVAL;
	r = copy_in(t, ARG_PTR(a, 1), &size, sizeof(size));
	if (r < 0)
		return r;
	if (!size)
		size = LINUX_SCHED_ATTR_VER0;
	if (size < LINUX_SCHED_ATTR_VER0 || size > sizeof(at)) {
		uint32_t known = sizeof(at);

		r = copy_out(t, ARG_PTR(a, 1), &known, sizeof(known));
		return r < 0 ? r : -E2BIG;
	}
	r = copy_in(t, ARG_PTR(a, 1), &at, size);
	if (r < 0)
		return r;
	if (at.flags & ~FLAGS_KNOWN || (int32_t)at.policy < 0)
		return -EINVAL;
	if (at.policy == SCHED_DEADLINE || at.policy == POLICY_EXT)
		return -EPERM; /* as without CAP_SYS_NICE: the host gives no reservations */
	if (at.flags & FLAG_KEEP_PARAMS)
		return 0;
	at.nice = at.nice < NICE_MIN ? NICE_MIN : at.nice > NICE_MAX ? NICE_MAX : at.nice;
	return sched_set(t, ARG_INT(a, 0), at.flags & FLAG_KEEP_POLICY ? -1 : (int)at.policy, (int)at.priority,
			 at.flags & FLAG_RESET, at.nice);
}

int64_t sys_sched_get_priority_max(struct task *t, const struct sysargs *a)
{
	(void)t;
	if (is_rt(ARG_INT(a, 0)))
		return RT_PRIO_MAX;
	return policy_known(ARG_INT(a, 0)) || ARG_INT(a, 0) == SCHED_DEADLINE ? 0 : -EINVAL;
}

int64_t sys_sched_get_priority_min(struct task *t, const struct sysargs *a)
{
	(void)t;
	if (is_rt(ARG_INT(a, 0)))
		return 1;
	return policy_known(ARG_INT(a, 0)) || ARG_INT(a, 0) == SCHED_DEADLINE ? 0 : -EINVAL;
}

int64_t sys_sched_rr_get_interval(struct task *t, const struct sysargs *a)
{
	int64_t ts[2] = { 0 };
	struct task *p;

	if (ARG_INT(a, 0) < 0)
		return -EINVAL;
	p = lookup_or_self(t, ARG_INT(a, 0));
	if (!p)
		return -ESRCH;
	if (p->sched_policy == SCHED_RR)
		ts[1] = RR_INTERVAL_NS;
	else if (p->sched_policy != SCHED_FIFO)
		ts[1] = 4000000;
	task_put(p);
	return copy_out(t, ARG_PTR(a, 1), ts, sizeof(ts));
}

/* Which tasks a PRIO_* request means; @each returns what it made of one task. */
struct prio_walk {
	struct task *self;
	int nice; /* wanted */
	int best; /* highest priority seen: 20 - nice */
	int err;
	bool found;
};

static void prio_get_one(struct prio_walk *w, struct task *p)
{
	w->found = true;
	w->best = MAX(w->best, 20 - p->nice);
}

static void prio_set_one(struct prio_walk *w, struct task *p)
{
	const struct cred *c = w->self->cred;

	w->found = true;
	if (!may_set(w->self, p)) {
		w->err = -EPERM;
	} else if (w->nice < p->nice && (uint64_t)(20 - w->nice) > task_rlimit(p, RLIMIT_NICE) &&
		   !cred_has_cap(c, CAP_SYS_NICE)) {
		w->err = -EACCES;
	} else {
		p->nice = w->nice;
	}
}

static int prio_walk(struct prio_walk *w, int which, pid_t who, void (*each)(struct prio_walk *w, struct task *p))
{
	struct tgroup *tg;
	struct task *p;

	if (which == PRIO_PROCESS) {
		p = lookup_or_self(w->self, who);
		if (p)
			each(w, p);
		task_put(p);
		return w->found ? w->err : -ESRCH;
	}
	if (which != PRIO_PGRP && which != PRIO_USER)
		return -EINVAL;
	list_for_each_entry(tg, &kernel.tgroups, all_node) {
		list_for_each_entry(p, &tg->tasks, tg_node) {
			uid_t uid = who ? (uid_t)who : w->self->cred->uid;
			pid_t pgid = who ? who : w->self->tg->pgid;

			if (which == PRIO_PGRP ? tg->pgid == pgid : p->cred->uid == uid)
				each(w, p);
		}
	}
	return w->found ? w->err : -ESRCH;
}

int64_t sys_getpriority(struct task *t, const struct sysargs *a)
{
	struct prio_walk w = { .self = t };
	int r = prio_walk(&w, ARG_INT(a, 0), ARG_INT(a, 1), prio_get_one);

	return r < 0 ? r : w.best;
}

int64_t sys_setpriority(struct task *t, const struct sysargs *a)
{
	int nice = ARG_INT(a, 2);
	struct prio_walk w = { .self = t };

	w.nice = nice < NICE_MIN ? NICE_MIN : nice > NICE_MAX ? NICE_MAX : nice;
	return prio_walk(&w, ARG_INT(a, 0), ARG_INT(a, 1), prio_set_one);
}

int64_t sys_getcpu(struct task *t, const struct sysargs *a)
{
	uint32_t cpu = host_cpu_current() % kernel.n_cpus, node = 0;
	int r = 0;

	if (ARG_PTR(a, 0))
		r = copy_out(t, ARG_PTR(a, 0), &cpu, sizeof(cpu));
	if (r == 0 && ARG_PTR(a, 1))
		r = copy_out(t, ARG_PTR(a, 1), &node, sizeof(node));
	return r;
}

#define IOPRIO_WHO_USER 3

int64_t sys_ioprio_get(struct task *t, const struct sysargs *a)
{
	struct task *p;

	if (ARG_INT(a, 0) < 1 || ARG_INT(a, 0) > IOPRIO_WHO_USER)
		return -EINVAL;
	p = ARG_INT(a, 0) == 1 ? lookup_or_self(t, ARG_INT(a, 1)) : task_get(t);
	if (!p)
		return -ESRCH;
	task_put(p);
	return 0; /* class "none" */
}

int64_t sys_ioprio_set(struct task *t, const struct sysargs *a)
{
	int class = ARG_INT(a, 2) >> 13 & 7;
	struct task *p;

	if (ARG_INT(a, 0) < 1 || ARG_INT(a, 0) > IOPRIO_WHO_USER || class > 3)
		return -EINVAL;
	if (class == 1 && !cred_has_cap(t->cred, CAP_SYS_ADMIN) && !cred_has_cap(t->cred, CAP_SYS_NICE))
		return -EPERM;
	p = ARG_INT(a, 0) == 1 ? lookup_or_self(t, ARG_INT(a, 1)) : task_get(t);
	if (!p)
		return -ESRCH;
	task_put(p);
	return 0;
}

/*
 * A barrier on the processors of other threads would need each of them to stop; one that only reads and computes cannot
 * be waited for without blocking the leader. So no command is offered: programs then use the fallback that they
 * have for kernels without this call.
 */
int64_t sys_membarrier(struct task *t, const struct sysargs *a)
{
	(void)t;
	if (ARG_U32(a, 1))
		return -EINVAL;
	return ARG_INT(a, 0) == MEMBARRIER_CMD_QUERY ? 0 : -EINVAL;
}
