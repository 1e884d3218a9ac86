/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks as objects: references, tables, limits, the first process.
 *
 * References. The pid table holds one on each task that has a number (task_publish), a group one on its leader, a task
 * one on its group; a group itself is born with one that tgroup_reap() drops, which also cuts group and leader apart.
 * Others hold references only for the time of a call, or from objects such as pidfds. A task without references is
 * freed by task_bury() at the end of the trap: what handles the trap needs none of its own.
 */
#include "sentry/kernel/task.h"

#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/bug.h"
#include "sentry/kernel/cputime.h"
#include "sentry/kernel/cred.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/pid.h"
#include "sentry/kernel/sig_deliver.h"
#include "sentry/kernel/task_priv.h"
#include "sentry/mm/mm.h"
#include "sentry/vfs/dentry.h"
#include "sentry/vfs/fdtable.h"

#define DEFAULT_STACK   (8ull << 20)
#define DEFAULT_MEMLOCK (8ull << 20)
#define DEFAULT_MQUEUE  819200ull
#define DEFAULT_NOFILE  1024u
#define DEFAULT_NOFILE_MAX 1048576u

struct list graveyard = LIST_INIT(graveyard);

struct task *task_get(struct task *t)
{
	ref_get(&t->ref);
	return t;
}

void task_put(struct task *t)
{
	if (!t || !ref_put(&t->ref))
		return;
	BUG_ON(t->ctx || t->mm || !list_empty(&t->runq_node));
	list_add_tail(&graveyard, &t->runq_node);
}

void task_bury_slow(void)
{
	struct task *t, *tmp;

	list_for_each_entry_safe(t, tmp, &graveyard, runq_node) {
		list_del(&t->runq_node);
		cred_put(t->cred);
		tgroup_put(t->tg);
		free(t->op.more_waiters);
		free(t);
	}
}

struct tgroup *tgroup_get(struct tgroup *tg)
{
	ref_get(&tg->ref);
	return tg;
}

void tgroup_put(struct tgroup *tg)
{
	if (!tg || !ref_put(&tg->ref))
		return;
	BUG_ON(!list_empty(&tg->tasks) || !list_empty(&tg->children));
	free(tg->exe_path);
	free(tg);
	kernel.counters.tgroups--;
}

struct task *task_lookup(pid_t tid)
{
	struct task *t = pid_task(tid);

	return t ? task_get(t) : NULL;
}

struct tgroup *tgroup_lookup(pid_t tgid)
{
	struct task *t = pid_task(tgid);

	return t && t->tg->tgid == tgid ? tgroup_get(t->tg) : NULL;
}

bool pgrp_exists(pid_t pgid, pid_t *sid)
{
	struct tgroup *tg;

	if (!pid_is_pgrp(pgid))
		return false;
	list_for_each_entry(tg, &kernel.tgroups, all_node) {
		if (tg->pgid == pgid) {
			*sid = tg->sid;
			return true;
		}
	}
	return false;
}

struct task *task_alloc(void)
{
	struct task *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	ref_init(&t->ref);
	list_init(&t->tg_node);
	list_init(&t->runq_node);
	t->state = TASK_RUNNING;
	return t;
}

struct tgroup *tgroup_alloc(void)
{
	struct tgroup *tg = calloc(1, sizeof(*tg));

	if (!tg)
		return NULL;
	ref_init(&tg->ref);
	list_init(&tg->tasks);
	list_init(&tg->children);
	list_init(&tg->sibling);
	list_init(&tg->all_node);
	list_init(&tg->posix_timers);
	waitq_init(&tg->child_wq);
	waitq_init(&tg->exit_wq);
	tg->dumpable = true;
	kernel.counters.tgroups++;
	return tg;
}

static unsigned user_tasks(uid_t uid)
{
	struct tgroup *tg;
	unsigned n = 0;

	list_for_each_entry(tg, &kernel.tgroups, all_node) {
		if (tg->leader && tg->leader->cred && tg->leader->cred->uid == uid)
			n += tg->n_tasks ? tg->n_tasks : 1;
	}
	return n;
}

