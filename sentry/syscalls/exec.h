/* SPDX-License-Identifier: Apache-2.0 */
/* execve(2), execveat(2). */
#ifndef SBX_SENTRY_SYSCALLS_EXEC_H
#define SBX_SENTRY_SYSCALLS_EXEC_H

#include "sentry/syscalls/sysargs.h"

int64_t sys_execve(struct task *t, const struct sysargs *a);
int64_t sys_execveat(struct task *t, const struct sysargs *a);

#endif
