/* SPDX-License-Identifier: Apache-2.0 */
/* Extended attributes with the checks of xattr(7); names and values are kernel memory. */
#ifndef SBX_SENTRY_VFS_XATTR_H
#define SBX_SENTRY_VFS_XATTR_H

#include <stddef.h>
#include <sys/types.h>

#include "base/macros.h"

struct path;
struct task;

#define XATTR_NAME_MAX_LINUX 255
#define XATTR_SIZE_MAX_LINUX 65536u /* of a value, and of a list */

/* With @size 0 the length. -ENODATA, -ERANGE. */
MUST_CHECK ssize_t vfs_getxattr(struct task *t, const struct path *p, const char *name, void *buf, size_t size);
MUST_CHECK int vfs_setxattr(struct task *t, const struct path *p, const char *name, const void *buf, size_t size,
			    int flags);
MUST_CHECK ssize_t vfs_listxattr(struct task *t, const struct path *p, char *buf, size_t size);
MUST_CHECK int vfs_removexattr(struct task *t, const struct path *p, const char *name);

#endif
