/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ends of tasks and groups.
 *
 * task_exit() takes everything from a thread and removes it from its group; a thread that is no leader is gone with
 * that, the leader stays as a zombie. With the last thread the group is dead (tgroup_finish): its children get a new
 * parent, its own parent is told, and tgroup_reap() follows from wait(2), or at once when the parent never waits.
 *
 * tgroup_exit() ends all threads. Their host threads are destroyed first, all but one that keeps the address space
 * alive, so that no guest code of the process runs while its robust mutexes are handed on.
 *
 * Nothing here needs the help of the guest: a context is destroyed in whatever state it is.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/bug.h"
#include "sentry/kernel/cputime.h"
#include "sentry/kernel/cred.h"
#include "sentry/kernel/futex.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/pid.h"
#include "sentry/kernel/pidfd.h"
#include "sentry/kernel/session.h"
#include "sentry/kernel/sig_deliver.h"
#include "sentry/kernel/task_priv.h"
#include "sentry/mm/mm.h"
#include "sentry/vfs/fdtable.h"

int tgroup_exit_status(const struct tgroup *tg)
{
	return tg->group_exit ? tg->group_exit_code : tg->leader->exit_code;
}

/* Closes the present accounting period. A task that runs is charged for user time up to now. */
static void task_account_end(struct task *t)
{
	uint64_t u, s;

	task_times(t, &u, &s);
	t->tg->utime_ns += u;
	t->tg->stime_ns += s;
	t->utime_ns = t->stime_ns = 0;
	t->stamp = 0;
}

static void task_note_rss(struct task *t)
{
	struct mm_stats st;

	if (!t->mm)
		return;
	mm_stats(t->mm, &st);
	t->tg->max_rss_kib = MAX(t->tg->max_rss_kib, st.rss / 1024);
}

/* Where children of @tg go: the nearest living ancestor that asked for it, or init. */
static struct tgroup *find_reaper(const struct tgroup *tg)
{
	struct tgroup *p;

	if (!tg->has_subreaper)
		return kernel.init;
	for (p = tg->parent; p && p != kernel.init; p = p->parent) {
		if (p->is_subreaper && p->n_tasks)
			return p;
	}
	return kernel.init;
}

/* PR_SET_PDEATHSIG of each thread of @child: its parent thread is gone. */
static void send_pdeath(struct tgroup *child)
{
	struct linux_siginfo info = { .si_code = SI_USER };
	struct task *t, *tmp;

	list_for_each_entry_safe(t, tmp, &child->tasks, tg_node) {
		if (!t->pdeath_signal)
			continue;
		info.si_signo = t->pdeath_signal;
		(void)sig_send_tgroup(child, t->pdeath_signal, &info); /* best effort, as in Linux */
	}
}

/* Gives @child to @reaper. A zombie is shown to it; the list of children may change. */
static void reparent(struct tgroup *child, struct tgroup *reaper)
{
	struct tgroup *old = child->parent;

	list_del(&child->sibling);
	list_add_tail(&reaper->children, &child->sibling);
	child->parent = reaper;
	child->parent_tid =
		reaper->n_tasks ? list_first_entry(&reaper->tasks, struct task, tg_node)->tid : reaper->tgid;
	child->exit_signal = SIGCHLD;
	if (child->dead) {
		int st = tgroup_exit_status(child);

		if (sig_notify_parent(child, WIFSIGNALED(st) ? CLD_KILLED : CLD_EXITED,
				      WIFSIGNALED(st) ? WTERMSIG(st) : WEXITSTATUS(st)))
			tgroup_reap(child);
		return;
	}
	send_pdeath(child);
	pgrp_check_orphaned(child, old);
}

static void reparent_children(struct tgroup *tg)
{
	struct tgroup *reaper;

	while (!list_empty(&tg->children)) {
		reaper = find_reaper(tg);
		reparent(list_first_entry(&tg->children, struct tgroup, sibling), reaper);
	}
}

/* A thread ends and others of its group live: they are the parents of its children now. */
static void rehome_children(struct task *t)
{
	struct tgroup *child, *tg = t->tg;
	pid_t heir = list_first_entry(&tg->tasks, struct task, tg_node)->tid;

	list_for_each_entry(child, &tg->children, sibling) {
		if (child->parent_tid != t->tid)
			continue;
		child->parent_tid = heir;
		if (!child->dead)
			send_pdeath(child);
	}
}

static void tgroup_finish(struct tgroup *tg)
{
	int st = tgroup_exit_status(tg);

	tg->dead = true;
	ktimer_cancel(&tg->itimer_real);
	sig_exit_tgroup(tg);
	session_exit(tg);
	reparent_children(tg);
	pgrp_check_orphaned(tg, tg->parent);
	waitq_wake_n(&tg->exit_wq, PIDFD_WAKE_EXIT, WAITQ_WAKE_ALL);
	if (tg == kernel.first)
		kernel_first_exited(st);
	if (sig_notify_parent(tg, WIFSIGNALED(st) ? (WCOREDUMP(st) ? CLD_DUMPED : CLD_KILLED) : CLD_EXITED,
			      WIFSIGNALED(st) ? WTERMSIG(st) : WEXITSTATUS(st)))
		tgroup_reap(tg);
}

