/* SPDX-License-Identifier: Apache-2.0 */
/*
 * brk(2). The platform maps the heap ARENA_STEP ahead of the break, so that most calls that grow it
 * need no order to the guest. The VMA ends exactly at the break. Between the break and arena_end
 * the guest can touch memory that it does not have yet: it does not fault there as on Linux, and
 * what it writes there stays. It harms only itself; memory above a break that came down is unmapped
 * at once, so that a heap that shrank and grew again reads zeros.
 *
 * Whoever maps or unmaps in the arena's unused part first gives it back (mm_arena_release()).
 */
#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "sentry/kernel/kernel.h"
#include "sentry/kernel/task.h"
#include "sentry/mm/mm_priv.h"

#define ARENA_STEP (1ull << 20)

static uaddr_t page_up(uaddr_t a)
{
	return ROUND_UP(a, PAGE_SIZE);
}

void mm_set_brk(struct mm *mm, uaddr_t start)
{
	mm->layout.start_brk = mm->brk = start;
	mm->arena_end = page_up(start);
}

uaddr_t mm_brk_end(const struct mm *mm)
{
	return mm->brk;
}

unsigned mm_arena_release(struct mm *mm, uaddr_t start, uaddr_t end, struct aspace_op *op)
{
	uaddr_t from = page_up(mm->brk);

	if (mm->arena_end <= from || start >= mm->arena_end || end <= from)
		return 0;
	*op = (struct aspace_op){ .op = ASPACE_UNMAP, .addr = from, .len = mm->arena_end - from };
	return 1;
}

void mm_arena_forget(struct mm *mm)
{
	mm->arena_end = page_up(mm->brk);
}

static int shrink(struct task *t, struct mm *mm, uaddr_t to)
{
	uaddr_t start = page_up(to), end = page_up(mm->brk);
	struct vma_spares s = { .n = 0 };
	struct aspace_op op = { .op = ASPACE_UNMAP,
		                .addr = start,
		                .len = MAX(end, mm->arena_end) - start };
	int64_t rc;

	if (start == end)
		return 0;
	if (vma_spares_fill(&s, vma_cut_cost(&mm->vmas, start, end)) < 0)
		return -ENOMEM;
	rc = mm_apply(t, &op, 1, false);
	if (rc >= 0) {
		mm_drop_range(mm, start, end, &s);
		mm->arena_end = start;
	}
	vma_spares_fini(&s);
	return rc < 0 ? (int)rc : 0;
}

/* Maps [arena_end, ...) so that at least @need is covered and, where there is room, ARENA_STEP
 * more. */
static int arena_extend(struct task *t, struct mm *mm, uaddr_t need)
{
	uaddr_t end = MIN(need + ARENA_STEP, GUEST_TASK_SIZE);
	struct vma *v = vma_find(&mm->vmas, mm->arena_end);
	struct aspace_op op = {
		.op = ASPACE_MAP, .prot = PROT_READ | PROT_WRITE, .fd = -1, .addr = mm->arena_end
	};
	int64_t rc;

	if (v)
		end = MIN(end, v->start); /* not below @need: grow() has looked */
	op.len = end - mm->arena_end;
	rc = mm_apply(t, &op, 1, false);
	if (rc < 0)
		return (int)rc;
	mm->arena_end += op.len;
	return 0;
}

static int grow(struct task *t, struct mm *mm, uaddr_t to)
{
	uaddr_t start = page_up(mm->brk), end = page_up(to);
	struct vma like = { .prot = PROT_READ | PROT_WRITE,
		            .maxprot = PROT_ALL,
		            .flags = mm->lock_future ? VMA_LOCKED : 0 };
	struct vma_spares s = { .n = 0 };
	struct vma *v;
	int rc;

	if (start == end)
		return 0;
	v = vma_find(&mm->vmas, start);
	/* Linux keeps a page free above the heap, and the guard gap of a stack. */
	if (v && v->start < end + PAGE_SIZE + (v->flags & VMA_GROWSDOWN ? STACK_GUARD_GAP : 0))
		return -ENOMEM;
	if (mm->vmas.count > MM_MAP_COUNT_MAX)
		return -ENOMEM;
	rc = mm_may_grow(t, mm, &like, end - start, 0);
	if (rc == 0 && mm->lock_future)
		rc = mm_may_lock(t, mm, end - start, -EAGAIN);
	if (rc == 0)
		rc = vma_spares_fill(&s, 1);
	if (rc == 0 && end > mm->arena_end)
		rc = arena_extend(t, mm, end);
	if (rc == 0) {
		v = vma_dup(&s, &like);
		v->start = start;
		v->end = end;
		vma_insert(&mm->vmas, v);
		mm_account(mm, v, 1);
		vma_merge(&mm->vmas, start, end);
	}
	vma_spares_fini(&s);
	return rc;
}

int64_t mm_brk(struct task *t, uaddr_t addr)
{
	struct mm *mm = t->mm;
	uaddr_t start = mm->layout.start_brk;
	uint64_t max = task_rlimit(t, RLIMIT_DATA),
		 data = mm->layout.end_data - mm->layout.start_data;
	int rc;

	if (addr < start || addr > GUEST_TASK_SIZE - PAGE_SIZE)
		return (int64_t)mm->brk;
	if (max != UINT64_MAX && (addr - start > max || data > max - (addr - start)))
		return (int64_t)mm->brk;
	rc = addr <= mm->brk ? shrink(t, mm, addr) : grow(t, mm, addr);
	if (rc == 0)
		mm->brk = addr;
	return (int64_t)mm->brk;
}
