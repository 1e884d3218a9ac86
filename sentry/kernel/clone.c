/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making tasks. task_clone() builds the child from the outside in: credentials, files, signals; then the platform's
 * context and the address space; then the number, with which the guest can see it; and lets it run last. Until
 * task_publish() a failure undoes all by clone_undo().
 *
 * vfork: the child holds its parent (task->vfork_parent), whose call blocks until task_vfork_done() when the child
 * executes a program or ends.
 */
#include "sentry/kernel/clone.h"

#include <errno.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "sentry/kernel/cputime.h"
#include "sentry/kernel/cred.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/pid.h"
#include "sentry/kernel/pidfd.h"
#include "sentry/kernel/restart.h"
#include "sentry/kernel/sig_deliver.h"
#include "sentry/kernel/task_priv.h"
#include "sentry/kernel/uaccess.h"
#include "sentry/mm/mm.h"
#include "sentry/vfs/dentry.h"
#include "sentry/vfs/fdtable.h"
#include "sentry/vfs/file.h"

#define CLONE_NEWTIME_BIT 0x80ull
#define CLONE_NAMESPACES \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | \
	 CLONE_NEWNET | CLONE_NEWTIME_BIT)

int clone_check(const struct task *t, const struct clone_request *rq)
{
	uint64_t f = rq->flags;

	if ((f & CLONE_FS) && (f & (CLONE_NEWNS | CLONE_NEWUSER)))
		return -EINVAL;
	if ((f & CLONE_THREAD) && !(f & CLONE_SIGHAND))
		return -EINVAL;
	if ((f & CLONE_SIGHAND) && !(f & CLONE_VM))
		return -EINVAL;
	if ((f & CLONE_THREAD) && (f & (CLONE_NEWUSER | CLONE_NEWPID)))
		return -EINVAL;
	if ((f & CLONE_PIDFD) && (f & (CLONE_DETACHED | CLONE_THREAD)))
		return -EINVAL;
	if ((f & CLONE_PIDFD) && (f & CLONE_PARENT_SETTID) && rq->pidfd == rq->parent_tid)
		return -EINVAL;
	/* The sandbox has one set of namespaces: refused as where the administrator forbids user namespaces. */
	if (f & CLONE_NAMESPACES)
		return -EPERM;
	if ((f & CLONE_SETTLS) && rq->tls >= GUEST_TASK_SIZE)
		return -EPERM;
	if (rq->set_tid && !cred_has_cap(t->cred, CAP_CHECKPOINT_RESTORE) && !cred_has_cap(t->cred, CAP_SYS_ADMIN))
		return -EPERM;
	return 0;
}

static int clone_files(struct task *c, struct task *t, uint64_t flags)
{
	c->fs = flags & CLONE_FS ? fs_ctx_get(t->fs) : fs_ctx_copy(t->fs);
	if (!c->fs)
		return -ENOMEM;
	c->fdt = flags & CLONE_FILES ? fdtable_get(t->fdt) : fdtable_copy(t->fdt);
	return c->fdt ? 0 : -ENOMEM;
}

static struct tgroup *clone_tgroup(struct task *t, const struct clone_request *rq)
{
	struct tgroup *ptg = t->tg, *tg;

	if (rq->flags & CLONE_THREAD)
		return tgroup_get(ptg);
	tg = tgroup_alloc();
	if (!tg)
		return NULL;
	if (ptg->exe_path) {
		tg->exe_path = strdup(ptg->exe_path);
		if (!tg->exe_path) {
			tgroup_put(tg);
			return NULL;
		}
	}
	if (rq->flags & CLONE_PARENT) {
		tg->parent = ptg->parent;
		tg->parent_tid = ptg->parent_tid;
		tg->exit_signal = ptg->exit_signal;
	} else {
		tg->parent = ptg;
		tg->parent_tid = t->tid;
		tg->exit_signal = rq->exit_signal;
	}
	tg->pgid = ptg->pgid;
	tg->sid = ptg->sid;
	tg->has_subreaper = ptg->has_subreaper || ptg->is_subreaper;
	memcpy(tg->rlim, ptg->rlim, sizeof(tg->rlim));
	tg->oom_score_adj = ptg->oom_score_adj;
	tg->dumpable = ptg->dumpable;
	return tg;
}

