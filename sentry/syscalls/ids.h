/* SPDX-License-Identifier: Apache-2.0 */
/* Who a process is: numbers, groups, credentials, capabilities. */
#ifndef SBX_SENTRY_SYSCALLS_IDS_H
#define SBX_SENTRY_SYSCALLS_IDS_H

#include "sentry/syscalls/sysargs.h"

int64_t sys_getpid(struct task *t, const struct sysargs *a);
int64_t sys_gettid(struct task *t, const struct sysargs *a);
int64_t sys_getppid(struct task *t, const struct sysargs *a);
int64_t sys_getpgrp(struct task *t, const struct sysargs *a);
int64_t sys_getpgid(struct task *t, const struct sysargs *a);
int64_t sys_setpgid(struct task *t, const struct sysargs *a);
int64_t sys_getsid(struct task *t, const struct sysargs *a);
int64_t sys_setsid(struct task *t, const struct sysargs *a);

int64_t sys_getuid(struct task *t, const struct sysargs *a);
int64_t sys_geteuid(struct task *t, const struct sysargs *a);
int64_t sys_getgid(struct task *t, const struct sysargs *a);
int64_t sys_getegid(struct task *t, const struct sysargs *a);
int64_t sys_getresuid(struct task *t, const struct sysargs *a);
int64_t sys_getresgid(struct task *t, const struct sysargs *a);
int64_t sys_setuid(struct task *t, const struct sysargs *a);
int64_t sys_setgid(struct task *t, const struct sysargs *a);
int64_t sys_setreuid(struct task *t, const struct sysargs *a);
int64_t sys_setregid(struct task *t, const struct sysargs *a);
int64_t sys_setresuid(struct task *t, const struct sysargs *a);
int64_t sys_setresgid(struct task *t, const struct sysargs *a);
int64_t sys_setfsuid(struct task *t, const struct sysargs *a);
int64_t sys_setfsgid(struct task *t, const struct sysargs *a);
int64_t sys_getgroups(struct task *t, const struct sysargs *a);
int64_t sys_setgroups(struct task *t, const struct sysargs *a);
int64_t sys_capget(struct task *t, const struct sysargs *a);
int64_t sys_capset(struct task *t, const struct sysargs *a);

/* Gives @t the changed copy @c (consumed), as commit_creds() of Linux: a change of identity ends dumpability and the
 * parent-death signal. */
struct cred;
void task_commit_cred(struct task *t, struct cred *c);

#endif
