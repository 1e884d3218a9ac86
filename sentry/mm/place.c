/* SPDX-License-Identifier: Apache-2.0 */
/* Where mappings go: the top-down layout of Linux with address space randomisation. */
#include <errno.h>
#include <linux/capability.h>
#include <string.h>

#include "sentry/kernel/cred.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/task.h"
#include "sentry/mm/mm_priv.h"

/* As arch/x86: mmap_rnd_bits 28, STACK_RND_MASK 22 bits, a stack gap of 128 MiB at least and 5/6 of
 * everything at most. */
#define MMAP_RND_BITS 28
#define STACK_RND_BITS 22
#define GAP_MIN (128ull << 20)
#define GAP_MAX (GUEST_TASK_SIZE / 6 * 5)

/* MAP_32BIT (arch/x86/kernel/sys_x86_64.c). */
#define LOW_START 0x40000000ull
#define LOW_END 0x80000000ull

uint64_t mm_random_pages(unsigned bits)
{
	uint64_t r;

	kernel_random(&r, sizeof(r));
	return (r & ((1ull << bits) - 1)) << PAGE_SHIFT;
}

void mm_set_base(struct mm *mm, uint64_t stack_limit, bool randomize)
{
	uint64_t pad = (1ull << (STACK_RND_BITS + PAGE_SHIFT)) + STACK_GUARD_GAP, gap = stack_limit;

	if (gap > GAP_MAX - pad)
		gap = GAP_MAX;
	else
		gap += pad;
	gap = MAX(gap, GAP_MIN);
	gap += randomize ? mm_random_pages(MMAP_RND_BITS) : 0;
	mm->mmap_base = ROUND_DOWN(GUEST_TASK_SIZE - gap, PAGE_SIZE);
}

uaddr_t mm_find_free(struct mm *mm, uint64_t len)
{
	uaddr_t addr;

	if (vma_gap_topdown(&mm->vmas, len, MM_MIN_ADDR, mm->mmap_base, &addr) ||
	    vma_gap_topdown(&mm->vmas, len, MM_MIN_ADDR, GUEST_TASK_SIZE, &addr))
		return addr;
	return 0;
}

/* MAP_FIXED and MAP_FIXED_NOREPLACE. */
static int place_fixed(struct task *t, struct mm *mm, const struct mm_map_args *args, uint64_t len)
{
	uaddr_t addr = args->addr;
	struct vma *v;

	if (addr > GUEST_TASK_SIZE - len)
		return -ENOMEM;
	if (addr % PAGE_SIZE)
		return -EINVAL;
	if (addr < MM_MIN_ADDR && !cred_has_cap(t->cred, CAP_SYS_RAWIO))
		return -EPERM;
	v = vma_first_in(&mm->vmas, addr, addr + len);
	if (v && (args->flags & MM_MAP_NOREPLACE))
		return -EEXIST;
	/* Nothing of the guest's can ever be there: as if the address space ended. */
	if (mm_meets_reserved(addr, addr + len))
		return -ENOMEM;
	return 0;
}

int mm_place(struct task *t, struct mm *mm, const struct mm_map_args *args, uint64_t len,
             uaddr_t *ret)
{
	uaddr_t hint = ROUND_DOWN(args->addr, PAGE_SIZE);
	int rc;

	if (len > GUEST_TASK_SIZE)
		return -ENOMEM;
	if (args->flags & (MM_MAP_FIXED | MM_MAP_NOREPLACE)) {
		rc = place_fixed(t, mm, args, len);
		if (rc == 0)
			*ret = args->addr;
		return rc;
	}
	if (hint && hint < MM_MIN_ADDR)
		hint = MM_MIN_ADDR;
	if (args->flags & MM_MAP_32BIT) {
		if (hint >= LOW_START && hint <= LOW_END - MIN(len, LOW_END) &&
		    vma_gap_bottomup(&mm->vmas, len, hint, hint + len, ret))
			return 0;
		return vma_gap_bottomup(&mm->vmas, len, LOW_START, LOW_END, ret) ? 0 : -ENOMEM;
	}
	if (hint && hint <= GUEST_TASK_SIZE - len &&
	    vma_gap_bottomup(&mm->vmas, len, hint, hint + len, ret))
		return 0;
	*ret = mm_find_free(mm, len);
	return *ret ? 0 : -ENOMEM;
}
