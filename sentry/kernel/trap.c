/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a trap to the guest again.
 *
 * kernel_trap() is called for each stop of a context. A system call is noted in task->op and run by call_run(); its
 * result goes out by task_leave(), which first lets signals act (sig_deliver.h). A call that must wait has
 * registered itself and returns SYS_BLOCKED: the trap stays unanswered, the task sleeps without a thread. What
 * wakes it puts it on kernel.runq, and runq_drain() runs the call again from its start, at the end of the trap that
 * woke it or from kernel_idle().
 *
 * Invariants: no restart code and no SYS_* value is ever answered to the guest (answer()); task->op has no
 * registrations, deadline or data while guest code runs; the kernel lock is held by everything here but the two
 * entries.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/bug.h"
#include "base/log.h"
#include "sentry/kernel/cputime.h"
#include "sentry/kernel/event.h"
#include "sentry/kernel/input_wait.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/restart.h"
#include "sentry/kernel/sig_deliver.h"
#include "sentry/kernel/strace.h"
#include "sentry/kernel/task_priv.h"
#include "sentry/mm/mm.h"

/* Woken calls run in one turn; then the leader looks for traps and comes back. */
#define RUNQ_TURN  256
/* A call that asks for its restart that often without a signal is broken: it gets EINTR. */
#define RERUNS_MAX 16

static bool is_restart(int64_t r)
{
	return r <= -ERESTARTSYS && r >= -ERESTART_BLOCK;
}

/* User time ends, system time begins. */
static inline void account_enter(struct task *t)
{
	uint64_t now = cputime_now();

	if (likely(now > t->stamp))
		t->utime_ns += now - t->stamp;
	t->stamp = now;
}

/* System time ends; user time begins, or a wait. */
static inline void account_leave(struct task *t)
{
	uint64_t now = cputime_now();

	if (likely(now > t->stamp))
		t->stime_ns += now - t->stamp;
	t->stamp = now;
}

/* The guest goes on with @r as the result of its call. -ESRCH of the platform: TRAP_EXITED will follow. */
static inline void answer(struct task *t, int64_t r)
{
	if (unlikely(is_restart(r) || r == SYS_BLOCKED || r == SYS_NO_RETURN))
		r = -EINTR;
	if (unlikely(log_on(CH_STRACE)))
		strace_leave(t, r);
	task_op_end(t);
	t->in_syscall = false;
	account_leave(t);
	(void)kernel.plat->ctx_return(t->ctx, r);
}

static inline void resume(struct task *t)
{
	t->in_syscall = false;
	account_leave(t);
	(void)kernel.plat->ctx_resume(t->ctx);
}

/* Lets signals act on the way out. True: the call is to be run again. */
static bool leave_slow(struct task *t, int64_t r)
{
	bool in_syscall = t->in_syscall;

	switch (sig_deliver(t, &r)) {
	case SIGD_NONE:
		break;
	case SIGD_RERUN:
		if (r == -ERESTART_BLOCK) {
			task_wait_undo(t, true);
			t->op.restarted = true;
		} else {
			task_op_reset(t);
		}
		return true;
	case SIGD_RESUME_REGS:
		if (in_syscall && log_on(CH_STRACE))
			strace_leave(t, r);
		task_op_end(t);
		resume(t);
		return false;
	case SIGD_STOPPED:
		account_leave(t);
		kernel.plat->ctx_parked(t->ctx);
		return false;
	case SIGD_GONE:
		return false;
	}
	if (t->in_syscall)
		answer(t, r);
	else
		resume(t);
	return false;
}

static inline bool leave(struct task *t, int64_t r)
{
	if (unlikely(sig_exit_work(t, r)))
		return leave_slow(t, r);
	if (likely(t->in_syscall))
		answer(t, r);
	else
		resume(t);
	return false;
}

