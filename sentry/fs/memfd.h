/* SPDX-License-Identifier: Apache-2.0 */
/* memfd_create(2) and the seals of fcntl(2). */
#ifndef SBX_SENTRY_FS_MEMFD_H
#define SBX_SENTRY_FS_MEMFD_H

#include <stdint.h>

#include "base/macros.h"

struct cred;
struct file;
struct store;

#define MEMFD_NAME_MAX 249 /* without "memfd:" */

/* Memfds live on @s from then on. Once, at start. */
MUST_CHECK int memfd_init(struct store *s);
/* 0, -EINVAL, or -ENOSYS for huge pages: Linux looks at the flags before the name. */
MUST_CHECK int memfd_check_flags(unsigned flags);
/* A new file without a name in the tree; @name is for /proc only. @flags: MFD_*. */
MUST_CHECK int memfd_create_file(const struct cred *c, const char *name, unsigned flags, struct file **ret);
/* file_ops.seal of tmpfs files: those that are no memfd cannot be sealed. */
int64_t memfd_seal(struct file *f, uint32_t add);

#endif
