/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sentry/fs/store.h"
#include "sentry/kernel/kernel.h"
#include "sentry/vfs/uio.h"
#include "tests/lib/tap.h"

#define MIB (1ull << 20)

static ssize_t put(struct store *s, struct store_file *sf, uint64_t *size, const void *p, size_t n, uint64_t off)
{
	struct uio_seg seg;
	struct uio u;
	ssize_t got;

	uio_init_kernel(&u, &seg, (void *)(uintptr_t)p, n);
	got = store_file_write(s, sf, *size, &u, off);
	if (got > 0)
		*size = MAX(*size, off + (uint64_t)got);
	return got;
}

static ssize_t get(struct store *s, struct store_file *sf, uint64_t size, void *p, size_t n, uint64_t off)
{
	struct uio_seg seg;
	struct uio u;

	uio_init_kernel(&u, &seg, p, n);
	return store_file_read(s, sf, size, &u, off);
}

static void test_alloc(void)
{
	struct store *s;
	uint32_t a, b;
	int64_t n;
	char c;

	tap_eq(store_create(MIB, 10, &s), 0, "a store of a megabyte");
	n = store_alloc(s, 0, 10, 1, &a);
	tap_eq(n, 10, "ten blocks in a run");
	tap_ok(!store_block_dirty(s, a), "a fresh block is clean");
	n = store_alloc(s, a + 10, 5, 1, &b);
	tap_ok(n == 5 && b == a + 10, "the goal is honoured");
	tap_eq(store_io_put(s, a, 0, "old", 3), 0, "write to one");
	store_mark_dirty(s, a, 15);
	store_free(s, a, 10);
	tap_eq(s->dirty_free, 10, "freed blocks stay dirty");
	tap_eq(store_alloc(s, 0, 3, 1, &b), 3, "and are given out first");
	tap_ok(b == a && store_block_dirty(s, b), "the lowest, marked dirty");
	store_free(s, b, 3);
	store_punch(s);
	tap_ok(s->dirty_free == 0 && !store_block_dirty(s, a), "punching cleans them");
	tap_ok(store_io_get(s, a, 0, &c, 1) == 0 && c == 0, "a punched block reads as zero");
	tap_eq(store_alloc(s, 0, 10000, 1, &b), 10, "a run ends at the next used block");
	n = store_alloc(s, 0, 10000, 1, &b);
	tap_eq(n, 240, "the rest of the store, block 0 apart");
	tap_eq(store_alloc(s, 0, 1, 1, &b), -ENOSPC, "then it is full");
	tap_ok(kernel.counters.hit_disk_limit, "and that is noted");
	store_destroy(s);
}

static void test_inodes(void)
{
	struct store *s;

	tap_eq(store_create(MIB, 2, &s), 0, "a store of two inodes");
	tap_ok(store_inode_charge(s) == 0 && store_inode_charge(s) == 0, "two fit");
	tap_eq(store_inode_charge(s), -ENOSPC, "a third does not");
	store_inode_uncharge(s);
	tap_eq(store_inode_charge(s), 0, "one gone, one fits");
	store_inode_uncharge(s);
	store_inode_uncharge(s);
	store_destroy(s);
}

static void test_file(void)
{
	struct store_file sf = { .kind = STORE_INLINE };
	static uint8_t buf[3 * 4096], want[3 * 4096];
	uint64_t size = 0;
	struct store *s;

	tap_eq(store_create(4 * MIB, 10, &s), 0, "a store of four megabytes");
	memset(buf, 'x', sizeof(buf));
	tap_eq(put(s, &sf, &size, buf, 100, 0), 100, "a small write");
	tap_ok(sf.kind == STORE_INLINE && s->used_bytes == 0, "stays inline");
	tap_eq(put(s, &sf, &size, "end", 3, 5000), 3, "a write far behind");
	tap_eq(sf.kind, STORE_BLOCKS, "makes blocks");
	memset(want, 'x', 100);
	memcpy(want + 5000, "end", 3);
	tap_eq(get(s, &sf, size, buf, sizeof(buf), 0), 5003, "all is read");
	tap_ok(!memcmp(buf, want, 5003), "the hole is zero");
	tap_eq(store_file_truncate(s, &sf, size, 50), 0, "cut");
	size = 50;
	tap_eq(put(s, &sf, &size, "y", 1, 200), 1, "written again behind the cut");
	tap_eq(get(s, &sf, size, buf, sizeof(buf), 0), 201, "read");
	memset(want + 50, 0, sizeof(want) - 50);
	want[200] = 'y';
	tap_ok(!memcmp(buf, want, 201), "the old bytes are gone");
	tap_eq(put(s, &sf, &size, "z", 1, 1ull << 40), 1, "a byte at a terabyte");
	tap_eq(get(s, &sf, size, buf, 2, (1ull << 40) - 1), 2, "read around it");
	tap_ok(buf[0] == 0 && buf[1] == 'z', "and right");
	tap_eq(store_file_seek(s, &sf, size, 4096, true), (1ll << 40), "SEEK_DATA skips the hole");
	tap_eq(store_file_seek(s, &sf, size, 0, false), 4096, "SEEK_HOLE finds it");
	tap_eq(store_file_seek(s, &sf, size, size, true), -ENXIO, "nothing behind the end");
	tap_eq(put(s, &sf, &size, "q", 1, INT64_MAX - 1), 1, "the last byte possible");
	tap_eq(put(s, &sf, &size, "qq", 2, INT64_MAX - 1), -EFBIG, "and one more is not");
	store_file_clear(s, &sf);
	tap_ok(s->used_bytes == 0 && s->used_meta == 0, "all is given back");
	store_destroy(s);
}

