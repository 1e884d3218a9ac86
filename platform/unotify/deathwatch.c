/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The helper thread: waits for pidfds of stub processes and for the watchdog timer, notes what happened and wakes the
 * leader. It touches no other state. A process that ends because we said so has had its pidfd closed before and causes
 * no event. A note may be stale (the index was given to another process meanwhile), so the leader asks the pidfd again.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "platform/stub/hostcall.h"
#include "platform/unotify/unotify_priv.h"

#define KEY_TIMER UINT64_MAX
#define TICK_NS   1000000000
#define GHOST_TICKS_MAX 2

static void note(struct platform *p, const struct epoll_event *ev)
{
	uint64_t n;

	if (ev->data.u64 == KEY_TIMER) {
		HOSTCALL(SYS_read, p->timerfd, &n, sizeof(n));
		__atomic_store_n(&p->timer_armed, 0, __ATOMIC_SEQ_CST);
		leader_wake(&p->leader, WAKE_TICK);
		return;
	}
	n = ev->data.u64;
	__atomic_fetch_or(&p->dead_bits[n / 64], 1ull << n % 64, __ATOMIC_SEQ_CST);
	leader_wake(&p->leader, WAKE_DEATH);
}

static void watcher_main(void *arg)
{
	struct platform *p = arg;
	struct epoll_event ev[16];

	while (!__atomic_load_n(&p->quit, __ATOMIC_SEQ_CST)) {
		long n = HOSTCALL(SYS_epoll_pwait, p->epfd, ev, ARRAY_SIZE(ev), -1, NULL, 8);

		for (long i = 0; i < n; i++)
			note(p, &ev[i]);
	}
}

int deathwatch_start(struct platform *p)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u64 = KEY_TIMER };
	int r;

	p->epfd = (int)HOSTCALL(SYS_epoll_create1, EPOLL_CLOEXEC);
	p->timerfd = (int)HOSTCALL(SYS_timerfd_create, CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (p->epfd < 0 || p->timerfd < 0)
		return p->epfd < 0 ? p->epfd : p->timerfd;
	r = (int)HOSTCALL(SYS_epoll_ctl, p->epfd, EPOLL_CTL_ADD, p->timerfd, &ev);
	if (r < 0)
		return r;
	r = host_thread_start(&p->watcher, "sbx-watch", watcher_main, p);
	p->watcher_up = r == 0;
	return r;
}

static void set_timer(struct platform *p, long ns)
{
	struct itimerspec its = { .it_value = { ns / 1000000000, ns % 1000000000 } };

	HOSTCALL(SYS_timerfd_settime, p->timerfd, 0, &its, NULL);
}

void deathwatch_stop(struct platform *p)
{
	if (p->watcher_up) {
		__atomic_store_n(&p->quit, 1, __ATOMIC_SEQ_CST);
		set_timer(p, 1);
		host_thread_join(&p->watcher);
	}
	if (p->timerfd >= 0)
		HOSTCALL(SYS_close, p->timerfd);
	if (p->epfd >= 0)
		HOSTCALL(SYS_close, p->epfd);
}

int deathwatch_add(struct platform *p, int pidfd, unsigned idx)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLONESHOT, .data.u64 = idx };

	return (int)HOSTCALL(SYS_epoll_ctl, p->epfd, EPOLL_CTL_ADD, pidfd, &ev);
}

void deathwatch_collect(struct platform *p)
{
	for (unsigned w = 0; w < (p->max_procs + 63) / 64; w++) {
		uint64_t bits;

		if (!__atomic_load_n(&p->dead_bits[w], __ATOMIC_SEQ_CST))
			continue;
		bits = __atomic_exchange_n(&p->dead_bits[w], 0, __ATOMIC_SEQ_CST);
		for (; bits; bits &= bits - 1) {
			unsigned idx = w * 64 + (unsigned)__builtin_ctzll(bits);

			if (idx < p->max_procs && p->procs[idx])
				(void)proc_check_dead(p->procs[idx]);
		}
	}
}

void watchdog_arm(struct platform *p)
{
	if (likely(__atomic_load_n(&p->timer_armed, __ATOMIC_SEQ_CST)))
		return;
	__atomic_store_n(&p->timer_armed, 1, __ATOMIC_SEQ_CST);
	set_timer(p, TICK_NS);
}

void watchdog_tick(struct platform *p)
{
	struct uctx *c, *late = NULL;

	p->wait_ticks++;
	if (list_empty(&p->ghosts))
		return;
	watchdog_arm(p);
	/* One process a round: killing frees its other ghosts. */
	list_for_each_entry(c, &p->ghosts, trap_node)
		if (c->ghost_ticks++ >= GHOST_TICKS_MAX)
			late = c;
	if (late)
		proc_kill(late->proc, SIGKILL);
}
