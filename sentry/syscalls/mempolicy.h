/* SPDX-License-Identifier: Apache-2.0 */
/* NUMA policy: the guest sees one node. */
#ifndef SBX_SENTRY_SYSCALLS_MEMPOLICY_H
#define SBX_SENTRY_SYSCALLS_MEMPOLICY_H

#include "sentry/syscalls/sysargs.h"

int64_t sys_mbind(struct task *t, const struct sysargs *a);
int64_t sys_set_mempolicy(struct task *t, const struct sysargs *a);
int64_t sys_get_mempolicy(struct task *t, const struct sysargs *a);

#endif
