/* SPDX-License-Identifier: Apache-2.0 */
/* A reference count: starts at 1, saturates instead of wrapping, and ends the process on 0 -> 1. */
#ifndef SBX_BASE_REF_H
#define SBX_BASE_REF_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bug.h"

struct ref {
	uint32_t n;
};

#define REF_SATURATED UINT32_MAX

static inline void ref_init(struct ref *r)
{
	__atomic_store_n(&r->n, 1, __ATOMIC_RELAXED);
}

static inline void ref_get(struct ref *r)
{
	uint32_t old = __atomic_load_n(&r->n, __ATOMIC_RELAXED);

	do {
		BUG_ON(old == 0);
		if (old == REF_SATURATED)
			return;
	} while (!__atomic_compare_exchange_n(&r->n, &old, old + 1, true, __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
}

/* Returns true when the last reference went: the caller then frees the object. */
static inline bool ref_put(struct ref *r)
{
	uint32_t old = __atomic_load_n(&r->n, __ATOMIC_RELAXED);

	do {
		BUG_ON(old == 0);
		if (old == REF_SATURATED)
			return false;
	} while (!__atomic_compare_exchange_n(&r->n, &old, old - 1, true, __ATOMIC_ACQ_REL,
					      __ATOMIC_RELAXED));
	return old == 1;
}

static inline uint32_t ref_count(const struct ref *r)
{
	return __atomic_load_n(&r->n, __ATOMIC_RELAXED);
}

#endif
