/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes of an address space: aspace_apply(). An op first gets what it may lack (structs, an object), so that it fails
 * before anything is changed or not at all; the exceptions are those of Linux: what MAP_FIXED or a remap replaces is
 * gone when it fails for lack of memory, and a populating that runs out is no failure of the mapping.
 */
#include <errno.h>
#include <sys/mman.h>

#include "platform/kvm/fault.h"
#include "platform/kvm/machine.h"
#include "platform/stub/mmop.h"

/* Frees the tables of [start, end), where no region is. */
static void prune(struct kgather *g, uaddr_t start, uaddr_t end)
{
	struct kregions *t = &g->as->regions;
	struct kregion *next = kregion_find(t, start), *prev = next ? kregion_prev(next) : kregion_last(t);

	kpt_prune(g, start, end, prev ? prev->end : 0, next ? next->start : GUEST_TASK_SIZE);
}

/* Takes out all of [start, end), which needs two spares. */
static void unmap(struct kgather *g, uaddr_t start, uaddr_t end)
{
	struct kregions *t = &g->as->regions;
	struct kregion *r;

	kregions_cut(t, start, end);
	while ((r = kregion_find(t, start)) && r->start < end) {
		kregion_remove(t, r);
		kgather_region(g, r);
	}
	kpt_clear(g, start, end);
	prune(g, start, end);
}

static void populate(struct aspace *as, uaddr_t start, uaddr_t end, unsigned access)
{
	for (uaddr_t at = start; at < end; at += PAGE_SIZE)
		if (kfault_fill(as, at, access) < 0)
			return;
}

static int new_object(struct kmem *m, const struct aspace_op *op, struct kobj **ret)
{
	uint64_t n = op->len >> PAGE_SHIFT;
	bool shared = op->flags & ASPACE_SHARED;

	*ret = NULL;
	if (op->fd >= 0)
		return kobj_file_create(m, op->fd, op->offset, n, shared, op->prot, ret);
	if (!shared)
		return 0;
	*ret = kobj_shared_create(m, n);
	return *ret ? 0 : -ENOMEM;
}

static int apply_map(struct aspace *as, const struct aspace_op *op)
{
	struct kregion like = { .start = op->addr, .end = op->addr + op->len, .prot = (uint8_t)op->prot };
	struct kregions *t = &as->regions;
	struct kgather g;
	int r = kregions_reserve(t, 3);

	if (r == 0)
		r = new_object(as->m, op, &like.obj);
	if (r < 0)
		return r;
	if (op->flags & ASPACE_SHARED)
		like.flags = KREG_SHARED;
	kgather_init(&g, as);
	unmap(&g, like.start, like.end);
	kgather_finish(&g);
	kregion_insert(t, kregion_new(t, &like));
	kobj_put(like.obj);
	kregions_merge(t, like.start, like.end);
	if ((op->flags & ASPACE_LOCKED) && op->prot)
		populate(as, like.start, like.end,
		         (op->prot & PROT_WRITE) && !(op->flags & ASPACE_SHARED) ? KFAULT_WRITE : KFAULT_READ);
	return 0;
}

static int apply_unmap(struct aspace *as, const struct aspace_op *op)
{
	struct kgather g;
	int r = kregions_reserve(&as->regions, 2);

	if (r < 0)
		return r;
	kgather_init(&g, as);
	unmap(&g, op->addr, op->addr + op->len);
	kgather_finish(&g);
	return 0;
}

/* The entry as it is to be with the region's new rights. */
static uint64_t pte_reprotect(struct kmem *m, const struct kregion *r, uint64_t old)
{
	bool own = old & PTE_OWN, shared = r->flags & KREG_SHARED;
	gpa_t page = pte_page(old);

	return pte_make(page, r->prot, shared || (own && kmem_page_refs(m, page) == 1), old & PTE_OWN);
}

static bool pte_lowers(uint64_t old, uint64_t new)
{
	return pte_present(old) && (!pte_present(new) || (old & ~new & PTE_W) || (new & ~old & PTE_NX));
}

