/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happens to pending signals when a task stops: see sig_deliver.h for the exit path around it.
 *
 * sig_deliver() takes signals until none is left that the mask lets through. Each handler gets a
 * frame of its own on top of the one before, as on Linux: the first signal taken is the last whose
 * handler runs. The registers are fetched when the first handler is met and written back once. The
 * restart of the interrupted call is decided by the first handler alone (its SA_RESTART); without
 * any handler the call runs again inside the sentry, which costs no register access.
 */
#include "sentry/kernel/sig_deliver.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/bug.h"
#include "base/log.h"
#include "sentry/abi/signal.h"
#include "sentry/abi/syscall_nr.h"
#include "sentry/arch/sigframe.h"
#include "sentry/kernel/cred.h"
#include "sentry/kernel/futex_freeze.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/sig_priv.h"

#define SYSCALL_INSN_LEN 2

/* One run of sig_deliver(). */
struct delivery {
	struct task *t;
	int64_t *result;
	struct gregs regs;
	bool have_regs; /* a handler was met: regs are to be written back */
	bool restart;   /* the mask was restored for a restart: a handler that comes now cannot undo
			   it */
};

static bool is_restart(int64_t result)
{
	return result <= -ERESTARTSYS && result >= -ERESTART_BLOCK;
}

/* What a handler with @sa_flags makes of the restart code. */
static bool handler_restarts(int64_t code, uint64_t sa_flags)
{
	switch (code) {
	case -ERESTARTNOINTR:
		return true;
	case -ERESTARTSYS:
		return sa_flags & LINUX_SA_RESTART;
	default:
		return false;
	}
}

/* Registers as they would be after the call returned, or before it when it is to be restarted after
 * the handler. */
static int load_regs(struct delivery *d, uint64_t sa_flags)
{
	struct task *t = d->t;
	int r;

	if (d->have_regs)
		return 0;
	r = kernel.plat->ctx_regs_get(t->ctx, 0, &d->regs);
	if (r < 0)
		return r;
	d->have_regs = true;
	if (!t->in_syscall)
		return 0;
	if (!is_restart(*d->result)) {
		d->regs.rax = (uint64_t)*d->result;
	} else if (d->restart || handler_restarts(*d->result, sa_flags)) {
		/* After a mask restore Linux restarts by this number: the handler may have used the
		 * one restart block. */
		d->regs.rax = *d->result == -ERESTART_BLOCK ? LINUX_SYS_restart_syscall : t->op.nr;
		d->regs.rip -= SYSCALL_INSN_LEN;
	} else {
		d->regs.rax = (uint64_t)-EINTR;
	}
	return 0;
}

static enum sigd die(struct task *t, int sig)
{
	int status = sig;

	if ((SIG_BIT(sig) & SIG_CORE_SET) && task_rlimit(t, RLIMIT_CORE) > 0 && t->tg->dumpable)
		status |= 0x80;
	log_dbg(CH_SIGNAL, "%d: ends by signal %d", t->tid, sig);
	tgroup_exit(t->tg, status);
	return SIGD_GONE;
}

/* The frame could not be pushed: as force_sigsegv() of Linux. */
static void frame_failed(struct task *t, int sig)
{
	if (sig == SIGSEGV)
		t->sighand->act[SIGSEGV - 1].handler = LINUX_SIG_DFL;
	sig_force_fault(t, SIGSEGV, LINUX_SI_KERNEL, 0);
}

static int push_handler(struct delivery *d, int sig, const struct linux_sigaction *act,
			const struct linux_siginfo *info)
{
	struct task *t = d->t;
	uint64_t saved = t->sig_restore_mask ? t->sig_saved_mask : t->sig_blocked;
	int r = load_regs(d, act->flags);

	if (r < 0)
		return r;
	r = sigframe_push(t, act, info, saved, &d->regs);
	if (r == -ESRCH)
		return r;
	if (r < 0) {
		frame_failed(t, sig);
		return 0;
	}
	t->sig_restore_mask = false;
	sig_set_mask(t, t->sig_blocked | act->mask |
				(act->flags & LINUX_SA_NODEFER ? 0 : SIG_BIT(sig)));
	return 0;
}

