/* SPDX-License-Identifier: Apache-2.0 */
/* open(2), openat2(2), close(2). */
#ifndef SBX_SENTRY_SYSCALLS_FS_OPEN_H
#define SBX_SENTRY_SYSCALLS_FS_OPEN_H

#include "sentry/syscalls/sysargs.h"

int64_t sys_open(struct task *t, const struct sysargs *a);
int64_t sys_openat(struct task *t, const struct sysargs *a);
int64_t sys_openat2(struct task *t, const struct sysargs *a);
int64_t sys_creat(struct task *t, const struct sysargs *a);
int64_t sys_close(struct task *t, const struct sysargs *a);
int64_t sys_close_range(struct task *t, const struct sysargs *a);

#endif
