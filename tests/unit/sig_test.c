/* SPDX-License-Identifier: Apache-2.0 */
/* Signals end to end: the real kernel over a platform that runs nothing
 * (tests/lib/fake_guest.h). */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "sentry/abi/signal.h"
#include "sentry/abi/syscall_nr.h"
#include "sentry/abi/time.h"
#include "sentry/arch/sigframe.h"
#include "sentry/kernel/clock.h"
#include "sentry/kernel/cred.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/pid.h"
#include "sentry/kernel/sig_deliver.h"
#include "sentry/kernel/sig_priv.h"
#include "sentry/kernel/task_priv.h"
#include "sentry/syscalls/signal.h"
#include "sentry/syscalls/time.h"
#include "tests/lib/fake_guest.h"
#include "tests/lib/tap.h"

#define HANDLER  0x401000u
#define RESTORER 0x402000u
#define SCRATCH  (FAKE_BASE + 0x100)
#define ALTSTACK (FAKE_BASE + 0x30000)

/* Calls of the test itself: one that blocks until an event, and returns a chosen code when it is
 * interrupted. */
#define NR_WAIT 400
static struct waitq test_wq;
static int test_intr;
static int64_t test_event;
static unsigned test_runs;

static int64_t sys_test_wait(struct task *t, const struct sysargs *a)
{
	(void)a;
	test_runs++;
	if (test_event)
		return test_event;
	if (task_wait_on(t, &test_wq, 1) < 0)
		return -ENOMEM;
	return task_block(t, -test_intr);
}

const struct sys_desc sys_table[SYS_TABLE_SIZE] = {
	[LINUX_SYS_rt_sigaction] = { "rt_sigaction", sys_rt_sigaction, SYS_FULL, "", NULL },
	[LINUX_SYS_rt_sigprocmask] = { "rt_sigprocmask", sys_rt_sigprocmask, SYS_FULL, "", NULL },
	[LINUX_SYS_rt_sigpending] = { "rt_sigpending", sys_rt_sigpending, SYS_FULL, "", NULL },
	[LINUX_SYS_rt_sigtimedwait] = { "rt_sigtimedwait", sys_rt_sigtimedwait, SYS_FULL, "",
					NULL },
	[LINUX_SYS_rt_sigqueueinfo] = { "rt_sigqueueinfo", sys_rt_sigqueueinfo, SYS_FULL, "",
					NULL },
	[LINUX_SYS_rt_sigsuspend] = { "rt_sigsuspend", sys_rt_sigsuspend, SYS_FULL, "", NULL },
	[LINUX_SYS_rt_sigreturn] = { "rt_sigreturn", sys_rt_sigreturn, SYS_FULL, "", NULL },
	[LINUX_SYS_sigaltstack] = { "sigaltstack", sys_sigaltstack, SYS_FULL, "", NULL },
	[LINUX_SYS_kill] = { "kill", sys_kill, SYS_FULL, "", NULL },
	[LINUX_SYS_tgkill] = { "tgkill", sys_tgkill, SYS_FULL, "", NULL },
	[LINUX_SYS_pause] = { "pause", sys_pause, SYS_FULL, "", NULL },
	[LINUX_SYS_nanosleep] = { "nanosleep", sys_nanosleep, SYS_FULL, "", NULL },
	[NR_WAIT] = { "wait", sys_test_wait, SYS_FULL, "", NULL },
};

static void set_handler(struct task *t, int sig, uint64_t handler, uint64_t flags, uint64_t mask)
{
	struct linux_sigaction *act = fake_mem(t, SCRATCH);

	*act = (struct linux_sigaction){ handler, flags | LINUX_SA_RESTORER, RESTORER, mask };
	if (CALL4(t, LINUX_SYS_rt_sigaction, sig, SCRATCH, 0, 8) != 0)
		abort();
}

static void block(struct task *t, uint64_t mask)
{
	*(uint64_t *)fake_mem(t, SCRATCH) = mask;
	CALL4(t, LINUX_SYS_rt_sigprocmask, SIG_SETMASK, SCRATCH, 0,
	      8); /* may end in a handler, or stopped */
}

/* The handler returns: its ret, then the restorer's rt_sigreturn. */
static void handler_returns(struct task *t)
{
	fake_ctx(t)->regs.rsp += 8;
	CALL0(t, LINUX_SYS_rt_sigreturn);
}

static struct linux_ucontext *uc_of(struct task *t)
{
	return fake_mem(t, fake_ctx(t)->regs.rdx);
}

static struct linux_siginfo *info_of(struct task *t)
{
	return fake_mem(t, fake_ctx(t)->regs.rsi);
}

