/* SPDX-License-Identifier: Apache-2.0 */
/* Making, ending and waiting for processes. */
#ifndef SBX_SENTRY_SYSCALLS_PROCESS_H
#define SBX_SENTRY_SYSCALLS_PROCESS_H

#include "sentry/syscalls/sysargs.h"

int64_t sys_fork(struct task *t, const struct sysargs *a);
int64_t sys_vfork(struct task *t, const struct sysargs *a);
int64_t sys_clone(struct task *t, const struct sysargs *a);
int64_t sys_clone3(struct task *t, const struct sysargs *a);
int64_t sys_exit(struct task *t, const struct sysargs *a);
int64_t sys_exit_group(struct task *t, const struct sysargs *a);
int64_t sys_wait4(struct task *t, const struct sysargs *a);
int64_t sys_waitid(struct task *t, const struct sysargs *a);
int64_t sys_set_tid_address(struct task *t, const struct sysargs *a);

/* pidfd_open(2) and its kin, pidfds.c */
int64_t sys_pidfd_open(struct task *t, const struct sysargs *a);
int64_t sys_pidfd_send_signal(struct task *t, const struct sysargs *a);
int64_t sys_pidfd_getfd(struct task *t, const struct sysargs *a);
int64_t sys_kcmp(struct task *t, const struct sysargs *a);
int64_t sys_process_vm_readv(struct task *t, const struct sysargs *a);
int64_t sys_process_vm_writev(struct task *t, const struct sysargs *a);

#endif