static void test_punch_reserve(void)
{
	struct store_file sf = { .kind = STORE_INLINE };
	static uint8_t buf[16 * 4096];
	uint64_t size = 0, held;
	struct store *s;

	tap_eq(store_create(4 * MIB, 10, &s), 0, "a store");
	memset(buf, 'a', sizeof(buf));
	tap_eq(put(s, &sf, &size, buf, sizeof(buf), 0), sizeof(buf), "sixteen blocks");
	held = s->used_bytes;
	tap_eq(store_file_punch(s, &sf, size, 100, 8192), 0, "punch over two block borders");
	tap_eq(s->used_bytes, held - 4096, "one whole block goes");
	tap_eq(get(s, &sf, size, buf, sizeof(buf), 0), sizeof(buf), "read");
	tap_ok(buf[99] == 'a' && buf[100] == 0 && buf[8291] == 0 && buf[8292] == 'a', "zero is what was punched");
	store_file_clear(s, &sf);
	size = 0;
	tap_eq(store_file_reserve(s, &sf, size, 0, 8 * 4096), 0, "reserve");
	tap_eq(s->used_bytes, 8 * 4096, "is charged");
	size = 8 * 4096;
	tap_eq(get(s, &sf, size, buf, 8 * 4096, 0), 8 * 4096, "read what was reserved");
	tap_ok(buf[0] == 0 && !memcmp(buf, buf + 1, 8 * 4096 - 1), "dirty blocks were cleaned");
	tap_eq(store_file_seek(s, &sf, size, 0, true), -ENXIO, "and counts as a hole");
	tap_eq(store_file_reserve(s, &sf, size, 0, 5 * MIB), -ENOSPC, "more than there is");
	store_file_clear(s, &sf);
	tap_eq(s->used_bytes, 0, "all is given back");
	store_destroy(s);
}

static void test_private(void)
{
	struct store_file sf = { .kind = STORE_INLINE };
	uint8_t buf[8192];
	uint64_t size = 0;
	struct store *s;

	tap_eq(store_create(MIB, 10, &s), 0, "a store");
	tap_eq(put(s, &sf, &size, "hello", 5, 4096), 5, "a sparse file");
	tap_eq(store_file_make_private(s, &sf, size, 0), 0, "gets its own memfd");
	tap_ok(sf.kind == STORE_PRIVATE && s->used_bytes == 8192, "charged by size");
	tap_eq(get(s, &sf, size, buf, sizeof(buf), 0), 4101, "read");
	tap_ok(buf[0] == 0 && !memcmp(buf + 4096, "hello", 5), "the same bytes");
	tap_eq(put(s, &sf, &size, "world", 5, 10000), 5, "write");
	tap_eq(s->used_bytes, 12288, "growth is charged");
	store_private_hold(s, sf.priv);
	store_private_release(s, sf.priv);
	tap_ok(sf.kind == STORE_PRIVATE && !list_empty(&s->idle), "idle, not moved while there are few");
	tap_eq(store_file_truncate(s, &sf, size, 4100), 0, "cut");
	size = 4100;
	tap_eq(s->used_bytes, 8192, "is given back");
	tap_eq(store_file_truncate(s, &sf, size, 2 * MIB), -ENOSPC, "growth beyond the quota");
	store_file_clear(s, &sf);
	tap_ok(s->used_bytes == 0 && s->n_private == 0, "all is given back");
	size = 0;
	tap_eq(store_file_truncate(s, &sf, 0, 2 * MIB), 0, "a sparse file beyond the quota");
	tap_eq(store_file_make_private(s, &sf, 2 * MIB, 0), -ENOMEM, "cannot be mapped");
	store_file_clear(s, &sf);
	store_destroy(s);
}

