/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Demand paging and copy-on-write.
 *
 * Where an entry's page comes from: private anonymous memory is RAM of its own (PTE_OWN), or the zero page as long as
 * it was only read. Shared mappings show their object's pages. Private mappings of a file show the file's page without
 * write permission until the first write, which copies it. A page with PTE_OWN may be written only while it has one
 * reference: after a fork it has two, and the first writer of each side copies, or takes the page over when it is the
 * last.
 *
 * A fault fills the other pages of an aligned group of AROUND too, as far as the region goes, because an exit costs
 * more than a page.
 */
#include "platform/kvm/fault.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

#include "base/host/map.h"

#define AROUND 16u
#define AROUND_SPARE 1024u /* pages: with fewer left only what is needed is filled in */
#define AGAIN_MAX 3u

/* The page-fault error code. */
#define PF_PRESENT 1u
#define PF_WRITE 2u
#define PF_USER 4u
#define PF_EXEC 16u
#define PF_TRAPNO 14u

bool kfault_allowed(int prot, unsigned access)
{
	if (access & KFAULT_WRITE)
		return prot & PROT_WRITE;
	if (access & KFAULT_EXEC)
		return prot & PROT_EXEC;
	return prot & (PROT_READ | PROT_WRITE | PROT_EXEC);
}

/* The pages around the fault that may be filled in too. */
struct around {
	struct aspace *as;
	struct kregion *r;
	uaddr_t addr;       /* the page that is needed */
	uaddr_t start, end; /* in one leaf table */
	uint64_t *pte;      /* start's */
	gpa_t table;
};

static void around_init(struct around *a, struct aspace *as, struct kregion *r, uaddr_t addr, uint64_t *pte,
                        gpa_t table)
{
	unsigned n = !as->single && kmem_has(as->m, AROUND_SPARE) ? AROUND : 1;
	uaddr_t first = ROUND_DOWN(addr, n * PAGE_SIZE);

	*a = (struct around){ .as = as, .r = r, .addr = addr, .table = table };
	a->start = MAX(first, r->start);
	a->end = MIN(first + n * PAGE_SIZE, r->end);
	a->pte = pte - ((addr - a->start) >> PAGE_SHIFT);
}

static uint64_t object_page(const struct kregion *r, uaddr_t at)
{
	return r->page + ((at - r->start) >> PAGE_SHIFT);
}

static bool pte_allows(uint64_t pte, bool write)
{
	return pte_present(pte) && (!write || (pte & PTE_W));
}

static int fill_anonymous(struct around *a, bool write)
{
	struct kmem *m = a->as->m;
	struct kgather g;
	uint64_t *pte = a->pte;

	kgather_init(&g, a->as);
	for (uaddr_t at = a->start; at < a->end; at += PAGE_SIZE, pte++) {
		uint64_t old = pte_load(pte);
		gpa_t page = m->zero_page;

		if (old && !(write && pte_present(old) && pte_page(old) == m->zero_page))
			continue;
		if (write)
			page = kmem_page(m, KBLOCK_RAM, true);
		if (!page)
			continue;
		pte_set(m, pte, pte_make(page, a->r->prot, write, write ? PTE_OWN : 0));
		if (old)
			kgather_lower(&g, a->table);
	}
	kgather_flush(&g);
	pte = a->pte + ((a->addr - a->start) >> PAGE_SHIFT);
	return pte_allows(pte_load(pte), write) ? 0 : -ENOMEM;
}

/* How many pages from @gpa on, @step apart, the file really has. */
static unsigned file_probe(const struct around *a, gpa_t gpa, ssize_t step, unsigned n)
{
	ssize_t r = host_mem_probe(kmem_ptr(a->as->m, gpa), step * (ssize_t)PAGE_SIZE, n);

	return r < 0 ? 0 : (unsigned)r;
}

static bool same_chunk(gpa_t a, gpa_t b, uint64_t pages)
{
	return b - a == pages * PAGE_SIZE;
}

/* Narrows the range to what lies behind each other in the window and before the end of the file. */
static int narrow_to_file(struct around *a, gpa_t gpa)
{
	uint64_t before = (a->addr - a->start) >> PAGE_SHIFT, after = (a->end - a->addr) >> PAGE_SHIFT;
	struct kobj *o = a->r->obj;
	uint64_t page = object_page(a->r, a->addr);
	unsigned n;

	while (before && !same_chunk(kobj_peek(o, page - before), gpa, before))
		before--;
	while (after > 1 && !same_chunk(gpa, kobj_peek(o, page + after - 1), after - 1))
		after--;
	n = file_probe(a, gpa, 1, (unsigned)after);
	if (!n)
		return -EFAULT;
	a->end = a->addr + n * PAGE_SIZE;
	if (before)
		before = file_probe(a, gpa - PAGE_SIZE, -1, (unsigned)before);
	a->pte += ((a->addr - a->start) >> PAGE_SHIFT) - before;
	a->start = a->addr - before * PAGE_SIZE;
	return 0;
}

