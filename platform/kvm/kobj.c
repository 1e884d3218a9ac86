/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pieces of files and shared anonymous memory.
 *
 * A piece of a file is mapped into the window in chunks of at most a block. The fd is ours only during ASPACE_MAP, so
 * that everything is mapped then: a small piece into the window itself; a large one, which may be terabytes of a sparse
 * file, outside of it (the master), and the chunks that are touched get a twin of the master's pages in the window
 * later. A small private piece is mapped private and read-only: what is never written shows the file's pages, and the
 * host does not count a writable mapping (a memfd could not be sealed otherwise).
 *
 * Pages of shared anonymous memory are RAM, one reference each held by the object.
 */
#include "platform/kvm/kobj.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>

#include "base/host/at.h"
#include "base/host/file.h"
#include "base/host/map.h"
#include "platform/kvm/mem.h"

#define FILE_CHUNK KBLOCK_PAGES
#define SHARED_CHUNK 64u
#define EAGER_PAGES (16 * FILE_CHUNK) /* larger pieces get a master */
#define RESERVED_MAX (32ull << 40)    /* bytes of all masters */
#define CHUNKS_MAX (4u << 20)

struct kchunk {
	struct rb_node rb;
	uint64_t idx;
	gpa_t page[]; /* file: one, the place of the first; else SHARED_CHUNK */
};

static unsigned chunk_pages(const struct kobj *o)
{
	return o->file ? FILE_CHUNK : SHARED_CHUNK;
}

static struct kchunk *chunk_find(const struct kobj *o, uint64_t idx)
{
	struct rb_node *n = o->chunks.node;

	while (n) {
		struct kchunk *c = rb_entry(n, struct kchunk, rb);

		if (idx == c->idx)
			return c;
		n = n->child[idx > c->idx];
	}
	return NULL;
}

static struct kchunk *chunk_add(struct kobj *o, uint64_t idx)
{
	struct rb_node *n = o->chunks.node, *parent = NULL;
	struct kchunk *c;
	int side = 0;

	if (o->m->n_chunks >= CHUNKS_MAX)
		return NULL;
	c = calloc(1, sizeof(*c) + (o->file ? 1 : SHARED_CHUNK) * sizeof(c->page[0]));
	if (!c)
		return NULL;
	c->idx = idx;
	while (n) {
		parent = n;
		side = idx > rb_entry(n, struct kchunk, rb)->idx;
		n = n->child[side];
	}
	rb_insert(&o->chunks, &c->rb, parent, side);
	o->m->n_chunks++;
	return c;
}

static void chunk_drop(struct kobj *o, struct kchunk *c)
{
	rb_erase(&o->chunks, &c->rb);
	o->m->n_chunks--;
	free(c);
}

static unsigned file_chunk_len(const struct kobj *o, uint64_t idx)
{
	return (unsigned)MIN((uint64_t)FILE_CHUNK, o->n_pages - idx * FILE_CHUNK);
}

/* A place for the chunk, nothing mapped there yet. */
static struct kchunk *file_chunk_place(struct kobj *o, uint64_t idx)
{
	struct kchunk *c = chunk_add(o, idx);

	if (!c)
		return NULL;
	c->page[0] = kmem_file_place(o->m, file_chunk_len(o, idx));
	if (c->page[0])
		return c;
	chunk_drop(o, c);
	return NULL;
}

static void file_chunk_free(struct kobj *o, struct kchunk *c)
{
	kmem_file_free(o->m, c->page[0], file_chunk_len(o, c->idx));
	chunk_drop(o, c);
}

static struct kobj *kobj_alloc(struct kmem *m, bool file, uint64_t n_pages)
{
	struct kobj *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	ref_init(&o->ref);
	list_init(&o->node);
	o->m = m;
	o->file = file;
	o->n_pages = n_pages;
	return o;
}

struct map_args {
	int fd, prot, flags;
	uint64_t offset;
};

static int map_eager(struct kobj *o, const struct map_args *a)
{
	for (uint64_t i = 0; i * FILE_CHUNK < o->n_pages; i++) {
		struct kchunk *c = file_chunk_place(o, i);
		int r;

		if (!c)
			return -ENOMEM;
		r = host_map_file_at(kmem_ptr(o->m, c->page[0]), file_chunk_len(o, i) * PAGE_SIZE, a->fd,
		                     a->offset + i * FILE_CHUNK * PAGE_SIZE, a->prot, a->flags);
		if (r < 0)
			return r;
	}
	return 0;
}