static bool in_handler(struct task *t, int sig)
{
	struct fake_ctx *c = fake_ctx(t);

	return c->running && c->regs.rip == HANDLER && c->regs.rdi == (uint64_t)sig;
}

static void test_queue(void)
{
	struct sigqueue q;
	struct linux_siginfo info = { .si_code = LINUX_SI_QUEUE };

	sigqueue_init(&q);
	for (int i = 0; i < 3; i++) {
		info.rt.value = (uint64_t)i;
		tap_eq(sigqueue_add(&q, 40, &info, 100), 0, "queue real-time %d", i);
		tap_eq(sigqueue_add(&q, SIGUSR1, &info, 100), 0, "queue standard %d", i);
	}
	info.rt.value = 7;
	tap_eq(sigqueue_add(&q, 34, &info, 100), 0, "queue a lower one");
	tap_eq(sigqueue_count(), 5, "the standard one coalesced");
	info.si_code = SEGV_MAPERR;
	tap_eq(sigqueue_add(&q, SIGSEGV, &info, 100), 0, "queue a fault");
	tap_eq(sigqueue_take(&q, ~SIG_BIT(SIGSEGV), &info), SIGUSR1, "lowest first");
	tap_eq(info.rt.value, 0, "the first siginfo is kept");
	tap_eq(sigqueue_take(&q, UINT64_MAX, &info), SIGSEGV, "synchronous before others");
	tap_eq(sigqueue_take(&q, UINT64_MAX, &info), 34, "then by number");
	for (int i = 0; i < 3; i++) {
		tap_eq(sigqueue_take(&q, UINT64_MAX, &info), 40, "real-time one by one");
		tap_eq(info.rt.value, i, "in order");
	}
	tap_eq(sigqueue_take(&q, UINT64_MAX, &info), 0, "empty");
	info.si_code = LINUX_SI_QUEUE;
	tap_eq(sigqueue_add(&q, 40, &info, 0), -EAGAIN, "sigqueue at the limit fails");
	tap_eq(sigqueue_add(&q, SIGUSR1, &info, 0), 0, "a standard one loses only its siginfo");
	tap_eq(sigqueue_take(&q, UINT64_MAX, &info), SIGUSR1, "and is told");
	tap_eq(info.si_code, LINUX_SI_USER, "as from nobody");
	info.si_code = LINUX_SI_USER;
	tap_eq(sigqueue_add(&q, 41, &info, 0), 0, "kill of a real-time one at the limit");
	sigqueue_flush(&q, UINT64_MAX);
	tap_ok(q.set == 0 && sigqueue_count() == 0, "flush frees all");
}

static void test_handler(struct task *t)
{
	struct fake_ctx *c = fake_ctx(t);
	struct gregs before;
	unsigned reads, writes;

	set_handler(t, SIGUSR1, HANDLER, LINUX_SA_SIGINFO, SIG_BIT(SIGUSR2));
	c->fpu[32] = 0x5a; /* st0 */
	c->regs.rbx = 0x1234;
	before = c->regs;
	reads = fake_reads;
	writes = fake_writes;
	CALL2(t, LINUX_SYS_kill, t->tg->tgid, SIGUSR1);
	tap_ok(in_handler(t, SIGUSR1), "kill(self) runs the handler");
	tap_ok(fake_writes - writes == 1 && fake_reads == reads, "with one write");
	tap_eq(c->n_regs_get, 1, "and one look at the registers");
	tap_eq(c->regs.rsp % 16, 8, "stack aligned as after a call");
	tap_ok(*(uint64_t *)fake_mem(t, c->regs.rsp) == RESTORER, "return address is the restorer");
	tap_eq(uc_of(t)->uc_mcontext.ax, 0, "the call's result is in the frame");
	tap_eq(uc_of(t)->uc_mcontext.ip, before.rip + 2, "rip is behind the call");
	tap_eq(info_of(t)->si_signo, SIGUSR1, "siginfo");
	tap_eq(info_of(t)->kill_chld.pid, t->tg->tgid, "si_pid");
	tap_eq(t->sig_blocked, (long long)(SIG_BIT(SIGUSR1) | SIG_BIT(SIGUSR2)),
	       "mask of the handler");
	tap_eq(c->fpu[32], 0, "the handler has a fresh FPU");
	tap_eq(uc_of(t)->uc_mcontext.fpstate % 64, 0, "FPU state is aligned");
	tap_ok(before.rsp - (c->regs.rdx + 304) >= 128 && c->regs.rsp < before.rsp - 128,
	       "the red zone is spared");
	CALL2(t, LINUX_SYS_kill, t->tg->tgid, SIGUSR2);
	c->regs.rbx = 99;
	set_handler(t, SIGUSR2, HANDLER, LINUX_SA_SIGINFO, 0);
	c->regs.rsp = c->regs.rsi - 304 - 8;
	reads = fake_reads;
	handler_returns(t);
	tap_eq(fake_reads - reads, 1, "sigreturn reads once");
	tap_ok(in_handler(t, SIGUSR2), "a signal that the mask held back comes after sigreturn");
	handler_returns(t);
	tap_ok(c->running && c->regs.rip == before.rip + 2, "sigreturn goes on behind the call");
	tap_ok(c->regs.rbx == 0x1234 && c->regs.rsp == before.rsp && c->regs.rax == 0,
	       "registers are back");
	tap_eq(c->fpu[32], 0x5a, "FPU state is back");
	tap_eq(t->sig_blocked, 0, "mask is back");
}

