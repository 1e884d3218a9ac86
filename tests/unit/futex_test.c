/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "sentry/abi/signal.h"
#include "sentry/abi/syscall_nr.h"
#include "sentry/abi/time.h"
#include "sentry/kernel/clock.h"
#include "sentry/kernel/futex.h"
#include "sentry/kernel/futex_freeze.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/sig_deliver.h"
#include "sentry/kernel/task_priv.h"
#include "sentry/syscalls/futex.h"
#include "sentry/syscalls/signal.h"
#include "tests/lib/fake_guest.h"
#include "tests/lib/tap.h"

#define W1 (FAKE_BASE + 0x1000)
#define W2 (FAKE_BASE + 0x1040)
#define TS (FAKE_BASE + 0x1100)
#define N_THREADS 6

const struct sys_desc sys_table[SYS_TABLE_SIZE] = {
	[LINUX_SYS_futex] = { "futex", sys_futex, SYS_FULL, "", NULL },
	[LINUX_SYS_futex_waitv] = { "futex_waitv", sys_futex_waitv, SYS_FULL, "", NULL },
	[LINUX_SYS_set_robust_list] = { "set_robust_list", sys_set_robust_list, SYS_FULL, "",
					NULL },
	[LINUX_SYS_get_robust_list] = { "get_robust_list", sys_get_robust_list, SYS_FULL, "",
					NULL },
	[LINUX_SYS_rt_sigaction] = { "rt_sigaction", sys_rt_sigaction, SYS_FULL, "", NULL },
	[LINUX_SYS_pause] = { "pause", sys_pause, SYS_FULL, "", NULL },
};

static struct task *thr[N_THREADS];

static uint32_t *word(uaddr_t a)
{
	return fake_mem(thr[0], a);
}

static int64_t futex(struct task *t, uaddr_t a, int op, uint64_t val, uint64_t ts, uaddr_t a2,
		     uint32_t val3)
{
	return fake_call(t, LINUX_SYS_futex, a, (uint64_t)op, val, ts, a2, val3);
}

static int64_t wait_on(struct task *t, uaddr_t a, uint32_t val)
{
	return futex(t, a, FUTEX_WAIT_PRIVATE, val, 0, 0, 0);
}

static unsigned n_blocked(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < N_THREADS; i++)
		n += thr[i]->state == TASK_BLOCKED;
	return n;
}

