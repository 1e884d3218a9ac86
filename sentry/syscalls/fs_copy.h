/* SPDX-License-Identifier: Apache-2.0 */
/* sendfile(2), copy_file_range(2). */
#ifndef SBX_SENTRY_SYSCALLS_FS_COPY_H
#define SBX_SENTRY_SYSCALLS_FS_COPY_H

#include "sentry/syscalls/sysargs.h"

int64_t sys_sendfile(struct task *t, const struct sysargs *a);
int64_t sys_copy_file_range(struct task *t, const struct sysargs *a);

#endif
