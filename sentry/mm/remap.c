/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mremap(2). The platform moves mappings (ASPACE_REMAP) as the host's mremap does. A plain mapping
 * that grows where it is gets the missing piece mapped behind it, which the host joins; so does one of
 * a file, also when it moves, because not every platform can find more of a file without its fd. Other
 * memory with host-side attributes (advice, an anonymous shared object) is asked to grow in place by
 * an ASPACE_REMAP onto its own address, and is moved when that is refused.
 */
#include <errno.h>
#include <sys/mman.h>

#include "sentry/kernel/kernel.h"
#include "sentry/kernel/task.h"
#include "sentry/mm/mm_priv.h"
#include "sentry/vfs/file.h"

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

#define HOST_ATTRIBUTES (VMA_DONTFORK | VMA_WIPEONFORK | VMA_HUGE | VMA_NOHUGE)

struct remap {
	struct task *t;
	struct mm *mm;
	uaddr_t addr;
	uint64_t old_len, new_len; /* rounded */
	unsigned flags;            /* MREMAP_* */
	struct vma *v;             /* holds addr */
};

/* Linux's vma_to_resize(): finds the VMA and checks what the growth needs. */
static int check_resize(struct remap *r)
{
	struct vma *v = vma_at(&r->mm->vmas, r->addr);
	uint64_t more = r->new_len - r->old_len, off;
	int rc;

	if (!v)
		return -EFAULT;
	r->v = v;
	if (!r->old_len && !(v->flags & VMA_SHARED))
		return -EINVAL;
	if (r->old_len > v->end - r->addr)
		return -EFAULT;
	if (r->new_len <= r->old_len)
		return 0;
	off = v->offset + (r->addr - v->start);
	if ((v->file || v->shm) && __builtin_add_overflow(off, r->new_len, &off))
		return -EINVAL;
	if (v->flags & VMA_LOCKED) {
		rc = mm_may_lock(r->t, r->mm, more, -EAGAIN);
		if (rc < 0)
			return rc;
	}
	return mm_may_grow(r->t, r->mm, v, more, 0);
}

/* The new VMA is in place of what was at its range. */
static void insert_moved(struct remap *r, struct vma *new, struct vma_spares *s)
{
	uaddr_t end = r->addr + r->old_len;

	if (r->old_len && !(r->flags & MREMAP_DONTUNMAP)) {
		mm_drop_range(r->mm, r->addr, end, s);
	} else if (r->old_len && (r->v->flags & VMA_LOCKED)) {
		struct vma *old;

		vma_cut(&r->mm->vmas, r->addr, end, s);
		old = vma_at(&r->mm->vmas, r->addr);
		mm_account(r->mm, old, -1);
		old->flags &= ~VMA_LOCKED; /* nothing is left in it to be locked */
		mm_account(r->mm, old, 1);
	}
	mm_drop_range(r->mm, new->start, new->end, s);
	vma_insert(&r->mm->vmas, new);
	mm_account(r->mm, new, 1);
	vma_merge(&r->mm->vmas, new->start, new->end);
}

/* The attributes of @v that the platform keeps, for memory of it that is mapped anew at [start, end). How many ops. */
static unsigned attribute_ops(const struct vma *v, uaddr_t start, uaddr_t end, struct aspace_op *ops)
{
	static const struct {
		uint32_t flag;
		int advice;
	} attrs[] = {
		{ VMA_DONTFORK, MADV_DONTFORK },
		{ VMA_HUGE, MADV_HUGEPAGE },
		{ VMA_NOHUGE, MADV_NOHUGEPAGE },
	};
	unsigned n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(attrs); i++) {
		if (v->flags & attrs[i].flag)
			ops[n++] = (struct aspace_op){ .op = ASPACE_ADVISE,
				                       .fd = -1,
				                       .addr = start,
				                       .len = end - start,
				                       .advice = attrs[i].advice };
	}
	return n;
}

/* The end that a file's mapping grows by, [start, end) of @v: the platform is given the file for it. -errno or how many
 * ops. */
static int file_tail_ops(const struct vma *v, uaddr_t start, uaddr_t end, struct aspace_op *ops)
{
	int rc = mm_op_of_vma(v, start, end, ops);

	return rc < 0 ? rc : 1 + (int)attribute_ops(v, start, end, ops + 1);
}