static void test_wait_wake(void)
{
	struct linux_timespec *ts = fake_mem(thr[0], TS);

	*word(W1) = 5;
	tap_eq(wait_on(thr[1], W1, 4), -EAGAIN, "another value");
	tap_eq(wait_on(thr[1], W1 + 1, 5), -EINVAL, "not aligned");
	tap_eq(wait_on(thr[1], 0, 5), -EFAULT, "not mapped");
	tap_eq(futex(thr[1], W1, FUTEX_WAIT_BITSET, 5, 0, 0, 0), -EINVAL, "empty bitset");
	tap_eq(futex(thr[1], W1, 77, 5, 0, 0, 0), -ENOSYS, "unknown operation");
	for (int i = 1; i < 5; i++)
		tap_eq(wait_on(thr[i], W1, 5), FAKE_BLOCKED, "thread %d waits", i);
	tap_eq(futex(thr[0], W2, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0), 0, "nobody waits there");
	tap_eq(futex(thr[0], W1, FUTEX_WAKE_PRIVATE, 2, 0, 0, 0), 2, "wake 2");
	tap_ok(fake_result(thr[1]) == 0 && fake_result(thr[2]) == 0, "the first two");
	tap_eq(n_blocked(), 2, "the others wait");
	tap_eq(futex(thr[0], W1, FUTEX_WAKE_PRIVATE, 100, 0, 0, 0), 2, "wake all");
	tap_eq(n_blocked(), 0, "none is left");

	futex(thr[1], W1, FUTEX_WAIT_BITSET_PRIVATE, 5, 0, 0, 1);
	futex(thr[2], W1, FUTEX_WAIT_BITSET_PRIVATE, 5, 0, 0, 2);
	futex(thr[3], W1, FUTEX_WAIT_BITSET_PRIVATE, 5, 0, 0, 6);
	tap_eq(futex(thr[0], W1, FUTEX_WAKE_BITSET_PRIVATE, 9, 0, 0, 4), 1, "one has the bit");
	tap_eq(fake_result(thr[3]), 0, "that one");
	tap_eq(futex(thr[0], W1, FUTEX_WAKE_PRIVATE, 9, 0, 0, 0), 2, "a plain wake takes all");

	*ts = (struct linux_timespec){ 0, 2000000 };
	tap_eq(futex(thr[1], W1, FUTEX_WAIT_PRIVATE, 5, TS, 0, 0), FAKE_BLOCKED, "with a time-out");
	fake_pass_time(4000000);
	tap_eq(fake_result(thr[1]), -ETIMEDOUT, "it ends");
	tap_eq(futex(thr[0], W1, FUTEX_WAKE_PRIVATE, 9, 0, 0, 0), 0, "and is not found any more");
	*ts = (struct linux_timespec){ 0, 1000000000 };
	tap_eq(futex(thr[1], W1, FUTEX_WAIT_PRIVATE, 5, TS, 0, 0), -EINVAL, "a bad time");
	*ts = (struct linux_timespec){ 1, 0 };
	tap_eq(futex(thr[1], W1, FUTEX_WAIT_BITSET_PRIVATE, 5, TS, 0, 1), -ETIMEDOUT,
	       "an absolute time that has passed");
	tap_eq(futex(thr[1], W1, FUTEX_WAIT_BITSET_PRIVATE | FUTEX_CLOCK_REALTIME, 5, TS, 0, 1),
	       -ETIMEDOUT, "real time");
	tap_eq(futex(thr[1], W1, FUTEX_WAKE | FUTEX_CLOCK_REALTIME, 5, 0, 0, 1), -ENOSYS,
	       "which a wake does not know");
}

static void test_signal(void)
{
	struct linux_sigaction *act = fake_mem(thr[0], TS + 64);

	*act = (struct linux_sigaction){ 0x401000, LINUX_SA_RESTORER | LINUX_SA_RESTART, 0x402000,
					 0 };
	CALL4(thr[0], LINUX_SYS_rt_sigaction, SIGUSR1, TS + 64, 0, 8);
	wait_on(thr[1], W1, 5);
	(void)sig_send_task(thr[1], SIGUSR1, NULL);
	runq_drain();
	tap_eq(fake_ctx(thr[1])->regs.rip, 0x401000, "a signal interrupts the wait");
	tap_eq(futex(thr[0], W1, FUTEX_WAKE_PRIVATE, 9, 0, 0, 0), 0, "which is not queued then");
	tap_ok(!thr[1]->op.data, "nor kept");
	thr[1]->sig_blocked = 0;
	wait_on(thr[1], W1, 5);
	(void)sig_send_task(thr[1], SIGUSR1, NULL);
	tap_eq(futex(thr[0], W1, FUTEX_WAKE_PRIVATE, 9, 0, 0, 0), 1,
	       "a wake after the signal, before it acts, counts");
	tap_eq(fake_ctx(thr[1])->regs.rip, 0x401000, "the handler runs");
	tap_eq(*(uint64_t *)fake_mem(thr[1], fake_ctx(thr[1])->regs.rdx + 40 + 13 * 8), 0,
	       "with the wait's success");
	thr[1]->sig_blocked = 0;
}

