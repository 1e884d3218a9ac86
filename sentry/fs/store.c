/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The block allocator and the quota of the store.
 *
 * One memfd has the size of the quota from the start (sparse: it costs nothing) and is never made smaller, so the
 * window onto it can be used without SIGBUS (store_io.c tells when it is). Blocks are pages of it.
 * Two bits describe a block: used, and dirty (its page may hold data). A block that is free and dirty keeps its host
 * memory: it is given out again first (short-lived files then cost no new pages), and when STORE_DIRTY_MAX such
 * blocks have gathered store_punch() gives them back in as few host calls as there are runs.
 *
 * Who takes a dirty block must overwrite or zero it before the guest can see it: store_file.c does.
 *
 * Where the quota is more than memory should hold, blocks from disk_start on lie in a disk file instead. They are never
 * used through the window: a disk that is full would be a SIGBUS. Block disk_start is never given out, so that no run
 * lies in both. Low blocks are taken first, so little work never touches the disk.
 *
 * Small files take the lowest free block. A growing file goes on behind its last block (the goal); when that is taken
 * it looks for a free run of its chunk size from the rover on and moves the rover behind it, so that files that grow
 * side by side stay in long runs: a run is one copy to the guest.
 */
#include "sentry/fs/store.h"

#include <errno.h>
#include <linux/falloc.h>
#include <stdlib.h>
#include <string.h>

#include "base/bug.h"
#include "base/host/file.h"
#include "base/host/map.h"
#include "sentry/kernel/kernel.h"

#define WORD_BITS     64u
#define RUN_SCAN_MAX  4096u /* words looked at for a long run */
#define SMALL_CHUNK   16u
#define DEFAULT_BYTES (64ull << 30)
#define DEFAULT_INODES (1ull << 22)
#define META_MIN      (16ull << 20)

static bool bit_get(const uint64_t *map, uint32_t i)
{
	return map[i / WORD_BITS] >> (i % WORD_BITS) & 1;
}

/* The bits of [i, i + n) that lie in i's word. */
static uint64_t word_mask(uint32_t i, uint32_t n)
{
	uint32_t sh = i % WORD_BITS, k = MIN(n, WORD_BITS - sh);

	return (k == WORD_BITS ? UINT64_MAX : (1ull << k) - 1) << sh;
}

int store_create(uint64_t max_bytes, uint64_t max_inodes, struct store **ret)
{
	uint64_t bytes = max_bytes ? max_bytes : DEFAULT_BYTES;
	struct store *s;
	int err;

	bytes = ROUND_UP(MIN(bytes, STORE_MAX_BYTES), WORD_BITS * STORE_BLOCK);
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	list_init(&s->idle);
	s->fd = s->disk = -1;
	s->n_blocks = s->disk_start = (uint32_t)(bytes >> STORE_BLOCK_SHIFT);
	s->max_private = UINT64_MAX;
	s->n_words = s->n_blocks / WORD_BITS;
	s->max_bytes = max_bytes ? MIN(max_bytes, bytes) : bytes;
	s->max_inodes = max_inodes ? max_inodes : DEFAULT_INODES;
	s->max_meta = META_MIN + MIN(s->max_inodes, 1ull << 40) * STORE_META_PER_INODE;
	s->used = calloc(s->n_words, sizeof(uint64_t));
	s->dirty = calloc(s->n_words, sizeof(uint64_t));
	s->heat = calloc(s->n_blocks, 1);
	s->full = calloc(s->n_words / WORD_BITS + 1, sizeof(uint64_t));
	err = -ENOMEM;
	if (!s->used || !s->dirty || !s->full || !s->heat)
		goto fail;
	/* Block 0 is never given out, so that 0 can mean "none" in maps and goals. */
	s->used[0] = 1;
	s->low = 1;
	s->fd = err = host_memfd("sbx-store", 0);
	if (err < 0)
		goto fail;
	err = host_ftruncate(s->fd, (off_t)bytes);
	if (err == 0)
		err = host_map_window(s->fd, bytes, &s->base);
	if (err < 0)
		goto fail;
	*ret = s;
	return 0;
fail:
	store_destroy(s);
	return err;
}

