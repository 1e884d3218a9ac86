/* SPDX-License-Identifier: Apache-2.0 */
/* splice(2), tee(2), vmsplice(2). */
#ifndef SBX_SENTRY_SYSCALLS_FS_SPLICE_H
#define SBX_SENTRY_SYSCALLS_FS_SPLICE_H

#include "sentry/syscalls/sysargs.h"

int64_t sys_splice(struct task *t, const struct sysargs *a);
int64_t sys_tee(struct task *t, const struct sysargs *a);
int64_t sys_vmsplice(struct task *t, const struct sysargs *a);

#endif
