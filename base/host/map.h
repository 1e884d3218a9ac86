/* SPDX-License-Identifier: Apache-2.0 */
/* Windows of our own address space onto host files and memory. Return 0 or -errno. */
#ifndef SBX_BASE_HOST_MAP_H
#define SBX_BASE_HOST_MAP_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/macros.h"

/* Maps [0, len) of @fd shared, for reading and writing; pages are not reserved. */
MUST_CHECK int host_map_window(int fd, size_t len, uint8_t **ret);
void host_unmap(void *p, size_t len); /* NULL is allowed */

/* Address space without access and without memory, at a multiple of @align (a power of two). */
MUST_CHECK int host_reserve(size_t len, size_t align, uint8_t **ret);
/* In such a reservation, in place of what is there: memory of our own that is zero and not reserved; nothing again; a
 * piece of @fd (@flags MAP_SHARED or MAP_PRIVATE); the same pages as those at @twin, which are mapped shared. */
MUST_CHECK int host_map_memory_at(void *at, size_t len);
MUST_CHECK int host_map_none_at(void *at, size_t len);
MUST_CHECK int host_map_file_at(void *at, size_t len, int fd, uint64_t off, int prot, int flags);
MUST_CHECK int host_map_twin_at(void *at, size_t len, void *twin);
MUST_CHECK int host_map_file(size_t len, int fd, uint64_t off, int prot, int flags, uint8_t **ret);
MUST_CHECK int host_madvise(void *p, size_t len, int advice);

/* Copies from or to memory of our own that may be behind the end of a file: bytes copied, or -EFAULT for none. */
MUST_CHECK ssize_t host_mem_read(void *to, const void *from, size_t n);
MUST_CHECK ssize_t host_mem_write(void *to, const void *from, size_t n);
/* How many of the @n pages (at most HOST_PROBE_MAX) at @page, one after the other in steps of @step bytes, can be
 * read. */
#define HOST_PROBE_MAX 64u
MUST_CHECK ssize_t host_mem_probe(const uint8_t *page, ssize_t step, unsigned n);

#endif