int task_limit_check(const struct task *parent)
{
	uint64_t nproc = task_rlimit(parent, RLIMIT_NPROC);
	const struct cred *c = parent->cred;

	if (kernel.limits.tasks && kernel.counters.tasks >= kernel.limits.tasks) {
		kernel.counters.hit_task_limit = true;
		return -EAGAIN;
	}
	/* setrlimit(2): not for the root user or the two capabilities. The walk is only for those who set a limit. */
	if (nproc == UINT64_MAX || c->uid == 0 || cred_has_cap(c, CAP_SYS_RESOURCE) ||
	    cred_has_cap(c, CAP_SYS_ADMIN))
		return 0;
	return user_tasks(c->uid) >= nproc ? -EAGAIN : 0;
}

void task_publish(struct task *t, pid_t tid, bool new_group)
{
	struct tgroup *tg = t->tg;

	t->tid = tid;
	pid_set_task(tid, t);
	list_add_tail(&tg->tasks, &t->tg_node);
	tg->n_tasks++;
	if (new_group) {
		tg->tgid = tid;
		tg->leader = task_get(t);
		pid_pgrp_add(tg->pgid, 1);
		pid_session_add(tg->sid, 1);
		list_add_tail(&kernel.tgroups, &tg->all_node);
		if (tg->parent)
			list_add_tail(&tg->parent->children, &tg->sibling);
	}
	kernel.counters.tasks++;
	if (kernel.counters.tasks > kernel.counters.tasks_peak)
		kernel.counters.tasks_peak = kernel.counters.tasks;
}

void task_unpublish(struct task *t)
{
	if (pid_task(t->tid) == t)
		pid_set_task(t->tid, NULL);
	kernel.counters.tasks--;
	task_put(t);
}

void task_op_hold(struct task *t, void *data, void (*data_free)(void *data))
{
	void *old = t->op.data;

	if (old && old != data)
		t->op.data_free(old);
	t->op.data = data;
	t->op.data_free = data_free;
}

void task_op_end(struct task *t)
{
	struct sysop *op = &t->op;

	if (op->n_waiters || op->has_deadline || op->input_wait)
		task_wait_undo(t, false);
	if (op->data) {
		void *data = op->data;

		op->data = NULL;
		op->data_free(data);
	}
}

void task_op_reset(struct task *t)
{
	struct sysop *op = &t->op;

	task_op_end(t);
	op->restarted = false;
	op->timed_out = false;
	op->woken = false;
	op->progress = 0;
	memset(op->scratch, 0, sizeof(op->scratch));
}

uint64_t task_rlimit(const struct task *t, unsigned resource)
{
	return resource < RLIMIT_COUNT ? t->tg->rlim[resource].cur : 0;
}

/* What a login on Linux gives, with the sandbox's own limits put in. */
static void rlimits_init(struct rlimit_pair *rlim)
{
	uint64_t files = kernel.limits.open_files ? kernel.limits.open_files : DEFAULT_NOFILE;
	uint64_t tasks = kernel.limits.tasks ? kernel.limits.tasks : UINT64_MAX;

	for (unsigned i = 0; i < RLIMIT_COUNT; i++)
		rlim[i] = (struct rlimit_pair){ UINT64_MAX, UINT64_MAX };
	rlim[RLIMIT_STACK].cur = DEFAULT_STACK;
	rlim[RLIMIT_CORE].cur = 0;
	rlim[RLIMIT_NPROC] = (struct rlimit_pair){ tasks, tasks };
	rlim[RLIMIT_NOFILE] = (struct rlimit_pair){ files, MAX(files, (uint64_t)DEFAULT_NOFILE_MAX) };
	if (kernel.limits.open_files)
		rlim[RLIMIT_NOFILE].max = files;
	rlim[RLIMIT_MEMLOCK] = (struct rlimit_pair){ DEFAULT_MEMLOCK, DEFAULT_MEMLOCK };
	rlim[RLIMIT_SIGPENDING] = (struct rlimit_pair){ 4096, 4096 };
	rlim[RLIMIT_MSGQUEUE] = (struct rlimit_pair){ DEFAULT_MQUEUE, DEFAULT_MQUEUE };
	rlim[RLIMIT_NICE] = (struct rlimit_pair){ 0, 0 };
	rlim[RLIMIT_RTPRIO] = (struct rlimit_pair){ 0, 0 };
}

