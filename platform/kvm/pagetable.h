/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Page tables of address spaces, and the gathering of what goes away (pagetable.c).
 *
 * A leaf entry is one of
 *   0                          nothing
 *   PTE_P | ...                present; PTE_OWN: holds a reference to its page (private RAM)
 *   PTE_PARKED [| PTE_OWN]     the mapping forbids all access, the page is kept; the address is inverted, so that no
 *                              processor finds memory by it in speculation
 * Present entries always have A, and D when they have W: the processor never writes to a table.
 */
#ifndef SBX_PLATFORM_KVM_PAGETABLE_H
#define SBX_PLATFORM_KVM_PAGETABLE_H

#include "base/ref.h"
#include "platform/kvm/mem.h"
#include "platform/kvm/region.h"

#define PTE_OWN (1ull << 9)
#define PTE_PARKED (1ull << 10)
#define PTE_PS (1ull << 7)

#define KPT_LEAF_SPAN (1ull << 21)

struct aspace {
	struct ref ref;
	struct platform *p;
	struct kmem *m;
	gpa_t root;
	struct kregions regions;
	bool single; /* kaspace_fill_single() */
	/* The last fault that found its entry right already, and how often it came in a row. */
	uaddr_t again_addr;
	unsigned again;
};

static inline bool pte_present(uint64_t pte)
{
	return pte & PTE_P;
}

static inline gpa_t pte_page(uint64_t pte)
{
	return (pte & PTE_P ? pte : ~pte) & PTE_ADDR;
}

static inline uint64_t pte_load(const uint64_t *pte)
{
	return __atomic_load_n(pte, __ATOMIC_RELAXED);
}

/* The entry for @page with the rights @prot; @write: PROT_WRITE may be given now; @own: PTE_OWN or 0. */
uint64_t pte_make(gpa_t page, int prot, bool write, uint64_t own);
/* Writes a leaf entry: checks that it points at memory for guests. */
void pte_set(struct kmem *m, uint64_t *pte, uint64_t val);

/* A run of entries of one leaf table. */
struct kleaf {
	uaddr_t start, end;
	uint64_t *pte; /* start's */
	gpa_t table;
};

gpa_t kpt_root_create(struct kmem *m); /* 0: no memory */
/* The entry of @addr, or NULL where there is no table. */
uint64_t *kpt_find(const struct aspace *as, uaddr_t addr, gpa_t *table);
/* The same, making the tables. NULL: no memory. */
uint64_t *kpt_make(struct aspace *as, uaddr_t addr, gpa_t *table);
/* The first existing entries of [addr, end). */
bool kpt_next(const struct aspace *as, uaddr_t addr, uaddr_t end, struct kleaf *l);

/*
 * What goes away in one change. Pages, tables and regions that were taken out are freed by kgather_finish(), after the
 * vCPUs have forgotten them.
 */
#define KGATHER_TABLES 256u
#define KGATHER_PAGES 512u

struct kgather {
	struct aspace *as;
	bool lowered; /* a present entry was removed or lost rights, or a table goes away */
	unsigned n_tables, n_pages;
	struct kregion *regions;
	gpa_t tables[KGATHER_TABLES]; /* shadow paging: changed */
	gpa_t pages[KGATHER_PAGES];   /* one reference each, to be put */
};

void kgather_init(struct kgather *g, struct aspace *as);
/* A present entry in @table was removed or lowered. May flush: the entry must have been changed already. */
void kgather_lower(struct kgather *g, gpa_t table);
/* The reference of an entry that was removed, and reported with kgather_lower() if it was present. */
void kgather_page(struct kgather *g, gpa_t page);
/* @r was taken out of the tree. */
void kgather_region(struct kgather *g, struct kregion *r);
/* The vCPUs forget; pages and tables gathered so far are freed. */
void kgather_flush(struct kgather *g);
void kgather_finish(struct kgather *g);

/* Removes all entries of the range. */
void kpt_clear(struct kgather *g, uaddr_t start, uaddr_t end);
/* Frees the tables that [start, end) used and that only cover addresses of [floor, ceil), where nothing is mapped. */
void kpt_prune(struct kgather *g, uaddr_t start, uaddr_t end, uaddr_t floor, uaddr_t ceil);
/* Frees everything of an address space on which no vCPU stands. */
void kpt_destroy(struct aspace *as);

#endif