static void test_requeue(void)
{
	*word(W1) = 5;
	for (int i = 1; i < 6; i++)
		wait_on(thr[i], W1, 5);
	tap_eq(futex(thr[0], W1, FUTEX_CMP_REQUEUE_PRIVATE, 1, 2, W2, 4), -EAGAIN,
	       "requeue with another value");
	tap_eq(futex(thr[0], W1, FUTEX_CMP_REQUEUE_PRIVATE, -1, 2, W2, 5), -EINVAL,
	       "negative count");
	tap_eq(futex(thr[0], W1, FUTEX_CMP_REQUEUE_PRIVATE, 1, 2, W2, 5), 3,
	       "one woken, two moved");
	tap_eq(fake_result(thr[1]), 0, "the first was woken");
	tap_eq(futex(thr[0], W1, FUTEX_WAKE_PRIVATE, 9, 0, 0, 0), 2, "two stayed");
	tap_eq(futex(thr[0], W2, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0), 1, "the moved are found there");
	tap_eq(fake_result(thr[2]), 0, "in order");
	tap_eq(futex(thr[0], W2, FUTEX_REQUEUE_PRIVATE, 0, 9, W2, 0), 1,
	       "requeue to the same place");
	tap_eq(futex(thr[0], W2, FUTEX_WAKE_PRIVATE, 9, 0, 0, 0), 1, "still there");
	tap_eq(n_blocked(), 0, "none is left");
}

static void park_all(void)
{
	/* The others wait in a call, so that no freeze is needed. */
	for (int i = 1; i < N_THREADS; i++)
		if (thr[i]->state == TASK_RUNNING)
			CALL0(thr[i], LINUX_SYS_pause);
}

static void unpark(struct task *t)
{
	task_op_end(t);
	t->state = TASK_RUNNING;
	t->in_syscall = false;
	fake_ctx(t)->running = true;
}

static void test_wake_op(void)
{
	static const struct {
		int op, arg, cmp, cmparg;
		uint32_t before, after;
		bool second;
	} tbl[] = {
		{ FUTEX_OP_SET, 7, FUTEX_OP_CMP_EQ, 3, 3, 7, true },
		{ FUTEX_OP_ADD, -1, FUTEX_OP_CMP_GT, 1, 1, 0, false },
		{ FUTEX_OP_OR, 8, FUTEX_OP_CMP_NE, 1, 1, 9, false },
		{ FUTEX_OP_ANDN, 1, FUTEX_OP_CMP_LT, 4, 3, 2, true },
		{ FUTEX_OP_XOR | FUTEX_OP_OPARG_SHIFT, 31, FUTEX_OP_CMP_LE, -1, 0x80000000u, 0,
		  true },
		{ FUTEX_OP_SET, 1, FUTEX_OP_CMP_GE, 0, 0xffffffffu, 1, false },
	};

	for (unsigned i = 0; i < ARRAY_SIZE(tbl); i++) {
		uint32_t enc = FUTEX_OP((uint32_t)tbl[i].op, tbl[i].arg, tbl[i].cmp, tbl[i].cmparg);

		*word(W1) = 5;
		*word(W2) = tbl[i].before;
		wait_on(thr[1], W1, 5);
		wait_on(thr[2], W2, tbl[i].before);
		park_all();
		tap_eq(futex(thr[0], W1, FUTEX_WAKE_OP_PRIVATE, 1, 1, W2, enc),
		       tbl[i].second ? 2 : 1, "wake_op %u", i);
		tap_eq(*word(W2), tbl[i].after, "its word");
		futex(thr[0], W2, FUTEX_WAKE_PRIVATE, 9, 0, 0, 0);
		for (int k = 3; k < N_THREADS; k++)
			unpark(thr[k]);
	}
	park_all();
	tap_eq(futex(thr[0], W1, FUTEX_WAKE_OP_PRIVATE, 1, 1, W2, 7u << 28), -ENOSYS,
	       "an unknown operation");
	for (int k = 1; k < N_THREADS; k++)
		unpark(thr[k]);
}

