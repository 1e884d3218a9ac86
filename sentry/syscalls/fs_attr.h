/* SPDX-License-Identifier: Apache-2.0 */
/* chmod(2), chown(2), utimensat(2), truncate(2). */
#ifndef SBX_SENTRY_SYSCALLS_FS_ATTR_H
#define SBX_SENTRY_SYSCALLS_FS_ATTR_H

#include "sentry/syscalls/sysargs.h"

int64_t sys_chmod(struct task *t, const struct sysargs *a);
int64_t sys_fchmod(struct task *t, const struct sysargs *a);
int64_t sys_fchmodat(struct task *t, const struct sysargs *a);
int64_t sys_fchmodat2(struct task *t, const struct sysargs *a);
int64_t sys_chown(struct task *t, const struct sysargs *a);
int64_t sys_fchown(struct task *t, const struct sysargs *a);
int64_t sys_lchown(struct task *t, const struct sysargs *a);
int64_t sys_fchownat(struct task *t, const struct sysargs *a);
int64_t sys_utime(struct task *t, const struct sysargs *a);
int64_t sys_utimes(struct task *t, const struct sysargs *a);
int64_t sys_utimensat(struct task *t, const struct sysargs *a);
int64_t sys_futimesat(struct task *t, const struct sysargs *a);
int64_t sys_truncate(struct task *t, const struct sysargs *a);
int64_t sys_ftruncate(struct task *t, const struct sysargs *a);

#endif