static void park(struct task *t)
{
	t->state = TASK_STOPPED;
	sig_thread(t)->parked = true;
}

/* Starts a group stop: all live threads are asked. */
static void start_stop(struct task *t, int sig)
{
	struct sig_group *sg = sig_group(t->tg);
	struct task *u;

	if (sg->stop_count == 0)
		sg->stop_signo = sig;
	list_for_each_entry(u, &t->tg->tasks, tg_node) {
		struct sig_thread *st = sig_thread(u);

		if (!st || u->exiting || st->stop_pending ||
		    (u->state == TASK_STOPPED && !st->frozen))
			continue;
		st->stop_pending = true;
		sg->stop_count++;
		if (u != t)
			sig_kick(u);
	}
}

void sig_stop_complete(struct tgroup *tg)
{
	tg->stopped = true;
	tg->stop_signal = sig_group(tg)->stop_signo;
	tg->stop_reported = false;
	tg->continued = false;
	(void)sig_notify_parent(tg, CLD_STOPPED, tg->stop_signal);
}

static int next_signal(struct task *t, struct linux_siginfo *info)
{
	uint64_t set = ~t->sig_blocked;
	int sig = sigqueue_take_fault(t->sig_pending, set, info);

	return sig ? sig : sig_dequeue(t, set, info);
}

/* Default action of a signal without handler. False: it has none. */
static bool default_action(struct task *t, int sig, enum sigd *ret)
{
	if (SIG_BIT(sig) & SIG_IGNORE_SET)
		return false;
	if (SIG_BIT(sig) & SIG_STOP_SET) {
		if (sig != SIGSTOP && pgrp_is_orphaned(t->tg->pgid))
			return false;
		start_stop(t, sig);
		return false; /* the loop sees stop_pending */
	}
	*ret = die(t, sig);
	return true;
}

/* One after another until none is left; true with *ret when the task does not go on. */
static bool take_signals(struct delivery *d, enum sigd *ret)
{
	struct task *t = d->t;
	struct linux_siginfo info;
	struct linux_sigaction act;
	int sig;

	for (;;) {
		if (t->tg->shared_pending && (t->tg->shared_pending->set & SIG_BIT(SIGKILL))) {
			*ret = die(t, SIGKILL);
			return true;
		}
		if (sig_thread(t)->stop_pending) {
			park(t);
			sig_unshare_stop(t);
			*ret = SIGD_STOPPED;
			return true;
		}
		sig = next_signal(t, &info);
		if (!sig)
			return false;
		act = t->sighand->act[sig - 1];
		if (act.handler == LINUX_SIG_IGN)
			continue;
		if (act.handler == LINUX_SIG_DFL) {
			if (default_action(t, sig, ret))
				return true;
			continue;
		}
		if (act.flags & LINUX_SA_RESETHAND)
			t->sighand->act[sig - 1].handler = LINUX_SIG_DFL;
		if (push_handler(d, sig, &act, &info) < 0) {
			*ret = die(t, SIGKILL); /* the context is dead */
			return true;
		}
	}
}

/* Writes back what the handlers changed. */
static enum sigd finish_regs(struct delivery *d, enum sigd ret)
{
	struct task *t = d->t;
	struct sig_thread *st = sig_thread(t);

	if (d->have_regs) {
		if (kernel.plat->ctx_regs_set(t->ctx, 0, &d->regs) < 0)
			return die(t, SIGKILL);
		t->in_syscall = false;
		st->parked_regs = true;
	}
	if (ret == SIGD_NONE && st->parked_regs) {
		st->parked_regs = false;
		ret = SIGD_RESUME_REGS;
	}
	return ret;
}

