/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where signals act: the exit path of a stopped task (kernel/trap.c), and the life-cycle hooks of
 * tasks and groups.
 *
 * The exit path, for a task that stopped for any reason and holds @result of its call (ignored when
 * !t->in_syscall):
 *
 *	if (sig_exit_work(t, result)) {
 *		switch (sig_deliver(t, &result)) {
 *		case SIGD_NONE:        break; -- answer with result: no restart code any more
 *		case SIGD_RERUN:       ...    -- see below
 *		case SIGD_RESUME_REGS: ctx_resume(t->ctx); return;
 *		case SIGD_STOPPED:     ctx_parked(t->ctx); return;
 *		case SIGD_GONE:        return;
 *		}
 *	}
 *	t->in_syscall ? ctx_return(t->ctx, result) : ctx_resume(t->ctx);
 *
 * The caller holds a reference on @t. A new task (clone) takes the same path before it runs for the
 * first time.
 *
 * The run queue, for a task that it takes off:
 *
 *	if (sig_unpark(t, &result))  -- t was stopped, its call has been run already
 *		exit path with result
 *	else
 *		run the call
 */
#ifndef SBX_SENTRY_KERNEL_SIG_DELIVER_H
#define SBX_SENTRY_KERNEL_SIG_DELIVER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/macros.h"
#include "sentry/kernel/futex_freeze.h"
#include "sentry/kernel/restart.h"
#include "sentry/kernel/sig.h"
#include "sentry/kernel/task.h"

struct trap;

enum sigd {
	/* Nothing to do with the registers. *result is final; answer as if no signal had come. */
	SIGD_NONE,
	/*
	 * No handler runs and the call is to be restarted: run it again from task->op, without
	 * touching registers. *result is still the restart code: for -ERESTART_BLOCK task->op is
	 * kept as it is (deadline, progress, data; op.restarted = true), else task->op is first
	 * brought to the state of a new call with the same nr and args (timer cancelled, data
	 * freed).
	 */
	SIGD_RERUN,
	/* Handlers run: the registers are set, task->in_syscall is false. The call is over: clear
	 * task->op, ctx_resume(). */
	SIGD_RESUME_REGS,
	/* The task has exited (tgroup_exit was called); touch nothing but the reference. */
	SIGD_GONE,
	/* The task is TASK_STOPPED and its trap stays unanswered. *result is kept for sig_unpark(),
	 * task->op too. */
	SIGD_STOPPED,
};

/* Takes pending signals one after another and acts on them; decides the restart of the call whose
 * result is *result. */
MUST_CHECK enum sigd sig_deliver(struct task *t, int64_t *result);

/* Is sig_deliver() needed? (task_may_resume() is the opposite.) A result that is a
 * restart code needs it even when the signal has gone meanwhile. */
static inline bool sig_exit_work(const struct task *t, int64_t result)
{
	return sig_pending(t) || t->sig_restore_mask || futex_freeze_holds(t) ||
	       (t->in_syscall && result <= -ERESTARTSYS && result >= -ERESTART_BLOCK);
}

/* True when @t comes from a stop: *result is what was given to sig_deliver() then. */
MUST_CHECK bool sig_unpark(struct task *t, int64_t *result);

/* A processor exception of @t as the signal it means: sig_force_fault() that also notes error code,
 * vector and cr2 for the frame. The exit path follows. */
void sig_force_trap(struct task *t, const struct trap *trap);

/*
 * Life cycle.
 */

/* For clone(2) and the first task (@parent NULL): sighand shared, copied or new by @flags
 * (CLONE_THREAD, CLONE_SIGHAND, CLONE_CLEAR_SIGHAND, CLONE_VM, CLONE_VFORK), empty queues, the
 * parent's mask. @child->tg is set; without CLONE_THREAD its group state (queue, interval timers)
 * is set up too. 0 or -ENOMEM, then nothing needs undoing. clone(2) itself must return
 * -ERESTARTNOINTR when sig_pending(parent). */
MUST_CHECK int sig_clone(struct task *child, struct task *parent, uint64_t flags);

/* execve(2), in the thread that goes on: handlers to default, ignored ones kept, altstack cleared,
 * POSIX timers deleted; mask, pending signals and interval timers kept. May have no memory for an
 * unshared sighand: -ENOMEM (kill the task). */
MUST_CHECK int sig_exec(struct task *t);

/* A thread ends: hands shared signals to another thread, takes part in a stop under way, frees its
 * queue, puts sighand. Called once, while t->tg is valid, before or after it leaves tg->tasks; also
 * for a half-built task. */
void sig_exit_task(struct task *t);

/* The last thread of the group ended: timers off, queue freed. Before sig_notify_parent(). */
void sig_exit_tgroup(struct tgroup *tg);

/*
 * Tells tg->parent of a child event by tg->exit_signal (SIGCHLD for stops and continues) and wakes
 * its child_wq. @why is CLD_*; @status the exit code, or the signal. Returns true when the parent
 * will never wait for it (SIGCHLD ignored, SA_NOCLDWAIT, or it is kernel.init): reap the zombie
 * now. Only exits can return true.
 */
bool sig_notify_parent(struct tgroup *tg, int why, int status);

/*
 * Sending, with credentials.
 */

/* kill(2)'s rules for @t and a thread or process @target of it: 0, -EPERM, -EINVAL. */
MUST_CHECK int sig_may_kill(const struct task *t, const struct task *target, int sig);

/* kill(2): a process, a group, all. @info NULL: an ordinary SI_USER one. */
int sig_kill(struct task *t, pid_t pid, int sig, const struct linux_siginfo *info);
/* tgkill(2); @tgid 0: tkill(2). @info NULL: SI_TKILL. */
int sig_kill_thread(struct task *t, pid_t tgid, pid_t tid, int sig,
		    const struct linux_siginfo *info);

/* An ordinary SI_USER (or SI_TKILL) siginfo from @t. */
void sig_info_user(struct linux_siginfo *info, const struct task *t, int sig, int code);

/*
 * Masks, and waiting for signals (sigtimedwait, signalfd).
 */

/* Sets the mask (KILL and STOP never blocked) and finds other threads for shared signals that @t
 * now blocks. */
void sig_set_mask(struct task *t, uint64_t mask);

/* sigtimedwait(2) of @t waits for @set: these, blocked, make its call run again. 0 ends that. */
void sig_wait_set(struct task *t, uint64_t set);

/* sigaction(2): *old is the former action; @act NULL only asks. -EINVAL. */
MUST_CHECK int sig_set_action(struct task *t, int sig, const struct linux_sigaction *act,
			      struct linux_sigaction *old);

/* All pending signals of the thread and its group, blocked or not. */
uint64_t sig_pending_set(const struct task *t);

/* Takes a pending signal of @set off the queues: its number with *info filled in, or 0. Synchronous
 * ones first, then the lowest; the thread's before the group's. */
int sig_dequeue(struct task *t, uint64_t set, struct linux_siginfo *info);

#endif