/* Other threads run: they are stopped first, and go on afterwards. */
static void test_freeze(void)
{
	uint32_t enc = FUTEX_OP(FUTEX_OP_ADD, 1, FUTEX_OP_CMP_EQ, 0);

	*word(W2) = 41;
	CALL0(thr[3], LINUX_SYS_pause);
	CALL0(thr[4], LINUX_SYS_pause);
	tap_eq(futex(thr[0], W1, FUTEX_WAKE_OP_PRIVATE, 1, 1, W2, enc), FAKE_BLOCKED,
	       "waits for the running threads");
	tap_ok(fake_ctx(thr[1])->kicked && fake_ctx(thr[2])->kicked && fake_ctx(thr[5])->kicked,
	       "which are kicked");
	fake_take_kick(thr[1]);
	tap_eq(thr[1]->state, TASK_STOPPED, "one is held");
	tap_eq(wait_on(thr[2], W1, 1), FAKE_BLOCKED, "one that makes a call is held at its end");
	tap_eq(*word(W2), 41, "the word is not touched yet");
	fake_take_kick(thr[5]);
	tap_eq(*word(W2), 42, "with the last one held it is");
	tap_eq(fake_result(thr[0]), 0, "the call is answered");
	tap_ok(fake_ctx(thr[1])->running && fake_ctx(thr[2])->running && fake_ctx(thr[5])->running,
	       "all go on");
	tap_eq(fake_result(thr[2]), -EAGAIN, "with their results");
	fake_ctx(thr[2])->kicked = false;
	/* One that never stops. */
	futex(thr[0], W1, FUTEX_WAKE_OP_PRIVATE, 1, 1, W2, enc);
	for (int i = 0; i < 8 && thr[0]->state == TASK_BLOCKED; i++)
		fake_pass_time(5000000);
	tap_eq(*word(W2), 43, "patience has an end");
	for (int k = 1; k < N_THREADS; k++) {
		fake_ctx(thr[k])->kicked = false;
		unpark(thr[k]);
	}
}

/* A call that holds the others and then fails lets them go on. */
static void test_freeze_fails(void)
{
	struct linux_timespec *ts = fake_mem(thr[0], TS);

	*word(W1) = 0;
	*ts = (struct linux_timespec){ INT32_MAX, 0 };
	for (int k = 2; k < N_THREADS; k++)
		CALL0(thr[k], LINUX_SYS_pause);
	tap_eq(futex(thr[0], W1, FUTEX_LOCK_PI_PRIVATE, 0, TS, 0, 0), FAKE_BLOCKED, "waits for the running thread");
	ts->tv_nsec = -1;
	fake_take_kick(thr[1]);
	tap_eq(fake_result(thr[0]), -EINVAL, "its time-out was spoilt meanwhile");
	tap_ok(!futex_freeze_for && !futex_frozen_mm, "nobody is held any more");
	tap_ok(fake_ctx(thr[1])->running, "the other thread goes on");
	*word(W1) = 0;
	for (int k = 2; k < N_THREADS; k++) {
		fake_ctx(thr[k])->kicked = false;
		unpark(thr[k]);
	}
}

static unsigned holds;

static void count_hold(struct platform *p)
{
	(void)p;
	holds++;
}

/* A platform that keeps guest code from running by itself: nobody need stop, nothing runs out. */
static void test_hold(void)
{
	const struct platform_ops *plat = kernel.plat;
	struct platform_ops holding = *plat;
	unsigned kicked = 0;

	holding.hold = count_hold;
	kernel.plat = &holding;
	*word(W1) = 0;
	tap_eq(futex(thr[0], W1, FUTEX_LOCK_PI_PRIVATE, 0, 0, 0, 0), 0, "taken at once while others run");
	tap_eq(*word(W1), (uint32_t)thr[0]->tid, "the word has the owner");
	for (int k = 1; k < N_THREADS; k++)
		kicked += fake_ctx(thr[k])->kicked;
	tap_ok(holds == 1 && !kicked && !futex_freeze_for, "held by the platform");
	tap_eq(futex(thr[1], W1, FUTEX_LOCK_PI_PRIVATE, 0, 0, 0, 0), FAKE_BLOCKED, "another waits");
	tap_eq(*word(W1), (uint32_t)thr[0]->tid | FUTEX_WAITERS, "and says so");
	tap_eq(futex(thr[0], W1, FUTEX_UNLOCK_PI_PRIVATE, 0, 0, 0, 0), 0, "unlock");
	tap_eq(fake_result(thr[1]), 0, "the other has it");
	tap_eq(futex(thr[1], W1, FUTEX_UNLOCK_PI_PRIVATE, 0, 0, 0, 0), 0, "and gives it back");
	tap_eq(holds, 2, "once for each lock");
	kernel.plat = plat;
}

