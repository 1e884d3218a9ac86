/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random changes of an address space against a model that is an array of pages, and against what the fake host has
 * mapped: after each call all three agree, also when the host fails in the middle; the tree's own books are recomputed.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/mman.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "sentry/kernel/restart.h"
#include "sentry/mm/mm_priv.h"
#include "tests/lib/tap.h"
#include "tests/unit/mm_fakes.h"

#define BASE  0x40000000ull
#define PAGES 96

struct page {
	bool mapped, shared;
	int prot, maxprot;
	struct file *file;
	uint64_t offset;
	uint32_t advice;
};

static struct page model[PAGES];

static uaddr_t addr_of(unsigned page)
{
	return BASE + page * PAGE_SIZE;
}

static unsigned rnd(unsigned n)
{
	return (unsigned)random() % n;
}

/* The books of the tree: order, gaps, counts, accounts, and that nothing alike adjoins. */
static bool tree_ok(struct mm *mm)
{
	struct vma *prev = NULL;
	uint64_t total = 0, data = 0;
	unsigned n = 0;

	for (struct vma *v = vma_first(&mm->vmas); v; prev = v, v = vma_next(v)) {
		uint64_t gap = v->start - (prev ? prev->end : 0);

		if (v->start >= v->end || (prev && prev->end > v->start) || v->prev_end != (prev ? prev->end : 0))
			return false;
		for (int i = 0; i < 2; i++) {
			if (v->node.child[i])
				gap = MAX(gap, rb_entry(v->node.child[i], struct vma, node)->max_gap);
		}
		if (v->max_gap != gap)
			return false;
		if (v->flags & VMA_RESERVED)
			continue;
		n++;
		total += vma_len(v);
		if ((v->prot & PROT_WRITE) && !(v->flags & VMA_SHARED))
			data += vma_len(v);
		if (prev && prev->end == v->start && prev->prot == v->prot && prev->maxprot == v->maxprot &&
		    prev->flags == v->flags && prev->file == v->file && prev->shm == v->shm &&
		    ((!v->file && !v->shm) || prev->offset + vma_len(prev) == v->offset))
			return false;
	}
	return n == mm->vmas.count && total == mm->total && data == mm->data;
}

static bool pages_ok(struct mm *mm)
{
	for (unsigned i = 0; i < PAGES; i++) {
		const struct page *p = &model[i];
		struct vma *v = vma_at(&mm->vmas, addr_of(i));
		struct host_page *h = host_page(addr_of(i));

		if (!p->mapped) {
			if (v || h)
				return false;
			continue;
		}
		if (!v || !h || v->prot != p->prot || v->maxprot != p->maxprot || v->file != p->file ||
		    !!(v->flags & VMA_SHARED) != p->shared || (v->flags & VMA_DONTFORK) != p->advice)
			return false;
		if (p->file && v->offset + (addr_of(i) - v->start) != p->offset)
			return false;
		if (h->prot != p->prot || h->shared != p->shared)
			return false;
		if (p->file ? h->fd != 100 + (int)(p->file - fake_files) || h->offset != p->offset + FAKE_MAP_OFFSET :
			      h->fd != -1)
			return false;
	}
	return true;
}

/* After an injected failure the books say what the model must be; the host must say the same. */
static void model_from_books(struct mm *mm)
{
	for (unsigned i = 0; i < PAGES; i++) {
		struct vma *v = vma_at(&mm->vmas, addr_of(i));

		model[i] = (struct page){ .mapped = v };
		if (!v)
			continue;
		model[i] = (struct page){
			.mapped = true, .prot = v->prot, .maxprot = v->maxprot, .file = v->file,
			.shared = v->flags & VMA_SHARED, .advice = v->flags & VMA_DONTFORK,
			.offset = v->file ? v->offset + (addr_of(i) - v->start) : 0,
		};
	}
}

static int64_t do_map(struct task *t, unsigned at, unsigned n)
{
	unsigned f = rnd(4);
	struct mm_map_args args = {
		.addr = addr_of(at), .len = n * PAGE_SIZE, .prot = (int)rnd(8), .flags = MM_MAP_FIXED,
		.offset = rnd(32) * PAGE_SIZE,
	};
	bool deny;
	int64_t rc, want;

	if (rnd(2))
		args.flags |= MM_MAP_SHARED;
	if (f < 3)
		args.file = &fake_files[f];
	deny = (args.flags & MM_MAP_SHARED) && f == 1 && (args.prot & PROT_WRITE);
	want = deny ? -EACCES : rnd(2) ? (int64_t)args.addr : SYS_NO_RETURN;
	rc = mm_map(t, &args, want == SYS_NO_RETURN);
	if (rc != want || deny)
		return rc == want ? 0 : -1;
	for (unsigned i = 0; i < n; i++) {
		model[at + i] = (struct page){
			.mapped = true, .shared = args.flags & MM_MAP_SHARED, .prot = args.prot, .maxprot = 7,
			.file = args.file, .offset = args.file ? args.offset + i * PAGE_SIZE : 0,
		};
		if (model[at + i].shared && f == 1)
			model[at + i].maxprot = 5;
	}
	return 0;
}

static int64_t do_unmap(struct task *t, unsigned at, unsigned n)
{
	int64_t rc = mm_unmap(t, addr_of(at), n * PAGE_SIZE - rnd(PAGE_SIZE), false);

	if (rc == 0)
		memset(&model[at], 0, n * sizeof(model[0]));
	return rc;
}

