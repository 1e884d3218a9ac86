/* SPDX-License-Identifier: Apache-2.0 */
/* eventfd(2). */
#ifndef SBX_SENTRY_VFS_EVENTFD_H
#define SBX_SENTRY_VFS_EVENTFD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/macros.h"

struct file;

/* flags: O_NONBLOCK. One reference in *ret. */
MUST_CHECK int eventfd_create(uint32_t initial, bool semaphore, uint32_t flags, struct file **ret);

#endif
