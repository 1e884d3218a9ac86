/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SBX_SENTRY_SYSCALLS_TIMER_H
#define SBX_SENTRY_SYSCALLS_TIMER_H

#include <stdint.h>

#include "sentry/syscalls/sysargs.h"

int64_t sys_alarm(struct task *t, const struct sysargs *a);
int64_t sys_getitimer(struct task *t, const struct sysargs *a);
int64_t sys_setitimer(struct task *t, const struct sysargs *a);
int64_t sys_timer_create(struct task *t, const struct sysargs *a);
int64_t sys_timer_settime(struct task *t, const struct sysargs *a);
int64_t sys_timer_gettime(struct task *t, const struct sysargs *a);
int64_t sys_timer_getoverrun(struct task *t, const struct sysargs *a);
int64_t sys_timer_delete(struct task *t, const struct sysargs *a);
int64_t sys_timerfd_create(struct task *t, const struct sysargs *a);
int64_t sys_timerfd_settime(struct task *t, const struct sysargs *a);
int64_t sys_timerfd_gettime(struct task *t, const struct sysargs *a);

#endif