static int64_t do_protect(struct task *t, unsigned at, unsigned n)
{
	int prot = (int)rnd(8), want = 0;
	int64_t rc = mm_protect(t, addr_of(at), n * PAGE_SIZE, prot, false);

	for (unsigned i = 0; i < n; i++) {
		struct page *p = &model[at + i];

		if (!p->mapped)
			want = -ENOMEM;
		else if (prot & ~p->maxprot)
			want = -EACCES;
		if (want)
			break;
		p->prot = prot;
	}
	return rc == want ? 0 : -1;
}

static int64_t do_advise(struct task *t, unsigned at, unsigned n)
{
	bool set = rnd(2);
	int64_t rc = mm_advise(t, addr_of(at), n * PAGE_SIZE, set ? MADV_DONTFORK : MADV_DOFORK, false), want = 0;

	for (unsigned i = 0; i < n; i++) {
		if (!model[at + i].mapped)
			want = -ENOMEM;
		else
			model[at + i].advice = set ? VMA_DONTFORK : 0;
	}
	return rc == want ? 0 : -1;
}

/* Is [at, at + n) one mapping, as mremap(2) wants it? The books know. */
static bool one_vma(struct mm *mm, unsigned at, unsigned n)
{
	struct vma *v = vma_at(&mm->vmas, addr_of(at));

	return v && v->end >= addr_of(at + n);
}

static int64_t do_remap(struct task *t, unsigned at, unsigned n)
{
	unsigned to = rnd(PAGES), m = 1 + rnd(12);
	struct page copy[PAGES], last;
	bool ok = one_vma(t->mm, at, n), overlap = at < to + m && to < at + n;
	bool dontunmap = n == m && rnd(4) == 0;
	unsigned flags = MREMAP_MAYMOVE | MREMAP_FIXED | (dontunmap ? 4 : 0);
	int64_t rc, want;

	if (to + m > PAGES)
		m = PAGES - to;
	if (n != m)
		flags &= ~4u;
	dontunmap = flags & 4;
	want = !model[at].mapped ? -EFAULT : overlap ? -EINVAL : !ok ? -EFAULT : (int64_t)addr_of(to);
	rc = mm_remap(t, addr_of(at), n * PAGE_SIZE, m * PAGE_SIZE, flags, addr_of(to));
	if (rc != want)
		return -1;
	if (rc < 0)
		return 0;
	memcpy(copy, &model[at], n * sizeof(copy[0]));
	if (!dontunmap)
		memset(&model[at], 0, n * sizeof(model[0]));
	last = copy[0];
	for (unsigned i = 0; i < m; i++) {
		last.offset = last.file ? copy[0].offset + i * PAGE_SIZE : 0;
		model[to + i] = i < n ? copy[i] : last;
	}
	return 0;
}

static int64_t do_grow(struct task *t, unsigned at, unsigned n)
{
	unsigned m = n + 1 + rnd(6), i;
	bool ok = one_vma(t->mm, at, n), room = at + m <= PAGES;
	struct page last = model[at];
	int64_t rc;

	if (!room)
		return 0;
	for (i = n; i < m; i++)
		room = room && !model[at + i].mapped;
	rc = mm_remap(t, addr_of(at), n * PAGE_SIZE, m * PAGE_SIZE, 0, 0);
	if (!ok)
		return rc == -EFAULT ? 0 : -1;
	if (!room)
		return rc == -ENOMEM ? 0 : -1;
	if (rc != (int64_t)addr_of(at))
		return -1;
	for (i = n; i < m; i++) {
		model[at + i] = last;
		model[at + i].offset = last.file ? last.offset + i * PAGE_SIZE : 0;
	}
	return 0;
}

static int64_t (*const changes[])(struct task *t, unsigned at, unsigned n) = {
	do_map, do_map, do_unmap, do_protect, do_protect, do_advise, do_remap, do_grow,
};

int main(void)
{
	struct task *t = &fake_task;
	bool ok = true;
	unsigned step, failures = 0;

	srandom(7);
	fakes_init();
	fake_file_init(0, O_RDWR);
	fake_file_init(1, O_RDONLY);
	fake_file_init(2, O_RDWR);
	for (step = 0; ok && step < 30000; step++) {
		unsigned at = rnd(PAGES), n = 1 + rnd(12), what = rnd(ARRAY_SIZE(changes));
		bool inject = rnd(10) == 0;
		int64_t rc;

		if (at + n > PAGES)
			n = PAGES - at;
		fake_fail_in = inject ? 1 : 0;
		rc = changes[what](t, at, n);
		if (inject && fake_fail_in == 0) {
			failures++;
			model_from_books(t->mm);
		} else {
			ok = rc == 0;
		}
		fake_fail_in = 0;
		ok = ok && tree_ok(t->mm) && pages_ok(t->mm);
		if (!ok)
			printf("# step %u change %u at %u n %u rc %lld\n", step, what, at, n, (long long)rc);
	}
	tap_ok(ok, "%u random changes agree with the model and the host", step);
	tap_ok(failures > 100, "%u of them with a host that failed", failures);
	mm_unmap(t, BASE, PAGES * PAGE_SIZE, false);
	tap_ok(host_pages() == 0 && t->mm->total == 0 && t->mm->committed == 0, "nothing is left");
	mm_put(t->mm);
	t->mm = NULL;
	tap_ok(ref_count(&fake_files[0].ref) == 1 && ref_count(&fake_files[1].ref) == 1, "no file reference is left");
	return tap_done();
}
