/* SPDX-License-Identifier: Apache-2.0 */
/* socket(2) and its family. */
#ifndef SBX_SENTRY_SYSCALLS_SOCKET_H
#define SBX_SENTRY_SYSCALLS_SOCKET_H

#include "sentry/syscalls/sysargs.h"

int64_t sys_socket(struct task *t, const struct sysargs *a);
int64_t sys_socketpair(struct task *t, const struct sysargs *a);
int64_t sys_bind(struct task *t, const struct sysargs *a);
int64_t sys_connect(struct task *t, const struct sysargs *a);
int64_t sys_listen(struct task *t, const struct sysargs *a);
int64_t sys_accept(struct task *t, const struct sysargs *a);
int64_t sys_accept4(struct task *t, const struct sysargs *a);
int64_t sys_getsockname(struct task *t, const struct sysargs *a);
int64_t sys_getpeername(struct task *t, const struct sysargs *a);
int64_t sys_shutdown(struct task *t, const struct sysargs *a);
int64_t sys_setsockopt(struct task *t, const struct sysargs *a);
int64_t sys_getsockopt(struct task *t, const struct sysargs *a);
int64_t sys_sendto(struct task *t, const struct sysargs *a);
int64_t sys_recvfrom(struct task *t, const struct sysargs *a);
int64_t sys_sendmsg(struct task *t, const struct sysargs *a);
int64_t sys_recvmsg(struct task *t, const struct sysargs *a);
int64_t sys_sendmmsg(struct task *t, const struct sysargs *a);
int64_t sys_recvmmsg(struct task *t, const struct sysargs *a);

#endif
