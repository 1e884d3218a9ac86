/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SBX_SENTRY_SYSCALLS_FUTEX_H
#define SBX_SENTRY_SYSCALLS_FUTEX_H

#include <stdint.h>

#include "sentry/syscalls/sysargs.h"

int64_t sys_futex(struct task *t, const struct sysargs *a);
int64_t sys_futex_waitv(struct task *t, const struct sysargs *a);
int64_t sys_set_robust_list(struct task *t, const struct sysargs *a);
int64_t sys_get_robust_list(struct task *t, const struct sysargs *a);

#endif