/* A copy of the page that @gpa shows, with one reference. */
static int copy_page(struct kmem *m, gpa_t gpa, bool file, gpa_t *ret)
{
	gpa_t new = kmem_page(m, KBLOCK_RAM, gpa == m->zero_page);

	if (!new)
		return -ENOMEM;
	if (file && host_mem_read(kmem_ptr(m, new), kmem_ptr(m, gpa), PAGE_SIZE) != (ssize_t)PAGE_SIZE) {
		kmem_page_put(m, new);
		return -EFAULT;
	}
	if (!file && gpa != m->zero_page)
		memcpy(kmem_ptr(m, new), kmem_ptr(m, gpa), PAGE_SIZE);
	*ret = new;
	return 0;
}

static int fill_object(struct around *a, bool write)
{
	struct kmem *m = a->as->m;
	struct kregion *r = a->r;
	bool shared = r->flags & KREG_SHARED;
	uint64_t *pte = a->pte + ((a->addr - a->start) >> PAGE_SHIFT);
	gpa_t gpa;
	int err = kobj_page(r->obj, object_page(r, a->addr), &gpa);

	if (err < 0)
		return err;
	if (!shared && write) {
		/* The copy at once, and nothing around: what is read-only there would have to go again. */
		err = copy_page(m, gpa, r->obj->file, &gpa);
		if (err == 0)
			pte_set(m, pte, pte_make(gpa, r->prot, true, PTE_OWN));
		return err;
	}
	if (r->obj->file) {
		err = narrow_to_file(a, gpa);
		if (err < 0)
			return err;
	}
	pte = a->pte;
	for (uaddr_t at = a->start; at < a->end; at += PAGE_SIZE, pte++) {
		if (pte_load(pte))
			continue;
		if (kobj_page(r->obj, object_page(r, at), &gpa) == 0)
			pte_set(m, pte, pte_make(gpa, r->prot, shared, 0));
		else if (at == a->addr)
			return -ENOMEM;
	}
	return 0;
}

/* A write to a page of a private mapping that is there without write permission. */
static int break_cow(struct aspace *as, struct kregion *r, uaddr_t addr, uint64_t *pte, gpa_t table)
{
	struct kmem *m = as->m;
	uint64_t old = pte_load(pte);
	gpa_t page = pte_page(old), new;
	struct kgather g;
	int err;

	if (page == m->zero_page && !(old & PTE_OWN)) {
		struct around a;

		around_init(&a, as, r, addr, pte, table);
		return fill_anonymous(&a, true);
	}
	if ((old & PTE_OWN) && kmem_page_refs(m, page) == 1) {
		pte_set(m, pte, pte_make(page, r->prot, true, PTE_OWN)); /* a translation without W only faults again */
		return 0;
	}
	err = copy_page(m, page, !(old & PTE_OWN) && r->obj && r->obj->file, &new);
	if (err < 0)
		return err;
	kgather_init(&g, as);
	pte_set(m, pte, pte_make(new, r->prot, true, PTE_OWN));
	kgather_lower(&g, table);
	if (old & PTE_OWN)
		kgather_page(&g, page);
	kgather_flush(&g);
	return 0;
}

int kfault_fill(struct aspace *as, uaddr_t addr, unsigned access)
{
	bool write = access & KFAULT_WRITE;
	struct around a;
	struct kregion *r;
	uint64_t *pte;
	gpa_t table;

	addr = ROUND_DOWN(addr, PAGE_SIZE);
	if (addr >= GUEST_TASK_SIZE)
		return -ENXIO;
	r = kregion_at(&as->regions, addr);
	if (!r)
		return -ENXIO;
	if (!kfault_allowed(r->prot, access))
		return -EACCES;
	pte = kpt_make(as, addr, &table);
	if (!pte)
		return -ENOMEM;
	if (pte_present(pte_load(pte))) {
		if (pte_allows(pte_load(pte), write))
			return 0;
		/* Entries of shared mappings have W whenever the mapping has. */
		BUG_ON(r->flags & KREG_SHARED);
		return break_cow(as, r, addr, pte, table);
	}
	around_init(&a, as, r, addr, pte, table);
	return r->obj ? fill_object(&a, write) : fill_anonymous(&a, write);
}

/* The guest faults on an entry that is right. That happens once when another vCPU was faster or rights were added; when
 * it goes on, the host's copy of the table is stale: it is made to forget. */
