/* SPDX-License-Identifier: Apache-2.0 */
/* stat(2), statx(2), access(2), statfs(2), readlink(2). */
#ifndef SBX_SENTRY_SYSCALLS_FS_STAT_H
#define SBX_SENTRY_SYSCALLS_FS_STAT_H

#include "sentry/syscalls/sysargs.h"

int64_t sys_stat(struct task *t, const struct sysargs *a);
int64_t sys_lstat(struct task *t, const struct sysargs *a);
int64_t sys_fstat(struct task *t, const struct sysargs *a);
int64_t sys_newfstatat(struct task *t, const struct sysargs *a);
int64_t sys_statx(struct task *t, const struct sysargs *a);
int64_t sys_access(struct task *t, const struct sysargs *a);
int64_t sys_faccessat(struct task *t, const struct sysargs *a);
int64_t sys_faccessat2(struct task *t, const struct sysargs *a);
int64_t sys_statfs(struct task *t, const struct sysargs *a);
int64_t sys_fstatfs(struct task *t, const struct sysargs *a);
int64_t sys_ustat(struct task *t, const struct sysargs *a);
int64_t sys_readlink(struct task *t, const struct sysargs *a);
int64_t sys_readlinkat(struct task *t, const struct sysargs *a);

#endif
