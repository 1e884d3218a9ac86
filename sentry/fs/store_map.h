/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The block map of a file (STORE_BLOCKS): a radix tree with leaves of 256 block numbers; 0 is a hole. A file of less
 * than 256 blocks has one leaf that grows by doubling and no node.
 */
#ifndef SBX_SENTRY_FS_STORE_MAP_H
#define SBX_SENTRY_FS_STORE_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/macros.h"

struct store;
struct store_file;

#define STORE_MAP_FAN 256u

/* The slot of block @idx of the file, and in *n how many slots (of the same leaf) follow from it on; NULL when
 * there is no leaf: *n is then how many blocks from @idx on are certainly holes (at least 1, saturated). */
uint32_t *store_map_peek(const struct store_file *sf, uint64_t idx, uint32_t *n);
/* As above, made where it is missing: 0 or -errno. */
MUST_CHECK int store_map_make(struct store *s, struct store_file *sf, uint64_t idx, uint32_t **slot, uint32_t *n);
/* Frees the blocks [first, last] and the tree parts that only they used; the whole map when first is 0 and last is
 * UINT64_MAX. */
void store_map_free(struct store *s, struct store_file *sf, uint64_t first, uint64_t last);
/* The first mapped block >= idx, or UINT64_MAX. */
uint64_t store_map_next(const struct store_file *sf, uint64_t idx);

#endif
