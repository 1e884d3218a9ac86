/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Address spaces: their life, fork, and copies to and from guest memory. What changes them is in apply.c.
 *
 * Copies walk the page tables as the processor would, and fill in what is missing. RAM is copied by memcpy(3); a page
 * of a file may have been cut off meanwhile, so that those are copied by the host, which tells instead of raising
 * SIGBUS.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/host/map.h"
#include "platform/kvm/fault.h"
#include "platform/kvm/machine.h"

#define ASPACES_MAX (1u << 16)

static int map_vdso(struct aspace *as)
{
	struct kmem *m = as->m;
	struct kregion r = { .obj = m->vdso, .flags = KREG_SHARED, .prot = PROT_READ, .start = m->vdso_at };
	uaddr_t end;

	if (!m->vdso)
		return 0;
	if (kregions_reserve(&as->regions, 2) < 0)
		return -ENOMEM;
	end = r.start + m->vdso->n_pages * PAGE_SIZE;
	if (m->vdso_data) {
		r.end = r.start + m->vdso_data * PAGE_SIZE;
		kregion_insert(&as->regions, kregion_new(&as->regions, &r));
	}
	if (m->vdso_data == m->vdso->n_pages)
		return 0;
	r.prot = PROT_READ | PROT_EXEC;
	r.start += m->vdso_data * PAGE_SIZE;
	r.end = end;
	r.page = m->vdso_data;
	kregion_insert(&as->regions, kregion_new(&as->regions, &r));
	return 0;
}

static struct aspace *aspace_alloc(struct platform *p)
{
	struct kmem *m = p->mem;
	struct aspace *as = m->n_aspaces < ASPACES_MAX ? calloc(1, sizeof(*as)) : NULL;

	if (!as)
		return NULL;
	ref_init(&as->ref);
	as->p = p;
	as->m = m;
	kregions_init(&as->regions, m);
	m->n_aspaces++;
	as->root = kpt_root_create(m);
	if (as->root)
		return as;
	kvm_aspace_put(as);
	return NULL;
}

struct aspace *kaspace_create(struct platform *p)
{
	struct aspace *as = aspace_alloc(p);

	if (as && map_vdso(as) < 0) {
		kvm_aspace_put(as);
		return NULL;
	}
	return as;
}

struct aspace *kvm_aspace_get(struct aspace *as)
{
	ref_get(&as->ref);
	return as;
}

void kvm_aspace_put(struct aspace *as)
{
	struct kmem *m;

	if (!as || !ref_put(&as->ref))
		return;
	m = as->m;
	if (as->root)
		kvcpu_leave(as);
	kpt_destroy(as);
	kregions_fini(&as->regions);
	free(as);
	m->n_aspaces--;
	kmem_trim(m);
}

gpa_t kaspace_root(const struct aspace *as)
{
	return as->root;
}

struct platform *kaspace_platform(const struct aspace *as)
{
	return as->p;
}

int kaspace_set_vdso(struct platform *p, uaddr_t at, const gpa_t *pages, unsigned n_data, unsigned n_pages)
{
	struct kmem *m = p->mem;
	struct kobj *o;

	BUG_ON(m->vdso || n_data > n_pages || at < PLATFORM_RESERVED_START ||
	       at + n_pages * PAGE_SIZE > PLATFORM_RESERVED_END);
	o = kobj_shared_create(m, n_pages);
	if (!o)
		return -ENOMEM;
	for (unsigned i = 0; i < n_pages; i++) {
		/* A second reference, so that on failure the caller's are still his. */
		int r = kobj_install(o, i, pages[i]);

		if (r < 0) {
			kobj_put(o);
			return r;
		}
		kmem_page_get(m, pages[i]);
	}
	for (unsigned i = 0; i < n_pages; i++)
		kmem_page_put(m, pages[i]);
	m->vdso = o;
	m->vdso_data = n_data;
	m->vdso_at = at;
	return 0;
}

static void clear_range(struct kgather *g, uaddr_t start, uaddr_t end)
{
	struct kregions *t = &g->as->regions;
	struct kregion *r;

	/* The edges lie at the platform's range and at the ends of user space: no region crosses them. */
	while ((r = kregion_find(t, start)) && r->start < end) {
		kregion_remove(t, r);
		kgather_region(g, r);
	}
	kpt_clear(g, start, end);
	kpt_prune(g, start, end, start, end);
}

void kaspace_clear(struct aspace *as)
{
	struct kgather g;

	kgather_init(&g, as);
	clear_range(&g, 0, PLATFORM_RESERVED_START);
	clear_range(&g, PLATFORM_RESERVED_END, GUEST_TASK_SIZE);
	kgather_finish(&g);
}

/* Gives the child what the parent has of @r. Entries of shared mappings are copied too: a fault costs more. */
static int fork_entries(struct kgather *g, struct aspace *child, const struct kregion *r)
{
	struct kmem *m = child->m;
	struct kleaf l;

	for (uaddr_t a = r->start; kpt_next(g->as, a, r->end, &l); a = l.end) {
		uint64_t *to = NULL;

		for (uaddr_t at = l.start; at < l.end; at += PAGE_SIZE, l.pte++) {
			uint64_t old = pte_load(l.pte), new = old;

			if (!old) {
				to += to ? 1 : 0;
				continue;
			}
			if (!to)
				to = kpt_make(child, at, NULL);
			if (!to)
				return -ENOMEM;
			if (old & PTE_OWN) {
				kmem_page_get(m, pte_page(old));
				new &= ~(PTE_W | PTE_D);
				if (!pte_present(old))
					new = old;
			}
			if (new != old) {
				pte_set(m, l.pte, new);
				kgather_lower(g, l.table);
			}
			pte_set(m, to++, new);
		}
	}
	return 0;
}