/* More mapped files than the soft limit: idle ones come back into the store with their bytes. */
static void test_move_back(void)
{
	static struct store_file sf[STORE_PRIVATE_SOFT + 50];
	unsigned back = 0, right = 0, made = 0;
	struct store *s;
	uint64_t size;
	char c;

	tap_eq(store_create(64 * MIB, 10, &s), 0, "a store");
	for (unsigned i = 0; i < ARRAY_SIZE(sf); i++) {
		c = (char)i;
		size = 0;
		made += put(s, &sf[i], &size, &c, 1, 5000) == 1 && store_file_make_private(s, &sf[i], size, 0) == 0;
		if (sf[i].kind != STORE_PRIVATE)
			break;
		store_private_hold(s, sf[i].priv);
		store_private_release(s, sf[i].priv);
	}
	tap_eq(made, ARRAY_SIZE(sf), "all could be mapped");
	for (unsigned i = 0; i < ARRAY_SIZE(sf); i++) {
		back += sf[i].kind != STORE_PRIVATE;
		right += get(s, &sf[i], 5001, &c, 1, 5000) == 1 && c == (char)i;
		store_file_clear(s, &sf[i]);
	}
	tap_eq(back, 50, "idle ones moved back");
	tap_eq(right, ARRAY_SIZE(sf), "with their bytes");
	tap_ok(s->used_bytes == 0 && s->used_meta == 0, "all is given back");
	store_destroy(s);
}

static int disk_file(void)
{
	int fd = open("/var/tmp", O_TMPFILE | O_RDWR, 0600);

	return fd < 0 ? memfd_create("disk", 0) : fd; /* as good for this */
}

/* What memory is not to hold goes to the disk file, and a failing disk is an error and no signal. */
static void test_disk(void)
{
	static uint8_t buf[3 * MIB], back[3 * MIB];
	struct store_file a = { 0 }, b = { 0 };
	uint64_t size_a = 0, size_b = 0;
	int fd = disk_file(), dupfd = dup(fd);
	struct store *s;
	struct stat st;

	for (size_t i = 0; i < sizeof(buf); i++)
		buf[i] = (uint8_t)(i * 7 + i / 4096);
	tap_eq(store_create(8 * MIB, 10, &s), 0, "a store");
	tap_eq(store_use_disk(s, fd, MIB), 0, "of which a megabyte is in memory");
	tap_eq(put(s, &a, &size_a, buf, sizeof(buf), 0), (int64_t)sizeof(buf), "three are written");
	tap_eq(put(s, &b, &size_b, buf, sizeof(buf), 0), (int64_t)sizeof(buf), "twice");
	tap_ok(fstat(s->fd, &st) == 0 && (uint64_t)st.st_blocks * 512 <= MIB + 64 * 1024, "memory holds its part");
	tap_ok(fstat(dupfd, &st) == 0 && (uint64_t)st.st_blocks * 512 >= 5 * MIB - 64 * 1024, "the disk the rest");
	for (int i = 0; i < 8; i++) /* as hot as they get */
		(void)!get(s, &b, size_b, back, 100, 2 * MIB + 50);
	tap_ok(get(s, &a, size_a, back, sizeof(back), 0) == sizeof(back) && !memcmp(buf, back, sizeof(buf)), "the first");
	tap_ok(get(s, &b, size_b, back, sizeof(back), 0) == sizeof(back) && !memcmp(buf, back, sizeof(buf)), "the second");
	store_file_clear(s, &a);
	store_file_clear(s, &b);
	store_punch(s);
	tap_ok(fstat(dupfd, &st) == 0 && st.st_blocks < 128, "the disk gets its room back");
	tap_eq(s->used_bytes, 0, "all is given back");
	/* A disk that refuses. */
	tap_eq(put(s, &a, &size_a, buf, sizeof(buf), 0), (int64_t)sizeof(buf), "written again");
	DISCARD(dup2(open("/dev/full", O_RDWR), s->disk));
	size_b = 0;
	tap_ok(put(s, &b, &size_b, buf, sizeof(buf), 0) <= (int64_t)MIB, "a full disk is an error");
	store_file_clear(s, &a);
	store_file_clear(s, &b);
	store_destroy(s);
	close(dupfd);
}

