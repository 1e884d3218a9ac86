/* SPDX-License-Identifier: Apache-2.0 */
#include "sentry/fs/store_map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sentry/fs/store.h"

#define MAP_BITS   8u
#define LEAF_BYTES (STORE_MAP_FAN * sizeof(uint32_t))
#define LEAF_MIN   4u
#define HEIGHT_MAX 6u /* 7 * 8 bits of block index: more than STORE_SIZE_MAX needs */

struct map_node {
	void *slot[STORE_MAP_FAN];
};

static unsigned slot_of(uint64_t idx, unsigned level)
{
	return (unsigned)(idx >> (MAP_BITS * level)) & (STORE_MAP_FAN - 1);
}

/* Blocks below one child of a node at @level. */
static uint64_t span_of(unsigned level)
{
	return 1ull << (MAP_BITS * level);
}

static bool beyond(const struct store_file *sf, uint64_t idx)
{
	return idx >> (MAP_BITS * (sf->height + 1u)) != 0;
}

static uint32_t saturate(uint64_t n)
{
	return (uint32_t)MIN(n, (uint64_t)UINT32_MAX);
}

uint32_t *store_map_peek(const struct store_file *sf, uint64_t idx, uint32_t *n)
{
	void *p = sf->map;

	*n = UINT32_MAX;
	if (!p || beyond(sf, idx))
		return NULL;
	if (sf->height == 0) {
		if (idx >= sf->cap)
			return NULL;
		*n = sf->cap - (uint32_t)idx;
		return (uint32_t *)p + idx;
	}
	for (unsigned level = sf->height; level > 0; level--) {
		p = ((struct map_node *)p)->slot[slot_of(idx, level)];
		if (!p) {
			*n = saturate(span_of(level) - (idx & (span_of(level) - 1)));
			return NULL;
		}
	}
	*n = STORE_MAP_FAN - slot_of(idx, 0);
	return (uint32_t *)p + slot_of(idx, 0);
}

static void *meta_calloc(struct store *s, size_t n)
{
	void *p;

	if (store_meta_charge(s, n) < 0)
		return NULL;
	p = calloc(1, n);
	if (!p)
		store_meta_uncharge(s, n);
	return p;
}

static void meta_free(struct store *s, void *p, size_t n)
{
	free(p);
	store_meta_uncharge(s, n);
}

/* Makes the only leaf hold @slots slots (a power of two). */
static int leaf_grow(struct store *s, struct store_file *sf, uint32_t slots)
{
	uint32_t *leaf = meta_calloc(s, slots * sizeof(uint32_t));

	if (!leaf)
		return -ENOSPC;
	if (sf->map) {
		memcpy(leaf, sf->map, sf->cap * sizeof(uint32_t));
		meta_free(s, sf->map, sf->cap * sizeof(uint32_t));
	}
	sf->map = leaf;
	sf->cap = slots;
	return 0;
}

/* Makes the tree reach @idx. */
static int map_reach(struct store *s, struct store_file *sf, uint64_t idx)
{
	struct map_node *node;
	uint32_t slots = MAX(sf->cap, LEAF_MIN);
	int err;

	if (sf->height == 0 && (!sf->map || (idx >= sf->cap && sf->cap < STORE_MAP_FAN))) {
		while (slots < STORE_MAP_FAN && slots <= idx)
			slots *= 2;
		err = leaf_grow(s, sf, slots);
		if (err < 0)
			return err;
	}
	while (beyond(sf, idx)) {
		node = meta_calloc(s, sizeof(*node));
		if (!node)
			return -ENOSPC;
		node->slot[0] = sf->map;
		sf->map = node;
		sf->height++;
	}
	return 0;
}