static void protect_region(struct kgather *g, struct kregion *r, int prot)
{
	struct kleaf l;

	if (r->prot == prot)
		return;
	r->prot = (uint8_t)prot;
	for (uaddr_t a = r->start; kpt_next(g->as, a, r->end, &l); a = l.end) {
		for (uaddr_t at = l.start; at < l.end; at += PAGE_SIZE, l.pte++) {
			uint64_t old = pte_load(l.pte), new;

			if (!old)
				continue;
			new = pte_reprotect(g->as->m, r, old);
			if (new == old)
				continue;
			pte_set(g->as->m, l.pte, new);
			if (pte_lowers(old, new))
				kgather_lower(g, l.table);
		}
	}
}

static int apply_protect(struct aspace *as, const struct aspace_op *op)
{
	struct kregions *t = &as->regions;
	uaddr_t end = op->addr + op->len;
	struct kregion *r;
	struct kgather g;
	int err = kregions_reserve(t, 2);

	if (err < 0)
		return err;
	if (!kregions_cover(t, op->addr, end))
		return -ENOMEM;
	for (r = kregion_at(t, op->addr); r && r->start < end; r = kregion_next(r)) {
		if ((op->prot & PROT_WRITE) && (r->flags & KREG_SHARED) && !r->obj->writable)
			return -EACCES;
		if ((op->prot & PROT_EXEC) && r->obj && r->obj->noexec)
			return -EACCES;
	}
	kregions_cut(t, op->addr, end);
	kgather_init(&g, as);
	for (r = kregion_at(t, op->addr); r && r->start < end; r = kregion_next(r))
		protect_region(&g, r, op->prot);
	kgather_finish(&g);
	kregions_merge(t, op->addr, end);
	return 0;
}

/* Tables for what [from, from + len) has in @to, so that the move cannot fail. */
static int make_tables(struct aspace *as, uaddr_t from, uint64_t len, uaddr_t to)
{
	struct kleaf l;

	for (uaddr_t a = from; kpt_next(as, a, from + len, &l); a = l.end)
		/* One leaf's range may lie across two at the new place. */
		if (!kpt_make(as, to + (l.start - from), NULL) || !kpt_make(as, to + (l.end - PAGE_SIZE - from), NULL))
			return -ENOMEM;
	return 0;
}

static void move_entries(struct kgather *g, uaddr_t from, uint64_t len, uaddr_t to)
{
	struct kmem *m = g->as->m;
	struct kleaf l;

	for (uaddr_t a = from; kpt_next(g->as, a, from + len, &l); a = l.end) {
		for (uaddr_t at = l.start; at < l.end; at += PAGE_SIZE, l.pte++) {
			uint64_t old = pte_load(l.pte), *new;

			if (!old)
				continue;
			new = kpt_find(g->as, to + (at - from), NULL);
			BUG_ON(!new || pte_load(new));
			pte_set(m, l.pte, 0);
			pte_set(m, new, old);
			if (pte_present(old))
				kgather_lower(g, l.table);
		}
	}
}

/* The regions of [from, from + len) at @to, @more bytes longer. Needs a spare for each. */
static void copy_regions(struct kregions *t, uaddr_t from, uint64_t len, uaddr_t to, uint64_t more)
{
	uaddr_t end = from + len;

	for (uaddr_t at = from; at < end;) {
		struct kregion *n = kregion_new(t, kregion_at(t, at));

		at = n->end;
		n->start += to - from;
		n->end += to - from;
		if (at == end)
			n->end += more;
		kregion_insert(t, n);
	}
}