void store_destroy(struct store *s)
{
	if (!s)
		return;
	host_unmap(s->base, (size_t)s->n_blocks << STORE_BLOCK_SHIFT);
	host_close(s->fd);
	host_close(s->disk);
	free(s->used);
	free(s->dirty);
	free(s->full);
	free(s->heat);
	free(s);
}

int store_use_disk(struct store *s, int fd, uint64_t memory)
{
	uint64_t start = MAX(memory >> STORE_BLOCK_SHIFT, 1ull);
	int err;

	if (start >= s->n_blocks - 1) {
		host_close(fd); /* all of it fits */
		return 0;
	}
	err = host_ftruncate(fd, (off_t)((uint64_t)s->n_blocks - start) << STORE_BLOCK_SHIFT);
	if (err < 0) {
		host_close(fd);
		return err;
	}
	s->disk = fd;
	s->disk_start = (uint32_t)start;
	s->used[start / WORD_BITS] |= 1ull << (start % WORD_BITS);
	return 0;
}

void store_limit_private(struct store *s, uint64_t bytes)
{
	s->max_private = bytes;
}

int store_backing(const struct store *s, uint32_t b, uint64_t *at)
{
	if (b < s->disk_start) {
		*at = (uint64_t)b << STORE_BLOCK_SHIFT;
		return s->fd;
	}
	*at = (uint64_t)(b - s->disk_start) << STORE_BLOCK_SHIFT;
	return s->disk;
}

int store_full(void)
{
	kernel.counters.hit_disk_limit = true;
	return -ENOSPC;
}

int store_charge(struct store *s, uint64_t bytes)
{
	if (bytes > s->max_bytes - s->used_bytes)
		return store_full();
	s->used_bytes += bytes;
	kernel.counters.store_bytes += bytes;
	return 0;
}

void store_uncharge(struct store *s, uint64_t bytes)
{
	BUG_ON(bytes > s->used_bytes);
	s->used_bytes -= bytes;
	kernel.counters.store_bytes -= bytes;
}

int store_meta_charge(struct store *s, uint64_t bytes)
{
	if (bytes > s->max_meta - s->used_meta)
		return store_full();
	s->used_meta += bytes;
	return 0;
}

void store_meta_uncharge(struct store *s, uint64_t bytes)
{
	BUG_ON(bytes > s->used_meta);
	s->used_meta -= bytes;
}

int store_inode_charge(struct store *s)
{
	if (s->used_inodes >= s->max_inodes)
		return store_full();
	s->used_inodes++;
	kernel.counters.store_inodes++;
	return 0;
}

void store_inode_uncharge(struct store *s)
{
	BUG_ON(s->used_inodes == 0);
	s->used_inodes--;
	kernel.counters.store_inodes--;
}

bool store_block_dirty(const struct store *s, uint32_t b)
{
	return bit_get(s->dirty, b);
}

void store_mark_dirty(struct store *s, uint32_t b, uint32_t n)
{
	uint64_t m;
	uint32_t k;

	for (; n; b += k, n -= k) {
		m = word_mask(b, n);
		k = (uint32_t)__builtin_popcountll(m);
		s->dirty[b / WORD_BITS] |= m;
	}
}

/* How many blocks from @b on are free, at most @max. */
static uint32_t free_run(const struct store *s, uint32_t b, uint32_t max)
{
	uint32_t n = 0, k, left;
	uint64_t w;

	while (n < max && b + n < s->n_blocks) {
		w = s->used[(b + n) / WORD_BITS] >> ((b + n) % WORD_BITS);
		left = WORD_BITS - (b + n) % WORD_BITS;
		k = w ? (uint32_t)__builtin_ctzll(w) : left;
		n += MIN(k, left);
		if (k < left)
			break;
	}
	return MIN(n, max);
}

/* The lowest free block, or 0. */
static uint32_t lowest_free(struct store *s)
{
	uint32_t w = s->low / WORD_BITS, i = w / WORD_BITS;
	uint64_t full;

	for (; i * WORD_BITS < s->n_words; i++) {
		full = s->full[i];
		if (i == w / WORD_BITS)
			full |= (1ull << (w % WORD_BITS)) - 1;
		if (full == UINT64_MAX)
			continue;
		w = i * WORD_BITS + (uint32_t)__builtin_ctzll(~full);
		if (w >= s->n_words)
			break;
		s->low = w * WORD_BITS + (uint32_t)__builtin_ctzll(~s->used[w]);
		return s->low;
	}
	s->low = s->n_blocks;
	return 0;
}

