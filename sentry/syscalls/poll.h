/* SPDX-License-Identifier: Apache-2.0 */
/* poll(2), select(2), epoll(7), pipe(2), eventfd(2). */
#ifndef SBX_SENTRY_SYSCALLS_POLL_H
#define SBX_SENTRY_SYSCALLS_POLL_H

#include "sentry/syscalls/sysargs.h"

int64_t sys_poll(struct task *t, const struct sysargs *a);
int64_t sys_ppoll(struct task *t, const struct sysargs *a);
int64_t sys_select(struct task *t, const struct sysargs *a);
int64_t sys_pselect6(struct task *t, const struct sysargs *a);
int64_t sys_epoll_create(struct task *t, const struct sysargs *a);
int64_t sys_epoll_create1(struct task *t, const struct sysargs *a);
int64_t sys_epoll_ctl(struct task *t, const struct sysargs *a);
int64_t sys_epoll_wait(struct task *t, const struct sysargs *a);
int64_t sys_epoll_pwait(struct task *t, const struct sysargs *a);
int64_t sys_epoll_pwait2(struct task *t, const struct sysargs *a);
int64_t sys_pipe(struct task *t, const struct sysargs *a);
int64_t sys_pipe2(struct task *t, const struct sysargs *a);
int64_t sys_eventfd(struct task *t, const struct sysargs *a);
int64_t sys_eventfd2(struct task *t, const struct sysargs *a);

#endif
