/* SPDX-License-Identifier: Apache-2.0 */
/* Host file calls that return -errno. Retried on EINTR where that is harmless. Arguments as in the man pages. */
#ifndef SBX_BASE_HOST_FILE_H
#define SBX_BASE_HOST_FILE_H

#include <linux/openat2.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/macros.h"

MUST_CHECK int host_open(const char *path, int flags, mode_t mode);
MUST_CHECK int host_openat2(int dir, const char *path, const struct open_how *how);
void host_close(int fd); /* fd < 0 is allowed */
MUST_CHECK ssize_t host_read(int fd, void *buf, size_t n);
MUST_CHECK ssize_t host_write(int fd, const void *buf, size_t n);
MUST_CHECK ssize_t host_pread(int fd, void *buf, size_t n, off_t off);
MUST_CHECK ssize_t host_pwrite(int fd, const void *buf, size_t n, off_t off);
MUST_CHECK int host_fstat(int fd, struct stat *st);
MUST_CHECK int host_ftruncate(int fd, off_t len);
MUST_CHECK int host_fallocate(int fd, int mode, off_t off, off_t len);
MUST_CHECK int host_memfd(const char *name, unsigned flags);
MUST_CHECK int host_set_cloexec(int fd, int on);

#endif