static void test_nested(struct task *t)
{
	struct fake_ctx *c = fake_ctx(t);
	uint64_t rip;

	set_handler(t, SIGUSR1, HANDLER, 0, 0);
	set_handler(t, SIGUSR2, HANDLER + 0x100, LINUX_SA_RESETHAND, 0);
	block(t, SIG_BIT(SIGUSR1) | SIG_BIT(SIGUSR2));
	CALL2(t, LINUX_SYS_kill, t->tg->tgid, SIGUSR2);
	CALL2(t, LINUX_SYS_kill, t->tg->tgid, SIGUSR1);
	*(uint64_t *)fake_mem(t, SCRATCH) = 0;
	CALL4(t, LINUX_SYS_rt_sigprocmask, SIG_SETMASK, SCRATCH, 0, 8);
	rip = c->regs.rip;
	tap_eq(rip, HANDLER + 0x100, "two frames: the higher number runs first");
	tap_eq(t->sighand->act[SIGUSR2 - 1].handler, 0, "SA_RESETHAND");
	handler_returns(t);
	tap_ok(in_handler(t, SIGUSR1), "then the lower");
	tap_eq(t->sig_blocked, (long long)SIG_BIT(SIGUSR1), "with the mask of its frame");
	handler_returns(t);
	tap_ok(c->running && t->sig_blocked == 0, "and back");
}

/* signal(7): all codes against no handler, a handler, a handler with SA_RESTART. */
static void test_restart(struct task *t)
{
	static const struct {
		int code;
		bool restart_plain, restart_sa; /* with a handler: without and with SA_RESTART */
	} tbl[] = {
		{ ERESTARTSYS, false, true },
		{ ERESTARTNOINTR, true, true },
		{ ERESTARTNOHAND, false, false },
		{ ERESTART_BLOCK, false, false },
	};
	struct fake_ctx *c = fake_ctx(t);

	for (unsigned i = 0; i < ARRAY_SIZE(tbl); i++) {
		for (int sa = 0; sa < 2; sa++) {
			bool restart = sa ? tbl[i].restart_sa : tbl[i].restart_plain;
			uint64_t rip = c->regs.rip;

			test_intr = tbl[i].code;
			test_event = 0;
			set_handler(t, SIGUSR1, HANDLER, sa ? LINUX_SA_RESTART : 0, 0);
			c->regs.rip = rip;
			tap_eq(CALL0(t, NR_WAIT), FAKE_BLOCKED, "call blocks (%d)", tbl[i].code);
			(void)sig_send_tgroup(t->tg, SIGUSR1, NULL);
			runq_drain();
			tap_ok(in_handler(t, SIGUSR1), "handler interrupts it");
			handler_returns(t);
			tap_eq(c->regs.rip, restart ? rip : rip + 2, "code %d, SA_RESTART %d: rip",
			       tbl[i].code, sa);
			tap_eq(c->regs.rax, restart ? NR_WAIT : -EINTR,
			       "code %d, SA_RESTART %d: rax", tbl[i].code, sa);
		}
		/* Without a handler: run again inside, no register access. */
		test_intr = tbl[i].code;
		set_handler(t, SIGURG, HANDLER, 0, 0);
		tap_eq(CALL0(t, NR_WAIT), FAKE_BLOCKED, "call blocks again");
		c->n_regs_get = 0;
		test_runs = 0;
		(void)sig_send_tgroup(t->tg, SIGCHLD, NULL);
		(void)sig_send_tgroup(t->tg, SIGWINCH, NULL);
		tap_ok(t->state == TASK_BLOCKED, "ignored signals do not even wake it");
		(void)sig_send_tgroup(t->tg, SIGURG, NULL);
		t->sighand->act[SIGURG - 1].handler =
			LINUX_SIG_DFL; /* by another thread, meanwhile */
		runq_drain();
		tap_ok(test_runs == 2 && t->state == TASK_BLOCKED, "code %d: runs again and waits",
		       tbl[i].code);
		test_event = 5;
		waitq_wake(&test_wq, 1);
		runq_drain();
		tap_ok(fake_result(t) == 5 && c->n_regs_get == 0,
		       "its result is not changed, no register was looked at");
		test_event = 0;
	}
}

