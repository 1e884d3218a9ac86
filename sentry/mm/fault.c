/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Page faults that the host could not solve. The host fills pages by itself, so that what comes
 * here is either the guest's fault or a stack that grows: MAP_GROWSDOWN is never passed to the
 * host.
 */
#include <sys/mman.h>
#include <sys/resource.h>

#include "sentry/kernel/task.h"
#include "sentry/mm/mm_priv.h"

/* A stack grows by this much at a time where it may, so that a deep recursion costs few faults. */
#define GROW_STEP (128 * 1024ull)

/* Is there room for the stack @v to begin at @start? */
static bool may_start_at(struct task *t, struct mm *mm, struct vma *v, uaddr_t start)
{
	struct vma *prev = vma_prev(v);
	uint64_t max = task_rlimit(t, RLIMIT_STACK), more = v->start - start;

	if (start < MM_MIN_ADDR || v->end - start > max)
		return false;
	/* Below another stack or a mapping without access no guard gap is kept, as Linux does. */
	if (prev) {
		bool open = prev->prot && !(prev->flags & VMA_GROWSDOWN);

		if (start < prev->end || (open && start - prev->end < STACK_GUARD_GAP))
			return false;
	}
	if ((v->flags & VMA_LOCKED) && mm_may_lock(t, mm, more, -1) < 0)
		return false;
	return mm_may_grow(t, mm, v, more, 0) == 0;
}

static bool grow_to(struct task *t, struct mm *mm, struct vma *v, uaddr_t start)
{
	struct aspace_op ops[2];
	unsigned n = mm_arena_release(mm, start, v->start, &ops[0]);
	int64_t rc;

	ops[n++] = (struct aspace_op){
		.op = ASPACE_MAP,
		.prot = v->prot,
		.fd = -1,
		.addr = start,
		.len = v->start - start,
		.flags = v->flags & VMA_NORESERVE ? ASPACE_NORESERVE : 0,
	};
	rc = mm_apply(t, ops, n, false);
	if (n == 2)
		mm_arena_forget(mm);
	if (rc < 0)
		return false;
	mm_account(mm, v, -1);
	vma_resize(&mm->vmas, v, start, v->end);
	mm_account(mm, v, 1);
	return true;
}

bool mm_fault(struct task *t, uaddr_t addr, uint64_t err)
{
	struct mm *mm = t->mm;
	struct vma *v;
	uaddr_t need = ROUND_DOWN(addr, PAGE_SIZE);

	(void)err; /* what kind of access it was shows again when the page is there */
	if (!mm || addr >= GUEST_TASK_SIZE)
		return false;
	v = vma_find(&mm->vmas, addr);
	if (!v || v->start <= addr || !(v->flags & VMA_GROWSDOWN) || !v->prot || v->file || v->shm)
		return false;
	if (need > GROW_STEP && may_start_at(t, mm, v, need - GROW_STEP))
		return grow_to(t, mm, v, need - GROW_STEP);
	return may_start_at(t, mm, v, need) && grow_to(t, mm, v, need);
}
