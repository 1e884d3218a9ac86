/* SPDX-License-Identifier: Apache-2.0 */
/* Memory mappings. */
#ifndef SBX_SENTRY_SYSCALLS_MM_H
#define SBX_SENTRY_SYSCALLS_MM_H

#include "sentry/syscalls/sysargs.h"

int64_t sys_mmap(struct task *t, const struct sysargs *a);
int64_t sys_munmap(struct task *t, const struct sysargs *a);
int64_t sys_mprotect(struct task *t, const struct sysargs *a);
int64_t sys_brk(struct task *t, const struct sysargs *a);
int64_t sys_mremap(struct task *t, const struct sysargs *a);
int64_t sys_remap_file_pages(struct task *t, const struct sysargs *a);
int64_t sys_madvise(struct task *t, const struct sysargs *a);
int64_t sys_msync(struct task *t, const struct sysargs *a);
int64_t sys_mincore(struct task *t, const struct sysargs *a);
int64_t sys_mlock(struct task *t, const struct sysargs *a);
int64_t sys_mlock2(struct task *t, const struct sysargs *a);
int64_t sys_munlock(struct task *t, const struct sysargs *a);
int64_t sys_mlockall(struct task *t, const struct sysargs *a);
int64_t sys_munlockall(struct task *t, const struct sysargs *a);
int64_t sys_pkey_mprotect(struct task *t, const struct sysargs *a);
int64_t sys_pkey_alloc(struct task *t, const struct sysargs *a);
int64_t sys_pkey_free(struct task *t, const struct sysargs *a);
int64_t sys_userfaultfd(struct task *t, const struct sysargs *a);

#endif
