/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sending signals, masks, and the signal part of a task's life.
 *
 * A signal is queued on a thread (task.sig_pending) or on its group (tgroup.shared_pending) and
 * taken off by sig_deliver() when a thread that does not block it stops. Whoever queues one picks
 * such a thread and kicks it (sig_kick): a blocked call runs again and finds sig_pending(), running
 * guest code is interrupted, a stopped task is left alone. Nothing acts at once: the sender's own
 * call goes on undisturbed.
 *
 * Stops. A stop signal sets stop_pending on all threads (sig_deliver.c); each stops in its own exit
 * path, the last one tells the parent. SIGCONT acts when it is generated, blocked or ignored: it
 * takes back pending stop signals and stop_pending, and puts the stopped threads on the run queue.
 *
 * SIGKILL goes to the group's queue and kicks every thread; the first that stops ends the group. A
 * hostile guest can keep its thread from stopping, so a timer ends the group when none did.
 */
#include "sentry/kernel/sig.h"

#include <errno.h>
#include <linux/sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/log.h"
#include "sentry/abi/signal.h"
#include "sentry/kernel/cred.h"
#include "sentry/kernel/itimer.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/posix_timer.h"
#include "sentry/kernel/sig_deliver.h"
#include "sentry/kernel/sig_priv.h"
#include "sentry/vfs/signalfd.h"

#define KILL_PATIENCE_NS 5000000ull

static bool task_gone(const struct task *t)
{
	return t->exiting || t->state == TASK_ZOMBIE || !t->sig_pending || !t->sighand;
}

struct task *sig_any_task(const struct tgroup *tg)
{
	struct task *t;

	if (tg->leader && !task_gone(tg->leader))
		return tg->leader;
	list_for_each_entry(t, &tg->tasks, tg_node)
		if (!task_gone(t))
			return t;
	return NULL;
}

void sig_kick(struct task *t)
{
	if (t->state == TASK_BLOCKED)
		task_wake(t);
	else if (t->state == TASK_RUNNING && t->ctx)
		kernel.plat->ctx_interrupt(t->ctx);
}

bool sig_pending(const struct task *t)
{
	const struct sig_thread *st = sig_thread(t);
	uint64_t set;

	if (unlikely(!st))
		return false;
	set = st->q.set;
	if (likely(t->tg->shared_pending))
		set |= t->tg->shared_pending->set;
	return (set & ~t->sig_blocked) || st->stop_pending || st->parked_regs;
}

uint64_t sig_pending_set(const struct task *t)
{
	const struct sig_thread *st = sig_thread(t);
	const struct sigqueue *shared = t->tg->shared_pending;

	return (st ? st->q.set : 0) | (shared ? shared->set : 0);
}

int sig_dequeue(struct task *t, uint64_t set, struct linux_siginfo *info)
{
	struct sig_thread *st = sig_thread(t);
	int sig = st ? sigqueue_take(&st->q, set, info) : 0;

	if (!sig && t->tg->shared_pending)
		sig = sigqueue_take(t->tg->shared_pending, set, info);
	return sig;
}

bool sig_is_ignored(const struct task *t, int sig)
{
	uint64_t h;

	if (!t->sighand)
		return true;
	h = t->sighand->act[sig - 1].handler;
	return h == LINUX_SIG_IGN || (h == LINUX_SIG_DFL && (SIG_BIT(sig) & SIG_IGNORE_SET));
}

/* Would @t take it now, by delivery or by sigtimedwait(2)? */
static bool wants_signal(const struct task *t, int sig)
{
	const struct sig_thread *st = sig_thread(t);

	if (task_gone(t) || (SIG_BIT(sig) & t->sig_blocked & ~st->wait_set))
		return false;
	if (sig == SIGKILL)
		return true;
	return t->state != TASK_STOPPED;
}

static void unpark(struct task *t)
{
	struct sig_thread *st = sig_thread(t);

	if (t->state != TASK_STOPPED || !st || !st->parked)
		return;
	t->state = TASK_RUNNABLE;
	list_add_tail(&kernel.runq, &t->runq_node);
}

void sig_unshare_stop(struct task *t)
{
	struct sig_thread *st = sig_thread(t);
	struct sig_group *sg = sig_group(t->tg);

	if (!st || !st->stop_pending)
		return;
	st->stop_pending = false;
	if (sg && sg->stop_count && --sg->stop_count == 0 && !t->tg->group_exit && t->tg->n_tasks)
		sig_stop_complete(t->tg);
}