static void seen_again(struct aspace *as, uaddr_t addr)
{
	struct kgather g;
	gpa_t table;

	as->again = as->again_addr == addr ? as->again + 1 : 1;
	as->again_addr = addr;
	if (as->again < AGAIN_MAX || !kpt_find(as, addr, &table))
		return;
	as->again = 0;
	kgather_init(&g, as);
	kgather_lower(&g, table);
	kgather_flush(&g);
}

static bool entry_allows(struct aspace *as, uaddr_t addr, unsigned access)
{
	uint64_t *pte = addr < GUEST_TASK_SIZE ? kpt_find(as, addr, NULL) : NULL, v = pte ? pte_load(pte) : 0;

	return pte_allows(v, access & KFAULT_WRITE) && (!(access & KFAULT_EXEC) || !(v & PTE_NX));
}

int kaspace_fault(struct aspace *as, uint64_t addr, uint64_t err, struct trap *trap)
{
	unsigned access = err & PF_WRITE ? KFAULT_WRITE : err & PF_EXEC ? KFAULT_EXEC : KFAULT_READ;
	int r;

	if (entry_allows(as, addr, access)) {
		seen_again(as, addr);
		return 0;
	}
	r = kfault_fill(as, addr, access);
	if (r == 0)
		return 0;
	if (addr >= GUEST_TASK_SIZE) /* Linux: what belongs to the kernel looks present to the guest */
		err |= PF_PRESENT;
	*trap = (struct trap){
		.kind = TRAP_FAULT,
		.fault = { .addr = addr,
		           .err = (err & (PF_PRESENT | PF_WRITE | PF_EXEC)) | PF_USER,
		           .trapno = PF_TRAPNO },
	};
	switch (r) {
	case -ENOMEM: /* as Linux's OOM killer */
		trap->fault.signo = SIGKILL;
		trap->fault.code = SI_KERNEL;
		break;
	case -EFAULT:
		trap->fault.signo = SIGBUS;
		trap->fault.code = BUS_ADRERR;
		break;
	default:
		trap->fault.signo = SIGSEGV;
		trap->fault.code = r == -EACCES ? SEGV_ACCERR : SEGV_MAPERR;
	}
	return r;
}

/* Of the @n entries at @pte, pages of a file one behind the other, takes away those behind its end, or @all. */
static bool drop_run(struct kgather *g, const struct kleaf *l, uint64_t *pte, unsigned n, bool all)
{
	struct kmem *m = g->as->m;
	bool dropped = false;

	while (n) {
		ssize_t ok = all ? 0 : host_mem_probe(kmem_ptr(m, pte_page(pte_load(pte))), PAGE_SIZE, n);

		if (ok < 0 || ok >= (ssize_t)n)
			break;
		pte += ok;
		n -= (unsigned)ok;
		pte_set(m, pte++, 0);
		kgather_lower(g, l->table);
		n--;
		dropped = true;
	}
	return dropped;
}

static bool drop_in_leaf(struct kgather *g, const struct kleaf *l, bool all)
{
	unsigned n = (unsigned)((l->end - l->start) >> PAGE_SHIFT), run;
	struct kmem *m = g->as->m;
	bool dropped = false;

	for (unsigned i = 0; i < n; i += run) {
		uint64_t first = pte_load(&l->pte[i]);

		run = 1;
		if (!pte_present(first) || kmem_block(m, pte_page(first))->kind != KBLOCK_FILE)
			continue;
		while (i + run < n && run < HOST_PROBE_MAX && pte_present(pte_load(&l->pte[i + run])) &&
		       pte_page(pte_load(&l->pte[i + run])) == pte_page(first) + run * PAGE_SIZE)
			run++;
		dropped |= drop_run(g, l, &l->pte[i], run, all);
	}
	return dropped;
}

static bool drop_files(struct aspace *as, bool all)
{
	bool dropped = false;
	struct kregion *r;
	struct kgather g;
	struct kleaf l;

	kgather_init(&g, as);
	for (r = kregion_first(&as->regions); r; r = kregion_next(r)) {
		if (!r->obj || !r->obj->file)
			continue;
		for (uaddr_t a = r->start; kpt_next(as, a, r->end, &l); a = l.end)
			dropped |= drop_in_leaf(&g, &l, all);
	}
	kgather_flush(&g);
	return dropped;
}

bool kaspace_drop_truncated(struct aspace *as)
{
	return drop_files(as, false);
}

void kaspace_drop_files(struct aspace *as)
{
	(void)drop_files(as, true);
}

void kaspace_fill_single(struct aspace *as, bool on)
{
	as->single = on;
}