/* Shared memory at @addr a second time. */
static int remap_again(struct aspace *as, const struct aspace_op *op)
{
	struct kregions *t = &as->regions;
	struct kregion *r = kregion_at(t, op->addr), like;
	struct kgather g;

	if (!r)
		return -EFAULT;
	if (!(r->flags & KREG_SHARED) || (op->addr >= op->new_addr && op->addr - op->new_addr < op->new_len))
		return -EINVAL;
	if (kregions_reserve(t, 3) < 0)
		return -ENOMEM;
	like = *r;
	like.page += (op->addr - r->start) >> PAGE_SHIFT;
	like.start = op->new_addr;
	like.end = op->new_addr + op->new_len;
	r = kregion_new(t, &like); /* holds the object */
	kgather_init(&g, as);
	unmap(&g, like.start, like.end);
	kgather_finish(&g);
	kregion_insert(t, r);
	kregions_merge(t, like.start, like.end);
	return 0;
}

/* A piece of a file has a fixed end: what lies behind it needs an fd, so a map op. */
static bool may_grow(const struct kregion *last, uint64_t more)
{
	uint64_t room;

	if (!more || !last->obj || !last->obj->file)
		return true;
	room = last->obj->n_pages - last->page - ((last->end - last->start) >> PAGE_SHIFT);
	return more >> PAGE_SHIFT <= room;
}

static int grow_in_place(struct aspace *as, const struct aspace_op *op)
{
	struct kregions *t = &as->regions;
	uaddr_t end = op->addr + op->len, new_end = op->addr + op->new_len;
	struct kregion *r = kregion_at(t, end - PAGE_SIZE), *next;

	if (!kregions_cover(t, op->addr, end))
		return -EFAULT;
	next = kregion_next(r);
	if (r->end != end || (next && next->start < new_end) || !may_grow(r, new_end - end))
		return -ENOMEM;
	r->end = new_end;
	kregions_merge(t, op->addr, new_end);
	return 0;
}

static unsigned count_regions(struct kregions *t, uaddr_t start, uaddr_t end)
{
	unsigned n = 0;

	for (struct kregion *r = kregion_at(t, start); r && r->start < end; r = kregion_next(r))
		n++;
	return n;
}

static int move_away(struct aspace *as, const struct aspace_op *op)
{
	struct kregions *t = &as->regions;
	uaddr_t end = op->addr + op->len, new_end = op->new_addr + op->new_len;
	uint64_t more = op->new_len - op->len;
	struct kgather g;
	int r;

	if (op->new_addr < end && op->addr < new_end)
		return -EINVAL;
	if (!kregions_cover(t, op->addr, end))
		return -EFAULT;
	r = kregions_reserve(t, 4 + count_regions(t, op->addr, end));
	if (r < 0)
		return r;
	if (!may_grow(kregion_at(t, end - PAGE_SIZE), more))
		return -ENOMEM;
	kgather_init(&g, as);
	unmap(&g, op->new_addr, new_end);
	r = make_tables(as, op->addr, op->len, op->new_addr);
	if (r == 0) {
		kregions_cut(t, op->addr, end);
		copy_regions(t, op->addr, op->len, op->new_addr, more);
		move_entries(&g, op->addr, op->len, op->new_addr);
		if (!(op->flags & ASPACE_DONTUNMAP))
			unmap(&g, op->addr, end);
	} else {
		prune(&g, op->new_addr, new_end);
	}
	kgather_finish(&g);
	kregions_merge(t, op->new_addr, new_end);
	kregions_merge(t, op->addr, end);
	return r;
}

static int apply_remap(struct aspace *as, const struct aspace_op *op)
{
	if (op->len == 0)
		return remap_again(as, op);
	if (op->new_len < op->len)
		return -EINVAL;
	return op->new_addr == op->addr ? grow_in_place(as, op) : move_away(as, op);
}

static int advise_flags(struct aspace *as, uaddr_t start, uaddr_t end, uint8_t set, uint8_t clear)
{
	struct kregions *t = &as->regions;
	struct kregion *r;

	if (kregions_reserve(t, 2) < 0)
		return -ENOMEM;
	kregions_cut(t, start, end);
	for (r = kregion_find(t, start); r && r->start < end; r = kregion_next(r))
		r->flags = (uint8_t)((r->flags & ~clear) | set);
	kregions_merge(t, start, end);
	return 0;
}