static void test_sigsuspend(struct task *t)
{
	struct fake_ctx *c = fake_ctx(t);
	uint64_t rip;

	set_handler(t, SIGUSR1, HANDLER, LINUX_SA_RESTART, 0);
	set_handler(t, SIGUSR2, HANDLER, LINUX_SA_RESTART, 0);
	block(t, SIG_BIT(SIGUSR1));
	*(uint64_t *)fake_mem(t, SCRATCH) = SIG_BIT(SIGUSR2);
	rip = c->regs.rip;
	tap_eq(CALL2(t, LINUX_SYS_rt_sigsuspend, SCRATCH, 8), FAKE_BLOCKED, "sigsuspend blocks");
	(void)sig_send_tgroup(t->tg, SIGUSR2, NULL);
	runq_drain();
	tap_eq(fake_result(t), FAKE_BLOCKED, "a signal that its mask blocks does not end it");
	(void)sig_send_tgroup(t->tg, SIGUSR1, NULL);
	runq_drain();
	tap_ok(in_handler(t, SIGUSR1), "the other one does");
	tap_eq(t->sig_blocked, (long long)(SIG_BIT(SIGUSR2) | SIG_BIT(SIGUSR1)),
	       "handler runs with the temporary mask");
	handler_returns(t);
	/* The old mask lets SIGUSR2 through now. */
	tap_ok(in_handler(t, SIGUSR2), "the held one comes with the old mask");
	handler_returns(t);
	tap_ok(c->regs.rip == rip + 2 && c->regs.rax == (uint64_t)-EINTR,
	       "sigsuspend returns EINTR");
	tap_eq(t->sig_blocked, (long long)SIG_BIT(SIGUSR1), "old mask restored");
	block(t, 0);
}

static void test_sigtimedwait(struct task *t)
{
	struct linux_timespec *ts = fake_mem(t, SCRATCH + 64);

	block(t, SIG_BIT(SIGUSR1) | SIG_BIT(40));
	*(uint64_t *)fake_mem(t, SCRATCH) = SIG_BIT(SIGUSR1) | SIG_BIT(40);
	*ts = (struct linux_timespec){ 0, 0 };
	tap_eq(CALL4(t, LINUX_SYS_rt_sigtimedwait, SCRATCH, 0, SCRATCH + 64, 8), -EAGAIN,
	       "poll finds nothing");
	*ts = (struct linux_timespec){ 0, 2000000 };
	tap_eq(CALL4(t, LINUX_SYS_rt_sigtimedwait, SCRATCH, 0, SCRATCH + 64, 8), FAKE_BLOCKED,
	       "it waits");
	fake_pass_time(4000000);
	tap_eq(fake_result(t), -EAGAIN, "and times out");
	tap_eq(CALL4(t, LINUX_SYS_rt_sigtimedwait, SCRATCH, SCRATCH + 128, 0, 8), FAKE_BLOCKED,
	       "it waits for ever");
	(void)sig_send_tgroup(t->tg, 40, NULL);
	runq_drain();
	tap_eq(fake_result(t), 40, "until a signal comes");
	tap_eq(((struct linux_siginfo *)fake_mem(t, SCRATCH + 128))->si_code, LINUX_SI_KERNEL,
	       "with its siginfo");
	tap_eq(sig_pending_set(t), 0, "which is taken");
	set_handler(t, SIGUSR2, HANDLER, LINUX_SA_RESTART, 0);
	*(uint64_t *)fake_mem(t, SCRATCH) = SIG_BIT(40);
	tap_eq(CALL4(t, LINUX_SYS_rt_sigtimedwait, SCRATCH, 0, 0, 8), FAKE_BLOCKED, "it waits");
	(void)sig_send_tgroup(t->tg, SIGUSR2, NULL);
	runq_drain();
	tap_ok(in_handler(t, SIGUSR2), "another signal interrupts");
	handler_returns(t);
	tap_eq(fake_ctx(t)->regs.rax, -EINTR, "for good");
	block(t, 0);
}

