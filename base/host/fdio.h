/* SPDX-License-Identifier: Apache-2.0 */
/* Host calls on an open regular file that return -errno: what base/host/file.h leaves out. */
#ifndef SBX_BASE_HOST_FDIO_H
#define SBX_BASE_HOST_FDIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/macros.h"

/* Writes at the end of the file in one step, whatever the fd's flags; *end is the position after it. Moves the fd's own
 * position. */
MUST_CHECK ssize_t host_file_append(int fd, const void *buf, size_t n, uint64_t *end);

#endif
