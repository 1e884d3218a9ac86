/* SPDX-License-Identifier: Apache-2.0 */
/* getdents(2), chdir(2), getcwd(2), chroot(2), umask(2). */
#ifndef SBX_SENTRY_SYSCALLS_FS_DIR_H
#define SBX_SENTRY_SYSCALLS_FS_DIR_H

#include "sentry/syscalls/sysargs.h"

int64_t sys_getdents(struct task *t, const struct sysargs *a);
int64_t sys_getdents64(struct task *t, const struct sysargs *a);
int64_t sys_chdir(struct task *t, const struct sysargs *a);
int64_t sys_fchdir(struct task *t, const struct sysargs *a);
int64_t sys_getcwd(struct task *t, const struct sysargs *a);
int64_t sys_chroot(struct task *t, const struct sysargs *a);
int64_t sys_umask(struct task *t, const struct sysargs *a);

#endif
