/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/kvm_mem_fakes.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/host/map.h"
#include "tests/lib/tap.h"

#define TLB_SIZE 256u
#define LEVELS 4

struct tlb_entry {
	struct aspace *as; /* NULL: free */
	uaddr_t page;
	uint64_t pte;
	gpa_t tables[LEVELS]; /* from the leaf up */
};

struct platform fake_platform;
struct fake_counts fake;

static struct tlb_entry tlb[FAKE_CPUS][TLB_SIZE];
static uint64_t used_at_start;

void fake_broken(const char *what, uint64_t where)
{
	if (fake.broken++ < 20)
		printf("# broken: %s at %#llx\n", what, (unsigned long long)where);
}

int kvm_memslot_add(struct platform *p, unsigned slot, gpa_t gpa, uint64_t len, void *host)
{
	(void)p;
	if (fake.refuse_slots && slot >= fake.refuse_slots)
		return -ENOMEM;
	if (slot != fake.slots || gpa != KMEM_BASE + fake.slot_bytes || (uintptr_t)host % KBLOCK_SIZE ||
	    len % KBLOCK_SIZE)
		fake_broken("memslot", gpa);
	fake.slots++;
	fake.slot_bytes += len;
	return 0;
}

static bool page_in_use(gpa_t page)
{
	struct kmem *m = fake_platform.mem;
	const struct kblock *b = kmem_block(m, page);
	unsigned i = (unsigned)((page - KMEM_BASE) >> PAGE_SHIFT) % KBLOCK_PAGES;

	return b->kind != KBLOCK_FREE && !(b->avail[i / 64] >> i % 64 & 1);
}

/* They must not be free yet when the processors forget. */
static void forget(struct tlb_entry *e)
{
	if (!page_in_use(pte_page(e->pte)))
		fake_broken("a page was freed before it was forgotten", e->page);
	for (unsigned i = 0; i < LEVELS; i++)
		if (!page_in_use(e->tables[i]))
			fake_broken("a table was freed before it was forgotten", e->page);
	e->as = NULL;
}

#define for_each_entry(e)                                                                                              \
	for (struct tlb_entry *e = &tlb[0][0]; e < &tlb[0][0] + FAKE_CPUS * TLB_SIZE; e++)                             \
		if (e->as)

void kvcpu_shootdown(struct aspace *as)
{
	fake.shootdowns++;
	if (fake_platform.shadow)
		fake_broken("shootdown where a zap is needed", 0);
	for_each_entry(e) if (e->as == as) forget(e);
}

void kvcpu_zap(struct aspace *as, const gpa_t *tables, unsigned n)
{
	struct platform *p = kaspace_platform(as);

	fake.zaps++;
	if (!p->shadow || !n)
		fake_broken("zap", n);
	for (unsigned i = 0; i < n; i++) {
		if (kmem_block(p->mem, tables[i])->kind != KBLOCK_TABLE)
			fake_broken("zap of what is no table", tables[i]);
		for_each_entry(e) for (unsigned k = 0; k < LEVELS && e->as; k++) if (e->tables[k] == tables[i])
			forget(e);
	}
}

void kvm_hold(struct platform *p)
{
	(void)p;
	fake.holds++;
}

void kvcpu_leave(struct aspace *as)
{
	fake.leaves++;
	for_each_entry(e) if (e->as == as) forget(e);
}

struct aspace *kctx_aspace(struct vcpu_ctx *ctx)
{
	return container_of(ctx, struct fake_ctx, base)->as;
}

int fake_apply(struct aspace *as, const struct aspace_op *op)
{
	struct fake_ctx ctx = { .as = as };
	unsigned done = 7;
	int64_t r = kvm_aspace_apply(&ctx.base, op, 1, false, &done);

	if (done != (r == 0))
		fake_broken("done", done);
	return (int)r;
}

