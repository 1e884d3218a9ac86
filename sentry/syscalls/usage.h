/* SPDX-License-Identifier: Apache-2.0 */
/* Limits and usage: getrlimit(2), getrusage(2), times(2). */
#ifndef SBX_SENTRY_SYSCALLS_USAGE_H
#define SBX_SENTRY_SYSCALLS_USAGE_H

#include "sentry/syscalls/sysargs.h"

struct linux_rusage;

void rusage_fill(struct linux_rusage *ru, uint64_t utime_ns, uint64_t stime_ns, uint64_t max_rss_kib);

int64_t sys_getrlimit(struct task *t, const struct sysargs *a);
int64_t sys_setrlimit(struct task *t, const struct sysargs *a);
int64_t sys_prlimit64(struct task *t, const struct sysargs *a);
int64_t sys_getrusage(struct task *t, const struct sysargs *a);
int64_t sys_times(struct task *t, const struct sysargs *a);
int64_t sys_sysinfo(struct task *t, const struct sysargs *a);

#endif