static void test_pi(void)
{
	struct linux_timespec *ts = fake_mem(thr[0], TS);
	uint32_t t0 = (uint32_t)thr[0]->tid, t1 = (uint32_t)thr[1]->tid, t2 = (uint32_t)thr[2]->tid;

	for (int k = 3; k < N_THREADS; k++)
		CALL0(thr[k], LINUX_SYS_pause);
	CALL0(thr[1], LINUX_SYS_pause);
	CALL0(thr[2], LINUX_SYS_pause);
	*word(W1) = 0;
	tap_eq(futex(thr[0], W1, FUTEX_LOCK_PI_PRIVATE, 0, 0, 0, 0), 0, "a free lock is taken");
	tap_eq(*word(W1), t0, "the word has the owner");
	tap_eq(futex(thr[0], W1, FUTEX_LOCK_PI_PRIVATE, 0, 0, 0, 0), -EDEADLK,
	       "twice is a deadlock");
	unpark(thr[1]);
	CALL0(thr[0], LINUX_SYS_pause);
	tap_eq(futex(thr[1], W1, FUTEX_TRYLOCK_PI_PRIVATE, 0, 0, 0, 0), -EAGAIN, "trylock");
	tap_eq(futex(thr[1], W1, FUTEX_UNLOCK_PI_PRIVATE, 0, 0, 0, 0), -EPERM,
	       "unlock of another's");
	tap_eq(futex(thr[1], W1, FUTEX_LOCK_PI_PRIVATE, 0, 0, 0, 0), FAKE_BLOCKED, "lock waits");
	tap_eq(*word(W1), t0 | FUTEX_WAITERS, "and says so in the word");
	unpark(thr[2]);
	tap_eq(futex(thr[2], W1, FUTEX_LOCK_PI_PRIVATE, 0, 0, 0, 0), FAKE_BLOCKED,
	       "a second waiter");
	unpark(thr[0]);
	tap_eq(futex(thr[0], W1, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0), -EINVAL,
	       "a plain wake of PI waiters");
	tap_eq(futex(thr[0], W1, FUTEX_UNLOCK_PI_PRIVATE, 0, 0, 0, 0), 0, "unlock");
	tap_eq(fake_result(thr[1]), 0, "the first waiter has it");
	tap_eq(*word(W1), t1 | FUTEX_WAITERS, "the word too");
	tap_eq(futex(thr[1], W1, FUTEX_UNLOCK_PI_PRIVATE, 0, 0, 0, 0), 0, "unlock");
	tap_eq(*word(W1), t2 | FUTEX_WAITERS, "then the second");
	tap_eq(futex(thr[2], W1, FUTEX_UNLOCK_PI_PRIVATE, 0, 0, 0, 0), 0, "unlock");
	tap_eq(*word(W1), 0, "free");

	*word(W1) = 999999;
	CALL0(thr[1], LINUX_SYS_pause);
	CALL0(thr[2], LINUX_SYS_pause);
	tap_eq(futex(thr[0], W1, FUTEX_LOCK_PI_PRIVATE, 0, 0, 0, 0), -ESRCH,
	       "an owner that is not there");
	*word(W1) = t1;
	*ts = ns_to_timespec(clock_timer_now(0) + 2000000);
	tap_eq(futex(thr[0], W1, FUTEX_LOCK_PI_PRIVATE, 0, TS, 0, 0), FAKE_BLOCKED,
	       "with a time-out");
	fake_pass_time(4000000);
	tap_eq(fake_result(thr[0]), -ETIMEDOUT, "it ends");
	/* The owner dies: the waiter gets it with the mark. */
	tap_eq(futex(thr[0], W1, FUTEX_LOCK_PI_PRIVATE, 0, 0, 0, 0), FAKE_BLOCKED,
	       "waits for a lock");
	futex_mm_release(thr[1]);
	runq_drain();
	tap_eq(fake_result(thr[0]), 0, "whose owner dies");
	tap_eq(*word(W1), t0 | FUTEX_WAITERS | FUTEX_OWNER_DIED, "OWNER_DIED");
	for (int k = 1; k < N_THREADS; k++)
		unpark(thr[k]);
}

