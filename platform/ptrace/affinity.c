/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stop of a tracee on another CPU wakes us across CPUs, which costs ten times what a switch on one CPU costs. So
 * while guest code runs, the leader is bound to the CPU that it is on, and each stub thread is bound to the same one
 * before it goes on. A thread that runs for a whole period of the ticker without a stop computes: it is let go to all
 * CPUs, and called back when its runs get short again. When a period finds nobody running bound, the leader is let go
 * too, so that the host's scheduler can place it anew. On one CPU only the ticker is of use (event.c, whom()).
 */
#include <errno.h>
#include <sys/timerfd.h>
#include <time.h>

#include "base/host/sched.h"
#include "platform/ptrace/ptrace_priv.h"
#include "platform/stub/hostcall.h"

#define NO_CPU    (-1)
#define UNBOUND   (-2) /* of the leader: differs from what any thread is bound to */
#define TICK_NS   4000000
#define SHORT_NS  1000000u
#define SHORT_RUNS 4

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static int bind_to(pid_t tid, int cpu)
{
	return cpu < 0 ? host_cpu_unbind(tid) : host_cpu_bind(tid, (unsigned)cpu);
}

static void set_ticker(struct platform *p, bool on)
{
	struct itimerspec its = { { 0, on ? TICK_NS : 0 }, { 0, on ? TICK_NS : 0 } };

	p->ticking = on;
	HOSTCALL(SYS_timerfd_settime, p->timerfd, 0, &its, NULL);
}

/* The host does not let us, or has taken our CPU away: all run where it likes. */
static void give_up(struct platform *p)
{
	p->one_cpu = true;
	p->cpu = NO_CPU;
	bind_to(0, NO_CPU);
}

static void bind_leader(struct platform *p)
{
	int cpu = p->one_cpu ? NO_CPU : sched_getcpu();

	p->cpu = cpu;
	if (!p->one_cpu && (cpu < 0 || cpu >= CPU_SETSIZE || bind_to(0, cpu) < 0))
		give_up(p);
	set_ticker(p, true);
}

void pt_affinity_follow(struct pctx *c)
{
	struct platform *p = c->p;
	int want;

	if (p->cpu == UNBOUND && !c->free)
		bind_leader(p);
	want = c->free || p->cpu < 0 ? NO_CPU : p->cpu;
	if (c->free)
		c->since = now_ns();
	if (c->cpu == want)
		return;
	c->cpu = want;
	if (bind_to(c->tid, want) < 0 && want != NO_CPU) {
		give_up(p);
		c->cpu = NO_CPU;
		bind_to(c->tid, NO_CPU);
	}
}

void pt_affinity_stopped(struct pctx *c)
{
	if (now_ns() - c->since >= SHORT_NS) {
		c->quick = 0;
	} else if (++c->quick >= SHORT_RUNS) {
		c->free = false;
		c->quick = 0;
	}
}

static void let_go(struct pctx *c)
{
	c->free = true;
	c->quick = 0;
	c->since = now_ns();
	c->cpu = NO_CPU;
	bind_to(c->tid, NO_CPU);
}

void pt_affinity_tick(struct platform *p)
{
	struct hostproc *proc;
	struct pctx *c;
	bool any = false;

	list_for_each_entry(proc, &p->procs, node) {
		list_for_each_entry(c, &proc->ctxs, proc_node) {
			if (c->state != PCTX_RUN || c->free) {
				any |= c->state == PCTX_ORDER;
			} else if (c->n_runs != c->tick_runs) {
				any = true;
				c->tick_runs = c->n_runs;
			} else if (!p->one_cpu) {
				let_go(c);
			}
		}
	}
	if (any || !p->ticking)
		return;
	set_ticker(p, false);
	p->cpu = UNBOUND;
	if (!p->one_cpu)
		bind_to(0, NO_CPU);
}

static void ticker_main(void *arg)
{
	struct platform *p = arg;
	uint64_t n;

	while (!__atomic_load_n(&p->quit, __ATOMIC_SEQ_CST))
		if (HOSTCALL(SYS_read, p->timerfd, &n, sizeof(n)) == (long)sizeof(n))
			leader_wake(&p->leader, WAKE_TICK);
}

int pt_affinity_start(struct platform *p)
{
	int r;

	p->cpu = UNBOUND;
	/* More CPUs than the set has room for is EINVAL. */
	p->one_cpu = host_cpu_remember() < 0 || host_cpu_count() < 2;
	r = (int)HOSTCALL(SYS_timerfd_create, CLOCK_MONOTONIC, TFD_CLOEXEC);
	if (r < 0)
		return r;
	p->timerfd = r;
	r = host_thread_start(&p->ticker, "sbx-tick", ticker_main, p);
	p->ticker_up = r == 0;
	return r;
}

void pt_affinity_stop(struct platform *p)
{
	struct itimerspec its = { .it_value = { 0, 1 } };

	if (p->ticker_up) {
		__atomic_store_n(&p->quit, 1, __ATOMIC_SEQ_CST);
		HOSTCALL(SYS_timerfd_settime, p->timerfd, 0, &its, NULL);
		host_thread_join(&p->ticker);
	}
	if (p->timerfd >= 0)
		HOSTCALL(SYS_close, p->timerfd);
	if (p->cpu >= 0)
		bind_to(0, NO_CPU);
}
