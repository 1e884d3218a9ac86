/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SBX_SENTRY_SYSCALLS_TIME_H
#define SBX_SENTRY_SYSCALLS_TIME_H

#include <stdint.h>

#include "sentry/syscalls/sysargs.h"

int64_t sys_nanosleep(struct task *t, const struct sysargs *a);
int64_t sys_clock_nanosleep(struct task *t, const struct sysargs *a);
int64_t sys_clock_gettime(struct task *t, const struct sysargs *a);
int64_t sys_clock_getres(struct task *t, const struct sysargs *a);
int64_t sys_clock_settime(struct task *t, const struct sysargs *a);
int64_t sys_clock_adjtime(struct task *t, const struct sysargs *a);
int64_t sys_adjtimex(struct task *t, const struct sysargs *a);
int64_t sys_gettimeofday(struct task *t, const struct sysargs *a);
int64_t sys_settimeofday(struct task *t, const struct sysargs *a);
int64_t sys_time(struct task *t, const struct sysargs *a);

#endif