#define MOVE_OPS 5u /* what move_ops() makes at most */

static int move_ops(const struct remap *r, const struct vma *new, struct aspace_op *ops)
{
	bool tail = r->v->file && r->new_len > r->old_len;
	int n = 0;

	/* The move comes last: what fails before it leaves the old place as it was. */
	if (tail)
		n = file_tail_ops(new, new->start + r->old_len, new->end, ops);
	if (n < 0 || (!r->old_len && !r->v->shm))
		return n;
	ops[n++] = (struct aspace_op){
		.op = ASPACE_REMAP,
		.flags = r->flags & MREMAP_DONTUNMAP ? ASPACE_DONTUNMAP : 0,
		.prot = r->v->prot,
		.fd = -1,
		.addr = r->addr,
		.len = r->old_len,
		.new_addr = new->start,
		.new_len = tail ? r->old_len : r->new_len,
	};
	return n;
}

static int64_t move_to(struct remap *r, uaddr_t to)
{
	struct vma_spares s = { .n = 0 };
	struct aspace_op ops[1 + MOVE_OPS];
	struct vma *new;
	unsigned n;
	int64_t rc = vma_spares_fill(&s, 5);

	if (rc < 0) {
		vma_spares_fini(&s);
		return rc;
	}
	new = vma_dup(&s, r->v);
	new->start = to;
	new->end = to + r->new_len;
	new->offset = r->v->offset + (r->addr - r->v->start);
	n = mm_arena_release(r->mm, to, new->end, &ops[0]);
	rc = move_ops(r, new, &ops[n]);
	if (rc >= 0)
		rc = mm_apply(r->t, ops, n + (unsigned)rc, false);
	if (n)
		mm_arena_forget(r->mm);
	if (rc >= 0) {
		insert_moved(r, new, &s);
	} else {
		/* As on Linux the target is gone when the move fails. */
		mm_abandon(r->t, to, to + r->new_len, &s);
		vma_free(new);
	}
	vma_spares_fini(&s);
	return rc < 0 ? rc : (int64_t)to;
}

/* MREMAP_FIXED or MREMAP_DONTUNMAP: the caller chose the place, or wants the old one to stay. */
static int64_t remap_to(struct remap *r, uaddr_t to)
{
	struct mm_map_args where = { .addr = to, .len = r->new_len };
	int64_t rc;

	if (to % PAGE_SIZE || r->new_len > GUEST_TASK_SIZE || to > GUEST_TASK_SIZE - r->new_len)
		return -EINVAL;
	if (r->addr + r->old_len > to && to + r->new_len > r->addr)
		return -EINVAL;
	if (r->flags & MREMAP_FIXED)
		where.flags = MM_MAP_FIXED;
	rc = check_resize(r);
	if (rc == 0)
		rc = mm_place(r->t, r->mm, &where, r->new_len, &to);
	if (rc == 0 && r->old_len > r->new_len) {
		/* Only with MREMAP_FIXED. Unmaps the tail first: r->v may be split. */
		rc = mm_unmap(r->t, r->addr + r->new_len, r->old_len - r->new_len, false);
		r->old_len = r->new_len;
		r->v = vma_at(&r->mm->vmas, r->addr);
	}
	return rc < 0 ? rc : move_to(r, to);
}

