/* SPDX-License-Identifier: Apache-2.0 */
/* memfd_create(2) and the seals of fcntl(2). */
#ifndef SBX_SENTRY_FS_MEMFD_H
#define SBX_SENTRY_FS_MEMFD_H

#include <stdint.h>

#include "base/macros.h"

struct cred;
struct file;
struct store;
struct task;

#define MEMFD_NAME_MAX 249 /* without "memfd:" */

/* Memfds live on @s from then on. Once, at start. */
MUST_CHECK int memfd_init(struct store *s);
/* 0, -EINVAL, or -ENOSYS for huge pages: Linux looks at the flags before the name. */
MUST_CHECK int memfd_check_flags(unsigned flags);
/* A new file without a name in the tree; @name is for /proc only. @flags: MFD_*. */
MUST_CHECK int memfd_create_file(const struct cred *c, const char *name, unsigned flags, struct file **ret);
/* fcntl(2) F_ADD_SEALS and F_GET_SEALS on any file. */
int64_t memfd_fcntl(struct task *t, struct file *f, int cmd, uint64_t arg);

#endif
