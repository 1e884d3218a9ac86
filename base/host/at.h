/* SPDX-License-Identifier: Apache-2.0 */
/* Host calls on names below a directory fd, and on whole files, that return -errno. Arguments as in the man pages. */
#ifndef SBX_BASE_HOST_AT_H
#define SBX_BASE_HOST_AT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/types.h>

#include "base/macros.h"

MUST_CHECK int host_statx(int dir, const char *name, int flags, unsigned mask, struct statx *stx);
MUST_CHECK int host_fstatfs(int fd, struct statfs *st);
MUST_CHECK ssize_t host_readlinkat(int dir, const char *name, char *buf, size_t n);
/* Raw linux_dirent64 records. */
MUST_CHECK ssize_t host_getdents(int fd, void *buf, size_t n);
MUST_CHECK int host_mkdirat(int dir, const char *name, mode_t mode);
MUST_CHECK int host_mknodat(int dir, const char *name, mode_t mode, dev_t dev);
MUST_CHECK int host_symlinkat(const char *target, int dir, const char *name);
MUST_CHECK int host_linkat(int odir, const char *oname, int ndir, const char *nname, int flags);
MUST_CHECK int host_unlinkat(int dir, const char *name, int flags);
MUST_CHECK int host_renameat2(int odir, const char *oname, int ndir, const char *nname, unsigned flags);
MUST_CHECK int host_fchmodat(int dir, const char *name, mode_t mode);
MUST_CHECK int host_utimensat(int dir, const char *name, const struct timespec ts[2], int flags);
MUST_CHECK int host_truncate(const char *path, off_t len);
MUST_CHECK ssize_t host_getxattr(const char *path, const char *name, void *buf, size_t n);
MUST_CHECK int host_setxattr(const char *path, const char *name, const void *buf, size_t n, int flags);
MUST_CHECK ssize_t host_listxattr(const char *path, char *buf, size_t n);
MUST_CHECK int host_removexattr(const char *path, const char *name);

#endif
