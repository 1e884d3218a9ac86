/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store: the bytes of all files that the guest makes, in one memfd seen through one window of our address space
 * and one unlinked disk file behind it, with a hard quota of bytes and inodes (theory in store.c).
 * struct store_file is the data of one regular file, embedded in its inode.
 */
#ifndef SBX_SENTRY_FS_STORE_H
#define SBX_SENTRY_FS_STORE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/list.h"
#include "base/macros.h"
#include "sentry/fs/fs.h"

struct uio;

#define STORE_BLOCK        4096u
#define STORE_BLOCK_SHIFT  12
#define STORE_INLINE_MAX   2048u              /* a file up to this size has no block */
#define STORE_SIZE_MAX     INT64_MAX          /* of one file */
#define STORE_PRIVATE_MAX  16384u             /* files with a memfd of their own */
#define STORE_PRIVATE_SOFT 1024u              /* above, files that are no longer mapped move back */
#define STORE_DIRTY_MAX    8192u              /* free blocks that still hold host memory */
#define STORE_HOT          4u                 /* small accesses after which a block is used through the window */
#define STORE_MAX_BYTES    (1ull << 43)       /* of a store: block numbers are 32 bits */
#define STORE_META_PER_INODE 1024u            /* see store_meta_charge() */

struct store {
	int fd;
	uint8_t *base;        /* window onto all of fd */
	int disk;             /* -1: none */
	uint32_t disk_start;  /* the first block that lies in it; n_blocks without one */
	uint32_t n_blocks;
	uint64_t max_bytes, used_bytes;
	uint64_t max_inodes, used_inodes;
	uint64_t max_meta, used_meta;
	/* Bit maps, a bit a block: allocated; its host page may hold data. full: a bit a word of used, all of it
	 * is set. */
	uint64_t *used, *dirty, *full;
	uint8_t *heat;        /* small accesses of each block since its page came, at most STORE_HOT */
	uint32_t n_words;
	uint32_t dirty_free;  /* blocks that are dirty and not used */
	uint32_t low;         /* no block below is free */
	uint32_t rover;       /* where big files look for room */
	uint32_t high;        /* no block from here on was ever used */
	uint32_t n_private;
	uint64_t private_bytes, max_private; /* in memfds of their own: host memory */
	struct list idle;     /* store_private.idle: not mapped, oldest first */
};

/* The fd that holds block @b, and where in it. */
int store_backing(const struct store *s, uint32_t b, uint64_t *at);

/* Quota. -ENOSPC at the limit (noted in kernel.counters). Metadata (names, block maps, attributes) has its own
 * bound, in proportion to the inodes. */
MUST_CHECK int store_charge(struct store *s, uint64_t bytes);
int store_full(void); /* notes that the limit was met; -ENOSPC */
void store_uncharge(struct store *s, uint64_t bytes);
MUST_CHECK int store_meta_charge(struct store *s, uint64_t bytes);
void store_meta_uncharge(struct store *s, uint64_t bytes);
MUST_CHECK int store_inode_charge(struct store *s);
void store_inode_uncharge(struct store *s);

/* Allocates a run of 1..want blocks, behind @goal where possible (0: anywhere); @chunk: how much room to look for.
 * Charges them. The content is unknown where store_block_dirty() says so, else zero. Returns how many, or -ENOSPC. */
MUST_CHECK int64_t store_alloc(struct store *s, uint32_t goal, uint32_t want, uint32_t chunk, uint32_t *start);
void store_free(struct store *s, uint32_t start, uint32_t n);
bool store_block_dirty(const struct store *s, uint32_t b);
void store_mark_dirty(struct store *s, uint32_t b, uint32_t n); /* of used blocks */
/* Gives the host memory of free blocks back. */
void store_punch(struct store *s);

/* store_io.c: data of runs of used blocks, which are marked dirty by writing. @off is in the run. Bytes, short
 * only when the guest's buffer ended, or -errno. To read, the blocks must be dirty. */
