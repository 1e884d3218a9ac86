/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading directories of the overlay. One without a lower is read from the upper directly. Otherwise the merged
 * entries are collected once and kept with the directory until it changes; a reader keeps the listing it began with
 * until it rewinds, so that positions are stable and nothing is seen twice while entries are removed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sentry/fs/overlay.h"

#define FIRST_ENTRY  2u /* 0 and 1 are "." and ".." */
#define LISTING_MAX  (1u << 24)
#define ENTRIES_MIN  32u

struct entry {
	uint64_t ino;
	uint32_t name; /* in names */
	uint8_t len, dtype;
};

struct ovl_listing {
	uint32_t refs;
	uint32_t n, cap;
	struct entry *entries;
	char *names;
	uint32_t names_len, names_cap;
};

void ovl_listing_put(struct ovl_listing *l)
{
	if (!l || --l->refs)
		return;
	free(l->entries);
	free(l->names);
	free(l);
}

static int listing_add(struct ovl_listing *l, const char *name, size_t len, uint64_t ino, unsigned dtype)
{
	uint32_t cap;
	void *p;

	if (l->n == l->cap) {
		cap = l->cap ? l->cap * 2 : ENTRIES_MIN;
		p = l->cap < LISTING_MAX ? realloc(l->entries, cap * sizeof(struct entry)) : NULL;
		if (!p)
			return -ENOMEM;
		l->entries = p;
		l->cap = cap;
	}
	if (l->names_cap - l->names_len < len) {
		cap = MAX(l->names_cap * 2, ENTRIES_MIN * 16u);
		p = l->names_cap < UINT32_MAX / 4 ? realloc(l->names, cap) : NULL;
		if (!p)
			return -ENOMEM;
		l->names = p;
		l->names_cap = cap;
	}
	memcpy(l->names + l->names_len, name, len);
	l->entries[l->n++] = (struct entry){
		.ino = ino, .name = l->names_len, .len = (uint8_t)len, .dtype = (uint8_t)dtype,
	};
	l->names_len += (uint32_t)len;
	return 0;
}

/* ---- the lower's entries that the upper does not hide ---- */

struct lower_emit {
	struct dir_emit e;
	const struct tmpfs_inode *upper; /* NULL: none */
	struct ovl_listing *l;           /* NULL: only look whether there is one */
	uint64_t next_pos;
	unsigned seen;
	int err;
};

static bool lower_entry(struct dir_emit *e, const char *name, size_t len, uint64_t ino, unsigned dtype,
			uint64_t next_pos)
{
	struct lower_emit *le = container_of(e, struct lower_emit, e);

	le->seen++;
	le->next_pos = next_pos;
	if ((len == 1 && name[0] == '.') || (len == 2 && name[0] == '.' && name[1] == '.'))
		return true;
	if (len == 0 || len > 255 || (le->upper && tmpfs_dir_find(le->upper, name, len)))
		return true;
	le->err = le->l ? listing_add(le->l, name, len, ino, dtype) : -ENOTEMPTY;
	return le->err == 0;
}

static int read_lower(struct ovl_inode *oi, struct ovl_listing *l)
{
	struct lower_emit le = {
		.e.emit = lower_entry, .upper = oi->upper ? tmpfs_i(oi->upper) : NULL, .l = l,
	};
	struct file *f;
	uint64_t pos;
	int err;

	if (!oi->lower)
		return 0;
	err = ovl_open_real(oi->lower, O_RDONLY | O_DIRECTORY, &f);
	if (err < 0)
		return err;
	do {
		pos = f->pos;
		le.seen = 0;
		err = f->ops->iterate ? f->ops->iterate(f, &le.e) : -ENOTDIR;
		if (f->pos == pos && le.seen)
			f->pos = le.next_pos;
	} while (err == 0 && le.err == 0 && le.seen && f->pos != pos);
	file_put(f);
	return err < 0 ? err : le.err;
}

