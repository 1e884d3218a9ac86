/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SBX_SENTRY_SYSCALLS_SIGNAL_H
#define SBX_SENTRY_SYSCALLS_SIGNAL_H

#include <stdint.h>

#include "sentry/syscalls/sysargs.h"

int64_t sys_rt_sigaction(struct task *t, const struct sysargs *a);
int64_t sys_rt_sigprocmask(struct task *t, const struct sysargs *a);
int64_t sys_rt_sigpending(struct task *t, const struct sysargs *a);
int64_t sys_rt_sigtimedwait(struct task *t, const struct sysargs *a);
int64_t sys_rt_sigqueueinfo(struct task *t, const struct sysargs *a);
int64_t sys_rt_tgsigqueueinfo(struct task *t, const struct sysargs *a);
int64_t sys_rt_sigsuspend(struct task *t, const struct sysargs *a);
int64_t sys_rt_sigreturn(struct task *t, const struct sysargs *a);
int64_t sys_sigaltstack(struct task *t, const struct sysargs *a);
int64_t sys_kill(struct task *t, const struct sysargs *a);
int64_t sys_tkill(struct task *t, const struct sysargs *a);
int64_t sys_tgkill(struct task *t, const struct sysargs *a);
int64_t sys_pause(struct task *t, const struct sysargs *a);
int64_t sys_restart_syscall(struct task *t, const struct sysargs *a);
int64_t sys_signalfd(struct task *t, const struct sysargs *a);
int64_t sys_signalfd4(struct task *t, const struct sysargs *a);

#endif