static void cancel_stop(struct tgroup *tg)
{
	struct sig_group *sg = sig_group(tg);
	struct task *t;

	sg->stop_count = 0;
	list_for_each_entry(t, &tg->tasks, tg_node) {
		struct sig_thread *st = sig_thread(t);

		if (st)
			st->stop_pending = false;
		unpark(t);
	}
}

static void flush_everywhere(struct tgroup *tg, uint64_t set)
{
	struct task *t;

	sigqueue_flush(tg->shared_pending, set);
	list_for_each_entry(t, &tg->tasks, tg_node)
		if (t->sig_pending)
			sigqueue_flush(t->sig_pending, set);
}

/* Stops and continues take each other back when they are generated, whatever becomes of the signal
 * itself. */
static void prepare_job_control(struct tgroup *tg, int sig)
{
	bool in_progress = sig_group(tg)->stop_count > 0;

	if (SIG_BIT(sig) & SIG_STOP_SET) {
		flush_everywhere(tg, SIG_BIT(SIGCONT));
		return;
	}
	if (sig != SIGCONT)
		return;
	flush_everywhere(tg, SIG_STOP_SET);
	cancel_stop(tg);
	if (tg->stopped || in_progress) {
		bool was_stopped = tg->stopped;

		tg->stopped = false;
		tg->stop_reported = false;
		tg->continued = true;
		(void)sig_notify_parent(tg, was_stopped ? CLD_CONTINUED : CLD_STOPPED,
					was_stopped ? SIGCONT : sig_group(tg)->stop_signo);
	}
}

/* A signal was queued on @q: finds a thread that takes it and kicks it. @only: the thread it was
 * sent to. */
static void wake_for(struct tgroup *tg, struct task *only, int sig)
{
	struct task *t = only ? only : sig_any_task(tg);

	if (t && wants_signal(t, sig)) {
		sig_kick(t);
		return;
	}
	if (only)
		return;
	list_for_each_entry(t, &tg->tasks, tg_node)
		if (wants_signal(t, sig)) {
			sig_kick(t);
			return;
		}
	/* None: it stays queued until one unblocks it or comes out of its stop. */
}

static void kill_timer_fire(struct ktimer *kt)
{
	struct sig_group *sg = container_of(kt, struct sig_group, kill_timer);

	tgroup_exit(sg->tg, SIGKILL);
}

static void send_kill(struct tgroup *tg)
{
	struct sig_group *sg = sig_group(tg);
	struct task *t;

	sg->q.set |= SIG_BIT(SIGKILL);
	cancel_stop(tg);
	tg->stopped = false;
	list_for_each_entry(t, &tg->tasks, tg_node)
		if (!task_gone(t))
			sig_kick(t);
	if (!sg->kill_timer.index &&
	    ktimer_arm(&sg->kill_timer, clock_mono_ns() + KILL_PATIENCE_NS) < 0)
		log_dbg(CH_SIGNAL, "no timer for the kill of %d",
			tg->tgid); /* then the kick must do */
}

/* True when there is nobody to take it, or it vanishes. */
static bool vanishes(struct tgroup *tg, struct task *t, int sig)
{
	const struct task *who = t ? t : sig_any_task(tg);
	uint64_t held;

	if (!who || tg == kernel.init || tg->dead || !tg->shared_pending || (t && task_gone(t)))
		return true;
	prepare_job_control(tg, sig);
	held = who->sig_blocked | (sig_thread(who) ? sig_thread(who)->wait_set : 0);
	return !(SIG_BIT(sig) & held) && sig_is_ignored(who, sig);
}

static int send(struct tgroup *tg, struct task *t, int sig, const struct linux_siginfo *info)
{
	struct linux_siginfo kernel_info = { .si_signo = sig, .si_code = LINUX_SI_KERNEL };
	int r;

	if (sig < 0 || sig > NSIG_LINUX)
		return -EINVAL;
	if (sig == 0 || vanishes(tg, t, sig))
		return 0;
	if (sig == SIGKILL) {
		send_kill(tg);
		return 0;
	}
	r = sigqueue_add(t ? t->sig_pending : tg->shared_pending, sig, info ? info : &kernel_info,
			 MIN(tg->rlim[RLIMIT_SIGPENDING].cur, SIG_ENTRIES_MAX));
	if (r < 0)
		return r;
	signalfd_notify(tg, sig);
	wake_for(tg, t, sig);
	return 0;
}

bool sig_send_entry(struct tgroup *tg, struct task *t, int sig, struct sig_entry *e)
{
	if (vanishes(tg, t, sig))
		return false;
	if (sig == SIGKILL) {
		send_kill(tg);
		return false;
	}
	sigqueue_add_entry(t ? t->sig_pending : tg->shared_pending, sig, e);
	signalfd_notify(tg, sig);
	wake_for(tg, t, sig);
	return true;
}

