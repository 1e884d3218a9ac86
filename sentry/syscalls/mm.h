/* SPDX-License-Identifier: Apache-2.0 */
/* Memory mappings. */
#ifndef SBX_SENTRY_SYSCALLS_MM_H
#define SBX_SENTRY_SYSCALLS_MM_H

#include "sentry/syscalls/sysargs.h"

int64_t sys_mmap(struct task *t, const struct sysargs *a);
int64_t sys_munmap(struct task *t, const struct sysargs *a);
int64_t sys_mprotect(struct task *t, const struct sysargs *a);
int64_t sys_brk(struct task *t, const struct sysargs *a);

#endif
