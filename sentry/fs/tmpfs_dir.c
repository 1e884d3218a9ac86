/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Directories of tmpfs: a hash table for names and an array in order of creation for readdir. Each entry has a cookie
 * that only grows; removing one leaves a mark with its cookie in the array, so the array stays sorted and a position is
 * found by bisection. When marks outnumber entries the array is compacted; cookies do not change by that. So a reader
 * that removes what it reads (rm -r) sees each entry once, and telldir positions stay valid for ever.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bug.h"
#include "base/hash.h"
#include "sentry/fs/tmpfs.h"
#include "sentry/kernel/kernel.h"

#define FIRST_COOKIE 2u /* 0 and 1 are "." and ".." */
#define HASH_MIN     8u /* entries from which there is a table */
#define SLOTS_MIN    4u
#define SLACK        16u
#define ENTRIES_MAX  (1u << 31)

static bool slot_gone(uintptr_t v)
{
	return v & 1;
}

static struct tmpfs_dirent *slot_entry(uintptr_t v)
{
	return (struct tmpfs_dirent *)v;
}

static uint64_t slot_cookie(uintptr_t v)
{
	return slot_gone(v) ? v >> 1 : slot_entry(v)->cookie;
}

static size_t entry_bytes(size_t len)
{
	return sizeof(struct tmpfs_dirent) + len;
}

static struct store *store_of(const struct tmpfs_inode *dir)
{
	return dir->ts->store;
}

static uint32_t name_hash(const char *name, size_t len)
{
	return (uint32_t)hash_bytes(&kernel.hash_key, name, len);
}

struct tmpfs_dirent *tmpfs_dir_find(const struct tmpfs_inode *dir, const char *name, size_t len)
{
	const struct tmpfs_dir *d = dir->dir;
	struct tmpfs_dirent *de;
	uint32_t h;

	if (!d)
		return NULL;
	if (d->buckets) {
		h = name_hash(name, len);
		for (de = d->buckets[h & d->mask]; de; de = de->hnext)
			if (de->hash == h && de->len == len && !memcmp(de->name, name, len))
				return de;
		return NULL;
	}
	for (uint32_t i = 0; i < d->n_slots; i++) {
		if (slot_gone(d->slots[i]))
			continue;
		de = slot_entry(d->slots[i]);
		if (de->len == len && !memcmp(de->name, name, len))
			return de;
	}
	return NULL;
}

static void bucket_add(struct tmpfs_dir *d, struct tmpfs_dirent *de)
{
	struct tmpfs_dirent **b = &d->buckets[de->hash & d->mask];

	de->hnext = *b;
	*b = de;
}

/* Makes the table fit @n entries. A table that cannot grow serves on with longer chains; only the first is needed. */
static int table_fit(struct store *s, struct tmpfs_dir *d, uint32_t n)
{
	uint32_t size = d->buckets ? d->mask + 1 : 0, want = size ? size : 2 * HASH_MIN;
	struct tmpfs_dirent **nb;

	if (n < HASH_MIN || n <= size)
		return 0;
	while (want < n)
		want *= 2;
	if (store_meta_charge(s, want * sizeof(*nb)) < 0)
		return size ? 0 : -ENOSPC;
	nb = calloc(want, sizeof(struct tmpfs_dirent *));
	if (!nb) {
		store_meta_uncharge(s, want * sizeof(*nb));
		return size ? 0 : -ENOMEM;
	}
	free(d->buckets);
	store_meta_uncharge(s, size * sizeof(*nb));
	d->buckets = nb;
	d->mask = want - 1;
	for (uint32_t i = 0; i < d->n_slots; i++)
		if (!slot_gone(d->slots[i]))
			bucket_add(d, slot_entry(d->slots[i]));
	return 0;
}

static void slots_compact(struct tmpfs_dir *d)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < d->n_slots; i++) {
		if (slot_gone(d->slots[i]))
			continue;
		slot_entry(d->slots[i])->slot = n;
		d->slots[n++] = d->slots[i];
	}
	d->n_slots = n;
}

static int slots_fit(struct store *s, struct tmpfs_dir *d)
{
	uint32_t cap;
	uintptr_t *p;

	if (d->n_slots < d->cap)
		return 0;
	if (d->n_slots - (d->live + d->whiteouts) > d->n_slots / 2) {
		slots_compact(d);
		return 0;
	}
	if (d->cap >= ENTRIES_MAX)
		return -ENOSPC;
	cap = d->cap ? d->cap * 2 : SLOTS_MIN;
	if (store_meta_charge(s, (cap - d->cap) * sizeof(*p)) < 0)
		return -ENOSPC;
	p = realloc(d->slots, cap * sizeof(*p));
	if (!p) {
		store_meta_uncharge(s, (cap - d->cap) * sizeof(*p));
		return -ENOMEM;
	}
	d->slots = p;
	d->cap = cap;
	return 0;
}