static int advise_populate(struct aspace *as, uaddr_t start, uaddr_t end, unsigned access)
{
	int need = access == KFAULT_WRITE ? PROT_WRITE : PROT_READ; /* asked by name, unlike the processor's reads */

	for (uaddr_t at = start; at < end; at += PAGE_SIZE) {
		struct kregion *k = kregion_at(&as->regions, at);
		int r;

		if (!k)
			return -ENOMEM;
		if (!(k->prot & need))
			return -EINVAL;
		r = kfault_fill(as, at, access);
		if (r < 0)
			return r;
	}
	return 0;
}

static int advise_dontneed(struct aspace *as, uaddr_t start, uaddr_t end)
{
	struct kgather g;

	kgather_init(&g, as);
	kpt_clear(&g, start, end);
	kgather_finish(&g);
	return 0;
}

void kvm_aspace_cut(struct aspace *as, uaddr_t addr, uint64_t len)
{
	if (mmop_range_ok(addr, len))
		(void)advise_dontneed(as, addr, addr + len);
}

static int advise_remove(struct aspace *as, uaddr_t start, uaddr_t end)
{
	struct kregions *t = &as->regions;

	for (struct kregion *r = kregion_find(t, start); r && r->start < end; r = kregion_next(r)) {
		uaddr_t from = MAX(r->start, start), to = MIN(r->end, end);
		int err = -EINVAL;

		if (r->obj && (r->flags & KREG_SHARED))
			err = kobj_punch(r->obj, r->page + ((from - r->start) >> PAGE_SHIFT),
			                 (to - from) >> PAGE_SHIFT);
		if (err < 0)
			return err;
	}
	return 0;
}

static int apply_advise(struct aspace *as, const struct aspace_op *op)
{
	uaddr_t start = op->addr, end = op->addr + op->len;

	switch (op->advice) {
	case MADV_DONTNEED:
	case MADV_FREE: /* may lose the data at any time: now is one */
		return advise_dontneed(as, start, end);
	case MADV_REMOVE:
		return advise_remove(as, start, end);
	case MADV_DONTFORK:
		return advise_flags(as, start, end, KREG_DONTFORK, 0);
	case MADV_DOFORK:
		return advise_flags(as, start, end, 0, KREG_DONTFORK);
	case MADV_WIPEONFORK:
		return advise_flags(as, start, end, KREG_WIPEONFORK, 0);
	case MADV_KEEPONFORK:
		return advise_flags(as, start, end, 0, KREG_WIPEONFORK);
	case MADV_POPULATE_READ:
		return advise_populate(as, start, end, KFAULT_READ);
	case MADV_POPULATE_WRITE:
		return advise_populate(as, start, end, KFAULT_WRITE);
	default: /* hints */
		return 0;
	}
}

static int apply_one(struct aspace *as, const struct aspace_op *op)
{
	switch (op->op) {
	case ASPACE_MAP:
		return apply_map(as, op);
	case ASPACE_UNMAP:
		return apply_unmap(as, op);
	case ASPACE_PROTECT:
		return apply_protect(as, op);
	case ASPACE_REMAP:
		return apply_remap(as, op);
	case ASPACE_ADVISE:
		return apply_advise(as, op);
	}
	return -EINVAL;
}

int64_t kvm_aspace_apply(struct vcpu_ctx *ctx, const struct aspace_op *ops, unsigned n, bool may_resume, unsigned *done)
{
	struct aspace *as = kctx_aspace(ctx);
	unsigned i;
	int r = 0;

	(void)may_resume; /* nothing is saved by it here */
	if (done)
		*done = 0;
	for (i = 0; i < n; i++)
		if (!mmop_ok(&ops[i]))
			return -EINVAL;
	for (i = 0; i < n && r == 0; i++) {
		r = apply_one(as, &ops[i]);
		if (r == 0 && done)
			*done = i + 1;
	}
	return r;
}
