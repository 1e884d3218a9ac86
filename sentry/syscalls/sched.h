/* SPDX-License-Identifier: Apache-2.0 */
/* Scheduling attributes are kept and reported; the host schedules guest threads as it likes. */
#ifndef SBX_SENTRY_SYSCALLS_SCHED_H
#define SBX_SENTRY_SYSCALLS_SCHED_H

#include "sentry/syscalls/sysargs.h"

int64_t sys_sched_yield(struct task *t, const struct sysargs *a);
int64_t sys_sched_getaffinity(struct task *t, const struct sysargs *a);
int64_t sys_sched_setaffinity(struct task *t, const struct sysargs *a);
int64_t sys_sched_getscheduler(struct task *t, const struct sysargs *a);
int64_t sys_sched_setscheduler(struct task *t, const struct sysargs *a);
int64_t sys_sched_getparam(struct task *t, const struct sysargs *a);
int64_t sys_sched_setparam(struct task *t, const struct sysargs *a);
int64_t sys_sched_getattr(struct task *t, const struct sysargs *a);
int64_t sys_sched_setattr(struct task *t, const struct sysargs *a);
int64_t sys_sched_get_priority_max(struct task *t, const struct sysargs *a);
int64_t sys_sched_get_priority_min(struct task *t, const struct sysargs *a);
int64_t sys_sched_rr_get_interval(struct task *t, const struct sysargs *a);
int64_t sys_getpriority(struct task *t, const struct sysargs *a);
int64_t sys_setpriority(struct task *t, const struct sysargs *a);
int64_t sys_getcpu(struct task *t, const struct sysargs *a);
int64_t sys_ioprio_get(struct task *t, const struct sysargs *a);
int64_t sys_ioprio_set(struct task *t, const struct sysargs *a);
int64_t sys_membarrier(struct task *t, const struct sysargs *a);

#endif