static int read_upper(struct ovl_inode *oi, struct ovl_listing *l)
{
	struct tmpfs_dirent *de;
	uint64_t cookie = 0;
	int err = 0;

	if (!oi->upper)
		return 0;
	while (err == 0 && (de = tmpfs_dir_next(tmpfs_i(oi->upper), &cookie)))
		if (de->in)
			err = listing_add(l, de->name, de->len, de->in->vfs.ino, de->in->vfs.mode >> 12 & 15);
	return err;
}

int ovl_dir_empty(struct ovl_inode *oi)
{
	if (oi->upper && tmpfs_dir_live(tmpfs_i(oi->upper)))
		return -ENOTEMPTY;
	return read_lower(oi, NULL);
}

/* The current listing of the directory, made if need be: one reference for the caller. */
static int listing_get(struct ovl_inode *oi, struct ovl_listing **ret)
{
	struct ovl_listing *l = oi->listing;
	int err;

	if (l) {
		l->refs++;
		*ret = l;
		return 0;
	}
	l = calloc(1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	l->refs = 1;
	err = read_upper(oi, l);
	if (err == 0)
		err = read_lower(oi, l);
	if (err < 0) {
		ovl_listing_put(l);
		return err;
	}
	/* A lower that the host may change is read anew by each reader. */
	if (oi->lower->sb->stable) {
		l->refs++;
		oi->listing = l;
	}
	*ret = l;
	return 0;
}

/* ---- open directories ---- */

static uint64_t parent_ino(const struct ovl_inode *oi)
{
	return oi->parent ? oi->parent->vfs.ino : oi->vfs.ino;
}

static int iterate_upper(struct file *f, struct ovl_file *of, struct dir_emit *e)
{
	int err = 0;

	if (!of->upper)
		err = ovl_open_real(ovl_i(f->inode)->upper, O_RDONLY | O_DIRECTORY, &of->upper);
	if (err < 0)
		return err;
	of->upper->pos = f->pos;
	err = of->upper->ops->iterate(of->upper, e);
	f->pos = of->upper->pos;
	return err;
}

static int ovl_iterate(struct file *f, struct dir_emit *e)
{
	struct ovl_file *of = container_of(f, struct ovl_file, file);
	struct ovl_inode *oi = ovl_i(f->inode);
	const struct ovl_listing *l;
	const struct entry *en;
	int err;

	if (oi->vfs.nlink == 0)
		return -ENOENT;
	if (!oi->lower)
		return iterate_upper(f, of, e);
	if (f->pos == 0 || !of->listing) {
		ovl_listing_put(of->listing);
		of->listing = NULL;
		err = listing_get(oi, &of->listing);
		if (err < 0)
			return err;
	}
	l = of->listing;
	if (f->pos == 0) {
		if (!e->emit(e, ".", 1, oi->vfs.ino, S_IFDIR >> 12, 1))
			return 0;
		f->pos = 1;
	}
	if (f->pos == 1) {
		if (!e->emit(e, "..", 2, parent_ino(oi), S_IFDIR >> 12, FIRST_ENTRY))
			return 0;
		f->pos = FIRST_ENTRY;
	}
	for (; f->pos - FIRST_ENTRY < l->n; f->pos++) {
		en = &l->entries[f->pos - FIRST_ENTRY];
		if (!e->emit(e, l->names + en->name, en->len, en->ino, en->dtype, f->pos + 1))
			return 0;
	}
	return 0;
}

static int64_t ovl_dir_llseek(struct file *f, int64_t off, int whence)
{
	return tmpfs_dir_ops.llseek(f, off, whence);
}

static int ovl_dir_fsync(struct file *f, bool data_only)
{
	(void)f;
	(void)data_only;
	return 0;
}

static void ovl_dir_release(struct file *f)
{
	struct ovl_file *of = container_of(f, struct ovl_file, file);

	ovl_listing_put(of->listing);
	file_put(of->upper);
}

const struct file_ops ovl_dir_ops = {
	.file_size = sizeof(struct ovl_file),
	.iterate = ovl_iterate,
	.llseek = ovl_dir_llseek,
	.fsync = ovl_dir_fsync,
	.release = ovl_dir_release,
};
