/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workers and the run queue. A worker is a vCPU and its thread; worker 0 is the thread that called run(). The lock
 * passes from hand to hand: who comes out of the guest takes it, tells the kernel of the trap by himself, picks what
 * to run next and gives it up in KVM_RUN. So a system call wakes no other thread.
 *
 *   krun_ready()   the context whose trap is being told becomes the worker's next; any other goes to the queue's end
 *   pick()         next, unless its slice is over and others wait; else the head of the queue
 *   ticker         runs while contexts wait: each tick it rings an idle worker, or kicks guests whose slice is over
 *
 * A wake-up of another thread costs more than most system calls, so a context that has become ready waits for the
 * worker that woke it; only when it has waited for STEAL_NS, or a tick has passed, an idle worker is rung for it.
 *
 * A worker that is not rung sleeps on its doorbell (IDLE). kvm_wake() from any thread: a bit first, then whoever can
 * see it soonest: a worker that is OUT looks by himself before he goes away, an idle one is rung, else a guest is
 * kicked out.
 */
#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "base/host/clock.h"
#include "platform/kvm/kvm.h"
#include "platform/kvm/vdso.h"

#define TICK_NS     4000000
#define SLICE_TICKS 2u
#define STEAL_NS    60000u
#define TICKS_QUIET 16u /* without waiting contexts, then the ticker sleeps */

/* True while this thread runs a callback: it will look at wake_bits before it sleeps or enters the guest. */
static __thread bool in_callback;

static uint64_t now_ns(void)
{
	uint64_t ns = 0;

	DISCARD(host_clock_ns(CLOCK_MONOTONIC, &ns)); /* cannot fail */
	return ns;
}

static void futex_wake(uint32_t *word)
{
	HOSTCALL(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1);
}

static void futex_wait(uint32_t *word, uint32_t val)
{
	HOSTCALL(SYS_futex, word, FUTEX_WAIT_PRIVATE, val, NULL);
}

static void ring(struct kvcpu *c)
{
	if (!__atomic_exchange_n(&c->doorbell, 1, __ATOMIC_SEQ_CST))
		futex_wake(&c->doorbell);
}

static void ticker_want(struct platform *p)
{
	if (p->n_vcpus && !__atomic_load_n(&p->tick_wanted, __ATOMIC_RELAXED) &&
	    !__atomic_exchange_n(&p->tick_wanted, 1, __ATOMIC_SEQ_CST))
		futex_wake(&p->tick_wanted);
}

static void queue_add(struct kctx *c)
{
	struct platform *p = c->p;

	list_add_tail(&p->runq, &c->node);
	__atomic_fetch_add(&p->n_ready, 1, __ATOMIC_SEQ_CST);
	c->ready_since = p->n_vcpus > 1 ? now_ns() : 0;
	ticker_want(p);
}

static void queue_del(struct kctx *c)
{
	if (list_empty(&c->node))
		return;
	list_del(&c->node);
	__atomic_fetch_sub(&c->p->n_ready, 1, __ATOMIC_SEQ_CST);
}

void krun_ready(struct kctx *c)
{
	struct kvcpu *me = c->p->me;
	bool yields = c->trap.kind == TRAP_SYSCALL && c->trap.sys.nr == SYS_sched_yield;

	if (me->told == c && !me->next && !(yields && !list_empty(&c->p->runq)))
		me->next = c;
	else
		queue_add(c);
}

void krun_forget(struct kctx *c)
{
	struct platform *p = c->p;

	if (c->state == KCTX_GUEST) {
		kvcpu_expel(c->on);
		c->on->cur = NULL; /* its worker finds out when it has the lock */
		c->on = NULL;
	}
	queue_del(c);
	for (unsigned i = 0; i < p->n_vcpus; i++) {
		if (p->vcpus[i]->next == c)
			p->vcpus[i]->next = NULL;
		if (p->vcpus[i]->told == c)
			p->vcpus[i]->told = NULL;
	}
	c->state = KCTX_DEAD;
}