/* Each unknown number is named once: the guest chooses them. */
static void note_unimplemented(const struct task *t, uint64_t nr)
{
	static uint64_t seen[SYS_TABLE_SIZE / 64 + 1];
	const char *name;

	if (nr >= SYS_TABLE_SIZE) {
		log_dbg(CH_TASK, "pid %d: no system call has number %#llx", t->tid, (unsigned long long)nr);
		return;
	}
	if (seen[nr / 64] & 1ull << (nr % 64))
		return;
	seen[nr / 64] |= 1ull << (nr % 64);
	name = sys_table[nr].name;
	log_info(CH_TASK, "pid %d: system call %llu (%s) is not implemented", t->tid, (unsigned long long)nr,
		 name ? name : "?");
}

static inline int64_t call_once(struct task *t)
{
	struct sysop *op = &t->op;
	sys_fn fn = likely(op->nr < SYS_TABLE_SIZE) ? sys_table[op->nr].fn : NULL;

	if (unlikely(log_on(CH_STRACE)))
		strace_enter(t);
	if (unlikely(!fn)) {
		note_unimplemented(t, op->nr);
		return -ENOSYS;
	}
	return fn(t, &op->args);
}

/*
 * A file system found that the host has something else where a name or an id led; it has forgotten what it knew. As
 * Linux does for calls that take a path (retry_estale), the walk is made once more; who has only a descriptor is told.
 */
static int64_t call_again_stale(struct task *t)
{
	const char *fmt = sys_table[t->op.nr].argfmt;

	return fmt && strstr(fmt, "path") ? call_once(t) : -ESTALE;
}

/* The call has resumed the task itself. */
static void call_resumed(struct task *t)
{
	if (t->exiting)
		return;
	if (log_on(CH_STRACE))
		strace_leave(t, SYS_NO_RETURN);
	task_op_end(t);
	t->in_syscall = false;
	account_leave(t);
	/* What became pending meanwhile had no exit path to act on. */
	if (unlikely(sig_pending(t)))
		kernel.plat->ctx_interrupt(t->ctx);
}

bool task_may_resume(const struct task *t)
{
	return !sig_exit_work(t, 0) && !log_on(CH_STRACE);
}

/* @t may exit here; it stays allocated until task_bury(). */
static void call_run(struct task *t)
{
	unsigned reruns = 0;
	int64_t r;

	do {
		r = call_once(t);
		if (unlikely(r == -ESTALE))
			r = call_again_stale(t);
		if (unlikely(t->exiting)) {
			if (log_on(CH_STRACE))
				strace_leave(t, SYS_NO_RETURN);
			return;
		}
		if (unlikely(r == SYS_BLOCKED)) {
			if (t->state == TASK_RUNNING)
				t->state = TASK_BLOCKED;
			account_leave(t);
			if (log_on(CH_STRACE))
				strace_blocked(t);
			if (t->state == TASK_BLOCKED)
				kernel.plat->ctx_parked(t->ctx);
			return;
		}
		if (unlikely(r == SYS_NO_RETURN)) {
			call_resumed(t);
			return;
		}
		if (unlikely(is_restart(r)) && ++reruns > RERUNS_MAX)
			r = -EINTR;
	} while (unlikely(leave(t, r)));
}

void task_leave(struct task *t, int64_t result)
{
	if (leave(t, result))
		call_run(t);
}

static inline void trap_syscall(struct task *t, const struct trap *trap)
{
	struct sysop *op = &t->op;

	op->nr = trap->sys.nr;
	memcpy(op->args.a, trap->sys.args, sizeof(op->args.a));
	op->restarted = false;
	op->timed_out = false;
	op->woken = false;
	op->progress = 0;
	memset(op->scratch, 0, sizeof(op->scratch));
	t->in_syscall = true;
	if (unlikely(trap->foreign))
		task_leave(t, -ENOSYS);
	else
		call_run(t);
}