int store_map_make(struct store *s, struct store_file *sf, uint64_t idx, uint32_t **slot, uint32_t *n)
{
	void **link = &sf->map;
	int err;

	if (sf->height == 0 || beyond(sf, idx)) {
		err = map_reach(s, sf, idx);
		if (err < 0)
			return err;
	}
	if (sf->height == 0) {
		*slot = (uint32_t *)sf->map + idx;
		*n = sf->cap - (uint32_t)idx;
		return 0;
	}
	for (unsigned level = sf->height;; level--) {
		if (!*link)
			*link = meta_calloc(s, level ? sizeof(struct map_node) : LEAF_BYTES);
		if (!*link)
			return -ENOSPC;
		if (level == 0)
			break;
		link = &((struct map_node *)*link)->slot[slot_of(idx, level)];
	}
	*slot = (uint32_t *)*link + slot_of(idx, 0);
	*n = STORE_MAP_FAN - slot_of(idx, 0);
	return 0;
}

static void leaf_free_range(struct store *s, struct store_file *sf, uint32_t *leaf, uint32_t first, uint32_t last)
{
	uint32_t run;

	for (uint32_t i = first; i <= last; i += run) {
		run = 1;
		if (!leaf[i])
			continue;
		while (i + run <= last && leaf[i + run] == leaf[i] + run)
			run++;
		store_free(s, leaf[i], run);
		sf->n_blocks -= run;
		memset(leaf + i, 0, run * sizeof(uint32_t));
	}
}

/* Frees [first, last] of the subtree at @link; both are relative to it. */
static void tree_free_range(struct store *s, struct store_file *sf, void **link, unsigned level, uint64_t first,
			    uint64_t last)
{
	struct map_node *node = *link;
	uint64_t span = span_of(level), lo, hi;
	bool whole = first == 0 && last >= span * STORE_MAP_FAN - 1;

	if (!node)
		return;
	if (level == 0) {
		leaf_free_range(s, sf, *link, (uint32_t)first, (uint32_t)MIN(last, STORE_MAP_FAN - 1ull));
		if (whole) {
			meta_free(s, *link, LEAF_BYTES);
			*link = NULL;
		}
		return;
	}
	for (uint64_t i = first / span; i < STORE_MAP_FAN && i * span <= last; i++) {
		lo = first > i * span ? first - i * span : 0;
		hi = MIN(last - i * span, span - 1);
		tree_free_range(s, sf, &node->slot[i], level - 1, lo, hi);
	}
	if (whole) {
		meta_free(s, node, sizeof(*node));
		*link = NULL;
	}
}

void store_map_free(struct store *s, struct store_file *sf, uint64_t first, uint64_t last)
{
	bool all = first == 0 && last == UINT64_MAX;

	if (!sf->map || beyond(sf, first))
		return;
	if (sf->height == 0) {
		if (first < sf->cap)
			leaf_free_range(s, sf, sf->map, (uint32_t)first,
					(uint32_t)MIN(last, (uint64_t)sf->cap - 1));
		if (all) {
			meta_free(s, sf->map, sf->cap * sizeof(uint32_t));
			sf->map = NULL;
		}
	} else {
		tree_free_range(s, sf, &sf->map, sf->height, first, last);
	}
	if (!sf->map) {
		sf->height = 0;
		sf->cap = 0;
	}
}

/* As store_map_next(), in a subtree. */
static uint64_t tree_next(const void *p, unsigned level, uint64_t idx)
{
	uint64_t span = span_of(level), lo = idx & (span - 1), got;
	const struct map_node *node = p;
	const uint32_t *leaf = p;

	if (!p)
		return UINT64_MAX;
	for (uint64_t i = idx / span; i < STORE_MAP_FAN; i++, lo = 0) {
		if (level == 0) {
			if (leaf[i])
				return i;
			continue;
		}
		got = tree_next(node->slot[i], level - 1, lo);
		if (got != UINT64_MAX)
			return i * span + got;
	}
	return UINT64_MAX;
}

uint64_t store_map_next(const struct store_file *sf, uint64_t idx)
{
	const uint32_t *leaf = sf->map;

	if (!sf->map || beyond(sf, idx))
		return UINT64_MAX;
	if (sf->height > 0)
		return tree_next(sf->map, sf->height, idx);
	for (; idx < sf->cap; idx++)
		if (leaf[idx])
			return idx;
	return UINT64_MAX;
}
static_assert(MAP_BITS * (HEIGHT_MAX + 1) >= 63 - STORE_BLOCK_SHIFT, "the tallest tree holds the largest file");
