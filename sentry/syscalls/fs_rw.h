/* SPDX-License-Identifier: Apache-2.0 */
/* read(2), write(2) and their variants; lseek(2). */
#ifndef SBX_SENTRY_SYSCALLS_FS_RW_H
#define SBX_SENTRY_SYSCALLS_FS_RW_H

#include "sentry/syscalls/sysargs.h"

int64_t sys_read(struct task *t, const struct sysargs *a);
int64_t sys_write(struct task *t, const struct sysargs *a);
int64_t sys_pread64(struct task *t, const struct sysargs *a);
int64_t sys_pwrite64(struct task *t, const struct sysargs *a);
int64_t sys_readv(struct task *t, const struct sysargs *a);
int64_t sys_writev(struct task *t, const struct sysargs *a);
int64_t sys_preadv(struct task *t, const struct sysargs *a);
int64_t sys_pwritev(struct task *t, const struct sysargs *a);
int64_t sys_preadv2(struct task *t, const struct sysargs *a);
int64_t sys_pwritev2(struct task *t, const struct sysargs *a);
int64_t sys_lseek(struct task *t, const struct sysargs *a);

#endif
