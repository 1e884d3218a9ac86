/* SPDX-License-Identifier: Apache-2.0 */
/* Permission checks beyond vfs_permission(): what may be made, removed, changed. */
#ifndef SBX_SENTRY_VFS_PERM_H
#define SBX_SENTRY_VFS_PERM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/macros.h"
#include "sentry/vfs/dentry.h"

struct cred;

bool inode_owner_or_cap(const struct cred *c, const struct inode *in); /* CAP_FOWNER */
MUST_CHECK int path_want_write(const struct path *p);                  /* -EROFS */
MUST_CHECK int vfs_may_create(const struct cred *c, const struct path *dir);
/* Errors in Linux's order: -EACCES, -EPERM (sticky), -ENOTDIR, -EISDIR. */
MUST_CHECK int vfs_may_delete(const struct cred *c, const struct path *dir, const struct dentry *victim, bool want_dir);

/* The mode and group of something new in @dir (@mode has the type): set-group-ID directories. */
uint32_t inode_new_mode(const struct cred *c, const struct inode *dir, uint32_t mode, gid_t *gid);
/* The permission bits of @in without set-user-ID and set-group-ID, as a write or chown leaves a regular file. */
uint32_t inode_mode_without_suid(const struct inode *in);

#endif
