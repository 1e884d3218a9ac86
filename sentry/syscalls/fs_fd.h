/* SPDX-License-Identifier: Apache-2.0 */
/* dup(2), fcntl(2), ioctl(2), flock(2). */
#ifndef SBX_SENTRY_SYSCALLS_FS_FD_H
#define SBX_SENTRY_SYSCALLS_FS_FD_H

#include "sentry/syscalls/sysargs.h"

int64_t sys_dup(struct task *t, const struct sysargs *a);
int64_t sys_dup2(struct task *t, const struct sysargs *a);
int64_t sys_dup3(struct task *t, const struct sysargs *a);
int64_t sys_fcntl(struct task *t, const struct sysargs *a);
int64_t sys_ioctl(struct task *t, const struct sysargs *a);
int64_t sys_flock(struct task *t, const struct sysargs *a);

#endif
