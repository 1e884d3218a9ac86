/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Life of an address space, its accounts, and what the other files of sentry/mm use to change it.
 *
 * A change has three steps, so that the sentry's books and the host always agree: check and
 * allocate (may fail, nothing is changed); mm_apply() has the platform do it; then the VMAs follow,
 * which cannot fail. When the platform fails in the middle, what it may have touched is taken away
 * in both worlds (mm_abandon()), as Linux leaves a hole after a failed MAP_FIXED.
 */
#include "sentry/mm/mm.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "base/bug.h"
#include "sentry/kernel/cred.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/task.h"
#include "sentry/mm/mm_priv.h"
#include "sentry/vfs/file.h"
#include "sentry/vfs/vfs.h"

/* Of all address spaces. */
static uint64_t committed_total;
static struct list all_mms = LIST_INIT(all_mms);

struct mm *mm_create(struct aspace *as)
{
	struct mm *mm = calloc(1, sizeof(*mm));

	if (!mm)
		return NULL;
	if (vma_tree_init(&mm->vmas) < 0) {
		free(mm);
		return NULL;
	}
	ref_init(&mm->ref);
	mm->as = as;
	list_add_tail(&all_mms, &mm->node);
	mm_set_base(mm, 8 << 20, true);
	kernel.counters.mms++;
	return mm;
}

void mm_attach(struct mm *mm, struct aspace *as)
{
	BUG_ON(mm->as);
	mm->as = as;
}

struct mm *mm_get(struct mm *mm)
{
	ref_get(&mm->ref);
	return mm;
}

void mm_put(struct mm *mm)
{
	if (!mm || !ref_put(&mm->ref))
		return;
	list_del(&mm->node);
	committed_total -= mm->committed;
	vma_tree_fini(&mm->vmas);
	if (mm->exe) {
		inode_allow_write(mm->exe->inode);
		file_put(mm->exe);
	}
	if (mm->as)
		kernel.plat->aspace_put(mm->as);
	free(mm);
	kernel.counters.mms--;
}

struct aspace *mm_aspace(const struct mm *mm)
{
	return mm->as;
}

unsigned mm_users_add(struct mm *mm, int delta)
{
	mm->users += delta;
	return mm->users;
}

void mm_account(struct mm *mm, const struct vma *v, int sign)
{
	uint64_t n = sign < 0 ? -vma_len(v) : vma_len(v);
	bool write = v->prot & PROT_WRITE, shared = v->flags & VMA_SHARED;

	mm->total += n;
	if (v->flags & VMA_GROWSDOWN)
		mm->stack += n;
	else if (write && !shared)
		mm->data += n;
	else if (v->prot & PROT_EXEC)
		mm->text += n;
	if (shared || (v->file && !write))
		mm->shared += n;
	if (v->flags & VMA_LOCKED)
		mm->locked += n;
	if (!(v->flags & VMA_NORESERVE) && (v->shm || (write && !shared))) {
		mm->committed += n;
		committed_total += n;
	}
}

bool mm_commit_allows(uint64_t more)
{
	uint64_t limit = kernel.limits.memory, bound;

	if (!limit)
		return true;
	if (__builtin_mul_overflow(limit, MM_COMMIT_FACTOR, &bound))
		return true;
	bound = MAX(bound, limit + MM_COMMIT_SPARE);
	if (more <= bound && committed_total <= bound - more)
		return true;
	kernel.counters.hit_memory_limit = true;
	return false;
}

int mm_may_grow(struct task *t, struct mm *mm, const struct vma *like, uint64_t len,
                uint64_t replaced)
{
	bool data = (like->prot & PROT_WRITE) && !(like->flags & (VMA_SHARED | VMA_GROWSDOWN));
	uint64_t as = task_rlimit(t, RLIMIT_AS), total = mm->total - MIN(mm->total, replaced);

	if (len > as || total > as - len)
		return -ENOMEM;
	if (data) {
		uint64_t max = task_rlimit(t, RLIMIT_DATA);

		if (len > max || mm->data > max - len)
			return -ENOMEM;
	}
	if (!(like->flags & VMA_NORESERVE) && (like->shm || data) && !mm_commit_allows(len))
		return -ENOMEM;
	return 0;
}

int mm_may_lock(struct task *t, struct mm *mm, uint64_t more, int err)
{
	uint64_t max = task_rlimit(t, RLIMIT_MEMLOCK);

	if (cred_has_cap(t->cred, CAP_IPC_LOCK) || (more <= max && mm->locked <= max - more))
		return 0;
	return err;
}

uint64_t mm_mapped_bytes(struct mm *mm, uaddr_t start, uaddr_t end)
{
	uint64_t n = 0;

	for (struct vma *v = vma_find(&mm->vmas, start); v && v->start < end; v = vma_next(v)) {
		if (!(v->flags & VMA_RESERVED))
			n += MIN(v->end, end) - MAX(v->start, start);
	}
	return n;
}

uaddr_t mm_mapped_until(struct mm *mm, uaddr_t start, uaddr_t end)
{
	struct vma *v = vma_at(&mm->vmas, start);

	while (v && v->start <= start && start < end && !(v->flags & VMA_RESERVED)) {
		start = v->end;
		v = vma_next(v);
	}
	return MIN(start, end);
}

