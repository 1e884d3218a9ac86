/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Guest-physical memory: a window of our address space, one block of 2 MiB after the other taken into use.
 *
 * The window is a reservation without access. Blocks of RAM, page tables and system pages get private anonymous memory,
 * which the host fills at the first touch; free pages are given back with MADV_DONTNEED in runs, when many have
 * gathered (kmem_trim()). Private memory rather than a memfd: touching costs the same, giving back a half to a third.
 * Free pages are "dirty" until they were given back or zeroed: a page is zeroed before a guest gets it, unless it is
 * overwritten whole.
 *
 * Memslots are added as the window fills, each as large as all before it: on hosts that shadow page tables a slot costs
 * kernel memory and time by its size, whether it is used or not. None is ever removed.
 *
 * Nothing here waits for vCPUs: who frees a page that a guest could reach has seen to that (kgather_flush()).
 */
#include "platform/kvm/mem.h"

#include <cpuid.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/host/map.h"
#include "platform/kvm/kobj.h"
#include "platform/kvm/machine.h"

#define FIRST_SLOT_SHADOW (64ull << 20)
#define FIRST_SLOT (1ull << 30)
#define SLOTS_MAX 64u
#define WINDOW_MAX (1ull << 40)
#define WINDOW_MAX_SHADOW (256ull << 30)
#define WINDOW_SPARE (64ull << 30) /* beside RAM: room for files */
#define LIMIT_SPARE (64ull << 20)  /* above the sandbox's limit: who watches that names it first */
#define SMALL_PAGES 32u            /* blocks of RAM in which the host shall not use huge pages */
#define TRIM_RUN 8u                /* shorter runs of pages are not worth a host call */

static bool bit_get(const uint64_t *bits, unsigned i)
{
	return bits[i / 64] >> i % 64 & 1;
}

static void bit_set(uint64_t *bits, unsigned i)
{
	bits[i / 64] |= 1ull << i % 64;
}

static void bit_clear(uint64_t *bits, unsigned i)
{
	bits[i / 64] &= ~(1ull << i % 64);
}

static gpa_t block_gpa(const struct kblock *b)
{
	return KMEM_BASE + ((uint64_t)b->idx << KBLOCK_SHIFT);
}

static uint8_t *block_ptr(const struct kmem *m, const struct kblock *b)
{
	return m->win + ((uint64_t)b->idx << KBLOCK_SHIFT);
}

/* Makes room in memslots for one more block. 0 or -errno. */
static int slot_grow(struct kmem *m)
{
	uint64_t first = m->shadow ? FIRST_SLOT_SHADOW : FIRST_SLOT;
	uint64_t at = (uint64_t)m->slot_blocks << KBLOCK_SHIFT, len = at ? at : first;
	int r;

	len = MIN(len, m->win_size - at);
	if (!len || m->n_slots == SLOTS_MAX)
		return -ENOMEM;
	r = kvm_memslot_add(m->p, m->n_slots, KMEM_BASE + at, len, m->win + at);
	if (r < 0)
		return r;
	m->n_slots++;
	m->slot_blocks += (uint32_t)(len >> KBLOCK_SHIFT);
	return 0;
}

static struct kblock *block_fresh(struct kmem *m)
{
	struct kblock *b;

	if (m->used_blocks == m->n_blocks || (m->used_blocks == m->slot_blocks && slot_grow(m) < 0))
		return NULL;
	b = calloc(1, sizeof(*b));
	if (!b)
		return NULL;
	list_init(&b->node);
	b->idx = m->used_blocks;
	m->blocks[m->used_blocks++] = b;
	return b;
}

static int block_set_memory(struct kmem *m, struct kblock *b)
{
	int r;

	if (b->memory)
		return 0;
	r = host_map_memory_at(block_ptr(m, b), KBLOCK_SIZE);
	if (r < 0)
		return r;
	b->memory = true;
	/* A huge page would count as used from its first byte on. */
	if (b->kind != KBLOCK_RAM || b->idx < SMALL_PAGES)
		DISCARD(host_madvise(block_ptr(m, b), KBLOCK_SIZE, MADV_NOHUGEPAGE)); /* a hint */
	return 0;
}

