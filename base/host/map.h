/* SPDX-License-Identifier: Apache-2.0 */
/* Windows of our own address space onto a host file. Return 0 or -errno. */
#ifndef SBX_BASE_HOST_MAP_H
#define SBX_BASE_HOST_MAP_H

#include <stddef.h>
#include <stdint.h>

#include "base/macros.h"

/* Maps [0, len) of @fd shared, for reading and writing; pages are not reserved. */
MUST_CHECK int host_map_window(int fd, size_t len, uint8_t **ret);
void host_unmap(void *p, size_t len); /* NULL is allowed */

#endif