enum sigd sig_deliver(struct task *t, int64_t *result)
{
	struct delivery d = { .t = t, .result = result };
	enum sigd ret = SIGD_NONE;
	bool again;

	if (t->exiting || t->state == TASK_ZOMBIE || !t->sig_pending)
		return SIGD_GONE;
	do {
		again = false;
		if (take_signals(&d, &ret))
			break;
		if (t->sig_restore_mask) {
			/* No handler ran. Signals that only the temporary mask held back are taken
			 * now; the restart is decided. */
			t->sig_restore_mask = false;
			sig_set_mask(t, t->sig_saved_mask);
			d.restart = t->in_syscall && is_restart(*result);
			again = sig_pending(t);
		}
	} while (again);
	if (ret == SIGD_GONE)
		return ret;
	if (ret == SIGD_NONE && futex_freeze_holds(t)) {
		park(t);
		sig_thread(t)->frozen = true;
		ret = SIGD_STOPPED;
	}
	ret = finish_regs(&d, ret);
	if (ret == SIGD_STOPPED) {
		sig_thread(t)->parked_result = *result;
		if (sig_thread(t)->frozen)
			futex_freeze_parked(t);
	} else if (ret == SIGD_NONE && t->in_syscall && is_restart(*result)) {
		ret = SIGD_RERUN;
	}
	return ret;
}

bool sig_unpark(struct task *t, int64_t *result)
{
	struct sig_thread *st = sig_thread(t);

	if (!st || !st->parked)
		return false;
	st->parked = st->frozen = false;
	*result = st->parked_result;
	return true;
}

/* The handler of SIGCHLD in @parent: does it want the child to vanish, and the signal? */
static bool parent_ignores(const struct tgroup *parent, bool *no_signal)
{
	const struct task *pt = sig_any_task(parent);
	const struct linux_sigaction *act;

	if (!pt)
		return false;
	act = &pt->sighand->act[SIGCHLD - 1];
	*no_signal = act->handler == LINUX_SIG_IGN;
	return *no_signal || (act->flags & LINUX_SA_NOCLDWAIT);
}

static bool wants_stop_signal(const struct tgroup *parent)
{
	const struct task *pt = sig_any_task(parent);

	return pt && pt->sighand->act[SIGCHLD - 1].handler != LINUX_SIG_IGN &&
	       !(pt->sighand->act[SIGCHLD - 1].flags & LINUX_SA_NOCLDSTOP);
}

static void child_info(struct tgroup *tg, int sig, int why, int status, struct linux_siginfo *info)
{
	uint64_t u, s;

	memset(info, 0, sizeof(*info));
	tgroup_times(tg, &u, &s);
	info->si_signo = sig;
	info->si_code = why;
	info->kill_chld.pid = tg->tgid;
	info->kill_chld.uid = tg->leader && tg->leader->cred ? tg->leader->cred->uid : 0;
	info->kill_chld.status = status;
	/* clock ticks of 10 ms */
	info->kill_chld.utime = (int64_t)(u / 10000000u);
	info->kill_chld.stime = (int64_t)(s / 10000000u);
}

bool sig_notify_parent(struct tgroup *tg, int why, int status)
{
	struct tgroup *parent = tg->parent;
	bool exited = why == CLD_EXITED || why == CLD_KILLED || why == CLD_DUMPED;
	bool reap = false, no_signal = false;
	int sig = exited ? tg->exit_signal : SIGCHLD;
	struct linux_siginfo info;

	if (!parent || parent == kernel.init)
		return exited;
	if (!exited)
		no_signal = !wants_stop_signal(parent);
	else if (sig == SIGCHLD)
		reap = parent_ignores(parent, &no_signal);
	if (sig && !no_signal) {
		child_info(tg, sig, why, status, &info);
		(void)sig_send_tgroup(parent, sig, &info); /* a full queue loses only the siginfo */
	}
	waitq_wake(&parent->child_wq, POLLIN);
	return reap;
}
