/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SBX_SENTRY_SYSCALLS_MEMFD_H
#define SBX_SENTRY_SYSCALLS_MEMFD_H

#include <stdint.h>

struct sysargs;
struct task;

int64_t sys_memfd_create(struct task *t, const struct sysargs *a);

#endif