static int map_master(struct kobj *o, const struct map_args *a)
{
	uint64_t len = o->n_pages * PAGE_SIZE;
	int r;

	if (len > RESERVED_MAX || o->m->reserved > RESERVED_MAX - len || o->m->n_files >= KMEM_FILES_MAX)
		return -ENOMEM;
	/* Only shared mappings have twins. It is never written through when the guest's mapping is private. */
	r = host_map_file(len, a->fd, a->offset, a->prot, MAP_SHARED, &o->master);
	if (r == 0) {
		o->m->reserved += len;
		o->m->n_files++;
	}
	return r;
}

static int map_file(struct kobj *o, const struct map_args *a)
{
	return o->n_pages > EAGER_PAGES ? map_master(o, a) : map_eager(o, a);
}

/* What fstat(2) and fstatfs(2) tell of a file. */
struct file_id {
	uint64_t dev, ino;
	bool noexec, unique; /* unique: no other file of this host has dev and ino while this one is mapped */
};

/*
 * Nothing here would stop the guest from executing what it reads: its code is not the host's. But what the host has
 * mounted noexec is not to be executed on one platform and refused on another. Inode numbers are trusted where the file
 * system keeps them on a medium of its own. Stacked ones tell those of another (overlay: the same before and after a
 * copy up, which changes the pages), remote and user-space ones what they like.
 */
static void identify(int fd, struct file_id *id)
{
	static const uint32_t trusted[] = { EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC, F2FS_SUPER_MAGIC,
		                            SQUASHFS_MAGIC };
	struct statfs fs;
	struct stat st;

	*id = (struct file_id){ .unique = false };
	if (host_fstatfs(fd, &fs) < 0 || host_fstat(fd, &st) < 0)
		return;
	id->noexec = fs.f_flags & ST_NOEXEC;
	id->dev = st.st_dev;
	id->ino = st.st_ino;
	for (size_t i = 0; i < ARRAY_SIZE(trusted); i++)
		id->unique |= (uint32_t)fs.f_type == trusted[i];
}

static struct list *pieces_of(struct kmem *m, uint64_t ino)
{
	return &m->pieces[ino % KMEM_PIECES];
}

static struct kobj *piece_find(struct kmem *m, const struct file_id *id, uint64_t offset, uint64_t n_pages)
{
	struct kobj *o;

	list_for_each_entry(o, pieces_of(m, id->ino), node)
		if (o->ino == id->ino && o->dev == id->dev && o->offset == offset && o->n_pages == n_pages &&
		    o->noexec == id->noexec)
			return o;
	return NULL;
}

/* Maps the file into a new object. Consumes nothing; *ret only on success. */
static int file_create(struct kmem *m, const struct map_args *a, uint64_t n_pages, struct kobj **ret)
{
	struct kobj *o = kobj_alloc(m, true, n_pages);
	int r;

	if (!o)
		return -ENOMEM;
	r = map_file(o, a);
	if (r < 0) {
		kobj_put(o);
		return r;
	}
	o->writable = a->prot & PROT_WRITE;
	*ret = o;
	return 0;
}

int kobj_file_create(struct kmem *m, int fd, uint64_t offset, uint64_t n_pages, bool shared, int prot,
                     struct kobj **ret)
{
	struct map_args a = { .fd = fd, .offset = offset, .prot = PROT_READ, .flags = MAP_PRIVATE };
	struct file_id id;
	struct kobj *o;
	uint64_t end;
	int r;

	if (__builtin_mul_overflow(n_pages, PAGE_SIZE, &end) || __builtin_add_overflow(end, offset, &end) ||
	    end > INT64_MAX)
		return -EOVERFLOW;
	identify(fd, &id);
	if (id.noexec && (prot & PROT_EXEC))
		return -EPERM;
	if (shared) {
		a.prot |= PROT_WRITE;
		a.flags = MAP_SHARED;
		r = file_create(m, &a, n_pages, &o);
		if (!(prot & PROT_WRITE) && (r == -EACCES || r == -EPERM)) {
			a.prot = PROT_READ;
			r = file_create(m, &a, n_pages, &o);
		}
	} else {
		/* Programs of one file share its pages, and what the host has built to reach them. */
		o = id.unique ? piece_find(m, &id, offset, n_pages) : NULL;
		if (o) {
			*ret = kobj_get(o);
			return 0;
		}
		r = file_create(m, &a, n_pages, &o);
	}
	if (r < 0)
		return r;
	o->noexec = id.noexec;
	o->dev = id.dev;
	o->ino = id.ino;
	o->offset = offset;
	if (!shared && id.unique)
		list_add(pieces_of(m, id.ino), &o->node);
	*ret = o;
	return 0;
}

struct kobj *kobj_shared_create(struct kmem *m, uint64_t n_pages)
{
	struct kobj *o = kobj_alloc(m, false, n_pages);

	if (o)
		o->writable = true;
	return o;
}

struct kobj *kobj_get(struct kobj *o)
{
	ref_get(&o->ref);
	return o;
}