static void clone_sched(struct task *c, const struct task *t)
{
	memcpy(c->affinity, t->affinity, sizeof(c->affinity));
	c->timer_slack_ns = t->timer_slack_ns;
	c->personality = t->personality;
	c->nice = t->nice;
	c->sched_policy = t->sched_policy;
	c->sched_prio = t->sched_prio;
	if (t->sched_reset_on_fork) {
		/* sched(7) "The reset-on-fork flag" */
		c->nice = MAX(c->nice, 0);
		c->sched_policy = SCHED_OTHER;
		c->sched_prio = 0;
	}
}

/*
 * The platform's half: a context and, for a fork, an address space. @go_on: the parent may go on with @tid already;
 * then nothing after this may fail. 0, CTX_RESUMED when it does, or -errno.
 */
static int clone_machine(struct task *c, struct task *t, const struct clone_request *rq, pid_t tid, bool go_on)
{
	struct ctx_clone_args ca = { .stack = rq->stack, .may_resume = go_on, .result = tid };
	struct aspace *as = NULL;
	int r;

	if (!(rq->flags & CLONE_VM))
		ca.kind = CTX_CLONE_FORK;
	else
		ca.kind = rq->flags & CLONE_THREAD ? CTX_CLONE_THREAD : CTX_CLONE_VM;
	if (rq->flags & CLONE_SETTLS) {
		ca.set_tls = true;
		ca.tls = rq->tls;
	}
	r = kernel.plat->ctx_clone(t->ctx, &ca, &as, &c->ctx);
	if (r < 0)
		return r;
	c->ctx->owner = c;
	if (ca.kind == CTX_CLONE_FORK) {
		c->mm = mm_fork(t->mm, as);
		if (!c->mm) {
			kernel.plat->aspace_put(as);
			return -ENOMEM;
		}
	} else {
		kernel.plat->aspace_put(as);
		c->mm = mm_get(t->mm);
	}
	mm_users_add(c->mm, 1);
	return r;
}

static int clone_pidfd(struct task *t, struct tgroup *tg, uaddr_t where)
{
	struct file *f;
	int fd, r;

	r = pidfd_create(tg, 0, &f);
	if (r < 0)
		return r;
	fd = fd_install(t, f, 0, true);
	if (fd < 0)
		return fd;
	r = copy_out(t, where, &fd, sizeof(fd));
	if (r < 0)
		DISCARD(fd_close(t, fd)); /* the error that counts is the copy's */
	return r;
}

/* A thread's parent need not wait until we are through: what it could see of it is done before. */
static int clone_thread(struct task *c, struct task *t, const struct clone_request *rq, pid_t tid)
{
	int r = sig_clone(c, t, rq->flags);

	if (r < 0)
		return r;
	if (rq->flags & CLONE_PARENT_SETTID)
		DISCARD(copy_out(t, rq->parent_tid, &tid, sizeof(tid)));
	r = clone_machine(c, t, rq, tid, true);
	if (r < 0)
		sig_exit_task(c);
	return r;
}

/* 0, CTX_RESUMED or -errno. */
static int clone_build(struct task *c, struct task *t, const struct clone_request *rq, pid_t tid)
{
	int r;

	c->cred = cred_get(t->cred);
	/* A new group's birth reference stays with the group until it is reaped. */
	c->tg = clone_tgroup(t, rq);
	if (!c->tg)
		return -ENOMEM;
	if (!(rq->flags & CLONE_THREAD))
		(void)tgroup_get(c->tg);
	r = clone_files(c, t, rq->flags);
	if (r < 0)
		return r;
	if ((rq->flags & (CLONE_THREAD | CLONE_PIDFD | CLONE_VFORK)) == CLONE_THREAD && task_may_resume(t))
		return clone_thread(c, t, rq, tid);
	r = clone_machine(c, t, rq, tid, false);
	if (r < 0)
		return r;
	r = sig_clone(c, t, rq->flags);
	if (r < 0)
		return r;
	if (rq->flags & CLONE_PIDFD) {
		r = clone_pidfd(t, c->tg, rq->pidfd);
		if (r < 0) {
			sig_exit_task(c);
			if (!(rq->flags & CLONE_THREAD))
				sig_exit_tgroup(c->tg);
			return r;
		}
	}
	return 0;
}