static struct kvcpu *find_idle(struct platform *p)
{
	for (unsigned i = 0; i < p->n_vcpus; i++) {
		struct kvcpu *c = p->vcpus[i];

		if (kvcpu_where(c) == KVCPU_IDLE && !__atomic_load_n(&c->doorbell, __ATOMIC_SEQ_CST))
			return c;
	}
	return NULL;
}

static bool slice_over(const struct kvcpu *c)
{
	return __atomic_load_n(&c->p->ticks, __ATOMIC_RELAXED) >= __atomic_load_n(&c->slice_end, __ATOMIC_RELAXED);
}

static struct kctx *pick(struct kvcpu *c)
{
	struct platform *p = c->p;
	struct kctx *k = c->next;

	c->next = NULL;
	if (unlikely(!list_empty(&p->runq))) {
		struct kctx *head = list_first_entry(&p->runq, struct kctx, node);
		struct kvcpu *idle;

		if (k && !slice_over(c)) {
			idle = p->n_vcpus > 1 ? find_idle(p) : NULL;
			if (idle && now_ns() - head->ready_since > STEAL_NS)
				ring(idle);
			return k;
		}
		if (k)
			queue_add(k);
		k = head;
		queue_del(k);
	}
	/* Nobody waited till now: the slice begins. */
	__atomic_store_n(&c->slice_end, __atomic_load_n(&p->ticks, __ATOMIC_RELAXED) + SLICE_TICKS, __ATOMIC_RELAXED);
	return k;
}

static void tell(struct kvcpu *c, struct kctx *k)
{
	struct platform *p = c->p;
	struct trap trap = k->trap; /* the callback may destroy it */

	k->state = KCTX_STOPPED;
	k->interrupt = false;
	c->told = k;
	in_callback = true;
	p->up->trap(p->up_arg, &k->base, &trap);
	in_callback = false;
	c->told = NULL;
}

static bool wanted(struct platform *p)
{
	return p->stopping || p->broken || p->quit || __atomic_load_n(&p->wake_bits, __ATOMIC_SEQ_CST);
}

/* The lock goes from hand to hand across functions and threads: more than the checker follows. */
static void lock(struct kvcpu *c) LOCK_UNCHECKED
{
	sbx_mutex_lock(&c->p->lock);
	c->p->me = c;
}

static void unlock(struct kvcpu *c) LOCK_UNCHECKED
{
	sbx_mutex_unlock(&c->p->lock);
}

/* @k was in the guest, and the lock is held again. */
static void came_out(struct kvcpu *c, struct kctx *k, const struct kevent *ev)
{
	k->on = NULL;
	k->state = KCTX_READY;
	if (ev->kind == KEV_BROKEN) {
		kvm_broken(c->p, c, "unexpected exit");
		queue_add(k);
	} else if (ktrap_decode(k, ev)) {
		tell(c, k);
	} else {
		c->next = k;
	}
}

static void run_one(struct kvcpu *c, struct kctx *k)
{
	struct kevent ev;

	if (unlikely(k->interrupt)) {
		k->trap.kind = TRAP_INTERRUPT;
		tell(c, k);
		return;
	}
	if (unlikely(!kregs_rip_ok(&k->regs))) {
		ktrap_bad_rip(k);
		tell(c, k);
		return;
	}
	if (unlikely(kctx_load(k, c) < 0)) {
		queue_add(k);
		return;
	}
	if (c->p->vdso && unlikely(kvdso_due(c->p->vdso)))
		kvdso_update(c->p->vdso);
	__atomic_store_n(&c->where, KVCPU_GUEST, __ATOMIC_SEQ_CST);
	if (unlikely(wanted(c->p))) {
		__atomic_store_n(&c->where, KVCPU_OUT, __ATOMIC_SEQ_CST);
		c->next = k;
		return;
	}
	k->state = KCTX_GUEST;
	k->on = c;
	k->bases_known = false;
	c->cur = k;
	unlock(c);
	/* Who destroys it meanwhile waits till we are out: kvcpu_enter() touches nothing of it after it said so. */
	kvcpu_enter(c, kaspace_root(k->as), &k->regs, &ev);
	lock(c);
	k = c->cur;
	c->cur = NULL;
	if (unlikely(!k))
		return; /* destroyed meanwhile */
	came_out(c, k, &ev);
}