static void test_waitv(void)
{
	struct {
		uint64_t val, addr;
		uint32_t flags, reserved;
	} *v = fake_mem(thr[0], FAKE_BASE + 0x2000);
	const uaddr_t uv = FAKE_BASE + 0x2000;

	*word(W1) = 1;
	*word(W2) = 2;
	v[0].val = 1, v[0].addr = W1, v[0].flags = 2 | 128, v[0].reserved = 0;
	v[1].val = 2, v[1].addr = W2, v[1].flags = 2 | 128, v[1].reserved = 0;
	tap_eq(fake_call(thr[1], LINUX_SYS_futex_waitv, uv, 0, 0, 0, 0, 0), -EINVAL, "none");
	tap_eq(fake_call(thr[1], LINUX_SYS_futex_waitv, uv, 129, 0, 0, 0, 0), -EINVAL, "too many");
	tap_eq(fake_call(thr[1], LINUX_SYS_futex_waitv, uv, 2, 1, 0, 0, 0), -EINVAL, "flags");
	tap_eq(fake_call(thr[1], LINUX_SYS_futex_waitv, uv, 2, 0, 0, 0, 0), FAKE_BLOCKED,
	       "waits for two");
	tap_eq(futex(thr[0], W2, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0), 1, "the second is woken");
	tap_eq(fake_result(thr[1]), 1, "its index");
	tap_eq(futex(thr[0], W1, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0), 0,
	       "the first is not waited for any more");
	v[1].val = 3;
	tap_eq(fake_call(thr[1], LINUX_SYS_futex_waitv, uv, 2, 0, 0, 0, 0), -EAGAIN,
	       "a value differs");
	tap_eq(futex(thr[0], W1, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0), 0, "nothing stays queued");
	v[1].flags = 1;
	tap_eq(fake_call(thr[1], LINUX_SYS_futex_waitv, uv, 2, 0, 0, 0, 0), -EINVAL,
	       "another size");
}