static void test_nanosleep(struct task *t)
{
	struct linux_timespec *ts = fake_mem(t, SCRATCH), *rem = fake_mem(t, SCRATCH + 16);

	set_handler(t, SIGUSR1, HANDLER, LINUX_SA_RESTART, 0);
	*ts = (struct linux_timespec){ 0, 3000000 };
	tap_eq(CALL2(t, LINUX_SYS_nanosleep, SCRATCH, SCRATCH + 16), FAKE_BLOCKED,
	       "nanosleep blocks");
	fake_pass_time(5000000);
	tap_eq(fake_result(t), 0, "and ends");
	*ts = (struct linux_timespec){ 5, 0 };
	tap_eq(CALL2(t, LINUX_SYS_nanosleep, SCRATCH, SCRATCH + 16), FAKE_BLOCKED, "a long one");
	(void)sig_send_tgroup(t->tg, SIGUSR1, NULL);
	runq_drain();
	handler_returns(t);
	tap_eq(fake_ctx(t)->regs.rax, -EINTR, "is interrupted");
	tap_ok(rem->tv_sec == 4 && rem->tv_nsec > 900000000, "and tells the rest");
}

static void test_altstack(struct task *t)
{
	struct linux_stack *ss = fake_mem(t, SCRATCH), *old = fake_mem(t, SCRATCH + 32);
	struct fake_ctx *c = fake_ctx(t);
	uint64_t rsp = c->regs.rsp;

	*ss = (struct linux_stack){ ALTSTACK, 0, 0, 100 };
	tap_eq(CALL2(t, LINUX_SYS_sigaltstack, SCRATCH, 0), -ENOMEM, "too small a stack");
	ss->ss_size = 8192;
	ss->ss_flags = 64;
	tap_eq(CALL2(t, LINUX_SYS_sigaltstack, SCRATCH, 0), -EINVAL, "unknown flags");
	ss->ss_flags = 0;
	tap_eq(CALL2(t, LINUX_SYS_sigaltstack, SCRATCH, SCRATCH + 32), 0, "a stack is set");
	tap_eq(old->ss_flags, LINUX_SS_DISABLE, "there was none");
	set_handler(t, SIGUSR1, HANDLER, LINUX_SA_ONSTACK | LINUX_SA_NODEFER, 0);
	*ss = (struct linux_stack){ ALTSTACK, 0, 0, 8192 };
	CALL2(t, LINUX_SYS_kill, t->tg->tgid, SIGUSR1);
	tap_ok(c->regs.rsp > ALTSTACK && c->regs.rsp < ALTSTACK + 8192, "the handler runs on it");
	tap_eq(CALL2(t, LINUX_SYS_sigaltstack, SCRATCH, SCRATCH + 32), -EPERM,
	       "it cannot be changed from there");
	tap_eq(CALL2(t, LINUX_SYS_sigaltstack, 0, SCRATCH + 32), 0, "but be asked");
	tap_eq(old->ss_flags, LINUX_SS_ONSTACK, "and says so");
	handler_returns(t);
	tap_eq(c->regs.rsp, rsp, "back on the first stack");
	*ss = (struct linux_stack){ ALTSTACK, (int)LINUX_SS_AUTODISARM, 0, 8192 };
	tap_eq(CALL2(t, LINUX_SYS_sigaltstack, SCRATCH, 0), 0, "SS_AUTODISARM");
	CALL2(t, LINUX_SYS_kill, t->tg->tgid, SIGUSR1);
	tap_eq(t->altstack_size, 0, "disarmed while the handler runs");
	handler_returns(t);
	tap_eq(t->altstack_size, 8192, "and armed again by sigreturn");
	*ss = (struct linux_stack){ 0, LINUX_SS_DISABLE, 0, 0 };
	tap_eq(CALL2(t, LINUX_SYS_sigaltstack, SCRATCH, 0), 0, "SS_DISABLE");
}

static void test_threads(struct task *t)
{
	struct task *u = fake_thread(t);

	set_handler(t, SIGUSR1, HANDLER, 0, 0);
	tap_ok(u->sighand == t->sighand, "threads share handlers");
	block(t, SIG_BIT(SIGUSR1));
	(void)sig_send_tgroup(t->tg, SIGUSR1, NULL);
	tap_ok(fake_ctx(u)->kicked && !fake_ctx(t)->kicked,
	       "a group signal goes to the thread that takes it");
	fake_take_kick(u);
	tap_ok(in_handler(u, SIGUSR1), "in its handler");
	handler_returns(u);
	block(u, SIG_BIT(SIGUSR1));
	(void)sig_send_tgroup(t->tg, SIGUSR1, NULL);
	tap_ok(!fake_ctx(u)->kicked && !fake_ctx(t)->kicked, "nobody takes it");
	block(u, 0);
	tap_ok(in_handler(u, SIGUSR1), "until one unblocks it");
	handler_returns(u);
	/* A signal for u that it blocks before it looks goes to another thread. */
	block(t, 0);
	block(t, SIG_BIT(SIGUSR2));
	set_handler(t, SIGUSR2, HANDLER, 0, 0);
	(void)sig_send_tgroup(t->tg, SIGUSR2, NULL);
	tap_ok(fake_ctx(u)->kicked, "u is asked");
	fake_ctx(u)->kicked = false;
	tap_eq(CALL3(t, LINUX_SYS_tgkill, t->tg->tgid, u->tid, 0), 0, "tgkill 0 checks");
	tap_eq(CALL3(t, LINUX_SYS_tgkill, t->tg->tgid + 100, u->tid, 0), -ESRCH,
	       "tgkill with another tgid");
	task_exit(u, 0);
	block(t, 0);
	tap_ok(in_handler(t, SIGUSR2), "the signal of a thread that ended is not lost");
	handler_returns(t);
	task_put(u);
}