static void idle(struct kvcpu *c)
{
	struct platform *p = c->p;
	bool work = p->running && !p->stopping && !p->broken;

	__atomic_store_n(&c->doorbell, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&c->where, KVCPU_IDLE, __ATOMIC_SEQ_CST);
	if (!(work && (wanted(p) || !list_empty(&p->runq))) && !p->quit) {
		unlock(c);
		while (!__atomic_load_n(&c->doorbell, __ATOMIC_SEQ_CST))
			futex_wait(&c->doorbell, 0);
		lock(c);
	}
	__atomic_store_n(&c->where, KVCPU_OUT, __ATOMIC_SEQ_CST);
}

static void run_due(struct platform *p)
{
	if (likely(!__atomic_load_n(&p->wake_bits, __ATOMIC_SEQ_CST)))
		return;
	__atomic_store_n(&p->wake_bits, 0, __ATOMIC_SEQ_CST);
	in_callback = true;
	p->up->idle(p->up_arg);
	in_callback = false;
}

static void step(struct kvcpu *c)
{
	struct kctx *k;

	run_due(c->p);
	if (unlikely(c->p->stopping || c->p->broken))
		return;
	k = pick(c);
	if (likely(k != NULL))
		run_one(c, k);
	else
		idle(c);
}

/* What a worker has for himself when he stops working goes where all see it. */
static void put_back(struct kvcpu *c)
{
	if (c->next)
		queue_add(c->next);
	c->next = NULL;
}

/* Worker 0 is to look: it may be anywhere. */
static void tell_first(struct platform *p)
{
	struct kvcpu *c = p->vcpus[0];

	if (kvcpu_where(c) == KVCPU_GUEST)
		kvcpu_kick(c);
	else
		ring(c);
}

/* Whom kvcpu_kick() signals. */
static void know_thread(struct kvcpu *c)
{
	__atomic_store_n(&c->tid, (pid_t)HOSTCALL(SYS_gettid), __ATOMIC_RELAXED);
}

static void worker_main(void *arg)
{
	struct kvcpu *c = arg;
	struct platform *p = c->p;
	sigset_t kick;

	sigemptyset(&kick);
	sigaddset(&kick, SIGUSR1);
	pthread_sigmask(SIG_UNBLOCK, &kick, NULL);
	know_thread(c);
	lock(c);
	while (!p->quit) {
		if (p->running && !p->stopping && !p->broken) {
			step(c);
		} else {
			put_back(c);
			if (p->broken)
				tell_first(p);
			idle(c);
		}
	}
	unlock(c);
}

int kvm_run_loop(struct platform *p)
{
	struct kvcpu *c = p->vcpus[0];

	know_thread(c);
	p->stopping = false;
	p->running = true;
	__atomic_fetch_or(&p->wake_bits, KVM_WAKE_IDLE, __ATOMIC_SEQ_CST);
	while (!p->stopping && !p->broken)
		step(c);
	put_back(c);
	p->running = false;
	for (unsigned i = 1; i < p->n_vcpus; i++)
		kvcpu_expel(p->vcpus[i]);
	p->me = c;
	return p->broken;
}

void kvm_stop(struct platform *p)
{
	p->stopping = true;
	if (p->me != p->vcpus[0])
		tell_first(p);
}

