/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Page tables: four levels, pages of 4 KiB only. Level 3 is the root, level 0 the leaf tables. The lower half of a root
 * is the guest's; its upper half is the kernel root's, whose two entries (the monitor, and on shadow-paging hosts the
 * direct map of the page tables) exist from the start and are copied.
 *
 * Whatever takes rights away goes through a struct kgather: the entry is changed, its table and page are gathered, and
 * kgather_flush() has the vCPUs forget before it frees. On hosts with nested paging that is a shootdown of TLBs; where
 * the host shadows our tables, the monitor writes to each changed table, so that the host drops its copy (kvcpu_zap()).
 * The tables that are to be freed are among the changed ones then.
 */
#include "platform/kvm/pagetable.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "platform/kvm/machine.h"

#define TOP_LEVEL 3
#define ENTRIES 512u
#define USER_ROOT 256u /* entries of a root that are the guest's */
#define TABLE_BITS (PTE_P | PTE_W | PTE_U | PTE_A)

static unsigned idx_of(uint64_t va, int level)
{
	return va >> (PAGE_SHIFT + 9 * level) & (ENTRIES - 1);
}

static uint64_t span_of(int level) /* of one entry */
{
	return 1ull << (PAGE_SHIFT + 9 * level);
}

static uint64_t *table_ptr(const struct kmem *m, gpa_t table)
{
	return (uint64_t *)kmem_ptr(m, table);
}

uint64_t pte_make(gpa_t page, int prot, bool write, uint64_t own)
{
	uint64_t pte;

	if (!(prot & (PROT_READ | PROT_WRITE | PROT_EXEC)))
		return (~page & PTE_ADDR) | PTE_PARKED | own;
	pte = page | PTE_P | PTE_U | PTE_A | own;
	if (!(prot & PROT_EXEC))
		pte |= PTE_NX;
	if (write && (prot & PROT_WRITE))
		pte |= PTE_W | PTE_D;
	return pte;
}

void pte_set(struct kmem *m, uint64_t *pte, uint64_t val)
{
	if (val) {
		gpa_t page = pte_page(val);
		enum kblock_kind kind = kmem_block(m, page)->kind;

		BUG_ON(kind != KBLOCK_RAM && kind != KBLOCK_FILE);
		BUG_ON((page - KMEM_BASE) >> KBLOCK_SHIFT >= m->slot_blocks);
		BUG_ON((val & PTE_P) && (val & (PTE_U | PTE_PS)) != PTE_U);
		BUG_ON((val & PTE_W) && page == m->zero_page);
	}
	__atomic_store_n(pte, val, __ATOMIC_RELEASE);
}

/* Follows @va down to level 0; with @bits tables are made. */
static uint64_t *walk(struct kmem *m, gpa_t root, uint64_t va, uint64_t bits, gpa_t *leaf)
{
	gpa_t t = root;

	for (int level = TOP_LEVEL; level > 0; level--) {
		uint64_t *e = table_ptr(m, t) + idx_of(va, level);

		if (!(*e & PTE_P)) {
			gpa_t new = bits ? kmem_page(m, KBLOCK_TABLE, true) : 0;

			if (!new)
				return NULL;
			__atomic_store_n(e, new | bits, __ATOMIC_RELEASE);
		}
		t = *e & PTE_ADDR;
	}
	if (leaf)
		*leaf = t;
	return table_ptr(m, t) + idx_of(va, 0);
}

uint64_t *kpt_find(const struct aspace *as, uaddr_t addr, gpa_t *table)
{
	return walk(as->m, as->root, addr, 0, table);
}

uint64_t *kpt_make(struct aspace *as, uaddr_t addr, gpa_t *table)
{
	BUG_ON(addr >= GUEST_TASK_SIZE);
	return walk(as->m, as->root, addr, TABLE_BITS, table);
}

