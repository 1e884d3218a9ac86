/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the bytes of blocks are reached. Through the window a copy of a page costs no host call, but the first touch of
 * each page is a page fault: up to 10 us on virtual machines with shadow paging (measured: 9 us there, also when the
 * page was made present by madvise), where a pwrite of a page costs 2.5 us, and 1 us in a row. So blocks are accessed
 * by pread and pwrite through the bounce buffer until there were STORE_HOT small accesses; long ones do not count,
 * the host call is cheap for them. Files that are written once and read once are never touched; blocks that were hot
 * and are given to another file still are.
 */
#include <errno.h>
#include <string.h>

#include "base/host/file.h"
#include "sentry/fs/store.h"
#include "sentry/vfs/uio.h"

#define SMALL (16u * 1024)

static uint32_t in_block(uint64_t off)
{
	return (uint32_t)off & (STORE_BLOCK - 1);
}

/* How many blocks [off, off + n) touches. */
static uint32_t span(uint64_t off, uint64_t n)
{
	return (uint32_t)((in_block(off) + n - 1) >> STORE_BLOCK_SHIFT) + 1;
}

static uint8_t *window(const struct store *s, uint32_t b)
{
	return s->base + ((uint64_t)b << STORE_BLOCK_SHIFT);
}

static bool hot(const struct store *s, uint32_t b)
{
	return s->heat[b] >= STORE_HOT && b < s->disk_start;
}

static void warm(struct store *s, uint32_t b, uint64_t off, uint64_t bytes)
{
	uint32_t n = bytes <= SMALL ? span(off, bytes) : 0;

	for (; n; b++, n--)
		s->heat[b] = (uint8_t)MIN(s->heat[b] + 1u, STORE_HOT);
}

/* How many of @n bytes at @off of block @b lie in blocks that are as hot as it is. */
static uint64_t same_heat(const struct store *s, uint32_t b, uint64_t off, uint64_t n)
{
	uint32_t blocks = span(off, n), k = 1;

	while (k < blocks && hot(s, b + k) == hot(s, b))
		k++;
	return MIN(n, ((uint64_t)k << STORE_BLOCK_SHIFT) - in_block(off));
}

/* A host without memory looks like a full disk to the guest. */
static int io_error(ssize_t err)
{
	return err == -ENOMEM ? store_full() : (int)err;
}

static int pwrite_all(struct store *s, const uint8_t *p, size_t n, uint32_t b, uint64_t off)
{
	uint64_t at;
	int fd = store_backing(s, b, &at);
	ssize_t got;

	for (at += off; n; p += got, n -= (size_t)got, at += (size_t)got) {
		got = host_pwrite(fd, p, n, (off_t)at);
		if (got <= 0)
			return got < 0 ? io_error(got) : -EIO;
	}
	return 0;
}

static int pread_all(struct store *s, uint8_t *p, size_t n, uint32_t b, uint64_t off)
{
	uint64_t at;
	int fd = store_backing(s, b, &at);
	ssize_t got;

	for (at += off; n; p += got, n -= (size_t)got, at += (size_t)got) {
		got = host_pread(fd, p, n, (off_t)at);
		if (got <= 0)
			return got < 0 ? io_error(got) : -EIO;
	}
	return 0;
}

static ssize_t cold_read(struct store *s, uint32_t b, uint64_t off, struct uio *u, uint64_t n)
{
	uint8_t *buf = uio_bounce();
	int err;

	n = MIN(n, (uint64_t)UIO_BOUNCE_SIZE);
	err = pread_all(s, buf, n, b, off);
	if (err < 0)
		return err;
	warm(s, b, off, n);
	return uio_copy_to(u, buf, n);
}

static ssize_t cold_write(struct store *s, uint32_t b, uint64_t off, struct uio *u, uint64_t n)
{
	uint8_t *buf = uio_bounce();
	ssize_t got = uio_copy_from(u, buf, MIN(n, (uint64_t)UIO_BOUNCE_SIZE));
	int err;

	if (got <= 0)
		return got;
	err = pwrite_all(s, buf, (size_t)got, b, off);
	if (err < 0)
		return err;
	warm(s, b, off, (uint64_t)got);
	return got;
}

ssize_t store_io_read(struct store *s, uint32_t b, uint64_t off, struct uio *u, uint64_t n)
{
	uint64_t done = 0, bytes;
	uint32_t at;
	ssize_t got;

	for (; done < n; done += (uint64_t)got, off += (uint64_t)got) {
		at = b + (uint32_t)(off >> STORE_BLOCK_SHIFT);
		bytes = same_heat(s, at, off, n - done);
		if (hot(s, at))
			got = uio_copy_to(u, window(s, at) + in_block(off), bytes);
		else
			got = cold_read(s, at, in_block(off), u, bytes);
		if (got <= 0)
			return done ? (ssize_t)done : got;
	}
	return (ssize_t)done;
}

ssize_t store_io_write(struct store *s, uint32_t b, uint64_t off, struct uio *u, uint64_t n)
{
	uint64_t done = 0, bytes;
	uint32_t at;
	ssize_t got;

	for (; done < n; done += (uint64_t)got, off += (uint64_t)got) {
		at = b + (uint32_t)(off >> STORE_BLOCK_SHIFT);
		bytes = same_heat(s, at, off, n - done);
		/* Before the copy: a page that it began to fill must not pass for clean when it fails. */
		store_mark_dirty(s, at, span(off, bytes));
		if (hot(s, at))
			got = uio_copy_from(u, window(s, at) + in_block(off), bytes);
		else
			got = cold_write(s, at, in_block(off), u, bytes);
		if (got <= 0)
			return done ? (ssize_t)done : got;
	}
	return (ssize_t)done;
}

int store_io_get(struct store *s, uint32_t b, uint32_t off, void *buf, size_t n)
{
	if (!hot(s, b))
		return pread_all(s, buf, n, b, off);
	memcpy(buf, window(s, b) + off, n);
	return 0;
}

int store_io_put(struct store *s, uint32_t b, uint32_t off, const void *buf, size_t n)
{
	store_mark_dirty(s, b, 1);
	if (!hot(s, b))
		return pwrite_all(s, buf, n, b, off);
	memcpy(window(s, b) + off, buf, n);
	return 0;
}

int store_io_zero(struct store *s, uint32_t b, uint32_t from, uint32_t to)
{
	static const uint8_t zeros[STORE_BLOCK];

	if (from >= to || !store_block_dirty(s, b))
		return 0;
	return store_io_put(s, b, from, zeros, to - from);
}