MUST_CHECK ssize_t store_io_read(struct store *s, uint32_t b, uint64_t off, struct uio *u, uint64_t n);
MUST_CHECK ssize_t store_io_write(struct store *s, uint32_t b, uint64_t off, struct uio *u, uint64_t n);
/* The same for one block and our own buffer. */
MUST_CHECK int store_io_get(struct store *s, uint32_t b, uint32_t off, void *buf, size_t n);
MUST_CHECK int store_io_put(struct store *s, uint32_t b, uint32_t off, const void *buf, size_t n);
/* Zeroes [from, to) of a block; nothing to do for a clean one. */
MUST_CHECK int store_io_zero(struct store *s, uint32_t b, uint32_t from, uint32_t to);

enum store_kind {
	STORE_INLINE,  /* bytes in a malloc block of cap bytes (or none) */
	STORE_BLOCKS,  /* a radix tree of block numbers */
	STORE_PRIVATE, /* a memfd of its own */
};

/* A file whose bytes live in a memfd of their own, because the guest maps it. */
struct store_private {
	struct list idle;
	struct store_file *sf;
	int fd;
	uint32_t mapped;  /* open files that gave their fd to a mapping */
	uint64_t size;
	uint64_t charged;
	bool pinned;      /* never moved back */
};

/* Zeroed: an empty file. Bytes behind the file's end are zero in whatever is allocated. */
struct store_file {
	union {
		uint8_t *bytes;             /* INLINE */
		void *map;                  /* BLOCKS: a leaf (height 0) or a node */
		struct store_private *priv; /* PRIVATE */
	};
	uint32_t cap;      /* INLINE: bytes; BLOCKS: slots of the leaf at height 0 */
	uint32_t n_blocks; /* BLOCKS: allocated */
	uint32_t goal;     /* BLOCKS: the block behind the last one allocated */
	uint8_t kind, height;
};

/* Frees all; ends empty. */
void store_file_clear(struct store *s, struct store_file *sf);
/* @size is always the file's size before the call. Reads at most up to @size; bytes or -errno. */
MUST_CHECK ssize_t store_file_read(struct store *s, struct store_file *sf, uint64_t size, struct uio *u, uint64_t off);
/* Writes all of @u at @off: bytes (short when memory, quota or the guest's buffer ended) or -errno. The caller
 * then sets its size to MAX(size, off + bytes). */
MUST_CHECK ssize_t store_file_write(struct store *s, struct store_file *sf, uint64_t size, struct uio *u, uint64_t off);
MUST_CHECK int store_file_truncate(struct store *s, struct store_file *sf, uint64_t size, uint64_t new_size);
/* Zeroes a range and frees its whole blocks. The size does not change. */
MUST_CHECK int store_file_punch(struct store *s, struct store_file *sf, uint64_t size, uint64_t off, uint64_t len);
/* Allocates the blocks of a range (zero where there was a hole). */
MUST_CHECK int store_file_reserve(struct store *s, struct store_file *sf, uint64_t size, uint64_t off, uint64_t len);
/* SEEK_DATA, SEEK_HOLE: an offset, or -ENXIO. */
MUST_CHECK int64_t store_file_seek(struct store *s, struct store_file *sf, uint64_t size, uint64_t off, bool data);
/* 512-byte units as of stat(2). */
uint64_t store_file_stat_blocks(const struct store_file *sf, uint64_t size);

/* Moves the file to a memfd of its own unless it is there; @memfd_flags: MFD_*. */
MUST_CHECK int store_file_make_private(struct store *s, struct store_file *sf, uint64_t size, unsigned memfd_flags);
/* The file was mapped, or the last mapping through an open file went. Moves the file back when there are too many. */
void store_private_hold(struct store *s, struct store_private *p);
void store_private_release(struct store *s, struct store_private *p);

/* Used by store_file.c alone: the PRIVATE side of the functions above. */
MUST_CHECK ssize_t store_private_read(struct store_private *p, struct uio *u, uint64_t off);
MUST_CHECK ssize_t store_private_write(struct store *s, struct store_private *p, struct uio *u, uint64_t off);
MUST_CHECK int store_private_truncate(struct store *s, struct store_private *p, uint64_t new_size);
MUST_CHECK int store_private_punch(struct store_private *p, uint64_t off, uint64_t len);
MUST_CHECK int store_private_reserve(struct store *s, struct store_private *p, uint64_t off, uint64_t len);
void store_private_destroy(struct store *s, struct store_private *p);

#endif