/* 0 when the mapping was made longer where it is; else -errno, and nothing was changed. */
static int64_t grow_in_place(struct remap *r)
{
	struct vma *v = r->v, *next = vma_next(v);
	uaddr_t from = v->end, to = r->addr + r->new_len;
	struct aspace_op ops[1 + MOVE_OPS];
	unsigned n;
	int64_t rc = 1;

	if (r->addr + r->old_len != v->end || to > GUEST_TASK_SIZE || to < from)
		return -ENOMEM;
	if (next && next->start - (next->flags & VMA_GROWSDOWN ? STACK_GUARD_GAP : 0) < to)
		return -ENOMEM;
	n = mm_arena_release(r->mm, from, to, &ops[0]);
	if (v->file) {
		rc = file_tail_ops(v, from, to, &ops[n]);
	} else if (v->shm || (v->flags & HOST_ATTRIBUTES)) {
		ops[n] = (struct aspace_op){
			.op = ASPACE_REMAP,
			.prot = v->prot,
			.fd = -1,
			.addr = r->addr,
			.len = r->old_len,
			.new_addr = r->addr,
			.new_len = r->new_len,
		};
	} else {
		rc = mm_op_of_vma(v, from, to, &ops[n]);
		rc = rc < 0 ? rc : 1;
	}
	if (rc >= 0)
		rc = mm_apply(r->t, ops, n + (unsigned)rc, false);
	if (n)
		mm_arena_forget(r->mm);
	if (rc < 0) {
		/* Nothing was there before; now the piece may be, without its attributes. */
		ops[0] = (struct aspace_op){ .op = ASPACE_UNMAP, .addr = from, .len = to - from };
		(void)mm_apply(r->t, ops, 1, false);
		return rc;
	}
	mm_account(r->mm, v, -1);
	vma_resize(&r->mm->vmas, v, v->start, to);
	mm_account(r->mm, v, 1);
	vma_merge(&r->mm->vmas, v->start, to);
	return 0;
}

int64_t mm_remap(struct task *t, uaddr_t addr, uint64_t old_len, uint64_t new_len, unsigned flags,
                 uaddr_t new_addr)
{
	struct remap r = {
		.t = t,
		.mm = t->mm,
		.addr = addr,
		.flags = flags,
		.old_len = ROUND_UP(old_len, PAGE_SIZE),
		.new_len = ROUND_UP(new_len, PAGE_SIZE),
	};
	int64_t rc;
	uaddr_t end;

	if (flags & ~(unsigned)(MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP))
		return -EINVAL;
	if ((flags & (MREMAP_FIXED | MREMAP_DONTUNMAP)) && !(flags & MREMAP_MAYMOVE))
		return -EINVAL;
	if ((flags & MREMAP_DONTUNMAP) && old_len != new_len)
		return -EINVAL;
	if (addr % PAGE_SIZE || !r.new_len || r.old_len < old_len)
		return -EINVAL;
	if (__builtin_add_overflow(addr, r.old_len, &end) || end > GUEST_TASK_SIZE ||
	    !vma_at(&r.mm->vmas, addr))
		return -EFAULT;
	if (r.mm->vmas.count + 2 >= MM_MAP_COUNT_MAX - 3)
		return -ENOMEM;
	if (flags & (MREMAP_FIXED | MREMAP_DONTUNMAP))
		return remap_to(&r, new_addr);
	if (r.old_len >= r.new_len) {
		rc = r.old_len == r.new_len
		             ? 0
		             : mm_unmap(t, addr + r.new_len, r.old_len - r.new_len, false);
		return rc < 0 ? rc : (int64_t)addr;
	}
	if (r.new_len > GUEST_TASK_SIZE)
		return -ENOMEM;
	rc = check_resize(&r);
	if (rc < 0)
		return rc;
	rc = grow_in_place(&r);
	if (rc == 0)
		return (int64_t)addr;
	if (!(flags & MREMAP_MAYMOVE))
		return -ENOMEM;
	new_addr = mm_find_free(r.mm, r.new_len);
	return new_addr ? move_to(&r, new_addr) : -ENOMEM;
}

int64_t mm_remap_file_pages(struct task *t, uaddr_t start, uint64_t len, uint64_t pgoff)
{
	struct mm_map_args args = { .flags = MM_MAP_FIXED | MM_MAP_SHARED };
	struct vma *v;
	int64_t rc;

	start = ROUND_DOWN(start, PAGE_SIZE);
	len = ROUND_DOWN(len, PAGE_SIZE);
	if (start + len <= start || pgoff + (len >> PAGE_SHIFT) < pgoff ||
	    pgoff > UINT64_MAX >> PAGE_SHIFT)
		return -EINVAL;
	v = vma_at(&t->mm->vmas, start);
	if (!v || !(v->flags & VMA_SHARED) || v->shm || len > v->end - start)
		return -EINVAL;
	args.addr = start;
	args.len = len;
	args.prot = v->prot;
	args.file = file_get(v->file);
	args.offset = pgoff << PAGE_SHIFT;
	rc = mm_map(t, &args, false);
	file_put(args.file);
	return rc < 0 ? rc : 0;
}
