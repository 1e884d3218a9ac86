/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A binary heap of pointers, smallest deadline at 1. Each timer knows its place, so that a cancel is O(log n) and needs
 * no search. The array grows by doubling and is never shrunk: it is bounded by the limits on what holds timers.
 */
#include "sentry/kernel/timer.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "sentry/kernel/kernel.h"

static struct ktimer **heap; /* [0] is not used */
static uint32_t heap_n, heap_cap;

static void heap_put(uint32_t i, struct ktimer *kt)
{
	heap[i] = kt;
	kt->index = i;
}

static void sift_up(uint32_t i, struct ktimer *kt)
{
	while (i > 1 && heap[i / 2]->when > kt->when) {
		heap_put(i, heap[i / 2]);
		i /= 2;
	}
	heap_put(i, kt);
}

static void sift_down(uint32_t i, struct ktimer *kt)
{
	while (2 * i <= heap_n) {
		uint32_t c = 2 * i;

		if (c < heap_n && heap[c + 1]->when < heap[c]->when)
			c++;
		if (heap[c]->when >= kt->when)
			break;
		heap_put(i, heap[c]);
		i = c;
	}
	heap_put(i, kt);
}

/* Finds @kt its place, starting from @i. */
static void sift(uint32_t i, struct ktimer *kt)
{
	if (i > 1 && heap[i / 2]->when > kt->when)
		sift_up(i, kt);
	else
		sift_down(i, kt);
}

void ktimer_init(struct ktimer *kt, void (*fire)(struct ktimer *kt))
{
	kt->when = 0;
	kt->index = 0;
	kt->fire = fire;
}

static int heap_grow(void)
{
	uint32_t cap = heap_cap ? heap_cap * 2 : 64;
	struct ktimer **p;

	if (cap < heap_cap)
		return -ENOMEM;
	p = realloc(heap, (size_t)cap * sizeof(*p));
	if (!p)
		return -ENOMEM;
	heap = p;
	heap_cap = cap;
	return 0;
}

int ktimer_arm(struct ktimer *kt, uint64_t when)
{
	kt->when = when;
	if (kt->index) {
		sift(kt->index, kt);
		return 0;
	}
	if (heap_n + 1 >= heap_cap && heap_grow() < 0)
		return -ENOMEM;
	heap_n++;
	kernel.counters.ktimers++;
	sift_up(heap_n, kt);
	return 0;
}

void ktimer_cancel(struct ktimer *kt)
{
	uint32_t i = kt->index;
	struct ktimer *last;

	if (!i)
		return;
	kt->index = 0;
	last = heap[heap_n--];
	kernel.counters.ktimers--;
	if (last != kt)
		sift(i, last);
}

uint64_t ktimer_next(void)
{
	return heap_n ? heap[1]->when : UINT64_MAX;
}

uint64_t ktimer_run(uint64_t now)
{
	/* A timer armed again by its callback for a time that has passed waits for the next round. */
	uint32_t budget = heap_n;

	while (heap_n && heap[1]->when <= now && budget--) {
		struct ktimer *kt = heap[1];

		ktimer_cancel(kt);
		kt->fire(kt);
	}
	return ktimer_next();
}

static uint64_t clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts); /* the vDSO: no host call */
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

uint64_t clock_mono_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

uint64_t clock_real_ns(void)
{
	return clock_ns(CLOCK_REALTIME);
}

uint64_t clock_boot_ns(void)
{
	return clock_ns(CLOCK_BOOTTIME);
}