static int dir_create(struct tmpfs_inode *dir)
{
	struct tmpfs_dir *d;

	if (dir->dir)
		return 0;
	if (store_meta_charge(store_of(dir), sizeof(*d)) < 0)
		return -ENOSPC;
	d = calloc(1, sizeof(*d));
	if (!d) {
		store_meta_uncharge(store_of(dir), sizeof(*d));
		return -ENOMEM;
	}
	d->next_cookie = FIRST_COOKIE;
	dir->dir = d;
	return 0;
}

static void count(struct tmpfs_dir *d, const struct tmpfs_dirent *de, uint32_t delta)
{
	if (de->in)
		d->live += delta;
	else
		d->whiteouts += delta;
}

int tmpfs_dir_insert(struct tmpfs_inode *dir, const char *name, size_t len, struct tmpfs_inode *in, uint8_t flags)
{
	struct tmpfs_dirent *de = tmpfs_dir_find(dir, name, len);
	struct store *s = store_of(dir);
	struct tmpfs_dir *d;
	int err;

	if (de) {
		BUG_ON(de->in);
		de->flags |= TMPFS_DE_COVERS | flags;
		(void)tmpfs_dir_replace(dir, de, in);
		return 0;
	}
	err = dir_create(dir);
	if (err < 0)
		return err;
	d = dir->dir;
	err = slots_fit(s, d);
	if (err == 0)
		err = table_fit(s, d, d->live + d->whiteouts + 1);
	if (err == 0)
		err = store_meta_charge(s, entry_bytes(len));
	if (err < 0)
		return err;
	de = calloc(1, entry_bytes(len));
	if (!de) {
		store_meta_uncharge(s, entry_bytes(len));
		return -ENOMEM;
	}
	de->in = in;
	if (in)
		inode_get(&in->vfs);
	de->cookie = d->next_cookie++;
	de->slot = d->n_slots;
	de->flags = in ? flags : flags | TMPFS_DE_COVERS;
	de->len = (uint8_t)len;
	memcpy(de->name, name, len);
	de->hash = name_hash(name, len);
	d->slots[d->n_slots++] = (uintptr_t)de;
	if (d->buckets)
		bucket_add(d, de);
	count(d, de, 1);
	return 0;
}

static void table_del(struct tmpfs_dir *d, struct tmpfs_dirent *de)
{
	struct tmpfs_dirent **p;

	if (!d->buckets)
		return;
	for (p = &d->buckets[de->hash & d->mask]; *p != de; p = &(*p)->hnext)
		BUG_ON(!*p);
	*p = de->hnext;
}

void tmpfs_dir_remove(struct tmpfs_inode *dir, struct tmpfs_dirent *de, bool whiteout)
{
	struct tmpfs_dir *d = dir->dir;

	count(d, de, UINT32_MAX);
	if (whiteout) {
		de->in = NULL;
		de->flags |= TMPFS_DE_COVERS;
		count(d, de, 1);
		return;
	}
	table_del(d, de);
	d->slots[de->slot] = de->cookie << 1 | 1;
	store_meta_uncharge(store_of(dir), entry_bytes(de->len));
	free(de);
	while (d->n_slots && slot_gone(d->slots[d->n_slots - 1]))
		d->n_slots--;
	if (d->n_slots > 2 * (d->live + d->whiteouts) + SLACK)
		slots_compact(d);
}

struct tmpfs_inode *tmpfs_dir_replace(struct tmpfs_inode *dir, struct tmpfs_dirent *de, struct tmpfs_inode *in)
{
	struct tmpfs_inode *old = de->in;

	count(dir->dir, de, UINT32_MAX);
	de->in = in;
	if (in)
		inode_get(&in->vfs);
	count(dir->dir, de, 1);
	return old;
}

void tmpfs_dir_keep_place(struct tmpfs_inode *dir, struct tmpfs_dirent *from, struct tmpfs_dirent *to)
{
	struct tmpfs_dir *d = dir->dir;
	uint64_t cookie = from->cookie;
	uint32_t slot = from->slot;

	d->slots[slot] = (uintptr_t)to;
	d->slots[to->slot] = (uintptr_t)from;
	from->cookie = to->cookie;
	from->slot = to->slot;
	to->cookie = cookie;
	to->slot = slot;
}

