/* SPDX-License-Identifier: Apache-2.0 */
/* fallocate(2), fsync(2), sync(2), fadvise64(2). */
#ifndef SBX_SENTRY_SYSCALLS_FS_SYNC_H
#define SBX_SENTRY_SYSCALLS_FS_SYNC_H

#include "sentry/syscalls/sysargs.h"

int64_t sys_fallocate(struct task *t, const struct sysargs *a);
int64_t sys_fsync(struct task *t, const struct sysargs *a);
int64_t sys_fdatasync(struct task *t, const struct sysargs *a);
int64_t sys_sync(struct task *t, const struct sysargs *a);
int64_t sys_syncfs(struct task *t, const struct sysargs *a);
int64_t sys_sync_file_range(struct task *t, const struct sysargs *a);
int64_t sys_fadvise64(struct task *t, const struct sysargs *a);
int64_t sys_readahead(struct task *t, const struct sysargs *a);

#endif