void mm_drop_range(struct mm *mm, uaddr_t start, uaddr_t end, struct vma_spares *s)
{
	struct vma *v = vma_first_in(&mm->vmas, start, end), *next;

	if (!v)
		return;
	vma_cut(&mm->vmas, start, end, s);
	for (v = vma_first_in(&mm->vmas, start, end); v && v->start < end; v = next) {
		next = vma_next(v);
		mm_account(mm, v, -1);
		vma_remove(&mm->vmas, v);
		vma_free(v);
	}
}

int64_t mm_apply(struct task *t, const struct aspace_op *ops, unsigned n, bool may_resume)
{
	unsigned done = 0;

	return kernel.plat->aspace_apply(t->ctx, ops, n, may_resume && n == 1, &done);
}

void mm_abandon(struct task *t, uaddr_t start, uaddr_t end, struct vma_spares *s)
{
	struct aspace_op op = { .op = ASPACE_UNMAP, .addr = start, .len = end - start };

	/* Fails only when the context is dead or the host is out of VMAs: then the range stays the
	 * host's, without use. */
	(void)mm_apply(t, &op, 1, false);
	mm_drop_range(t->mm, start, end, s);
}

int mm_op_of_vma(const struct vma *v, uaddr_t start, uaddr_t end, struct aspace_op *op)
{
	struct file_map map = { .fd = -1 };
	bool shared = v->flags & VMA_SHARED;

	if (v->file) {
		int rc = vfs_mmap(v->file, v->prot, shared, &map);

		if (rc < 0)
			return rc;
	}
	*op = (struct aspace_op){
		.op = ASPACE_MAP,
		.flags = (shared ? ASPACE_SHARED : 0) |
		         (v->flags & VMA_NORESERVE ? ASPACE_NORESERVE : 0),
		.prot = v->prot,
		.fd = map.fd,
		.addr = start,
		.len = end - start,
	};
	if (map.fd >= 0 &&
	    __builtin_add_overflow(map.offset, v->offset + (start - v->start), &op->offset))
		return -EOVERFLOW;
	return 0;
}

struct mm *mm_fork(struct mm *mm, struct aspace *as)
{
	struct mm *child;
	struct vma_spares s = { .n = 0 };

	if (!mm_commit_allows(mm->committed))
		return NULL;
	child = mm_create(NULL);
	if (!child)
		return NULL;
	for (struct vma *v = vma_first(&mm->vmas); v; v = vma_next(v)) {
		struct vma *copy;

		if (v->flags & (VMA_RESERVED | VMA_DONTFORK))
			continue;
		if (vma_spares_fill(&s, 1) < 0) {
			mm_put(child);
			return NULL;
		}
		copy = vma_dup(&s, v);
		copy->flags &= ~VMA_LOCKED; /* mlock(2): not inherited */
		vma_insert(&child->vmas, copy);
		mm_account(child, copy, 1);
	}
	child->mmap_base = mm->mmap_base;
	child->brk = mm->brk;
	child->arena_end = mm->arena_end;
	child->layout = mm->layout;
	/* A running program already refuses writers, so that one more refusal cannot fail. */
	if (mm->exe && inode_deny_write(mm->exe->inode) == 0)
		child->exe = file_get(mm->exe);
	child->as = as;
	return child;
}

void mm_file_cut(const struct inode *in, uint64_t size)
{
	uint64_t end; /* the first page that is gone begins here */
	struct mm *mm;

	if (!kernel.plat || !kernel.plat->aspace_cut ||
	    __builtin_add_overflow(size, PAGE_SIZE - 1, &end))
		return;
	end = ROUND_DOWN(end, PAGE_SIZE);
	list_for_each_entry(mm, &all_mms, node) {
		for (struct vma *v = mm->as ? vma_first(&mm->vmas) : NULL; v; v = vma_next(v)) {
			uint64_t keep = end > v->offset ? end - v->offset : 0;

			if (v->file && v->file->inode == in && keep < vma_len(v))
				kernel.plat->aspace_cut(mm->as, v->start + keep,
				                        vma_len(v) - keep);
		}
	}
}

struct mm_layout *mm_layout(struct mm *mm)
{
	return &mm->layout;
}

void mm_set_exe(struct mm *mm, struct file *exe)
{
	BUG_ON(mm->exe);
	mm->exe = file_get(exe);
}

struct file *mm_exe(const struct mm *mm)
{
	return mm->exe;
}

bool mm_shared_object(struct mm *mm, uaddr_t a, const void **object, uint64_t *offset)
{
	struct vma *v = vma_at(&mm->vmas, a);

	if (!v || !(v->flags & VMA_SHARED))
		return false;
	*object = v->shm ? (const void *)v->shm : (const void *)v->file->inode;
	*offset = v->offset + (a - v->start);
	return true;
}

int mm_prot_at(struct mm *mm, uaddr_t a)
{
	struct vma *v = vma_at(&mm->vmas, a);

	return v ? v->prot : -1;
}

void mm_stats(struct mm *mm, struct mm_stats *st)
{
	*st = (struct mm_stats){
		.total = mm->total,
		/* What was committed or comes from files: an upper bound of what is there. */
		.rss = mm->committed + MIN(mm->shared, mm->text),
		.shared = MIN(mm->shared, mm->text),
		.text = mm->layout.end_code - mm->layout.start_code,
		.data = mm->data,
		.stack = mm->stack,
		.locked = mm->locked,
	};
}