static void test_robust(void)
{
	struct task *t = thr[4];
	uint64_t *head = fake_mem(t, FAKE_BASE + 0x3000), *e1 = fake_mem(t, FAKE_BASE + 0x3100);
	const uaddr_t uhead = FAKE_BASE + 0x3000, u1 = FAKE_BASE + 0x3100, u2 = FAKE_BASE + 0x3200;
	uint32_t tid = (uint32_t)t->tid;
	uint32_t *w1 = fake_mem(t, u1 + 32), *w2 = fake_mem(t, u2 + 32);
	unsigned reads;

	tap_eq(CALL2(t, LINUX_SYS_set_robust_list, uhead, 23), -EINVAL, "another size");
	tap_eq(CALL2(t, LINUX_SYS_set_robust_list, uhead, 24), 0, "a list");
	tap_eq(CALL3(t, LINUX_SYS_get_robust_list, 0, FAKE_BASE, FAKE_BASE + 8), 0, "is told");
	tap_ok(*(uint64_t *)fake_mem(t, FAKE_BASE) == uhead &&
		       *(uint64_t *)fake_mem(t, FAKE_BASE + 8) == 24,
	       "as set");
	head[0] = u1;
	head[1] = 32;
	head[2] = u2; /* pending */
	e1[0] = uhead;
	*w1 = tid | FUTEX_WAITERS;
	*w2 = tid;
	wait_on(thr[1], u1 + 32, *w1);
	futex_mm_release(t);
	runq_drain();
	tap_eq(*w1, FUTEX_OWNER_DIED | FUTEX_WAITERS, "a held mutex is marked");
	tap_eq(fake_result(thr[1]), 0, "and its waiter woken");
	tap_eq(*w2, FUTEX_OWNER_DIED, "the pending one too");

	t->robust_list = uhead;
	e1[0] = u1; /* a cycle */
	*w1 = tid + 1;
	reads = fake_reads;
	futex_mm_release(t);
	tap_ok(fake_reads - reads < 3 * 2048, "a cycle ends");
	tap_eq(*w1, tid + 1, "another's mutex is left alone");

	t->robust_list = uhead;
	e1[0] = 0x8; /* nothing there */
	*w1 = tid;
	futex_mm_release(t);
	tap_eq(*w1, FUTEX_OWNER_DIED, "a list that leads astray ends there");
	t->robust_list = uhead;
	head[1] = UINT64_MAX - 0x2f00; /* the offset wraps */
	futex_mm_release(t);
	t->robust_list = uhead;
	head[1] = 3;
	futex_mm_release(t);
	t->robust_list = 0x10;
	futex_mm_release(t);
	tap_ok(t->robust_list == 0, "bad offsets and heads are survived");

	t->clear_tid = W1;
	*word(W1) = tid;
	futex(thr[1], W1, FUTEX_WAIT, tid, 0, 0, 0);
	task_exit(t, 0);
	runq_drain();
	tap_ok(*word(W1) == 0 && fake_result(thr[1]) == 0, "clear_tid wakes who joins");
	thr[4] = fake_thread(thr[0]);
	task_put(t);
}

static void test_exit_waiting(void)
{
	*word(W1) = 5;
	wait_on(thr[4], W1, 5);
	task_exit(thr[4], 0);
	tap_eq(futex(thr[0], W1, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0), 0, "a waiter that ended is gone");
	task_put(thr[4]);
	thr[4] = fake_thread(thr[0]);
}

static void test_shared(void)
{
	struct task *child = fake_fork(thr[0]);
	const uaddr_t w = FAKE_SHARED + 64;

	*word(w) = 5;
	*(uint32_t *)fake_mem(child, w) = 5;
	*word(W1) = 5;
	*(uint32_t *)fake_mem(child, W1) = 5;
	tap_eq(futex(child, w, FUTEX_WAIT, 5, 0, 0, 0), FAKE_BLOCKED, "another process waits");
	tap_eq(futex(thr[0], w, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0), 0,
	       "a private wake does not reach it");
	tap_eq(futex(thr[0], w, FUTEX_WAKE, 1, 0, 0, 0), 1, "a shared one does");
	tap_eq(futex(child, W1, FUTEX_WAIT, 5, 0, 0, 0), FAKE_BLOCKED, "private memory");
	tap_eq(futex(thr[0], W1, FUTEX_WAKE, 1, 0, 0, 0), 0, "is not shared");
	task_exit(child, 0);
	task_put(child);
}

int main(void)
{
	thr[0] = fake_boot();
	for (int i = 1; i < N_THREADS; i++)
		thr[i] = fake_thread(thr[0]);
	test_wait_wake();
	test_signal();
	test_requeue();
	test_wake_op();
	test_freeze();
	test_freeze_fails();
	test_hold();
	test_pi();
	test_waitv();
	test_robust();
	test_exit_waiting();
	test_shared();
	return tap_done();
}
