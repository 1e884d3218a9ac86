/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SBX_SENTRY_SYSCALLS_PRCTL_H
#define SBX_SENTRY_SYSCALLS_PRCTL_H

#include "sentry/syscalls/sysargs.h"

int64_t sys_prctl(struct task *t, const struct sysargs *a);
int64_t sys_arch_prctl(struct task *t, const struct sysargs *a);

#endif