/* The first slot with a cookie >= @cookie. */
static uint32_t slot_search(const struct tmpfs_dir *d, uint64_t cookie)
{
	uint32_t lo = 0, hi = d->n_slots, mid;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (slot_cookie(d->slots[mid]) < cookie)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

struct tmpfs_dirent *tmpfs_dir_next(const struct tmpfs_inode *dir, uint64_t *cookie)
{
	const struct tmpfs_dir *d = dir->dir;
	struct tmpfs_dirent *de;

	if (!d)
		return NULL;
	for (uint32_t i = slot_search(d, *cookie); i < d->n_slots; i++) {
		if (slot_gone(d->slots[i]))
			continue;
		de = slot_entry(d->slots[i]);
		*cookie = de->cookie + 1;
		return de;
	}
	return NULL;
}

uint32_t tmpfs_dir_live(const struct tmpfs_inode *dir)
{
	return dir->dir ? dir->dir->live : 0;
}

void tmpfs_dir_free(struct tmpfs_inode *dir)
{
	struct store *s = store_of(dir);
	struct tmpfs_dir *d = dir->dir;
	struct tmpfs_dirent *de;

	if (!d)
		return;
	dir->dir = NULL;
	for (uint32_t i = 0; i < d->n_slots; i++) {
		if (slot_gone(d->slots[i]))
			continue;
		de = slot_entry(d->slots[i]);
		if (de->in)
			inode_put(&de->in->vfs);
		store_meta_uncharge(s, entry_bytes(de->len));
		free(de);
	}
	store_meta_uncharge(s, sizeof(*d) + d->cap * sizeof(*d->slots));
	if (d->buckets)
		store_meta_uncharge(s, (d->mask + 1) * sizeof(*d->buckets));
	free(d->buckets);
	free(d->slots);
	free(d);
}

/* ---- open directories ---- */

static unsigned dtype_of(uint32_t mode)
{
	return mode >> 12 & 15;
}

static uint64_t parent_ino(const struct tmpfs_inode *dir)
{
	return dir->parent ? dir->parent->vfs.ino : dir->vfs.ino;
}

static int tmpfs_iterate(struct file *f, struct dir_emit *e)
{
	struct tmpfs_dirfile *df = container_of(f, struct tmpfs_dirfile, file);
	struct tmpfs_inode *dir = tmpfs_i(f->inode);
	struct tmpfs_dirent *de;
	uint64_t cookie;

	if (dir->vfs.nlink == 0)
		return -ENOENT;
	if (f->pos == 0 || df->end == 0)
		df->end = dir->dir ? dir->dir->next_cookie : FIRST_COOKIE;
	if (f->pos == 0) {
		if (!e->emit(e, ".", 1, dir->vfs.ino, dtype_of(S_IFDIR), 1))
			return 0;
		f->pos = 1;
	}
	if (f->pos == 1) {
		if (!e->emit(e, "..", 2, parent_ino(dir), dtype_of(S_IFDIR), FIRST_COOKIE))
			return 0;
		f->pos = FIRST_COOKIE;
	}
	for (cookie = f->pos; (de = tmpfs_dir_next(dir, &cookie)) && de->cookie < df->end; f->pos = cookie) {
		if (!de->in)
			continue;
		if (!e->emit(e, de->name, de->len, de->in->vfs.ino, dtype_of(de->in->vfs.mode), cookie))
			return 0;
	}
	return 0;
}

static int tmpfs_dir_fsync(struct file *f, bool data_only)
{
	(void)f;
	(void)data_only;
	return 0;
}

static int64_t tmpfs_dir_llseek(struct file *f, int64_t off, int whence)
{
	if (whence != SEEK_SET && whence != SEEK_CUR)
		return -EINVAL;
	if (whence == SEEK_CUR && __builtin_add_overflow(off, (int64_t)f->pos, &off))
		return -EINVAL;
	if (off < 0)
		return -EINVAL;
	f->pos = (uint64_t)off;
	return off;
}

const struct file_ops tmpfs_dir_ops = {
	.file_size = sizeof(struct tmpfs_dirfile),
	.iterate = tmpfs_iterate,
	.llseek = tmpfs_dir_llseek,
	.fsync = tmpfs_dir_fsync,
};
