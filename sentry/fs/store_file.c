/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data of a file in the store. A file begins as INLINE, becomes BLOCKS when it is written beyond STORE_INLINE_MAX,
 * and PRIVATE when it is mapped (store_private.c). Truncation to nothing makes it INLINE again, unless it is PRIVATE.
 *
 * Invariant: whatever is allocated behind the end of the file is zero, so that growing a file never shows old bytes.
 */
#include "sentry/fs/store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bug.h"
#include "sentry/fs/store_map.h"
#include "sentry/vfs/uio.h"

#define INLINE_STEP 64u
#define CHUNK_MAX   256u /* blocks: a megabyte */

static uint64_t block_of(uint64_t off)
{
	return off >> STORE_BLOCK_SHIFT;
}

static uint32_t in_block(uint64_t off)
{
	return (uint32_t)off & (STORE_BLOCK - 1);
}

/* ---- inline files ---- */

static void inline_free(struct store *s, struct store_file *sf)
{
	free(sf->bytes);
	store_meta_uncharge(s, sf->cap);
	sf->bytes = NULL;
	sf->cap = 0;
}

/* Room for @end bytes. A second growth doubles, so that appending stays linear. */
static int inline_grow(struct store *s, struct store_file *sf, uint32_t end)
{
	uint32_t cap = ROUND_UP(MAX(end, sf->cap * 2), INLINE_STEP);
	uint8_t *p;

	if (end <= sf->cap)
		return 0;
	cap = MIN(cap, STORE_INLINE_MAX);
	if (store_meta_charge(s, cap - sf->cap) < 0)
		return -ENOSPC;
	p = realloc(sf->bytes, cap);
	if (!p) {
		store_meta_uncharge(s, cap - sf->cap);
		return -ENOMEM;
	}
	memset(p + sf->cap, 0, cap - sf->cap);
	sf->bytes = p;
	sf->cap = cap;
	return 0;
}

static int inline_to_blocks(struct store *s, struct store_file *sf)
{
	struct store_file blocks = { .kind = STORE_BLOCKS };
	uint32_t *slot, n, b;
	int64_t got;
	int err;

	if (sf->cap) {
		err = store_map_make(s, &blocks, 0, &slot, &n);
		if (err < 0)
			return err;
		got = store_alloc(s, 0, 1, 1, &b);
		if (got < 0) {
			store_map_free(s, &blocks, 0, UINT64_MAX);
			return (int)got;
		}
		err = store_io_zero(s, b, sf->cap, STORE_BLOCK);
		if (err == 0)
			err = store_io_put(s, b, 0, sf->bytes, sf->cap);
		if (err < 0) {
			store_free(s, b, 1);
			store_map_free(s, &blocks, 0, UINT64_MAX);
			return err;
		}
		*slot = b;
		blocks.n_blocks = 1;
		blocks.goal = b + 1;
		inline_free(s, sf);
	}
	*sf = blocks;
	return 0;
}

/* ---- files of blocks ---- */

/* The run of blocks (or of a hole: *start 0) that begins at @idx: its length, at most @max. */
static uint32_t run_at(const struct store_file *sf, uint64_t idx, uint32_t max, uint32_t *start)
{
	uint32_t avail, n = 1;
	const uint32_t *slot = store_map_peek(sf, idx, &avail);

	max = MIN(max, avail);
	*start = 0;
	if (!slot)
		return max;
	*start = *slot;
	while (n < max && slot[n] == (*start ? *start + n : 0))
		n++;
	return n;
}

static ssize_t blocks_read(struct store *s, struct store_file *sf, struct uio *u, uint64_t off, uint64_t n)
{
	uint64_t done = 0, bytes;
	uint32_t start, run, k;
	ssize_t got;

	while (done < n) {
		run = run_at(sf, block_of(off), (uint32_t)MIN(block_of(n - done) + 2, UINT32_MAX), &start);
		/* A clean block has no page yet: do not make one just to read zeros. */
		for (k = 1; start && k < run && store_block_dirty(s, start + k) == store_block_dirty(s, start);)
			k++;
		if (start)
			run = k;
		bytes = MIN(n - done, ((uint64_t)run << STORE_BLOCK_SHIFT) - in_block(off));
		if (start && store_block_dirty(s, start))
			got = store_io_read(s, start, in_block(off), u, bytes);
		else
			got = uio_zero(u, bytes);
		if (got <= 0)
			return done ? (ssize_t)done : got;
		done += (uint64_t)got;
		off += (uint64_t)got;
	}
	return (ssize_t)done;
}