/* As the processor. 0, or the page-fault error code. */
static uint64_t walk(struct aspace *as, uaddr_t addr, unsigned access, struct tlb_entry *e)
{
	uint64_t err = 4 | (access & KFAULT_WRITE ? 2 : 0) | (access & KFAULT_EXEC ? 16 : 0), pte = 0;
	gpa_t t = kaspace_root(as);
	bool write = true;

	for (int level = LEVELS - 1; level >= 0; level--) {
		const uint64_t *table = kpage_ptr(&fake_platform, t);

		e->tables[level] = t;
		pte = table[addr >> (PAGE_SHIFT + 9 * level) & 511];
		if (!(pte & PTE_P))
			return err;
		if (!(pte & PTE_U) && addr >> 47)
			return err | 1;
		if (!(pte & PTE_U) || !(pte & PTE_A) || (pte & PTE_PS) || ((pte & PTE_W) && !level && !(pte & PTE_D)))
			fake_broken("entry", pte);
		write = write && (pte & PTE_W);
		t = pte & PTE_ADDR;
	}
	if (((access & KFAULT_WRITE) && !write) || ((access & KFAULT_EXEC) && (pte & PTE_NX)))
		return err | 1;
	if (!page_in_use(t) || t < KMEM_BASE || t - KMEM_BASE >= fake.slot_bytes)
		fake_broken("mapped page", t);
	e->as = as;
	e->page = addr;
	e->pte = pte;
	return 0;
}

/* One try: 0 and the entry, or the error code. */
static uint64_t translate(unsigned cpu, struct aspace *as, uaddr_t page, unsigned access, struct tlb_entry **ret)
{
	struct tlb_entry *e = &tlb[cpu][(page >> PAGE_SHIFT) % TLB_SIZE];

	if (e->as == as && e->page == page) {
		*ret = e;
		if (((access & KFAULT_WRITE) && !(e->pte & PTE_W)) || ((access & KFAULT_EXEC) && (e->pte & PTE_NX))) {
			e->as = NULL; /* a fault drops the entry */
			return 5 | (access & KFAULT_WRITE ? 2 : 0) | (access & KFAULT_EXEC ? 16 : 0);
		}
		return 0;
	}
	e->as = NULL;
	*ret = e;
	return walk(as, page, access, e);
}

int fake_access(unsigned cpu, struct aspace *as, uaddr_t addr, unsigned access, uint8_t *byte, struct trap *trap)
{
	for (unsigned tries = 0; tries < 8; tries++) {
		uaddr_t page = ROUND_DOWN(addr, PAGE_SIZE);
		struct tlb_entry *e;
		uint64_t err = translate(cpu, as, page, access, &e);
		uint8_t *at;
		ssize_t n;

		if (err) {
			if (kaspace_fault(as, addr, err, trap))
				return trap->fault.signo;
			continue;
		}
		at = (uint8_t *)kpage_ptr(&fake_platform, pte_page(e->pte)) + addr % PAGE_SIZE;
		n = access & KFAULT_WRITE ? host_mem_write(at, byte, 1) : host_mem_read(byte, at, 1);
		if (n == 1)
			return 0;
		/* What KVM_RUN tells with EFAULT. */
		if (!kaspace_drop_truncated(as)) {
			*trap = (struct trap){ .fault = { .signo = SIGBUS, .code = BUS_ADRERR } };
			return SIGBUS;
		}
	}
	fake_broken("faults without end", addr);
	return -1;
}

void fake_check(void)
{
	for_each_entry(e)
	{
		struct tlb_entry now = { .as = NULL };
		unsigned access = e->pte & PTE_W ? KFAULT_WRITE : KFAULT_READ;

		if (walk(e->as, e->page, access, &now) || pte_page(now.pte) != pte_page(e->pte) ||
		    ((now.pte & PTE_NX) && !(e->pte & PTE_NX)))
			fake_broken("remembered, but no longer so", e->page);
	}
}

void fake_start(bool shadow, uint64_t limit)
{
	struct sbx_err err = { .code = 0 };

	memset(&fake_platform, 0, sizeof(fake_platform));
	memset(&fake, 0, sizeof(fake));
	fake_platform.shadow = shadow;
	fake_platform.cfg.memory_limit = limit;
	if (kmem_init(&fake_platform, &err) < 0) {
		tap_ok(0, "memory: %s", err.msg);
		exit(1);
	}
	used_at_start = fake_platform.mem->used;
}

void fake_end(void)
{
	struct kmem *m = fake_platform.mem;

	for_each_entry(e) fake_broken("remembered at the end", e->page);
	tap_eq(m->used, used_at_start, "every page came back");
	tap_ok(!m->n_regions && !m->n_chunks && !m->n_aspaces && !m->n_files && !m->reserved,
	       "and every region, chunk, address space, piece of a file");
	tap_eq(fake.broken, 0, "no rule was broken");
	kmem_fini(&fake_platform);
}