void task_exit(struct task *t, int status)
{
	struct tgroup *tg = t->tg;

	if (t->exiting)
		return;
	t->exiting = true;
	(void)task_get(t);
	(void)tgroup_get(tg);
	t->exit_code = status;
	task_op_end(t);
	list_del(&t->runq_node);
	task_note_rss(t);
	futex_mm_release(t);
	task_account_end(t);
	t->state = TASK_ZOMBIE;
	t->in_syscall = false;
	list_del(&t->tg_node);
	tg->n_tasks--;
	sig_exit_task(t);
	task_drop_resources(t);
	task_vfork_done(t);
	if (tg->n_tasks)
		rehome_children(t);
	if (t != tg->leader)
		task_unpublish(t);
	if (!tg->n_tasks)
		tgroup_finish(tg);
	tgroup_put(tg);
	task_put(t);
}

/* The thread whose context is destroyed last. One that is stopped in a trap cannot change memory any more. */
static struct task *pick_last(struct tgroup *tg)
{
	struct task *t;

	list_for_each_entry(t, &tg->tasks, tg_node) {
		if (t->state != TASK_RUNNING || t->in_syscall)
			return t;
	}
	return list_first_entry(&tg->tasks, struct task, tg_node);
}

/* Ends all threads but @keep (NULL: none). */
static void tgroup_end_threads(struct tgroup *tg, struct task *keep, int status)
{
	struct task *last = keep, *t, *tmp;

	if (tg->n_tasks > 1) {
		if (!last)
			last = pick_last(tg);
		list_for_each_entry(t, &tg->tasks, tg_node) {
			if (t != last && t->ctx) {
				kernel.plat->ctx_destroy(t->ctx);
				t->ctx = NULL;
			}
		}
		list_for_each_entry_safe(t, tmp, &tg->tasks, tg_node) {
			if (t != last)
				task_exit(t, status);
		}
	}
	if (!keep && !list_empty(&tg->tasks))
		task_exit(list_first_entry(&tg->tasks, struct task, tg_node), status);
}

void tgroup_exit(struct tgroup *tg, int status)
{
	if (tg->dead || !tg->n_tasks)
		return;
	(void)tgroup_get(tg);
	if (!tg->group_exit) {
		tg->group_exit = true;
		tg->group_exit_code = status;
	}
	tgroup_end_threads(tg, NULL, status);
	tgroup_put(tg);
}

void tgroup_reap(struct tgroup *tg)
{
	struct tgroup *parent = tg->parent;
	struct task *leader = tg->leader;

	BUG_ON(!tg->dead || tg->reaped);
	tg->reaped = true;
	if (parent) {
		parent->child_utime_ns += tg->utime_ns + tg->child_utime_ns;
		parent->child_stime_ns += tg->stime_ns + tg->child_stime_ns;
		parent->child_max_rss_kib = MAX(parent->child_max_rss_kib, tg->max_rss_kib);
		parent->child_max_rss_kib = MAX(parent->child_max_rss_kib, tg->child_max_rss_kib);
	}
	kernel.dead_utime_ns += tg->utime_ns;
	kernel.dead_stime_ns += tg->stime_ns;
	list_del(&tg->sibling);
	list_del(&tg->all_node);
	pid_pgrp_add(tg->pgid, -1);
	pid_session_add(tg->sid, -1);
	waitq_wake_n(&tg->exit_wq, PIDFD_WAKE_REAPED, WAITQ_WAKE_ALL);
	tg->leader = NULL;
	task_unpublish(leader);
	task_put(leader);
	tgroup_put(tg);
}

/* Is @fdt used by a task of another group? */
static bool fdtable_shared_outside(const struct tgroup *self, const struct fdtable *fdt)
{
	struct tgroup *tg;
	struct task *t;

	list_for_each_entry(tg, &kernel.tgroups, all_node) {
		if (tg == self)
			continue;
		list_for_each_entry(t, &tg->tasks, tg_node) {
			if (t->fdt == fdt)
				return true;
		}
	}
	return false;
}

/* execve(2): "the thread ID of the thread that called execve is changed to the thread-group leader's". */
static void exec_become_leader(struct task *t)
{
	struct tgroup *tg = t->tg, *child;
	struct task *old = tg->leader;

	pid_set_task(t->tid, NULL);
	tg->leader = task_get(t);
	task_unpublish(old);
	task_put(old);
	list_for_each_entry(child, &tg->children, sibling)
		child->parent_tid = tg->tgid;
	t->tid = tg->tgid;
	pid_set_task(t->tid, t);
}

void task_exec_done(struct task *t, const char *comm, char *exe_path)
{
	struct tgroup *tg = t->tg;

	(void)task_get(t);
	tgroup_end_threads(tg, t, 0);
	if (t != tg->leader)
		exec_become_leader(t);
	free(tg->exe_path);
	tg->exe_path = exe_path;
	memset(t->comm, 0, sizeof(t->comm));
	memcpy(t->comm, comm, MIN(strlen(comm), (size_t)TASK_COMM_LEN - 1));
	if (fdtable_shared_outside(tg, t->fdt)) {
		struct fdtable *copy = fdtable_copy(t->fdt);

		if (!copy || sig_exec(t) < 0) {
			fdtable_put(copy);
			goto kill;
		}
		fdtable_put(t->fdt);
		t->fdt = copy;
	} else if (sig_exec(t) < 0) {
		goto kill;
	}
	fdtable_close_on_exec(t->fdt);
	t->clear_tid = 0;
	t->robust_list = 0;
	tg->execed = true;
	task_vfork_done(t);
	task_put(t);
	return;
kill:
	tgroup_exit(tg, SIGKILL);
	task_put(t);
}