/* Takes the SIGCHLD that is on its way, if any. */
static void child_signal(struct task *parent)
{
	fake_take_kick(parent);
	if (in_handler(parent, SIGCHLD))
		handler_returns(parent);
}

static void test_stop(struct task *parent)
{
	struct task *t = fake_fork(parent), *u = fake_thread(t);
	struct tgroup *tg = t->tg;
	unsigned resumes;

	set_handler(parent, SIGCHLD, HANDLER, 0, 0);
	set_handler(t, SIGUSR1, HANDLER, 0, 0);
	test_event = 0;
	test_intr = ERESTARTSYS;
	tap_eq(CALL0(u, NR_WAIT), FAKE_BLOCKED, "one thread waits in a call");
	tap_eq(CALL2(parent, LINUX_SYS_kill, tg->tgid, SIGSTOP), 0, "SIGSTOP");
	tap_ok(fake_ctx(t)->kicked && !tg->stopped, "the running thread is kicked");
	fake_take_kick(t);
	tap_ok(tg->stopped && t->state == TASK_STOPPED && u->state == TASK_STOPPED,
	       "all threads have stopped");
	tap_ok(in_handler(parent, SIGCHLD) || fake_ctx(parent)->kicked, "the parent is told");
	fake_take_kick(parent);
	tap_eq(info_of(parent)->si_signo, SIGCHLD, "by SIGCHLD");
	handler_returns(parent);
	(void)sig_send_tgroup(tg, SIGUSR1, NULL);
	tap_eq(t->state, TASK_STOPPED, "other signals do not wake it");
	resumes = fake_ctx(t)->n_resume;
	set_handler(parent, SIGCHLD, HANDLER, LINUX_SA_NOCLDSTOP, 0);
	CALL2(parent, LINUX_SYS_kill, tg->tgid, SIGCONT);
	tap_ok(!tg->stopped && tg->continued, "SIGCONT continues");
	tap_ok(fake_ctx(parent)->regs.rip != HANDLER, "SA_NOCLDSTOP: no signal");
	tap_ok(fake_ctx(t)->n_resume > resumes, "the running thread runs");
	tap_ok(in_handler(t, SIGUSR1), "and handles what came meanwhile");
	handler_returns(t);
	tap_eq(u->state, TASK_BLOCKED, "the waiting one waits again");
	test_event = 77;
	waitq_wake(&test_wq, 1);
	runq_drain();
	tap_eq(fake_result(u), 77, "and gets its event");

	/* A group of its own: not orphaned, for its parent is in the same session. */
	pid_pgrp_add(tg->pgid, -1);
	tg->pgid = tg->tgid;
	pid_pgrp_add(tg->pgid, 1);

	/* A stop and a continue take each other back. */
	block(t, SIG_BIT(SIGTSTP) | SIG_BIT(SIGCONT));
	block(u, SIG_BIT(SIGTSTP) | SIG_BIT(SIGCONT));
	(void)sig_send_tgroup(tg, SIGTSTP, NULL);
	tap_ok(sig_pending_set(t) & SIG_BIT(SIGTSTP), "a blocked stop is pending");
	(void)sig_send_tgroup(tg, SIGCONT, NULL);
	tap_ok(!(sig_pending_set(t) & SIG_BIT(SIGTSTP)), "SIGCONT takes it back");
	tap_ok(sig_pending_set(t) & SIG_BIT(SIGCONT), "and is pending itself");
	(void)sig_send_tgroup(tg, SIGTTIN, NULL);
	tap_ok(!(sig_pending_set(t) & SIG_BIT(SIGCONT)), "a stop takes it back");
	block(u, 0);
	tap_ok(u->state == TASK_STOPPED && !tg->stopped, "a stop under way");
	tap_ok(fake_ctx(t)->kicked, "asks the others");
	(void)sig_send_tgroup(tg, SIGCONT, NULL);
	runq_drain();
	tap_ok(fake_result(u) == 0 && !tg->stopped, "SIGCONT ends it");
	fake_take_kick(t);
	tap_ok(fake_ctx(t)->running, "the asked one goes on");

	/* A thread that exits completes the stop. */
	block(t, 0);
	(void)sig_send_task(t, SIGSTOP, NULL);
	fake_take_kick(t);
	tap_ok(t->state == TASK_STOPPED && !tg->stopped, "half stopped");
	task_exit(u, 0);
	tap_ok(tg->stopped, "the exit of the other completes it");
	(void)sig_send_tgroup(tg, SIGKILL, NULL);
	runq_drain();
	tap_ok(tg->dead && tg->group_exit_code == SIGKILL, "SIGKILL ends a stopped group");
	child_signal(parent);
	task_put(t);
	task_put(u);
}