/* Zeroes what [off, off + n) leaves of the blocks from @start on, where they hold old bytes. */
static int zero_around(struct store *s, uint32_t start, uint32_t off, uint64_t n)
{
	uint64_t end = off + n;
	int err = store_io_zero(s, start, 0, off);

	if (err == 0 && in_block(end))
		err = store_io_zero(s, start + (uint32_t)block_of(end), in_block(end), STORE_BLOCK);
	return err;
}

/* Fills a hole of @run slots with new blocks and writes into them. Blocks that the copy did not reach go back. */
static ssize_t blocks_fill(struct store *s, struct store_file *sf, uint32_t *slot, uint32_t run, struct uio *u,
			   uint64_t off, uint64_t n)
{
	uint32_t want = (uint32_t)MIN((uint64_t)run, block_of(in_block(off) + n - 1) + 1);
	uint32_t chunk = MIN(MAX(sf->n_blocks, want), CHUNK_MAX), start, kept = 0;
	int64_t k = store_alloc(s, sf->goal, want, chunk, &start);
	ssize_t got;
	int err;

	if (k < 0)
		return k;
	n = MIN(n, ((uint64_t)k << STORE_BLOCK_SHIFT) - in_block(off));
	got = zero_around(s, start, in_block(off), n);
	if (got == 0)
		got = store_io_write(s, start, in_block(off), u, n);
	if (got > 0 && (uint64_t)got < n) {
		err = zero_around(s, start, in_block(off), (uint64_t)got);
		got = err < 0 ? err : got;
	}
	if (got > 0)
		kept = (uint32_t)block_of(in_block(off) + (uint64_t)got - 1) + 1;
	if (kept < k)
		store_free(s, start + kept, (uint32_t)k - kept);
	for (uint32_t i = 0; i < kept; i++)
		slot[i] = start + i;
	sf->n_blocks += kept;
	if (kept)
		sf->goal = start + kept;
	return got;
}

static ssize_t blocks_write(struct store *s, struct store_file *sf, struct uio *u, uint64_t off)
{
	uint64_t done = 0, n = u->resid;
	uint32_t *slot, avail, start, run;
	ssize_t got;

	while (done < n) {
		got = store_map_make(s, sf, block_of(off), &slot, &avail);
		if (got < 0)
			return done ? (ssize_t)done : got;
		avail = (uint32_t)MIN((uint64_t)avail, block_of(in_block(off) + (n - done) - 1) + 1);
		run = run_at(sf, block_of(off), avail, &start);
		if (start)
			got = store_io_write(s, start, in_block(off), u,
					     MIN(n - done, ((uint64_t)run << STORE_BLOCK_SHIFT) - in_block(off)));
		else
			got = blocks_fill(s, sf, slot, run, u, off, n - done);
		if (got <= 0)
			return done ? (ssize_t)done : got;
		done += (uint64_t)got;
		off += (uint64_t)got;
	}
	return (ssize_t)done;
}

/* Zeroes [from, to) of one block of the file, if it is there. */
static int block_zero(struct store *s, struct store_file *sf, uint64_t idx, uint32_t from, uint32_t to)
{
	uint32_t start;

	(void)run_at(sf, idx, 1, &start);
	return start ? store_io_zero(s, start, from, to) : 0;
}

static int blocks_punch(struct store *s, struct store_file *sf, uint64_t off, uint64_t end)
{
	uint64_t first = block_of(off + STORE_BLOCK - 1), last = block_of(end);
	int err = 0;

	if (block_of(off) == last)
		return block_zero(s, sf, last, in_block(off), in_block(end));
	if (in_block(off))
		err = block_zero(s, sf, block_of(off), in_block(off), STORE_BLOCK);
	if (err == 0 && in_block(end))
		err = block_zero(s, sf, last, 0, in_block(end));
	if (err == 0 && first < last)
		store_map_free(s, sf, first, last - 1);
	return err;
}