bool kpt_next(const struct aspace *as, uaddr_t addr, uaddr_t end, struct kleaf *l)
{
	while (addr < end) {
		gpa_t t = as->root;
		int level;

		for (level = TOP_LEVEL; level > 0; level--) {
			uint64_t e = table_ptr(as->m, t)[idx_of(addr, level)];

			if (!(e & PTE_P))
				break;
			t = e & PTE_ADDR;
		}
		if (level > 0) {
			addr = ROUND_DOWN(addr, span_of(level)) + span_of(level);
			continue;
		}
		l->start = addr;
		l->end = MIN(end, ROUND_DOWN(addr, KPT_LEAF_SPAN) + KPT_LEAF_SPAN);
		l->table = t;
		l->pte = table_ptr(as->m, t) + idx_of(addr, 0);
		return true;
	}
	return false;
}

gpa_t kpt_root_create(struct kmem *m)
{
	gpa_t root = kmem_page(m, KBLOCK_TABLE, true);

	if (root)
		memcpy(table_ptr(m, root) + USER_ROOT, table_ptr(m, m->kernel_root) + USER_ROOT,
		       (ENTRIES - USER_ROOT) * sizeof(uint64_t));
	return root;
}

/* An entry of the kernel root, which must be there before any other root is made. */
static int kernel_slot(struct kmem *m, uint64_t va)
{
	gpa_t t = kmem_page(m, KBLOCK_TABLE, true);

	if (!t)
		return -ENOMEM;
	table_ptr(m, m->kernel_root)[idx_of(va, TOP_LEVEL)] = t | PTE_P | PTE_W | PTE_A;
	return 0;
}

int kpt_direct_add(struct kmem *m, const struct kblock *b)
{
	gpa_t base = KMEM_BASE + ((uint64_t)b->idx << KBLOCK_SHIFT);
	uint64_t va = kpt_direct(base), *e;
	gpa_t t = m->kernel_root;

	for (int level = TOP_LEVEL; level > 1; level--) {
		e = table_ptr(m, t) + idx_of(va, level);
		if (!(*e & PTE_P)) {
			gpa_t new = kmem_page(m, KBLOCK_TABLE, true);

			if (!new)
				return -ENOMEM;
			*e = new | PTE_P | PTE_W | PTE_A;
		}
		t = *e & PTE_ADDR;
	}
	table_ptr(m, t)[idx_of(va, 1)] = base | PTE_P | PTE_W | PTE_A | PTE_D | PTE_PS | PTE_NX;
	return 0;
}

int kpt_init(struct kmem *m)
{
	int r;

	m->kernel_root = kmem_page(m, KBLOCK_TABLE, true);
	if (!m->kernel_root)
		return -ENOMEM;
	r = kernel_slot(m, KVM_MON_BASE);
	if (r == 0 && m->shadow)
		r = kernel_slot(m, KVM_MON_DIRECT);
	if (r == 0 && m->shadow)
		r = kpt_direct_add(m, kmem_block(m, m->kernel_root));
	return r;
}

int kpt_map_system(struct platform *p, uint64_t va, gpa_t page, uint64_t bits)
{
	struct kmem *m = p->mem;
	uint64_t *pte;

	BUG_ON(idx_of(va, TOP_LEVEL) != idx_of(KVM_MON_BASE, TOP_LEVEL) || va < KVM_MON_BASE);
	BUG_ON(kmem_block(m, page)->kind != KBLOCK_SYSTEM || (bits & ~(PTE_W | PTE_NX)));
	pte = walk(m, m->kernel_root, va, PTE_P | PTE_W | PTE_A, NULL);
	if (!pte)
		return -ENOMEM;
	__atomic_store_n(pte, page | PTE_P | PTE_A | PTE_D | bits, __ATOMIC_RELEASE);
	return 0;
}

gpa_t kpt_kernel_root(struct platform *p)
{
	return p->mem->kernel_root;
}

void kgather_init(struct kgather *g, struct aspace *as)
{
	g->as = as;
	g->lowered = false;
	g->n_tables = g->n_pages = 0;
	g->regions = NULL;
}