static void test_fatal(struct task *parent)
{
	static const struct {
		int sig;
		bool core_limit;
		int status;
	} tbl[] = {
		{ SIGTERM, true, SIGTERM },
		{ SIGSEGV, false, SIGSEGV },
		{ SIGSEGV, true, SIGSEGV | 0x80 },
		{ 40, true, 40 },
	};

	set_handler(parent, SIGCHLD, HANDLER, LINUX_SA_NOCLDWAIT, 0);
	for (unsigned i = 0; i < ARRAY_SIZE(tbl); i++) {
		struct task *t = fake_fork(parent);
		struct tgroup *tg = tgroup_get(t->tg);

		tg->rlim[RLIMIT_CORE].cur = tbl[i].core_limit ? 1 : 0;
		tg->dumpable = true;
		CALL2(t, LINUX_SYS_kill, tg->tgid, tbl[i].sig);
		tap_ok(tg->dead && tg->group_exit_code == tbl[i].status, "signal %d ends it: %#x",
		       tbl[i].sig, tg->group_exit_code);
		tap_ok(tg->reaped, "SA_NOCLDWAIT: reaped at once");
		fake_take_kick(parent);
		tap_ok(in_handler(parent, SIGCHLD), "but the signal comes");
		tap_eq(info_of(parent)->si_code, tbl[i].status & 0x80 ? CLD_DUMPED : CLD_KILLED,
		       "si_code");
		handler_returns(parent);
		tgroup_put(tg);
		task_put(t);
	}
}

static void test_faults(struct task *parent)
{
	const struct trap segv = { .kind = TRAP_FAULT,
				   .fault = { SIGSEGV, SEGV_MAPERR, 0xdead000, 6, 14 } };
	struct task *t = fake_fork(parent);
	struct tgroup *tg = tgroup_get(t->tg);
	struct fake_ctx *c = fake_ctx(t);

	set_handler(t, SIGSEGV, HANDLER, LINUX_SA_SIGINFO, 0);
	c->running = false;
	kernel_trap(NULL, &c->base, &segv);
	tap_ok(in_handler(t, SIGSEGV), "a fault runs the handler");
	tap_eq(info_of(t)->fault.addr, 0xdead000, "si_addr");
	tap_ok(uc_of(t)->uc_mcontext.err == 6 && uc_of(t)->uc_mcontext.trapno == 14 &&
	       uc_of(t)->uc_mcontext.cr2 == 0xdead000, "error code, vector and cr2");
	c->running = false;
	kernel_trap(NULL, &c->base, &segv);
	tap_ok(tg->dead, "a fault in the handler, with SIGSEGV blocked, is fatal");
	tgroup_put(tg);
	task_put(t);
	child_signal(parent);

	t = fake_fork(parent);
	tg = tgroup_get(t->tg);
	set_handler(t, SIGUSR1, HANDLER, 0, 0);
	fake_ctx(t)->regs.rsp = FAKE_BASE + 0x200; /* no room below */
	CALL2(t, LINUX_SYS_kill, tg->tgid, SIGUSR1);
	tap_ok(tg->dead && (tg->group_exit_code & 0x7f) == SIGSEGV,
	       "a frame that cannot be written is SIGSEGV");
	tgroup_put(tg);
	task_put(t);
	child_signal(parent);

	t = fake_fork(parent);
	tg = tgroup_get(t->tg);
	fake_ctx(t)->regs.rsp = 0x10;
	CALL0(t, LINUX_SYS_rt_sigreturn);
	tap_ok(tg->dead && (tg->group_exit_code & 0x7f) == SIGSEGV, "so is a bad frame");
	tgroup_put(tg);
	task_put(t);
	child_signal(parent);
}

