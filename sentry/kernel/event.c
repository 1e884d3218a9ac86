/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The event thread and its mailbox. The thread only notes: for a donated fd it stores (generation, events) in the
 * watch's slot and sets the slot's bit, for the timer a flag; then it wakes the leader. event_run() takes the notes.
 * A slot's generation changes with each arm and cancel, so that a note from before is recognised and dropped.
 *
 * The host timer is armed for the earliest kernel timer or earlier, never later; a kernel timer that is cancelled
 * leaves it as it is. So the usual call with a deadline costs no host call, and event_run() reads no clock
 * unless the timer fired.
 */
#include "sentry/kernel/event.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/host/epoll.h"
#include "base/host/file.h"
#include "base/host/thread.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/timer.h"

#define ID_TIMER     0ull
#define ID_STOP      1ull
#define ID_SLOT_BASE 16ull
#define SLOT_WORDS   (EVENT_MAX_WATCHES / 64)
#define WAIT_BATCH   64

struct slot {
	/* The leader's. */
	struct hostfd_watch *w;
	uint32_t gen;
	uint32_t next_free; /* 1 + index */
	bool polled;        /* the fd is in the epoll set */
	/* Shared, atomic: generation << 32 | events. */
	uint64_t note;
};

/* Apart from ev, which is not all zeros: half a megabyte of the program's file otherwise. */
static struct slot slots[EVENT_MAX_WATCHES];
static uint64_t slot_bits[SLOT_WORDS]; /* shared, atomic */

static struct {
	int epfd, timerfd, stopfd;
	bool running;
	struct host_thread thread;
	/* The leader's. */
	uint32_t free_list, n_used; /* 1 + index; slots ever used */
	uint64_t armed_for;
	/* Shared, atomic. */
	uint32_t timer_fired;
} ev = { .epfd = -1, .timerfd = -1, .stopfd = -1, .armed_for = UINT64_MAX };

uint32_t event_noted;

static void wake_leader(void)
{
	if (kernel.plat && kernel.platform)
		kernel.plat->wake(kernel.platform);
}

static void note_slot(uint32_t i, uint32_t gen, uint32_t events)
{
	__atomic_store_n(&slots[i].note, (uint64_t)gen << 32 | events, __ATOMIC_RELAXED);
	__atomic_fetch_or(&slot_bits[i / 64], 1ull << (i % 64), __ATOMIC_RELEASE);
	__atomic_store_n(&event_noted, 1, __ATOMIC_RELEASE);
}

static void note_timer(void)
{
	uint64_t n;

	DISCARD(host_read(ev.timerfd, &n, sizeof(n))); /* -EAGAIN when the leader moved it meanwhile */
	__atomic_store_n(&ev.timer_fired, 1, __ATOMIC_RELEASE);
	__atomic_store_n(&event_noted, 1, __ATOMIC_RELEASE);
}

static void event_thread(void *arg)
{
	struct epoll_event evs[WAIT_BATCH];

	(void)arg;
	for (;;) {
		int n = host_epoll_wait(ev.epfd, evs, WAIT_BATCH, -1);

		if (n < 0)
			return;
		for (int i = 0; i < n; i++) {
			uint64_t id = evs[i].data.u64;

			if (id == ID_STOP)
				return;
			if (id == ID_TIMER)
				note_timer();
			else
				note_slot((uint32_t)id - (uint32_t)ID_SLOT_BASE, (uint32_t)(id >> 32),
					  evs[i].events);
		}
		if (n)
			wake_leader();
	}
}

static int add_internal(int fd, uint64_t id)
{
	struct epoll_event e = { .events = EPOLLIN, .data.u64 = id };

	return host_epoll_ctl(ev.epfd, EPOLL_CTL_ADD, fd, &e);
}

int event_init(struct sbx_err *err)
{
	int r;

	ev.epfd = host_epoll_create();
	if (ev.epfd < 0)
		return sbx_fail(err, ev.epfd, "epoll");
	ev.timerfd = host_timerfd_create();
	if (ev.timerfd < 0)
		return sbx_fail(err, ev.timerfd, "timerfd");
	ev.stopfd = host_eventfd();
	if (ev.stopfd < 0)
		return sbx_fail(err, ev.stopfd, "eventfd");
	r = add_internal(ev.timerfd, ID_TIMER);
	if (r == 0)
		r = add_internal(ev.stopfd, ID_STOP);
	if (r == 0)
		r = host_thread_start(&ev.thread, "sbx-events", event_thread, NULL);
	if (r < 0)
		return sbx_fail(err, r, "start the event thread");
	ev.running = true;
	return 0;
}