void kgather_flush(struct kgather *g)
{
	struct kmem *m = g->as->m;

	if (g->lowered) {
		if (m->shadow)
			kvcpu_zap(g->as, g->tables, g->n_tables);
		else
			kvcpu_shootdown(g->as);
	}
	for (unsigned i = 0; i < g->n_pages; i++)
		kmem_page_put(m, g->pages[i]);
	g->lowered = false;
	g->n_tables = g->n_pages = 0;
}

void kgather_lower(struct kgather *g, gpa_t table)
{
	g->lowered = true;
	if (!g->as->m->shadow || (g->n_tables && g->tables[g->n_tables - 1] == table))
		return;
	g->tables[g->n_tables++] = table;
	if (g->n_tables == KGATHER_TABLES)
		kgather_flush(g);
}

void kgather_page(struct kgather *g, gpa_t page)
{
	g->pages[g->n_pages++] = page;
	if (g->n_pages == KGATHER_PAGES)
		kgather_flush(g);
}

void kgather_region(struct kgather *g, struct kregion *r)
{
	r->next = g->regions;
	g->regions = r;
}

void kgather_finish(struct kgather *g)
{
	struct kregion *r;

	kgather_flush(g);
	while ((r = g->regions)) {
		g->regions = r->next;
		kregion_free(&g->as->regions, r);
	}
	kmem_trim(g->as->m);
}

void kpt_clear(struct kgather *g, uaddr_t start, uaddr_t end)
{
	struct kleaf l;

	for (uaddr_t a = start; kpt_next(g->as, a, end, &l); a = l.end) {
		for (uaddr_t at = l.start; at < l.end; at += PAGE_SIZE, l.pte++) {
			uint64_t old = pte_load(l.pte);

			if (!old)
				continue;
			pte_set(g->as->m, l.pte, 0);
			if (pte_present(old))
				kgather_lower(g, l.table);
			if (old & PTE_OWN)
				kgather_page(g, pte_page(old));
		}
	}
}

/* @base: what the table's first entry covers. */
static void prune(struct kgather *g, gpa_t table, int level, uaddr_t base, uaddr_t start, uaddr_t end,
                  const uaddr_t *room)
{
	uint64_t span = span_of(level), *e;
	uaddr_t at = MAX(base, ROUND_DOWN(start, span));

	e = table_ptr(g->as->m, table) + idx_of(at, level);
	for (; at < end && at - base < span * ENTRIES; at += span, e++) {
		gpa_t child = *e & PTE_ADDR;

		if (!(*e & PTE_P))
			continue;
		if (level > 1)
			prune(g, child, level - 1, at, start, end, room);
		if (at < room[0] || at + span > room[1])
			continue;
		__atomic_store_n(e, 0, __ATOMIC_RELEASE);
		/* Both were changed: the freed one must be forgotten before it is a table again. */
		kgather_lower(g, table);
		kgather_lower(g, child);
		kgather_page(g, child);
	}
}

void kpt_prune(struct kgather *g, uaddr_t start, uaddr_t end, uaddr_t floor, uaddr_t ceil)
{
	const uaddr_t room[2] = { floor, ceil };

	prune(g, g->as->root, TOP_LEVEL, 0, start, end, room);
}

/* Gathers all that hangs below @table, itself last. */
static void destroy(struct kgather *g, gpa_t table, int level)
{
	uint64_t *e = table_ptr(g->as->m, table);
	unsigned n = level == TOP_LEVEL ? USER_ROOT : ENTRIES;

	for (unsigned i = 0; i < n; i++) {
		uint64_t old = pte_load(&e[i]);

		if (level > 0 && (old & PTE_P)) {
			destroy(g, old & PTE_ADDR, level - 1);
		} else if (level == 0 && (old & PTE_OWN)) {
			e[i] = 0;
			kgather_page(g, pte_page(old));
		}
	}
	kgather_lower(g, table);
	kgather_page(g, table);
}

void kpt_destroy(struct aspace *as)
{
	gpa_t root = as->root;
	struct kgather g;

	if (!root)
		return;
	as->root = 0; /* nobody goes there any more */
	kgather_init(&g, as);
	destroy(&g, root, TOP_LEVEL);
	kgather_flush(&g);
}
