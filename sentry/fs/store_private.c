/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that the guest maps. Each has a memfd of its own whose size is exactly the file's, so that growth,
 * truncation, SIGBUS and sharing are the host kernel's, and no mapping can reach another file's bytes. The quota is
 * charged by size, because the guest can fill holes through its mapping without our knowledge.
 *
 * A private file is held by the open files that gave its fd to a mapping (mm keeps those open for as long as the
 * mapping is there). When none is left it becomes idle; above STORE_PRIVATE_SOFT, or when the host has no fd left,
 * idle files move back into the store, the one idle for longest first.
 */
#include <errno.h>
#include <linux/falloc.h>
#include <stdlib.h>
#include <string.h>

#include "base/bug.h"
#include "base/host/file.h"
#include "sentry/fs/store.h"
#include "sentry/fs/store_map.h"
#include "sentry/kernel/kernel.h"
#include "sentry/vfs/uio.h"

#define MOVE_CHUNK (64u * 1024)

static int pwrite_all(int fd, const uint8_t *p, size_t n, uint64_t off)
{
	ssize_t got;

	for (; n; p += got, n -= (size_t)got, off += (size_t)got) {
		got = host_pwrite(fd, p, n, (off_t)off);
		if (got < 0)
			return (int)got;
		if (got == 0)
			return -EIO;
	}
	return 0;
}

/* Copies what the file holds to @fd, which has its size already. */
static int copy_to_memfd(struct store *s, const struct store_file *sf, uint64_t size, int fd)
{
	uint8_t buf[STORE_BLOCK];
	uint32_t *slot, avail;
	uint64_t idx = 0, off;
	int err = 0;

	if (sf->kind == STORE_INLINE)
		return sf->cap ? pwrite_all(fd, sf->bytes, MIN(sf->cap, size), 0) : 0;
	for (;; idx++) {
		idx = store_map_next(sf, idx);
		off = idx << STORE_BLOCK_SHIFT;
		if (idx == UINT64_MAX || off >= size)
			return 0;
		slot = store_map_peek(sf, idx, &avail);
		if (!store_block_dirty(s, *slot))
			continue;
		err = store_io_get(s, *slot, 0, buf, STORE_BLOCK);
		if (err == 0)
			err = pwrite_all(fd, buf, MIN(STORE_BLOCK, size - off), off);
		if (err < 0)
			return err;
	}
}

static bool all_zero(const uint8_t *p, size_t n)
{
	return n == 0 || (p[0] == 0 && !memcmp(p, p + 1, n - 1));
}

/* Builds @to, a file in the store, from the memfd. */
static int copy_from_memfd(struct store *s, const struct store_private *p, struct store_file *to)
{
	static uint8_t buf[MOVE_CHUNK];
	struct uio_seg seg;
	struct uio u;
	ssize_t got, put;

	for (uint64_t off = 0; off < p->size; off += (uint64_t)got) {
		got = host_pread(p->fd, buf, sizeof(buf), (off_t)off);
		if (got <= 0)
			return got < 0 ? (int)got : -EIO;
		if (all_zero(buf, (size_t)got))
			continue;
		uio_init_kernel(&u, &seg, buf, (size_t)got);
		put = store_file_write(s, to, off, &u, off);
		if (put != got)
			return put < 0 ? (int)put : -ENOSPC;
	}
	return 0;
}

/* Quota of the store, and of host memory: what no process maps is seen by no limit of the host's. */
static int private_charge(struct store *s, uint64_t bytes)
{
	int err;

	if (bytes > s->max_private - s->private_bytes) {
		kernel.counters.hit_memory_limit = true;
		return -ENOSPC;
	}
	err = store_charge(s, bytes);
	if (err == 0)
		s->private_bytes += bytes;
	return err;
}

static void private_uncharge(struct store *s, uint64_t bytes)
{
	BUG_ON(bytes > s->private_bytes);
	s->private_bytes -= bytes;
	store_uncharge(s, bytes);
}

/* Moves an idle file back into the store; it stays where it is when that fails. */
static bool move_back(struct store *s, struct store_private *p)
{
	struct store_file to = { .kind = STORE_INLINE };
	uint64_t charged = p->charged;

	BUG_ON(p->mapped);
	private_uncharge(s, charged);
	if (copy_from_memfd(s, p, &to) < 0) {
		store_file_clear(s, &to);
		BUG_ON(private_charge(s, charged) < 0);
		return false;
	}
	*p->sf = to;
	p->charged = 0;
	store_private_destroy(s, p);
	return true;
}

static bool move_one_back(struct store *s)
{
	struct store_private *p, *tmp;

	list_for_each_entry_safe(p, tmp, &s->idle, idle)
		if (move_back(s, p))
			return true;
	return false;
}

static int new_memfd(struct store *s, uint64_t size, unsigned flags)
{
	int fd, err;

	if (s->n_private >= STORE_PRIVATE_SOFT && !move_one_back(s) && s->n_private >= STORE_PRIVATE_MAX)
		return -ENFILE;
	fd = host_memfd("sbx-file", flags);
	if ((fd == -EMFILE || fd == -ENFILE) && move_one_back(s))
		fd = host_memfd("sbx-file", flags);
	if (fd < 0)
		return fd == -EMFILE ? -ENFILE : fd;
	err = host_ftruncate(fd, (off_t)size);
	if (err < 0) {
		host_close(fd);
		return err;
	}
	return fd;
}