/* Files of their own are host memory: bounded beside the quota. */
static void test_private_limit(void)
{
	static uint8_t buf[600 * 1024];
	struct store_file a = { 0 }, b = { 0 };
	uint64_t size_a = 0, size_b = 0;
	struct store *s;

	tap_eq(store_create(8 * MIB, 10, &s), 0, "a store");
	store_limit_private(s, MIB);
	tap_eq(put(s, &a, &size_a, buf, sizeof(buf), 0), (int64_t)sizeof(buf), "a file");
	tap_eq(put(s, &b, &size_b, buf, sizeof(buf), 0), (int64_t)sizeof(buf), "another");
	tap_eq(store_file_make_private(s, &a, size_a, 0), 0, "one may be mapped");
	tap_eq(store_file_make_private(s, &b, size_b, 0), -ENOMEM, "the other is too much");
	tap_eq(put(s, &a, &size_a, buf, sizeof(buf), 600 * 1024), -ENOSPC, "nor may the one grow so far");
	store_file_clear(s, &a);
	tap_eq(store_file_make_private(s, &b, size_b, 0), 0, "when there is room again it may");
	store_file_clear(s, &b);
	tap_ok(s->private_bytes == 0 && s->used_bytes == 0, "all is given back");
	store_destroy(s);
}

/* Random work on some files against flat buffers. */
static void test_model(bool disk)
{
	enum { FILES = 6, MAX_SIZE = 1300 * 1024, ROUNDS = 4000 };
	struct store_file sf[FILES] = { 0 };
	uint64_t size[FILES] = { 0 };
	static uint8_t buf[MAX_SIZE], chunk[70000];
	uint8_t *model[FILES];
	struct store *s;
	bool ok = true;

	tap_eq(store_create(6 * MIB, 10, &s), 0, "a store");
	if (disk)
		tap_eq(store_use_disk(s, disk_file(), MIB), 0, "with a disk");
	srand(1);
	for (int i = 0; i < FILES; i++)
		model[i] = calloc(1, MAX_SIZE);
	for (int r = 0; r < ROUNDS && ok; r++) {
		int i = rand() % FILES, op = rand() % 10;
		uint64_t off = (uint64_t)rand() % (rand() % 3 ? 9000 : MAX_SIZE - sizeof(chunk));
		uint64_t n = 1 + (uint64_t)rand() % sizeof(chunk);
		ssize_t got;

		if (op < 5) {
			memset(chunk, rand(), n);
			got = put(s, &sf[i], &size[i], chunk, n, off);
			if (got > 0)
				memcpy(model[i] + off, chunk, (size_t)got);
			ok = got > 0 || got == -ENOSPC;
		} else if (op == 5) {
			ok = store_file_truncate(s, &sf[i], size[i], off) == 0 || sf[i].kind == STORE_PRIVATE;
			if (sf[i].kind != STORE_PRIVATE || sf[i].priv->size == off) {
				if (off < size[i])
					memset(model[i] + off, 0, MAX_SIZE - off);
				size[i] = off;
			}
		} else if (op == 6) {
			ok = store_file_punch(s, &sf[i], size[i], off, n) == 0;
			memset(model[i] + off, 0, n);
		} else if (op == 7) {
			(void)!store_file_reserve(s, &sf[i], size[i], off, n);
		} else if (op == 8 && rand() % 8 == 0) {
			(void)!store_file_make_private(s, &sf[i], size[i], 0);
		} else if (rand() % 20 == 0) {
			store_file_clear(s, &sf[i]);
			memset(model[i], 0, MAX_SIZE);
			size[i] = 0;
		}
		got = get(s, &sf[i], size[i], buf, sizeof(buf), 0);
		ok = ok && got == (ssize_t)size[i] && !memcmp(buf, model[i], size[i]);
		if (!ok)
			printf("# round %d op %d file %d kind %d\n", r, op, i, sf[i].kind);
	}
	tap_ok(ok, "files are what was written");
	for (int i = 0; i < FILES; i++) {
		store_file_clear(s, &sf[i]);
		free(model[i]);
	}
	tap_ok(s->used_bytes == 0 && s->used_meta == 0, "all is given back");
	store_destroy(s);
}

int main(void)
{
	test_alloc();
	test_inodes();
	test_file();
	test_punch_reserve();
	test_private();
	test_move_back();
	test_disk();
	test_private_limit();
	test_model(false);
	test_model(true);
	return tap_done();
}
