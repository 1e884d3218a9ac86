/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SBX_BASE_MACROS_H
#define SBX_BASE_MACROS_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define ARRAY_SIZE(a)         (sizeof(a) / sizeof((a)[0]))
/* For what runs on a stack that the address sanitizer does not know. */
#define NO_ASAN __attribute__((no_sanitize("address")))
#define MUST_CHECK            __attribute__((warn_unused_result))
#define PRINTF(fmt, args)     __attribute__((format(printf, fmt, args)))
#define NORETURN              __attribute__((noreturn))
/* Drops the result of a MUST_CHECK function; the reason stands beside it. */
#define DISCARD(expr)         ({ __auto_type discard_ = (expr); (void)discard_; })
#define UNUSED                __attribute__((unused))
#define likely(x)             __builtin_expect(!!(x), 1)
#define unlikely(x)           __builtin_expect(!!(x), 0)

#define container_of(ptr, type, member) \
	((type *)((char *)(ptr) - offsetof(type, member)))

#define MIN(a, b) ({ __typeof__(a) min_a_ = (a); __typeof__(b) min_b_ = (b); min_a_ < min_b_ ? min_a_ : min_b_; })
#define MAX(a, b) ({ __typeof__(a) max_a_ = (a); __typeof__(b) max_b_ = (b); max_a_ > max_b_ ? max_a_ : max_b_; })

/* Powers of two only; the caller has checked for overflow. */
#define ROUND_DOWN(x, to)     ((x) & ~((__typeof__(x))(to) - 1))
#define ROUND_UP(x, to)       ROUND_DOWN((x) + ((__typeof__(x))(to) - 1), to)

#define NSEC_PER_SEC          1000000000ull
#define PAGE_SIZE             4096ull
#define PAGE_SHIFT            12

#endif
