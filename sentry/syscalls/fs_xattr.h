/* SPDX-License-Identifier: Apache-2.0 */
/* Extended attributes: xattr(7). */
#ifndef SBX_SENTRY_SYSCALLS_FS_XATTR_H
#define SBX_SENTRY_SYSCALLS_FS_XATTR_H

#include "sentry/syscalls/sysargs.h"

int64_t sys_getxattr(struct task *t, const struct sysargs *a);
int64_t sys_lgetxattr(struct task *t, const struct sysargs *a);
int64_t sys_fgetxattr(struct task *t, const struct sysargs *a);
int64_t sys_setxattr(struct task *t, const struct sysargs *a);
int64_t sys_lsetxattr(struct task *t, const struct sysargs *a);
int64_t sys_fsetxattr(struct task *t, const struct sysargs *a);
int64_t sys_listxattr(struct task *t, const struct sysargs *a);
int64_t sys_llistxattr(struct task *t, const struct sysargs *a);
int64_t sys_flistxattr(struct task *t, const struct sysargs *a);
int64_t sys_removexattr(struct task *t, const struct sysargs *a);
int64_t sys_lremovexattr(struct task *t, const struct sysargs *a);
int64_t sys_fremovexattr(struct task *t, const struct sysargs *a);

#endif