void kvm_wake(struct platform *p)
{
	struct kvcpu *guest = NULL;
	bool out = false;

	__atomic_fetch_or(&p->wake_bits, KVM_WAKE_IDLE, __ATOMIC_SEQ_CST);
	if (in_callback)
		return;
	for (unsigned i = 0; i < p->n_vcpus; i++) {
		struct kvcpu *c = p->vcpus[i];

		switch (kvcpu_where(c)) {
		case KVCPU_OUT:
			out = true;
			break;
		case KVCPU_IDLE:
			ring(c);
			return;
		case KVCPU_GUEST:
			guest = guest ? guest : c;
			break;
		}
	}
	if (!out && guest)
		kvcpu_kick(guest);
}

static void tick(struct platform *p)
{
	struct kvcpu *c = find_idle(p);

	if (c) {
		ring(c);
		return;
	}
	for (unsigned i = 0; i < p->n_vcpus; i++) {
		c = p->vcpus[i];
		if (kvcpu_where(c) == KVCPU_GUEST && slice_over(c))
			kvcpu_kick(c);
	}
}

static void ticker_main(void *arg)
{
	const struct timespec period = { .tv_nsec = TICK_NS };
	struct platform *p = arg;
	unsigned quiet = 0;

	while (!__atomic_load_n(&p->ticker_quit, __ATOMIC_SEQ_CST)) {
		if (quiet >= TICKS_QUIET) {
			__atomic_store_n(&p->tick_wanted, 0, __ATOMIC_SEQ_CST);
			if (!__atomic_load_n(&p->n_ready, __ATOMIC_SEQ_CST))
				futex_wait(&p->tick_wanted, 0);
			quiet = 0;
			continue;
		}
		HOSTCALL(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &period, NULL);
		__atomic_fetch_add(&p->ticks, 1, __ATOMIC_SEQ_CST);
		quiet++;
		if (__atomic_load_n(&p->n_ready, __ATOMIC_SEQ_CST)) {
			quiet = 0;
			tick(p);
		}
	}
}

static void on_kick(int sig)
{
	(void)sig; /* that it comes is enough */
}

int kvm_workers_start(struct platform *p, struct sbx_err *err)
{
	struct sigaction sa = { .sa_handler = on_kick, .sa_flags = SA_RESTART };
	sigset_t kick;
	int r;

	sigaction(SIGUSR1, &sa, NULL);
	sigemptyset(&kick);
	sigaddset(&kick, SIGUSR1);
	pthread_sigmask(SIG_UNBLOCK, &kick, NULL);
	know_thread(p->vcpus[0]);
	r = host_thread_start(&p->ticker, "sbx-ticker", ticker_main, p);
	p->ticker_up = r == 0;
	for (unsigned i = 1; r == 0 && i < p->n_vcpus; i++) {
		struct kvcpu *c = p->vcpus[i];

		c->thread.stack_size = KVM_WORKER_STACK;
		__atomic_store_n(&c->where, KVCPU_OUT, __ATOMIC_SEQ_CST);
		r = host_thread_start(&c->thread, "sbx-vcpu", worker_main, c);
		c->thread_up = r == 0;
	}
	return r < 0 ? sbx_fail(err, r, "kvm: start the workers") : 0;
}

void kvm_workers_end(struct platform *p) LOCK_UNCHECKED
{
	p->quit = true;
	__atomic_store_n(&p->ticker_quit, 1, __ATOMIC_SEQ_CST);
	if (p->ticker_up) {
		__atomic_store_n(&p->tick_wanted, 1, __ATOMIC_SEQ_CST);
		futex_wake(&p->tick_wanted);
		host_thread_join(&p->ticker);
	}
	sbx_mutex_unlock(&p->lock);
	for (unsigned i = 1; i < p->n_vcpus; i++) {
		if (!p->vcpus[i]->thread_up)
			continue;
		ring(p->vcpus[i]);
		host_thread_join(&p->vcpus[i]->thread);
	}
	sbx_mutex_lock(&p->lock);
	p->me = p->n_vcpus ? p->vcpus[0] : NULL;
}
