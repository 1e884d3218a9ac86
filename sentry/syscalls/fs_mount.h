/* SPDX-License-Identifier: Apache-2.0 */
/* mount(2) and file handles, which the sandbox does not give. */
#ifndef SBX_SENTRY_SYSCALLS_FS_MOUNT_H
#define SBX_SENTRY_SYSCALLS_FS_MOUNT_H

#include "sentry/syscalls/sysargs.h"

int64_t sys_mount(struct task *t, const struct sysargs *a);
int64_t sys_umount2(struct task *t, const struct sysargs *a);
int64_t sys_pivot_root(struct task *t, const struct sysargs *a);
int64_t sys_name_to_handle_at(struct task *t, const struct sysargs *a);
int64_t sys_open_by_handle_at(struct task *t, const struct sysargs *a);

#endif