static int fork_region(struct kgather *g, struct aspace *child, const struct kregion *r)
{
	if (r->flags & KREG_DONTFORK)
		return 0;
	if (kregions_reserve(&child->regions, 1) < 0)
		return -ENOMEM;
	kregion_insert(&child->regions, kregion_new(&child->regions, r));
	return r->flags & KREG_WIPEONFORK ? 0 : fork_entries(g, child, r);
}

struct aspace *kaspace_fork(struct aspace *as)
{
	struct aspace *child = aspace_alloc(as->p);
	struct kgather g;
	int r = 0;

	if (!child)
		return NULL;
	kgather_init(&g, as);
	for (struct kregion *k = kregion_first(&as->regions); k && r == 0; k = kregion_next(k))
		r = fork_region(&g, child, k);
	kgather_flush(&g);
	if (r == 0)
		return child;
	kvm_aspace_put(child);
	return NULL;
}

/* Our address of the guest's page, accessible as asked; NULL: it is not. *file: only the host may copy. */
static uint8_t *access_page(struct aspace *as, uaddr_t addr, unsigned access, bool *file)
{
	/* Filled in, copied from a file's page and seen by another thread: more than that is not needed. */
	for (unsigned tries = 0; tries < 4; tries++) {
		uint64_t *pte = kpt_find(as, addr, NULL), v = pte ? pte_load(pte) : 0;

		if (pte_present(v) && (access == KFAULT_READ || (v & PTE_W))) {
			*file = kmem_block(as->m, pte_page(v))->kind == KBLOCK_FILE;
			return kmem_ptr(as->m, pte_page(v)) + (addr & (PAGE_SIZE - 1));
		}
		if (kfault_fill(as, addr, access) < 0)
			return NULL;
	}
	return NULL;
}

/* A piece that Linux would store or load at once, because other threads may change it by locked instructions. */
static bool is_word(uaddr_t addr, size_t n)
{
	return (n == 4 || n == 8) && !(addr & (n - 1));
}

/* memcpy(3) stores four bytes twice, at the same place: what a guest's compare-and-swap put there in between, taking a
 * lock that we had freed, would be undone. */
static void copy_word(void *to, const void *from, size_t n)
{
	if (n == 4)
		__atomic_store_n((uint32_t *)to, __atomic_load_n((const uint32_t *)from, __ATOMIC_SEQ_CST),
		                 __ATOMIC_SEQ_CST);
	else
		__atomic_store_n((uint64_t *)to, __atomic_load_n((const uint64_t *)from, __ATOMIC_SEQ_CST),
		                 __ATOMIC_SEQ_CST);
}

static void copy_ram(uint8_t *page, uint8_t *local, size_t n, unsigned access)
{
	uint64_t word;

	if (!is_word((uintptr_t)page, n)) {
		memcpy(access == KFAULT_READ ? local : page, access == KFAULT_READ ? page : local, n);
	} else if (access == KFAULT_READ) {
		copy_word(&word, page, n);
		memcpy(local, &word, n);
	} else {
		memcpy(&word, local, n);
		copy_word(page, &word, n);
	}
}

/* The host may have cut the file meanwhile, so it copies, byte for byte as it likes. */
static ssize_t copy_file(struct aspace *as, uint8_t *page, uint8_t *local, size_t n, unsigned access)
{
	if (access == KFAULT_READ)
		return host_mem_read(local, page, n);
	if (is_word((uintptr_t)page, n))
		kvm_hold(as->p);
	return host_mem_write(page, local, n);
}

static ssize_t copy_guest(struct aspace *as, uaddr_t addr, void *buf, size_t n, unsigned access)
{
	size_t done = 0;

	if (addr >= GUEST_TASK_SIZE)
		return n ? -EFAULT : 0;
	n = MIN(n, GUEST_TASK_SIZE - addr);
	while (done < n) {
		size_t part = MIN(n - done, PAGE_SIZE - ((addr + done) & (PAGE_SIZE - 1)));
		uint8_t *local = (uint8_t *)buf + done, *page;
		ssize_t r = (ssize_t)part;
		bool file;

		page = access_page(as, addr + done, access, &file);
		if (!page)
			break;
		if (file)
			r = copy_file(as, page, local, part, access);
		else
			copy_ram(page, local, part, access);
		if (r > 0)
			done += (size_t)r;
		if (r < (ssize_t)part)
			break;
	}
	return done || !n ? (ssize_t)done : -EFAULT;
}

ssize_t kvm_aspace_read(struct aspace *as, uaddr_t addr, void *buf, size_t n)
{
	return copy_guest(as, addr, buf, n, KFAULT_READ);
}

ssize_t kvm_aspace_write(struct aspace *as, uaddr_t addr, const void *buf, size_t n)
{
	return copy_guest(as, addr, (void *)buf, n, KFAULT_WRITE);
}