/* Fills a hole of @run slots with zero blocks: how many, or -errno. */
static int64_t reserve_run(struct store *s, struct store_file *sf, uint32_t *slot, uint32_t run)
{
	uint32_t start;
	int64_t k = store_alloc(s, sf->goal, run, CHUNK_MAX, &start);
	int err = 0;

	for (uint32_t i = 0; err == 0 && i < k; i++)
		err = store_io_zero(s, start + i, 0, STORE_BLOCK);
	if (err < 0) {
		store_free(s, start, (uint32_t)k);
		return err;
	}
	for (uint32_t i = 0; i < k; i++)
		slot[i] = start + i;
	if (k > 0) {
		sf->n_blocks += (uint32_t)k;
		sf->goal = start + (uint32_t)k;
	}
	return k;
}

static int blocks_reserve(struct store *s, struct store_file *sf, uint64_t off, uint64_t end)
{
	uint64_t idx = block_of(off), last = block_of(end - 1);
	uint32_t *slot, avail, start;
	int64_t run;
	int err;

	/* Refuse early what cannot succeed: no half-made reservation fills the store. */
	if (last - idx + 1 > sf->n_blocks + ((s->max_bytes - s->used_bytes) >> STORE_BLOCK_SHIFT))
		return store_full();
	for (; idx <= last; idx += (uint64_t)run) {
		err = store_map_make(s, sf, idx, &slot, &avail);
		if (err < 0)
			return err;
		run = run_at(sf, idx, (uint32_t)MIN((uint64_t)avail, last - idx + 1), &start);
		if (!start)
			run = reserve_run(s, sf, slot, (uint32_t)run);
		if (run < 0)
			return (int)run;
	}
	return 0;
}

static int64_t blocks_seek(const struct store *s, const struct store_file *sf, uint64_t size, uint64_t off, bool data)
{
	uint64_t idx = block_of(off), next;
	uint32_t start;

	for (;;) {
		next = store_map_next(sf, idx);
		if (next == UINT64_MAX || next << STORE_BLOCK_SHIFT >= size)
			return data ? -ENXIO : (int64_t)MIN(MAX(off, idx << STORE_BLOCK_SHIFT), size);
		if (!data && next > idx)
			return (int64_t)MAX(off, idx << STORE_BLOCK_SHIFT);
		(void)run_at(sf, next, 1, &start);
		/* Reserved and never written: a hole for the reader. */
		if (store_block_dirty(s, start) == data)
			return (int64_t)MAX(off, next << STORE_BLOCK_SHIFT);
		idx = next + 1;
	}
}

/* ---- any file ---- */

void store_file_clear(struct store *s, struct store_file *sf)
{
	if (sf->kind == STORE_INLINE)
		inline_free(s, sf);
	else if (sf->kind == STORE_BLOCKS)
		store_map_free(s, sf, 0, UINT64_MAX);
	else
		store_private_destroy(s, sf->priv);
	*sf = (struct store_file){ .kind = STORE_INLINE };
}

ssize_t store_file_read(struct store *s, struct store_file *sf, uint64_t size, struct uio *u, uint64_t off)
{
	uint64_t n;
	ssize_t got = 0, zeros;

	if (off >= size)
		return 0;
	n = MIN(size - off, u->resid);
	if (sf->kind == STORE_PRIVATE)
		return store_private_read(sf->priv, u, off);
	if (sf->kind == STORE_BLOCKS)
		return blocks_read(s, sf, u, off, n);
	if (off < sf->cap) {
		got = uio_copy_to(u, sf->bytes + off, MIN(n, sf->cap - off));
		if (got < 0)
			return got;
		n -= (uint64_t)got;
		if (off + (uint64_t)got < sf->cap)
			return got;
	}
	if (!n)
		return got;
	zeros = uio_zero(u, n);
	return zeros < 0 ? (got ? got : zeros) : got + zeros;
}

