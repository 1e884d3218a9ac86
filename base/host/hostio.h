/* SPDX-License-Identifier: Apache-2.0 */
/* Host I/O that must not block the caller. -errno as usual. */
#ifndef SBX_BASE_HOST_HOSTIO_H
#define SBX_BASE_HOST_HOSTIO_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/macros.h"

/* With RWF_NOWAIT at the description's own position; -EOPNOTSUPP when the file cannot do it. */
MUST_CHECK ssize_t host_read_nowait(int fd, void *buf, size_t n);
MUST_CHECK ssize_t host_write_nowait(int fd, const void *buf, size_t n);
/* The POLL* events that are ready now; POLLERR when even poll failed. */
uint32_t host_poll_now(int fd, uint32_t events);
MUST_CHECK int host_fionread(int fd); /* bytes, or -errno */
MUST_CHECK int64_t host_lseek(int fd, int64_t off, int whence);
MUST_CHECK int host_fsync(int fd, bool data_only);

#endif