void kobj_put(struct kobj *o)
{
	struct rb_node *n;

	if (!o || !ref_put(&o->ref))
		return;
	list_del(&o->node);
	while ((n = o->chunks.node)) {
		struct kchunk *c = rb_entry(n, struct kchunk, rb);

		if (o->file) {
			file_chunk_free(o, c);
			continue;
		}
		for (unsigned i = 0; i < SHARED_CHUNK; i++)
			if (c->page[i])
				kmem_page_put(o->m, c->page[i]);
		chunk_drop(o, c);
	}
	if (o->master) {
		host_unmap(o->master, o->n_pages * PAGE_SIZE);
		o->m->reserved -= o->n_pages * PAGE_SIZE;
		o->m->n_files--;
	}
	kmem_trim(o->m);
	free(o);
}

gpa_t kobj_peek(const struct kobj *o, uint64_t page)
{
	struct kchunk *c = chunk_find(o, page / chunk_pages(o));

	if (!c || page >= o->n_pages)
		return 0;
	if (o->file)
		return c->page[0] + page % FILE_CHUNK * PAGE_SIZE;
	return c->page[page % SHARED_CHUNK];
}

static int file_page(struct kobj *o, uint64_t page, gpa_t *ret)
{
	uint64_t idx = page / FILE_CHUNK;
	struct kchunk *c = chunk_find(o, idx);
	int r;

	if (!c) {
		if (!o->master)
			return -EFAULT;
		c = file_chunk_place(o, idx);
		if (!c)
			return -ENOMEM;
		r = host_map_twin_at(kmem_ptr(o->m, c->page[0]), file_chunk_len(o, idx) * PAGE_SIZE,
		                     o->master + idx * FILE_CHUNK * PAGE_SIZE);
		if (r < 0) {
			file_chunk_free(o, c);
			return -ENOMEM;
		}
	}
	*ret = c->page[0] + page % FILE_CHUNK * PAGE_SIZE;
	return 0;
}

int kobj_install(struct kobj *o, uint64_t page, gpa_t gpa)
{
	struct kchunk *c = chunk_find(o, page / SHARED_CHUNK);

	if (!c)
		c = chunk_add(o, page / SHARED_CHUNK);
	if (!c)
		return -ENOMEM;
	c->page[page % SHARED_CHUNK] = gpa;
	return 0;
}

int kobj_page(struct kobj *o, uint64_t page, gpa_t *ret)
{
	gpa_t gpa;

	if (page >= o->n_pages)
		return -EFAULT;
	if (o->file)
		return file_page(o, page, ret);
	gpa = kobj_peek(o, page);
	if (!gpa) {
		gpa = kmem_page(o->m, KBLOCK_RAM, true);
		if (!gpa)
			return -ENOMEM;
		if (kobj_install(o, page, gpa) < 0) {
			kmem_page_put(o->m, gpa);
			return -ENOMEM;
		}
	}
	*ret = gpa;
	return 0;
}

static int file_punch(struct kobj *o, uint64_t page, uint64_t n_pages)
{
	if (o->master)
		return host_madvise(o->master + page * PAGE_SIZE, n_pages * PAGE_SIZE, MADV_REMOVE);
	while (n_pages) {
		uint64_t n = MIN(n_pages, FILE_CHUNK - page % FILE_CHUNK);
		gpa_t gpa = kobj_peek(o, page);
		int r = gpa ? host_madvise(kmem_ptr(o->m, gpa), n * PAGE_SIZE, MADV_REMOVE) : 0;

		if (r < 0)
			return r;
		page += n;
		n_pages -= n;
	}
	return 0;
}

/* The pages stay where they are, so that nobody's page tables change: the host takes their memory. */
static void shared_punch(struct kobj *o, uint64_t page, uint64_t end)
{
	struct rb_node *n;

	for (n = rb_first(&o->chunks); n; n = rb_next(n)) {
		struct kchunk *c = rb_entry(n, struct kchunk, rb);

		for (unsigned i = 0; i < SHARED_CHUNK; i++) {
			uint64_t at = c->idx * SHARED_CHUNK + i;

			if (at < page || at >= end || !c->page[i])
				continue;
			if (host_madvise(kmem_ptr(o->m, c->page[i]), PAGE_SIZE, MADV_DONTNEED) < 0)
				memset(kmem_ptr(o->m, c->page[i]), 0, PAGE_SIZE);
		}
	}
}

int kobj_punch(struct kobj *o, uint64_t page, uint64_t n_pages)
{
	if (page >= o->n_pages)
		return 0;
	n_pages = MIN(n_pages, o->n_pages - page);
	if (o->file)
		return o->writable ? file_punch(o, page, n_pages) : -EACCES;
	shared_punch(o, page, page + n_pages);
	return 0;
}