int sig_send_task(struct task *t, int sig, const struct linux_siginfo *info)
{
	return send(t->tg, t, sig, info);
}

int sig_send_tgroup(struct tgroup *tg, int sig, const struct linux_siginfo *info)
{
	return send(tg, NULL, sig, info);
}

int sig_send_pgrp(pid_t pgid, int sig, const struct linux_siginfo *info)
{
	struct tgroup *tg;
	int r = -ESRCH, one;
	bool success = false;

	list_for_each_entry(tg, &kernel.tgroups, all_node) {
		if (tg->pgid != pgid)
			continue;
		one = sig_send_tgroup(tg, sig, info);
		success |= one == 0;
		r = one;
	}
	return success ? 0 : r;
}

void sig_send_self(struct task *t, int sig)
{
	struct linux_siginfo info;

	sig_info_user(&info, t, sig, LINUX_SI_USER);
	(void)sig_send_task(t, sig, &info); /* standard signals always find room */
}

int sig_set_action(struct task *t, int sig, const struct linux_sigaction *act,
		   struct linux_sigaction *old)
{
	struct task *u;

	if (sig < 1 || sig > NSIG_LINUX || (act && (SIG_BIT(sig) & SIG_UNBLOCKABLE)))
		return -EINVAL;
	*old = t->sighand->act[sig - 1];
	if (!act)
		return 0;
	t->sighand->act[sig - 1] = *act;
	t->sighand->act[sig - 1].flags &= LINUX_SA_KNOWN;
	t->sighand->act[sig - 1].mask &= ~SIG_UNBLOCKABLE;
	/* POSIX: a signal that becomes ignored while it is pending is discarded, blocked or not. */
	if (!sig_is_ignored(t, sig))
		return 0;
	if (t->tg->shared_pending)
		sigqueue_flush(t->tg->shared_pending, SIG_BIT(sig));
	list_for_each_entry(u, &t->tg->tasks, tg_node)
		if (u->sig_pending)
			sigqueue_flush(u->sig_pending, SIG_BIT(sig));
	return 0;
}

static void force_info(struct task *t, const struct linux_siginfo *info)
{
	int sig = info->si_signo;
	struct linux_sigaction *act;

	if (task_gone(t))
		return;
	act = &t->sighand->act[sig - 1];
	if ((t->sig_blocked & SIG_BIT(sig)) || act->handler == LINUX_SIG_IGN) {
		act->handler = LINUX_SIG_DFL;
		t->sig_blocked &= ~SIG_BIT(sig);
	}
	(void)sigqueue_add(t->sig_pending, sig, info, UINT64_MAX);
	signalfd_notify(t->tg, sig);
}

void sig_force_fault(struct task *t, int sig, int code, uaddr_t addr)
{
	struct linux_siginfo info = { .si_signo = sig, .si_code = code };

	info.fault.addr = addr;
	force_info(t, &info);
}

void sig_force_trap(struct task *t, const struct trap *trap)
{
	struct sig_thread *st = sig_thread(t);

	if (st) {
		st->err = trap->fault.err;
		st->trapno = trap->fault.trapno;
		if (trap->fault.signo == SIGSEGV || trap->fault.signo == SIGBUS)
			st->cr2 = trap->fault.addr;
	}
	sig_force_fault(t, trap->fault.signo, trap->fault.code, trap->fault.addr);
}

void sig_info_user(struct linux_siginfo *info, const struct task *t, int sig, int code)
{
	memset(info, 0, sizeof(*info));
	info->si_signo = sig;
	info->si_code = code;
	info->kill_chld.pid = t->tg->tgid;
	info->kill_chld.uid = t->cred->uid;
}

/* Shared signals of @set that @t will not take any more: other threads must look. */
static void retarget(struct task *t, uint64_t set)
{
	struct task *u;

	if (!t->tg->shared_pending)
		return;
	set &= t->tg->shared_pending->set;
	if (!set)
		return;
	list_for_each_entry(u, &t->tg->tasks, tg_node)
		if (u != t && !task_gone(u) && (set & ~u->sig_blocked))
			sig_kick(u);
}

void sig_set_mask(struct task *t, uint64_t mask)
{
	uint64_t old = t->sig_blocked;

	t->sig_blocked = mask & ~SIG_UNBLOCKABLE;
	if (t->sig_blocked & ~old)
		retarget(t, t->sig_blocked & ~old);
}

void sig_wait_set(struct task *t, uint64_t set)
{
	struct sig_thread *st = sig_thread(t);

	if (st)
		st->wait_set = set;
}