/* The start of a free run of about @chunk blocks (whole words), or 0. */
static uint32_t long_run(struct store *s, uint32_t chunk)
{
	uint32_t need = (chunk + WORD_BITS - 1) / WORD_BITS, run = 0, w = s->rover / WORD_BITS;

	for (uint32_t i = 0; i < RUN_SCAN_MAX && i < s->n_words; i++, w++) {
		if (w >= s->n_words)
			w = run = 0;
		run = s->used[w] ? 0 : run + 1;
		if (run == need) {
			s->rover = (w + 1) * WORD_BITS;
			return (w + 1 - need) * WORD_BITS;
		}
	}
	s->rover = w * WORD_BITS;
	return 0;
}

static void take_run(struct store *s, uint32_t b, uint32_t n)
{
	uint32_t w, k;
	uint64_t m;

	for (; n; b += k, n -= k) {
		w = b / WORD_BITS;
		m = word_mask(b, n);
		k = (uint32_t)__builtin_popcountll(m);
		s->used[w] |= m;
		s->dirty_free -= (uint32_t)__builtin_popcountll(s->dirty[w] & m);
		if (s->used[w] == UINT64_MAX)
			s->full[w / WORD_BITS] |= 1ull << (w % WORD_BITS);
	}
}

int64_t store_alloc(struct store *s, uint32_t goal, uint32_t want, uint32_t chunk, uint32_t *start)
{
	uint64_t afford = (s->max_bytes - s->used_bytes) >> STORE_BLOCK_SHIFT;
	uint32_t b = 0, n;
	int err;

	if (goal && goal < s->n_blocks && !bit_get(s->used, goal))
		b = goal;
	else if (chunk > SMALL_CHUNK)
		b = long_run(s, chunk);
	if (!b)
		b = lowest_free(s);
	if (!b || !afford)
		return store_full();
	n = free_run(s, b, (uint32_t)MIN((uint64_t)want, afford));
	err = store_charge(s, (uint64_t)n << STORE_BLOCK_SHIFT);
	if (err < 0)
		return err;
	take_run(s, b, n);
	s->high = MAX(s->high, b + n);
	*start = b;
	return n;
}

void store_free(struct store *s, uint32_t b, uint32_t n)
{
	uint32_t w, k;
	uint64_t m;

	store_uncharge(s, (uint64_t)n << STORE_BLOCK_SHIFT);
	s->low = MIN(s->low, b);
	for (; n; b += k, n -= k) {
		w = b / WORD_BITS;
		m = word_mask(b, n);
		k = (uint32_t)__builtin_popcountll(m);
		BUG_ON((s->used[w] & m) != m);
		s->used[w] &= ~m;
		s->dirty_free += (uint32_t)__builtin_popcountll(s->dirty[w] & m);
		s->full[w / WORD_BITS] &= ~(1ull << (w % WORD_BITS));
	}
	if (s->dirty_free > STORE_DIRTY_MAX)
		store_punch(s);
}

/* Punches [b, b + n); on failure the blocks simply stay dirty. */
static void punch_run(struct store *s, uint32_t b, uint32_t n)
{
	uint64_t m, at;
	int fd = store_backing(s, b, &at);
	uint32_t k;

	if (host_fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)at,
			   (off_t)n << STORE_BLOCK_SHIFT) < 0)
		return;
	s->dirty_free -= n;
	memset(s->heat + b, 0, n);
	for (; n; b += k, n -= k) {
		m = word_mask(b, n);
		k = (uint32_t)__builtin_popcountll(m);
		s->dirty[b / WORD_BITS] &= ~m;
	}
}

void store_punch(struct store *s)
{
	uint32_t start = 0, n = 0, b;
	uint64_t m;

	for (uint32_t w = 0; w * WORD_BITS < s->high; w++) {
		m = s->dirty[w] & ~s->used[w];
		while (m) {
			b = w * WORD_BITS + (uint32_t)__builtin_ctzll(m);
			if (n && b == start + n) {
				n++;
			} else {
				if (n)
					punch_run(s, start, n);
				start = b;
				n = 1;
			}
			m &= m - 1;
		}
	}
	if (n)
		punch_run(s, start, n);
}