static void task_init_sched(struct task *t)
{
	t->timer_slack_ns = 50000;
	for (unsigned i = 0; i < kernel.n_cpus; i++)
		t->affinity[i / 64] |= 1ull << (i % 64);
}

void task_drop_resources(struct task *t)
{
	struct mm *mm = t->mm;

	if (t->ctx) {
		kernel.plat->ctx_destroy(t->ctx);
		t->ctx = NULL;
	}
	if (mm) {
		t->mm = NULL;
		mm_users_add(mm, -1);
		mm_put(mm);
	}
	if (t->fdt) {
		struct fdtable *fdt = t->fdt;

		t->fdt = NULL;
		fdtable_put(fdt);
	}
	if (t->fs) {
		fs_ctx_put(t->fs);
		t->fs = NULL;
	}
}

int init_create(void)
{
	struct task *t = task_alloc();
	struct tgroup *tg = tgroup_alloc();

	if (!t || !tg)
		goto fail;
	t->tg = tg;
	t->cred = cred_create(0, 0, NULL, 0);
	if (!t->cred || sig_clone(t, NULL, 0) < 0)
		goto fail;
	t->state = TASK_BLOCKED;
	memcpy(t->comm, "init", 5);
	tg->pgid = tg->sid = 1;
	tg->exit_signal = SIGCHLD;
	t->start_ns = clock_mono_ns();
	rlimits_init(tg->rlim);
	task_publish(t, 1, true);
	(void)tgroup_get(tg); /* the task's; the first one is the group's own */
	/* It has no guest code: to all that walk live tasks it is a process without any. */
	list_del(&t->tg_node);
	tg->n_tasks = 0;
	kernel.counters.tasks--;
	kernel.counters.tgroups--;
	kernel.init = tg;
	pid_set_last(1);
	return 0;
fail:
	if (t && tg)
		t->tg = NULL;
	task_put(t);
	tgroup_put(tg);
	return -ENOMEM;
}

static int first_task_machine(struct task *t)
{
	struct aspace *as = NULL;
	int r = kernel.plat->ctx_create(kernel.platform, &as, &t->ctx);

	if (r < 0)
		return r;
	t->ctx->owner = t;
	t->mm = mm_create(as);
	if (!t->mm) {
		kernel.plat->aspace_put(as);
		return -ENOMEM;
	}
	mm_users_add(t->mm, 1);
	return 0;
}

struct task *task_create_first(struct cred *cred, struct fs_ctx *fs, struct fdtable *fdt, int *err)
{
	struct task *t = task_alloc();
	struct tgroup *tg = tgroup_alloc();
	pid_t tid = pid_alloc();
	int r = -ENOMEM;

	if (!t || !tg || tid < 0)
		goto fail;
	t->tg = tgroup_get(tg);
	t->cred = cred_get(cred);
	t->fs = fs_ctx_get(fs);
	t->fdt = fdtable_get(fdt);
	r = first_task_machine(t);
	if (r < 0)
		goto fail;
	r = sig_clone(t, NULL, 0);
	if (r < 0)
		goto fail;
	task_init_sched(t);
	rlimits_init(tg->rlim);
	t->start_ns = clock_mono_ns();
	t->stamp = cputime_now();
	tg->parent = kernel.init;
	tg->parent_tid = kernel.init->tgid;
	tg->exit_signal = SIGCHLD;
	/* A session of its own, as a container's first process. */
	tg->pgid = tg->sid = tid;
	task_publish(t, tid, true);
	kernel.first = tgroup_get(tg);
	cputime_watch();
	return task_get(t);
fail:
	*err = r;
	if (t)
		task_drop_resources(t);
	task_put(t);
	tgroup_put(tg);
	return NULL;
}