static void block_to_free(struct kmem *m, struct kblock *b)
{
	b->kind = KBLOCK_FREE;
	list_del(&b->node);
	list_add(&m->free_blocks, &b->node);
}

/* An empty block of @kind on its list, or NULL. */
static struct kblock *block_take(struct kmem *m, enum kblock_kind kind)
{
	struct kblock *b =
		list_empty(&m->free_blocks) ? block_fresh(m) : list_first_entry(&m->free_blocks, struct kblock, node);

	if (!b)
		return NULL;
	list_del(&b->node);
	b->kind = kind;
	b->n_free = KBLOCK_PAGES;
	memset(b->avail, 0xff, sizeof(b->avail));
	memset(b->dirty, 0, sizeof(b->dirty));
	if (kind != KBLOCK_FILE && block_set_memory(m, b) < 0) {
		block_to_free(m, b);
		return NULL;
	}
	list_add(&m->partial[kind], &b->node);
	if (kind == KBLOCK_TABLE && m->shadow && m->kernel_root && kpt_direct_add(m, b) < 0) {
		/* A table of the direct map may lie in it: then the block is not used further. */
		list_del(&b->node);
		if (b->n_free == KBLOCK_PAGES)
			block_to_free(m, b);
		return NULL;
	}
	return b;
}

bool kmem_has(const struct kmem *m, uint64_t pages)
{
	return m->used < m->limit && m->limit - m->used >= pages;
}

/* A free page, one with memory behind it first. */
static unsigned block_pick(const struct kblock *b)
{
	unsigned clean = KBLOCK_PAGES;

	for (unsigned w = 0; w < ARRAY_SIZE(b->avail); w++) {
		if (b->avail[w] & b->dirty[w])
			return w * 64 + (unsigned)__builtin_ctzll(b->avail[w] & b->dirty[w]);
		if (b->avail[w] && clean == KBLOCK_PAGES)
			clean = w * 64 + (unsigned)__builtin_ctzll(b->avail[w]);
	}
	BUG_ON(clean == KBLOCK_PAGES);
	return clean;
}

gpa_t kmem_page(struct kmem *m, enum kblock_kind kind, bool zero)
{
	struct kblock *b;
	unsigned i;
	gpa_t page;

	if (!kmem_has(m, 1))
		return 0;
	b = list_empty(&m->partial[kind]) ? block_take(m, kind)
	                                  : list_first_entry(&m->partial[kind], struct kblock, node);
	if (!b)
		return 0;
	i = block_pick(b);
	page = block_gpa(b) + i * PAGE_SIZE;
	if (bit_get(b->dirty, i)) {
		bit_clear(b->dirty, i);
		m->dirty_free--;
		if (zero)
			memset(kmem_ptr(m, page), 0, PAGE_SIZE);
	}
	bit_clear(b->avail, i);
	if (!--b->n_free)
		list_del(&b->node);
	b->ref[i] = 1;
	m->used++;
	return page;
}

static struct kblock *page_block(const struct kmem *m, gpa_t page, unsigned *i)
{
	struct kblock *b = kmem_block(m, page);

	*i = (unsigned)((page - block_gpa(b)) >> PAGE_SHIFT);
	BUG_ON((page & (PAGE_SIZE - 1)) || b->kind == KBLOCK_FREE || b->kind == KBLOCK_FILE || !b->ref[*i]);
	return b;
}

void kmem_page_get(struct kmem *m, gpa_t page)
{
	unsigned i;
	struct kblock *b = page_block(m, page, &i);

	BUG_ON(++b->ref[i] == 0);
}

uint32_t kmem_page_refs(const struct kmem *m, gpa_t page)
{
	unsigned i;

	return page_block(m, page, &i)->ref[i];
}

void kmem_page_put(struct kmem *m, gpa_t page)
{
	unsigned i;
	struct kblock *b = page_block(m, page, &i);

	if (--b->ref[i])
		return;
	bit_set(b->avail, i);
	bit_set(b->dirty, i);
	m->dirty_free++;
	m->used--;
	if (b->n_free++ == 0)
		list_add(&m->partial[b->kind], &b->node);
}

