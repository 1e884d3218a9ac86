/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks with clang's thread-safety annotations (gcc checks nothing). A lock class is a global token: a field says
 * GUARDED_BY(lc_kernel), a function MUST_HOLD(lc_kernel). There is one so far,
 * in sentry/kernel/kernel.h; a second one comes with its place in an order.
 * The lock spins briefly before it parks, because a parked wake-up costs tens of microseconds on a virtual machine.
 */
#ifndef SBX_BASE_LOCK_H
#define SBX_BASE_LOCK_H

#include <stdbool.h>
#include <stdint.h>

#if defined(__clang__)
#define TSA(x) __attribute__((x))
#else
#define TSA(x)
#endif

#define CAPABILITY(name)   TSA(capability(name))
#define GUARDED_BY(x)      TSA(guarded_by(x))
#define MUST_HOLD(...)     TSA(requires_capability(__VA_ARGS__))
#define MUST_NOT_HOLD(...) TSA(locks_excluded(__VA_ARGS__))
#define ACQUIRES(...)      TSA(acquire_capability(__VA_ARGS__))
#define RELEASES(...)      TSA(release_capability(__VA_ARGS__))
#define LOCK_UNCHECKED     TSA(no_thread_safety_analysis)

/* A futex: 0 free, 1 held, 2 held with sleepers. */
struct CAPABILITY("mutex") sbx_mutex {
	uint32_t word;
};

void sbx_mutex_lock_slow(struct sbx_mutex *m);
void sbx_mutex_unlock_slow(struct sbx_mutex *m);

static inline void sbx_mutex_lock(struct sbx_mutex *m) ACQUIRES(*m) LOCK_UNCHECKED
{
	uint32_t free = 0;

	if (!__atomic_compare_exchange_n(&m->word, &free, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		sbx_mutex_lock_slow(m);
}

static inline void sbx_mutex_unlock(struct sbx_mutex *m) RELEASES(*m) LOCK_UNCHECKED
{
	if (__atomic_exchange_n(&m->word, 0, __ATOMIC_RELEASE) == 2)
		sbx_mutex_unlock_slow(m);
}

#endif
