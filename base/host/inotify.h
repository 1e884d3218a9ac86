/* SPDX-License-Identifier: Apache-2.0 */
/* Host inotify; the descriptor is close-on-exec and non-blocking. -errno on failure. */
#ifndef SBX_BASE_HOST_INOTIFY_H
#define SBX_BASE_HOST_INOTIFY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/inotify.h>
#include <sys/types.h>

#include "base/macros.h"

MUST_CHECK int host_inotify_create(void);
/* A watch number; that of the file's watch when it has one already. */
MUST_CHECK int host_inotify_add(int fd, const char *path, uint32_t mask);
/* Fails when the watch has ended by itself: nothing to do then. */
void host_inotify_remove(int fd, int wd);
/* Whole events; -EAGAIN: there are none. */
MUST_CHECK ssize_t host_inotify_read(int fd, void *buf, size_t n);

#endif
