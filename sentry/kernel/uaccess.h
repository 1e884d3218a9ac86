/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Guest memory. Copy once, check the copy, use the copy: no pointer into guest memory exists, and the same bytes are
 * not read twice. All return 0 (or a length) or -EFAULT; also when the task died meanwhile.
 */
#ifndef SBX_SENTRY_KERNEL_UACCESS_H
#define SBX_SENTRY_KERNEL_UACCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/macros.h"
#include "platform/platform.h"

struct task;

/* All or nothing. n == 0 succeeds without touching memory. */
MUST_CHECK int copy_in(struct task *t, uaddr_t src, void *dst, size_t n);
MUST_CHECK int copy_out(struct task *t, uaddr_t dst, const void *src, size_t n);

/* As much as can be reached: bytes copied (> 0 unless n == 0) or -EFAULT. For read(2) and write(2) buffers. */
MUST_CHECK ssize_t copy_in_part(struct task *t, uaddr_t src, void *dst, size_t n);
MUST_CHECK ssize_t copy_out_part(struct task *t, uaddr_t dst, const void *src, size_t n);

/* A NUL-terminated string with its NUL into dst[cap]. Returns its length without the NUL, -EFAULT, or -ENAMETOOLONG
 * when there is no NUL within cap bytes. */
MUST_CHECK ssize_t copy_in_str(struct task *t, uaddr_t src, char *dst, size_t cap);

/* Zeroes guest memory. */
MUST_CHECK int clear_user(struct task *t, uaddr_t dst, size_t n);

/* The host took the process away: what looks like a bad address is the end, which will be told (TRAP_EXITED). */
bool user_memory_gone(struct task *t);

#endif