static void test_kill(struct task *t)
{
	struct task *child = fake_fork(t);
	struct cred *user = cred_copy(t->cred);
	struct linux_siginfo *info = fake_mem(t, SCRATCH);

	user->uid = user->euid = user->suid = user->fsuid = 1000;
	user->cap_effective = user->cap_permitted = 0;
	tap_eq(CALL2(t, LINUX_SYS_kill, 9999, 0), -ESRCH, "kill of nobody");
	tap_eq(CALL2(t, LINUX_SYS_kill, t->tg->tgid, 65), -EINVAL, "kill with a bad number");
	tap_eq(CALL2(t, LINUX_SYS_kill, 1, SIGKILL), 0, "pid 1 takes a signal");
	tap_ok(!kernel.init->group_exit, "and lives");
	tap_eq(CALL2(t, LINUX_SYS_kill, INT32_MIN, 0), -ESRCH, "kill INT_MIN");
	tap_eq(CALL2(t, LINUX_SYS_kill, -(int64_t)t->tg->pgid, 0), 0, "kill of the group");
	cred_put(child->cred);
	child->cred = user;
	tap_eq(CALL2(child, LINUX_SYS_kill, t->tg->tgid, SIGTERM), -EPERM,
	       "another user's process");
	tap_eq(CALL2(child, LINUX_SYS_kill, t->tg->tgid, SIGCONT), 0, "SIGCONT within the session");
	tap_eq(CALL2(child, LINUX_SYS_kill, 1, 0), -EPERM, "pid 1 belongs to root");
	tap_eq(CALL2(child, LINUX_SYS_kill, -1, SIGTERM), 0, "kill -1 reaches nobody");
	memset(info, 0, sizeof(*info));
	info->si_code = LINUX_SI_USER;
	tap_eq(CALL3(t, LINUX_SYS_rt_sigqueueinfo, child->tg->tgid, SIGUSR1, SCRATCH), -EPERM,
	       "SI_USER cannot be forged");
	info->si_code = LINUX_SI_QUEUE;
	block(child, SIG_BIT(40));
	*(volatile uint64_t *)fake_mem(t, SCRATCH) = 0;
	info->si_code = LINUX_SI_QUEUE;
	tap_eq(CALL3(t, LINUX_SYS_rt_sigqueueinfo, child->tg->tgid, 40, SCRATCH), 0, "sigqueue");
	tap_ok(sig_pending_set(child) & SIG_BIT(40), "is queued");
	child->tg->rlim[RLIMIT_SIGPENDING].cur = 0;
	tap_eq(CALL3(t, LINUX_SYS_rt_sigqueueinfo, child->tg->tgid, 40, SCRATCH), -EAGAIN,
	       "RLIMIT_SIGPENDING");
	set_handler(child, 40, LINUX_SIG_IGN, 0, 0);
	tap_eq(sig_pending_set(child), 0, "ignoring discards what is pending");
	set_handler(t, SIGCHLD, LINUX_SIG_IGN, 0, 0);
	CALL2(t, LINUX_SYS_kill, child->tg->tgid, SIGKILL);
	fake_take_kick(child);
	tap_ok(child->exiting, "SIGKILL");
	task_put(child);
}

static void test_stubborn(struct task *t)
{
	struct task *child = fake_fork(t);
	struct tgroup *tg = tgroup_get(child->tg);

	CALL2(t, LINUX_SYS_kill, tg->tgid, SIGKILL);
	tap_ok(!tg->dead, "a SIGKILLed process that does not stop");
	fake_pass_time(8000000);
	tap_ok(tg->dead, "is ended all the same");
	tgroup_put(tg);
	task_put(child);
}

static void test_exec(struct task *t)
{
	set_handler(t, SIGUSR1, HANDLER, 0, 0);
	set_handler(t, SIGUSR2, LINUX_SIG_IGN, 0, 0);
	block(t, SIG_BIT(SIGUSR1));
	(void)sig_send_task(t, SIGUSR1, NULL);
	tap_eq(sig_exec(t), 0, "exec");
	tap_eq(t->sighand->act[SIGUSR1 - 1].handler, LINUX_SIG_DFL, "handlers are reset");
	tap_eq(t->sighand->act[SIGUSR2 - 1].handler, LINUX_SIG_IGN, "ignored ones stay");
	tap_ok((sig_pending_set(t) & SIG_BIT(SIGUSR1)) && t->sig_blocked == SIG_BIT(SIGUSR1),
	       "mask and pending stay");
	set_handler(t, SIGUSR1, LINUX_SIG_IGN, 0, 0);
	block(t, 0);
}

int main(void)
{
	struct task *t = fake_boot();

	waitq_init(&test_wq);
	test_queue();
	test_handler(t);
	test_nested(t);
	test_restart(t);
	test_sigsuspend(t);
	test_sigtimedwait(t);
	test_nanosleep(t);
	test_altstack(t);
	test_threads(t);
	test_stop(t);
	test_fatal(t);
	test_faults(t);
	test_kill(t);
	test_stubborn(t);
	test_exec(t);
	return tap_done();
}