void event_fini(void)
{
	uint64_t one = 1;

	if (ev.running) {
		DISCARD(host_write(ev.stopfd, &one, sizeof(one))); /* a counter at 0 takes it */
		host_thread_join(&ev.thread);
	}
	host_close(ev.epfd);
	host_close(ev.timerfd);
	host_close(ev.stopfd);
	ev.epfd = ev.timerfd = ev.stopfd = -1;
	ev.running = false;
	ev.armed_for = UINT64_MAX;
}

static int slot_alloc(struct hostfd_watch *w)
{
	uint32_t i;

	if (ev.free_list) {
		i = ev.free_list - 1;
		ev.free_list = slots[i].next_free;
	} else if (ev.n_used < EVENT_MAX_WATCHES) {
		i = ev.n_used++;
	} else {
		return -ENOSPC;
	}
	slots[i].w = w;
	slots[i].polled = false;
	w->slot = i + 1;
	return 0;
}

static void slot_free(struct hostfd_watch *w)
{
	struct slot *s = &slots[w->slot - 1];

	s->w = NULL;
	s->gen++;
	s->next_free = ev.free_list;
	ev.free_list = w->slot;
	w->slot = 0;
}

int hostfd_watch_arm(struct hostfd_watch *w)
{
	struct epoll_event e;
	struct slot *s;
	bool fresh = !w->slot;
	int r;

	if (fresh) {
		r = slot_alloc(w);
		if (r < 0)
			return r;
	}
	s = &slots[w->slot - 1];
	s->gen++;
	e.events = w->events | EPOLLONESHOT;
	/* The low half is never below ID_SLOT_BASE, so that no generation makes an internal id. */
	e.data.u64 = (uint64_t)s->gen << 32 | (ID_SLOT_BASE + w->slot - 1);
	r = host_epoll_ctl(ev.epfd, s->polled ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, w->fd, &e);
	if (r == 0) {
		s->polled = true;
		return 0;
	}
	if (r == -EPERM) {
		note_slot(w->slot - 1, s->gen, w->events & (EPOLLIN | EPOLLOUT));
		wake_leader();
		return 0;
	}
	if (fresh)
		slot_free(w);
	return r;
}

void hostfd_watch_cancel(struct hostfd_watch *w)
{
	if (!w->slot)
		return;
	if (slots[w->slot - 1].polled)
		DISCARD(host_epoll_ctl(ev.epfd, EPOLL_CTL_DEL, w->fd, NULL)); /* closed already: gone from the set */
	slot_free(w);
}

static void run_slot(uint32_t i)
{
	struct slot *s = &slots[i];
	uint64_t note = __atomic_load_n(&s->note, __ATOMIC_RELAXED);

	if (s->w && (uint32_t)(note >> 32) == s->gen)
		s->w->ready(s->w, (uint32_t)note);
}

static void run_fds(void)
{
	uint32_t words = (ev.n_used + 63) / 64;

	for (uint32_t k = 0; k < words; k++) {
		uint64_t b = __atomic_load_n(&slot_bits[k], __ATOMIC_RELAXED);

		if (!b)
			continue;
		b = __atomic_exchange_n(&slot_bits[k], 0, __ATOMIC_ACQUIRE);
		for (; b; b &= b - 1)
			run_slot(k * 64 + (uint32_t)__builtin_ctzll(b));
	}
}

void event_timer_want(uint64_t deadline)
{
	if (deadline >= ev.armed_for || ev.timerfd < 0)
		return;
	if (host_timerfd_set(ev.timerfd, deadline) == 0)
		ev.armed_for = deadline;
}

void event_run(void)
{
	/* The flag first: a note that comes later sets it again. */
	if (__atomic_exchange_n(&event_noted, 0, __ATOMIC_SEQ_CST))
		run_fds();
	if (__atomic_load_n(&ev.timer_fired, __ATOMIC_ACQUIRE)) {
		__atomic_store_n(&ev.timer_fired, 0, __ATOMIC_RELAXED);
		ev.armed_for = UINT64_MAX;
		ktimer_run(clock_mono_ns());
	}
	event_timer_want(ktimer_next());
}
