/* SPDX-License-Identifier: Apache-2.0 */
/* mkdir(2), unlink(2), rename(2), link(2), symlink(2), mknod(2). */
#ifndef SBX_SENTRY_SYSCALLS_FS_PATH_H
#define SBX_SENTRY_SYSCALLS_FS_PATH_H

#include "sentry/syscalls/sysargs.h"

int64_t sys_mkdir(struct task *t, const struct sysargs *a);
int64_t sys_mkdirat(struct task *t, const struct sysargs *a);
int64_t sys_mknod(struct task *t, const struct sysargs *a);
int64_t sys_mknodat(struct task *t, const struct sysargs *a);
int64_t sys_rmdir(struct task *t, const struct sysargs *a);
int64_t sys_unlink(struct task *t, const struct sysargs *a);
int64_t sys_unlinkat(struct task *t, const struct sysargs *a);
int64_t sys_rename(struct task *t, const struct sysargs *a);
int64_t sys_renameat(struct task *t, const struct sysargs *a);
int64_t sys_renameat2(struct task *t, const struct sysargs *a);
int64_t sys_link(struct task *t, const struct sysargs *a);
int64_t sys_linkat(struct task *t, const struct sysargs *a);
int64_t sys_symlink(struct task *t, const struct sysargs *a);
int64_t sys_symlinkat(struct task *t, const struct sysargs *a);

#endif