static void trap_fault(struct task *t, const struct trap *trap)
{
	bool memory = trap->fault.signo == SIGSEGV || trap->fault.signo == SIGBUS;

	if (trap->fault.signo == SIGKILL) { /* the platform has no memory left for the page */
		kernel.counters.hit_memory_limit = true;
		log_info(CH_TASK, "pid %d: out of memory", t->tid);
		tgroup_exit(t->tg, SIGKILL);
		return;
	}
	if (memory && mm_fault(t, trap->fault.addr, trap->fault.err)) {
		task_leave(t, 0);
		return;
	}
	log_dbg(CH_TASK, "pid %d: signal %d at %#llx", t->tid, trap->fault.signo,
		(unsigned long long)trap->fault.addr);
	sig_force_trap(t, trap);
	if (!t->exiting)
		task_leave(t, 0);
}

/* The host took the process away (its memory limit, or the platform ended it for breaking a rule). */
static void trap_exited(struct task *t, const struct trap *trap)
{
	int st = trap->exit_status & 0x7f ? trap->exit_status & 0xff : SIGKILL;

	log_info(CH_TASK, "pid %d: its host thread is gone (status %#x)", t->tid, (unsigned)trap->exit_status);
	tgroup_exit(t->tg, st);
}

static void trap_dispatch(struct task *t, const struct trap *trap)
{
	switch (trap->kind) {
	case TRAP_SYSCALL:
		trap_syscall(t, trap);
		return;
	case TRAP_FAULT:
		t->in_syscall = false;
		trap_fault(t, trap);
		return;
	case TRAP_INTERRUPT:
		t->in_syscall = false;
		task_leave(t, 0);
		return;
	case TRAP_EXITED:
		trap_exited(t, trap);
		return;
	}
}

static void runq_run_one(struct task *t)
{
	int64_t r;

	list_del(&t->runq_node);
	kernel.n_runs++;
	t->state = TASK_RUNNING;
	t->stamp = cputime_now();
	kernel.current = t;
	if (unlikely(sig_unpark(t, &r))) {
		task_leave(t, r);
	} else {
		task_wait_undo(t, true);
		t->op.restarted = true;
		call_run(t);
	}
	kernel.current = NULL;
}

void runq_drain(void)
{
	unsigned turn = RUNQ_TURN;

	while (!list_empty(&kernel.runq)) {
		if (!turn--) {
			kernel.plat->wake(kernel.platform);
			return;
		}
		runq_run_one(list_first_entry(&kernel.runq, struct task, runq_node));
	}
}

void kernel_trap(void *arg, struct vcpu_ctx *ctx, const struct trap *trap)
{
	struct task *t;

	(void)arg;
	sbx_mutex_lock(&lc_kernel);
	t = ctx->owner;
	kernel.n_runs++;
	input_wait_activity();
	if (likely(t && t->state == TASK_RUNNING)) {
		account_enter(t);
		kernel.current = t;
		trap_dispatch(t, trap);
		kernel.current = NULL;
	} else if (t && trap->kind == TRAP_EXITED) {
		/* While it was blocked or stopped. */
		trap_exited(t, trap);
	}
	if (unlikely(!list_empty(&kernel.runq)))
		runq_drain();
	if (unlikely(kernel.input_waiters))
		input_wait_idle(); /* the platform calls kernel_idle() only when something woke it */
	event_timer_want(ktimer_next());
	task_bury();
	sbx_mutex_unlock(&lc_kernel);
}

void kernel_idle(void *arg)
{
	(void)arg;
	/* Called before each wait of the leader: the usual case is that nothing has happened. */
	if (likely(!event_pending() && list_empty(&kernel.runq) && !kernel.input_waiters))
		return;
	sbx_mutex_lock(&lc_kernel);
	event_run();
	if (!list_empty(&kernel.runq)) {
		input_wait_activity();
		runq_drain();
	}
	input_wait_idle();
	event_timer_want(ktimer_next()); /* last: each of these may have set a timer */
	task_bury();
	sbx_mutex_unlock(&lc_kernel);
}