/* Gives back the runs of dirty free pages of @b. */
static void block_trim(struct kmem *m, struct kblock *b, unsigned min_run)
{
	for (unsigned i = 0, end; i < KBLOCK_PAGES; i = end + 1) {
		for (end = i; end < KBLOCK_PAGES && bit_get(b->dirty, end); end++)
			;
		if (end - i < min_run || end == i)
			continue;
		if (host_madvise(block_ptr(m, b) + i * PAGE_SIZE, (end - i) * PAGE_SIZE, MADV_DONTNEED) < 0)
			continue;
		m->dirty_free -= end - i;
		for (unsigned k = i; k < end; k++)
			bit_clear(b->dirty, k);
	}
	if (b->kind == KBLOCK_RAM && b->n_free == KBLOCK_PAGES) {
		for (unsigned w = 0; w < ARRAY_SIZE(b->dirty); w++)
			if (b->dirty[w])
				return;
		block_to_free(m, b);
	}
}

void kmem_trim(struct kmem *m)
{
	uint64_t keep = KMEM_TRIM_MIN + m->used / 16;
	struct kblock *b, *next;

	if (m->dirty_free <= keep)
		return;
	for (unsigned run = KBLOCK_PAGES / 2; run >= TRIM_RUN; run /= 4)
		for (enum kblock_kind kind = KBLOCK_RAM; kind <= KBLOCK_TABLE; kind++)
			list_for_each_entry_safe(b, next, &m->partial[kind], node) {
				if (m->dirty_free <= keep / 2)
					return;
				block_trim(m, b, run);
			}
}

/* The first of @n = 2^k free pages at a multiple of @n, or KBLOCK_PAGES. */
static unsigned block_find_run(const struct kblock *b, unsigned n)
{
	uint64_t mask = n >= 64 ? UINT64_MAX : (1ull << n) - 1;

	for (unsigned i = 0; i < KBLOCK_PAGES; i += n) {
		unsigned w = i / 64, ok = 1;

		for (unsigned k = 0; k < (n + 63) / 64; k++)
			ok &= (b->avail[w + k] >> i % 64 & mask) == mask;
		if (ok)
			return i;
	}
	return KBLOCK_PAGES;
}

static void block_mark_run(struct kblock *b, unsigned i, unsigned n, bool free)
{
	for (unsigned k = i; k < i + n; k++) {
		BUG_ON(bit_get(b->avail, k) == free);
		if (free)
			bit_set(b->avail, k);
		else
			bit_clear(b->avail, k);
	}
}

static unsigned pow2_up(unsigned n)
{
	return n <= 1 ? 1 : 1u << (32 - __builtin_clz(n - 1));
}

gpa_t kmem_file_place(struct kmem *m, unsigned pages)
{
	unsigned n = pow2_up(pages), i = KBLOCK_PAGES, tries = 8;
	struct kblock *b, *found = NULL;

	if (!pages || n > KBLOCK_PAGES || m->n_files >= KMEM_FILES_MAX)
		return 0;
	list_for_each_entry(b, &m->partial[KBLOCK_FILE], node) {
		i = b->n_free < n ? KBLOCK_PAGES : block_find_run(b, n);
		if (i < KBLOCK_PAGES) {
			found = b;
			break;
		}
		if (!--tries)
			break;
	}
	if (!found) {
		found = block_take(m, KBLOCK_FILE);
		i = 0;
	}
	if (!found)
		return 0;
	if (found->memory) { /* it was RAM */
		if (host_map_none_at(block_ptr(m, found), KBLOCK_SIZE) < 0) {
			block_to_free(m, found);
			return 0;
		}
		found->memory = false;
	}
	block_mark_run(found, i, n, false);
	found->n_free -= (uint16_t)n;
	if (!found->n_free)
		list_del(&found->node);
	m->n_files++;
	return block_gpa(found) + i * PAGE_SIZE;
}