ssize_t store_file_write(struct store *s, struct store_file *sf, uint64_t size, struct uio *u, uint64_t off)
{
	uint64_t end;
	int err;

	(void)size;
	if (u->resid == 0)
		return 0;
	if (__builtin_add_overflow(off, u->resid, &end) || end > STORE_SIZE_MAX)
		return -EFBIG;
	if (sf->kind == STORE_PRIVATE)
		return store_private_write(s, sf->priv, u, off);
	if (sf->kind == STORE_INLINE && end <= STORE_INLINE_MAX) {
		err = inline_grow(s, sf, (uint32_t)end);
		return err < 0 ? err : uio_copy_from(u, sf->bytes + off, u->resid);
	}
	if (sf->kind == STORE_INLINE) {
		err = inline_to_blocks(s, sf);
		if (err < 0)
			return err;
	}
	return blocks_write(s, sf, u, off);
}

int store_file_truncate(struct store *s, struct store_file *sf, uint64_t size, uint64_t new_size)
{
	int err;

	if (new_size > STORE_SIZE_MAX)
		return -EFBIG;
	if (sf->kind == STORE_PRIVATE)
		return store_private_truncate(s, sf->priv, new_size);
	if (new_size >= size)
		return 0;
	if (new_size == 0) {
		store_file_clear(s, sf);
	} else if (sf->kind == STORE_BLOCKS) {
		err = in_block(new_size) ? block_zero(s, sf, block_of(new_size), in_block(new_size), STORE_BLOCK) : 0;
		if (err < 0)
			return err;
		store_map_free(s, sf, block_of(new_size + STORE_BLOCK - 1), UINT64_MAX);
	} else if (new_size < sf->cap) {
		memset(sf->bytes + new_size, 0, sf->cap - new_size);
	}
	return 0;
}

int store_file_punch(struct store *s, struct store_file *sf, uint64_t size, uint64_t off, uint64_t len)
{
	/* Blocks reserved behind the end of the file (KEEP_SIZE) are punched too. */
	uint64_t end = off + len;

	(void)size;
	if (sf->kind == STORE_PRIVATE)
		return store_private_punch(sf->priv, off, len);
	if (sf->kind == STORE_BLOCKS)
		return blocks_punch(s, sf, off, end);
	if (off < sf->cap)
		memset(sf->bytes + off, 0, MIN(end, sf->cap) - off);
	return 0;
}

int store_file_reserve(struct store *s, struct store_file *sf, uint64_t size, uint64_t off, uint64_t len)
{
	uint64_t end = off + len;
	int err;

	(void)size;
	if (sf->kind == STORE_PRIVATE)
		return store_private_reserve(s, sf->priv, off, len);
	if (sf->kind == STORE_INLINE && end <= STORE_INLINE_MAX)
		return inline_grow(s, sf, (uint32_t)end);
	if (sf->kind == STORE_INLINE) {
		err = inline_to_blocks(s, sf);
		if (err < 0)
			return err;
	}
	return blocks_reserve(s, sf, off, end);
}

int64_t store_file_seek(struct store *s, struct store_file *sf, uint64_t size, uint64_t off, bool data)
{
	uint64_t data_end;

	if (off >= size)
		return -ENXIO;
	if (sf->kind == STORE_BLOCKS)
		return blocks_seek(s, sf, size, off, data);
	/* Without a host call nothing is known of the holes of a private file: it may be told to be all data. */
	data_end = sf->kind == STORE_PRIVATE ? size : MIN((uint64_t)sf->cap, size);
	if (data)
		return off < data_end ? (int64_t)off : -ENXIO;
	return (int64_t)MAX(off, data_end);
}

uint64_t store_file_stat_blocks(const struct store_file *sf, uint64_t size)
{
	if (sf->kind == STORE_BLOCKS)
		return (uint64_t)sf->n_blocks * (STORE_BLOCK / 512);
	if (sf->kind == STORE_PRIVATE)
		return sf->priv->charged / 512;
	/* Programs take a file with bytes and no blocks for one big hole. */
	return sf->cap && size ? STORE_BLOCK / 512 : 0;
}
