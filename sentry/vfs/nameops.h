/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes of the name space on behalf of a task, with all checks. Paths are kernel strings; dirfd as in *at(2). 0 or
 * -errno as the man pages say.
 */
#ifndef SBX_SENTRY_VFS_NAMEOPS_H
#define SBX_SENTRY_VFS_NAMEOPS_H

#include <stdint.h>

#include "base/macros.h"

struct path;
struct task;

MUST_CHECK int vfs_mkdir(struct task *t, int dirfd, const char *path, uint32_t mode);
/* @mode has the type: S_IFREG, S_IFIFO, S_IFSOCK. Device nodes: -EPERM. @out: the new place, for bind(2); or NULL. */
MUST_CHECK int vfs_mknod(struct task *t, int dirfd, const char *path, uint32_t mode, uint64_t rdev, struct path *out);
MUST_CHECK int vfs_symlink(struct task *t, const char *target, int dirfd, const char *path);
/* @old: what gets another name; its references stay the caller's. */
MUST_CHECK int vfs_link(struct task *t, const struct path *old, int dirfd, const char *path);
MUST_CHECK int vfs_unlink(struct task *t, int dirfd, const char *path);
MUST_CHECK int vfs_rmdir(struct task *t, int dirfd, const char *path);
MUST_CHECK int vfs_rename(struct task *t, int odirfd, const char *opath, int ndirfd, const char *npath, unsigned flags);

#endif