void sig_mask_push(struct task *t, uint64_t mask)
{
	/* A call that runs again has done this before. */
	if (!t->sig_restore_mask) {
		t->sig_saved_mask = t->sig_blocked;
		t->sig_restore_mask = true;
	}
	sig_set_mask(t, mask);
}

/*
 * Life cycle.
 */

static struct sighand *sighand_copy(const struct sighand *from)
{
	struct sighand *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	if (from)
		memcpy(h->act, from->act, sizeof(h->act));
	ref_init(&h->ref);
	return h;
}

static void sighand_put(struct sighand *h)
{
	if (h && ref_put(&h->ref))
		free(h);
}

static void sighand_reset(struct sighand *h, bool keep_ignored)
{
	for (unsigned i = 0; i < NSIG_LINUX; i++) {
		bool ignored = h->act[i].handler == LINUX_SIG_IGN;

		memset(&h->act[i], 0, sizeof(h->act[i]));
		if (ignored && keep_ignored)
			h->act[i].handler = LINUX_SIG_IGN;
	}
}

static struct sig_group *group_create(struct tgroup *tg)
{
	struct sig_group *sg = calloc(1, sizeof(*sg));

	if (!sg)
		return NULL;
	sigqueue_init(&sg->q);
	sg->tg = tg;
	ktimer_init(&sg->kill_timer, kill_timer_fire);
	return sg;
}

static int clone_sighand(struct task *child, struct task *parent, uint64_t flags)
{
	if (parent && (flags & CLONE_SIGHAND)) {
		ref_get(&parent->sighand->ref);
		child->sighand = parent->sighand;
		return 0;
	}
	child->sighand = sighand_copy(parent ? parent->sighand : NULL);
	if (!child->sighand)
		return -ENOMEM;
	if (flags & CLONE_CLEAR_SIGHAND)
		sighand_reset(child->sighand, true);
	return 0;
}

int sig_clone(struct task *child, struct task *parent, uint64_t flags)
{
	struct sig_thread *st = calloc(1, sizeof(*st));
	struct sig_group *sg = NULL;

	if (!(flags & CLONE_THREAD))
		sg = group_create(child->tg);
	if (!st || (!sg && !(flags & CLONE_THREAD)) || clone_sighand(child, parent, flags) < 0) {
		free(st);
		free(sg);
		return -ENOMEM;
	}
	sigqueue_init(&st->q);
	child->sig_pending = &st->q;
	child->sig_blocked = parent ? parent->sig_blocked : 0;
	child->sig_restore_mask = false;
	child->altstack_sp = child->altstack_size = 0;
	child->altstack_flags = LINUX_SS_DISABLE;
	if (parent && (flags & (CLONE_VM | CLONE_VFORK)) != CLONE_VM) {
		child->altstack_sp = parent->altstack_sp;
		child->altstack_size = parent->altstack_size;
		child->altstack_flags = parent->altstack_flags;
	}
	if (sg) {
		child->tg->shared_pending = &sg->q;
		itimer_init(child->tg);
		list_init(&child->tg->posix_timers);
	} else if (sig_thread(parent)->stop_pending) {
		st->stop_pending = true; /* a stop under way counts the newcomer in */
		sig_group(child->tg)->stop_count++;
	}
	return 0;
}

int sig_exec(struct task *t)
{
	struct sig_thread *st = sig_thread(t);

	if (ref_count(&t->sighand->ref) > 1) {
		struct sighand *h = sighand_copy(t->sighand);

		if (!h)
			return -ENOMEM;
		sighand_put(t->sighand);
		t->sighand = h;
	}
	sighand_reset(t->sighand, true);
	t->altstack_sp = t->altstack_size = 0;
	t->altstack_flags = LINUX_SS_DISABLE;
	st->err = st->trapno = st->cr2 = 0;
	posix_timer_exit(t->tg);
	t->tg->exit_signal = SIGCHLD;
	return 0;
}

void sig_exit_task(struct task *t)
{
	struct sig_thread *st = sig_thread(t);

	if (st) {
		sig_unshare_stop(t);
		if (!t->tg->group_exit)
			retarget(t, ~t->sig_blocked);
		posix_timer_exit_task(t);
		sigqueue_flush(&st->q, UINT64_MAX);
		t->sig_pending = NULL;
		free(st);
	}
	sighand_put(t->sighand);
	t->sighand = NULL;
}

void sig_exit_tgroup(struct tgroup *tg)
{
	struct sig_group *sg = sig_group(tg);

	if (!sg)
		return;
	itimer_exit(tg);
	posix_timer_exit(tg);
	ktimer_cancel(&sg->kill_timer);
	sigqueue_flush(&sg->q, UINT64_MAX);
	tg->shared_pending = NULL;
	free(sg);
}