int store_file_make_private(struct store *s, struct store_file *sf, uint64_t size, unsigned memfd_flags)
{
	uint64_t charge = ROUND_UP(size, STORE_BLOCK), held = (uint64_t)sf->n_blocks << STORE_BLOCK_SHIFT;
	struct store_private *p;
	int err;

	if (sf->kind == STORE_PRIVATE)
		return 0;
	if (sf->kind == STORE_INLINE)
		held = 0;
	if (charge > held && charge - held > s->max_bytes - s->used_bytes) {
		(void)store_full(); /* mmap(2) knows no ENOSPC */
		return -ENOMEM;
	}
	if (charge > s->max_private - s->private_bytes) {
		kernel.counters.hit_memory_limit = true;
		return -ENOMEM;
	}
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->fd = new_memfd(s, size, memfd_flags);
	if (p->fd < 0) {
		err = p->fd;
		free(p);
		return err;
	}
	err = copy_to_memfd(s, sf, size, p->fd);
	if (err < 0) {
		host_close(p->fd);
		free(p);
		return err;
	}
	store_file_clear(s, sf);
	BUG_ON(private_charge(s, charge) < 0);
	p->sf = sf;
	p->size = size;
	p->charged = charge;
	p->pinned = memfd_flags != 0;
	list_init(&p->idle);
	sf->kind = STORE_PRIVATE;
	sf->priv = p;
	s->n_private++;
	return 0;
}

void store_private_destroy(struct store *s, struct store_private *p)
{
	list_del(&p->idle);
	host_close(p->fd);
	private_uncharge(s, p->charged);
	s->n_private--;
	free(p);
}

void store_private_hold(struct store *s, struct store_private *p)
{
	(void)s;
	p->mapped++;
	list_del(&p->idle);
}

void store_private_release(struct store *s, struct store_private *p)
{
	BUG_ON(p->mapped == 0);
	if (--p->mapped || p->pinned)
		return;
	list_add_tail(&s->idle, &p->idle);
	if (s->n_private > STORE_PRIVATE_SOFT)
		(void)move_one_back(s); /* a file that cannot move back stays private */
}

ssize_t store_private_read(struct store_private *p, struct uio *u, uint64_t off)
{
	uint8_t *buf = uio_bounce();
	uint64_t done = 0, n = MIN(p->size - off, u->resid);
	ssize_t got, put;

	while (done < n) {
		got = host_pread(p->fd, buf, MIN(n - done, UIO_BOUNCE_SIZE), (off_t)(off + done));
		if (got > 0) {
			put = uio_copy_to(u, buf, (size_t)got);
			if (put > 0)
				done += (uint64_t)put;
			got = put;
		}
		if (got <= 0)
			return done ? (ssize_t)done : got;
	}
	return (ssize_t)done;
}

/* Makes the file at least @end bytes long as far as the quota goes. */
static int private_charge_to(struct store *s, struct store_private *p, uint64_t end)
{
	uint64_t charge = ROUND_UP(end, STORE_BLOCK);
	int err;

	if (charge <= p->charged)
		return 0;
	err = private_charge(s, charge - p->charged);
	if (err == 0)
		p->charged = charge;
	return err;
}

ssize_t store_private_write(struct store *s, struct store_private *p, struct uio *u, uint64_t off)
{
	uint8_t *buf = uio_bounce();
	ssize_t done = 0, got;
	int err = private_charge_to(s, p, off + u->resid);

	if (err < 0)
		return err;
	while (u->resid) {
		got = uio_copy_from(u, buf, UIO_BOUNCE_SIZE);
		if (got < 0)
			return done ? done : got;
		err = pwrite_all(p->fd, buf, (size_t)got, off);
		if (err < 0)
			return done ? done : err;
		off += (uint64_t)got;
		done += got;
		p->size = MAX(p->size, off);
	}
	return done;
}

int store_private_truncate(struct store *s, struct store_private *p, uint64_t new_size)
{
	uint64_t charge = ROUND_UP(new_size, STORE_BLOCK);
	int err = private_charge_to(s, p, new_size);

	if (err < 0)
		return err;
	err = host_ftruncate(p->fd, (off_t)new_size);
	if (err < 0)
		return err;
	p->size = new_size;
	private_uncharge(s, p->charged - charge);
	p->charged = charge;
	return 0;
}

int store_private_punch(struct store_private *p, uint64_t off, uint64_t len)
{
	if (off >= p->size)
		return 0;
	return host_fallocate(p->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)off, (off_t)len);
}

int store_private_reserve(struct store *s, struct store_private *p, uint64_t off, uint64_t len)
{
	int err = private_charge_to(s, p, off + len);

	if (err < 0)
		return err;
	return host_fallocate(p->fd, FALLOC_FL_KEEP_SIZE, (off_t)off, (off_t)len);
}
