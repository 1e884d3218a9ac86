/* SPDX-License-Identifier: Apache-2.0 */
/* Names, randomness, and what an unprivileged process is refused. */
#ifndef SBX_SENTRY_SYSCALLS_MISC_H
#define SBX_SENTRY_SYSCALLS_MISC_H

#include "sentry/syscalls/sysargs.h"

int64_t sys_uname(struct task *t, const struct sysargs *a);
int64_t sys_sethostname(struct task *t, const struct sysargs *a);
int64_t sys_setdomainname(struct task *t, const struct sysargs *a);
int64_t sys_getrandom(struct task *t, const struct sysargs *a);
int64_t sys_personality(struct task *t, const struct sysargs *a);
int64_t sys_syslog(struct task *t, const struct sysargs *a);
int64_t sys_unshare(struct task *t, const struct sysargs *a);
int64_t sys_setns(struct task *t, const struct sysargs *a);
int64_t sys_seccomp(struct task *t, const struct sysargs *a);

/* Calls with one answer: */
int64_t sys_refuse_eperm(struct task *t, const struct sysargs *a);
int64_t sys_refuse_enosys(struct task *t, const struct sysargs *a);
int64_t sys_refuse_eopnotsupp(struct task *t, const struct sysargs *a);

#endif