static void clone_undo(struct task *c, bool thread)
{
	struct tgroup *tg = c->tg;

	task_drop_resources(c);
	task_put(c);
	if (!thread)
		tgroup_put(tg); /* its birth reference */
}

static pid_t clone_number(const struct clone_request *rq)
{
	if (!rq->set_tid)
		return pid_alloc();
	if (rq->set_tid >= PID_MAX)
		return -EINVAL;
	return pid_task(rq->set_tid) || pid_is_pgrp(rq->set_tid) || pid_is_session(rq->set_tid) ? -EEXIST
												 : rq->set_tid;
}

/* Makes the child visible and lets it run. @gone_on: the parent does already. */
static void clone_start(struct task *c, struct task *t, const struct clone_request *rq, pid_t tid, bool gone_on)
{
	task_publish(c, tid, !(rq->flags & CLONE_THREAD));
	/* Linux does not look at the result of either store. */
	if (rq->flags & CLONE_PARENT_SETTID && !gone_on)
		DISCARD(copy_out(t, rq->parent_tid, &tid, sizeof(tid)));
	if (rq->flags & CLONE_CHILD_SETTID)
		DISCARD(copy_out(c, rq->child_tid, &tid, sizeof(tid)));
	if (rq->flags & CLONE_CHILD_CLEARTID)
		c->clear_tid = rq->child_tid;
	if (rq->flags & CLONE_VFORK) {
		c->vfork_parent = task_get(t);
		t->vfork_waiting = true;
	}
	c->stamp = cputime_now();
	task_leave(c, 0);
}

static int64_t vfork_wait(struct task *t)
{
	return t->vfork_waiting ? task_block_killable(t) : (int64_t)t->op.scratch[0];
}

bool task_clone_waits(const struct task *t)
{
	return t->op.restarted && t->op.scratch[0];
}

int64_t task_clone(struct task *t, const struct clone_request *rq)
{
	bool thread = rq->flags & CLONE_THREAD;
	struct task *c;
	pid_t tid;
	int r;

	if (task_clone_waits(t))
		return vfork_wait(t);
	r = clone_check(t, rq);
	if (r < 0)
		return r;
	/* So that a signal sent to a group reaches a child or is seen to before it: as copy_process(). */
	if (sig_pending(t))
		return -ERESTARTNOINTR;
	r = task_limit_check(t);
	if (r < 0)
		return r;
	tid = clone_number(rq);
	if (tid < 0)
		return tid;
	c = task_alloc();
	if (!c)
		return -ENOMEM;
	memcpy(c->comm, t->comm, sizeof(c->comm));
	clone_sched(c, t);
	c->start_ns = clock_mono_ns();
	r = clone_build(c, t, rq, tid);
	if (r < 0) {
		clone_undo(c, thread);
		return r;
	}
	clone_start(c, t, rq, tid, r == CTX_RESUMED);
	if (r == CTX_RESUMED)
		return SYS_NO_RETURN;
	if (!(rq->flags & CLONE_VFORK))
		return tid;
	t->op.scratch[0] = (uint64_t)tid;
	return vfork_wait(t);
}

void task_vfork_done(struct task *t)
{
	struct task *parent = t->vfork_parent;

	if (!parent)
		return;
	t->vfork_parent = NULL;
	parent->vfork_waiting = false;
	task_wake(parent);
	task_put(parent);
}
