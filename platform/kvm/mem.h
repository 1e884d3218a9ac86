/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Guest-physical memory (mem.c): what the files of the memory half share. All under platform.lock.
 *
 * The window is cut into blocks of 2 MiB. A block holds pages of one kind, so that what a page may be used for can be
 * asked of its address.
 */
#ifndef SBX_PLATFORM_KVM_MEM_H
#define SBX_PLATFORM_KVM_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bug.h"
#include "base/list.h"
#include "platform/kvm/kvm_priv.h"

#define KMEM_BASE 0x100000000ull /* of guest-physical memory: clear of the holes of a PC below 4 GiB */
#define KBLOCK_SHIFT 21
#define KBLOCK_SIZE (1ull << KBLOCK_SHIFT)
#define KBLOCK_PAGES 512u
#define KMEM_FILES_MAX 20000u /* pieces of files: each is a mapping of ours, which the host counts */
#define KMEM_PIECES 64u /* lists of them */
#define KMEM_REGIONS_MAX (1u << 20)
#define KMEM_TRIM_MIN 1024u /* free pages with memory behind them that are kept for reuse */

/*
 *   FREE    nothing; on kmem.free_blocks, or never used
 *   RAM     pages for guest mappings, with reference counts
 *   TABLE   page tables: never in a guest mapping; on shadow-paging hosts in the direct map
 *   SYSTEM  the monitor's pages: never in a guest mapping
 *   FILE    pieces of files
 * TABLE and SYSTEM blocks stay what they are.
 */
enum kblock_kind { KBLOCK_FREE, KBLOCK_RAM, KBLOCK_TABLE, KBLOCK_SYSTEM, KBLOCK_FILE, KBLOCK_KINDS };

struct kblock {
	struct list node; /* kmem.partial[kind] while a page is free, kmem.free_blocks */
	uint32_t idx;
	uint16_t n_free;
	uint8_t kind;
	bool memory;                       /* readable and writable memory is mapped there */
	uint64_t avail[KBLOCK_PAGES / 64]; /* free pages */
	uint64_t dirty[KBLOCK_PAGES / 64]; /* ... of these: not known to be zero */
	uint32_t ref[KBLOCK_PAGES];        /* RAM, TABLE, SYSTEM */
};

struct kmem {
	struct platform *p;
	bool shadow;
	uint8_t *win;
	uint64_t win_size;
	uint32_t n_blocks;    /* of the window */
	uint32_t used_blocks; /* [0, used_blocks) have a struct */
	uint32_t slot_blocks; /* [0, slot_blocks) are in memslots */
	unsigned n_slots;
	struct kblock **blocks;
	struct list partial[KBLOCK_KINDS];
	struct list free_blocks;
	uint64_t limit;      /* pages */
	uint64_t used;       /* pages of RAM, TABLE and SYSTEM in use */
	uint64_t dirty_free; /* free ones with memory behind them */
	uint64_t n_files;    /* pieces of files in the window, and large ones outside: mappings of ours */
	struct list pieces[KMEM_PIECES]; /* private pieces of files, by inode */
	uint64_t n_regions, n_chunks, n_aspaces;
	uint64_t reserved; /* bytes of our address space that map files outside the window */
	gpa_t zero_page;   /* never written, without a count */
	gpa_t kernel_root;
	struct kobj *vdso;  /* NULL: none */
	unsigned vdso_data; /* its first pages are not executable */
	uaddr_t vdso_at;
};

static inline uint8_t *kmem_ptr(const struct kmem *m, gpa_t gpa)
{
	BUG_ON(gpa < KMEM_BASE || gpa - KMEM_BASE >= m->win_size);
	return m->win + (gpa - KMEM_BASE);
}

static inline struct kblock *kmem_block(const struct kmem *m, gpa_t gpa)
{
	uint64_t i = (gpa - KMEM_BASE) >> KBLOCK_SHIFT;

	BUG_ON(gpa < KMEM_BASE || i >= m->used_blocks);
	return m->blocks[i];
}

/* A page of @kind (RAM, TABLE or SYSTEM) with one reference, zeroed when asked; 0: none left. */
gpa_t kmem_page(struct kmem *m, enum kblock_kind kind, bool zero);
void kmem_page_get(struct kmem *m, gpa_t page);
void kmem_page_put(struct kmem *m, gpa_t page);
uint32_t kmem_page_refs(const struct kmem *m, gpa_t page);
/* Are so many more pages to be had? */
bool kmem_has(const struct kmem *m, uint64_t pages);
/* Gives free memory back to the host when there is much of it. */
void kmem_trim(struct kmem *m);

/* Room for @pages (1 .. KBLOCK_PAGES) pages of a file, without access so far; 0: none left. */
gpa_t kmem_file_place(struct kmem *m, unsigned pages);
/* Unmaps what was mapped there. */
void kmem_file_free(struct kmem *m, gpa_t at, unsigned pages);

/* memslot.c: [gpa, gpa + len) of the guest is our memory at @host. 0 or -errno. */
int kvm_memslot_add(struct platform *p, unsigned slot, gpa_t gpa, uint64_t len, void *host);

/* pagetable.c: a TABLE block came to life; it gets its place in the direct map. 0 or -ENOMEM. */
int kpt_direct_add(struct kmem *m, const struct kblock *b);
int kpt_init(struct kmem *m);
/* Where the monitor sees a page table on shadow-paging hosts. */
static inline uint64_t kpt_direct(gpa_t table)
{
	return KVM_MON_DIRECT + (table - KMEM_BASE);
}

/* The pages of the vDSO, of which the first @n_data are not executable, appear at @at (in the platform's own range) in
 * every address space made from now on. They must have been allocated without KPAGE_SYSTEM; takes over their
 * references. 0 or -ENOMEM. */
int kaspace_set_vdso(struct platform *p, uaddr_t at, const gpa_t *pages, unsigned n_data, unsigned n_pages);

#endif