void kmem_file_free(struct kmem *m, gpa_t at, unsigned pages)
{
	unsigned n = pow2_up(pages);
	struct kblock *b = kmem_block(m, at);

	BUG_ON(b->kind != KBLOCK_FILE);
	/* Should the host refuse, the place would stay a window onto the file: it is then not used again. */
	if (host_map_none_at(kmem_ptr(m, at), pages * PAGE_SIZE) < 0)
		return;
	block_mark_run(b, (unsigned)((at - block_gpa(b)) >> PAGE_SHIFT), n, true);
	if (b->n_free == 0)
		list_add(&m->partial[KBLOCK_FILE], &b->node);
	b->n_free += (uint16_t)n;
	m->n_files--;
	if (b->n_free == KBLOCK_PAGES)
		block_to_free(m, b);
}

static unsigned host_phys_bits(void)
{
	unsigned a, b, c, d;

	return __get_cpuid(0x80000008, &a, &b, &c, &d) && (a & 0xff) >= 36 ? MIN(a & 0xff, 52u) : 36;
}

/* How much RAM there may be, and how large the window is for it. */
static void size_window(struct kmem *m)
{
	uint64_t ram = m->p->cfg.memory_limit, spare, space, max = m->shadow ? WINDOW_MAX_SHADOW : WINDOW_MAX;
	long pages = sysconf(_SC_PHYS_PAGES);
	unsigned bits = m->p->phys_bits ? MIN(m->p->phys_bits, host_phys_bits()) : host_phys_bits();

	if (!ram || ram > max / 2)
		ram = MIN(pages > 0 ? (uint64_t)pages * PAGE_SIZE : 1ull << 30, max / 2);
	else if (!__builtin_add_overflow(ram / 8, LIMIT_SPARE, &spare))
		ram += spare;
	/* The top quarter of the processor's addresses is left alone: hosts put things of their own there. */
	space = MIN((1ull << bits) / 4 * 3 - KMEM_BASE, max);
	m->win_size = ROUND_DOWN(MIN(2 * ram + WINDOW_SPARE, space), KBLOCK_SIZE);
	m->limit = MIN(ram, m->win_size / 2) >> PAGE_SHIFT;
	m->n_blocks = (uint32_t)(m->win_size >> KBLOCK_SHIFT);
}

int kmem_init(struct platform *p, struct sbx_err *err)
{
	struct kmem *m = calloc(1, sizeof(*m));
	int r;

	if (!m)
		return sbx_fail(err, -ENOMEM, "guest memory");
	m->p = p;
	m->shadow = p->shadow;
	for (unsigned i = 0; i < KBLOCK_KINDS; i++)
		list_init(&m->partial[i]);
	for (unsigned i = 0; i < KMEM_PIECES; i++)
		list_init(&m->pieces[i]);
	list_init(&m->free_blocks);
	size_window(m);
	p->mem = m;
	m->blocks = calloc(m->n_blocks, sizeof(struct kblock *));
	r = m->blocks ? host_reserve(m->win_size, KBLOCK_SIZE, &m->win) : -ENOMEM;
	if (r == 0)
		r = slot_grow(m);
	if (r == 0)
		r = kpt_init(m);
	if (r == 0) {
		m->zero_page = kmem_page(m, KBLOCK_RAM, true);
		r = m->zero_page ? 0 : -ENOMEM;
	}
	if (r < 0) {
		kmem_fini(p);
		return sbx_fail(err, r, "reserve guest memory");
	}
	return 0;
}

void kmem_fini(struct platform *p)
{
	struct kmem *m = p->mem;

	if (!m)
		return;
	kobj_put(m->vdso);
	for (uint32_t i = 0; i < m->used_blocks; i++)
		free(m->blocks[i]);
	free(m->blocks);
	host_unmap(m->win, m->win_size);
	free(m);
	p->mem = NULL;
}

gpa_t kpage_alloc(struct platform *p, unsigned flags)
{
	return kmem_page(p->mem, flags & KPAGE_SYSTEM ? KBLOCK_SYSTEM : KBLOCK_RAM, flags & KPAGE_ZERO);
}

void kpage_get(struct platform *p, gpa_t page)
{
	kmem_page_get(p->mem, page);
}

void kpage_put(struct platform *p, gpa_t page)
{
	if (page)
		kmem_page_put(p->mem, page);
}

void *kpage_ptr(struct platform *p, gpa_t page)
{
	return kmem_ptr(p->mem, page);
}
