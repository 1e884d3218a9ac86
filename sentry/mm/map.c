/* SPDX-License-Identifier: Apache-2.0 */
/* mmap(2), munmap(2), mprotect(2), and the loader's batch. See the head of mm.c for how a change is
 * made. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/bug.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/restart.h"
#include "sentry/kernel/task.h"
#include "sentry/mm/mm_priv.h"
#include "sentry/vfs/file.h"
#include "sentry/vfs/vfs.h"

#define LINUX_PROT_SEM 8 /* accepted, without meaning on x86 */

/* A mapping that has been checked and whose memory is at hand. */
struct map_plan {
	uaddr_t start, end;
	uint64_t replaced; /* bytes of other mappings in the range */
	struct vma *vma;   /* ours until map_commit() */
	struct vma_spares spares;
	struct aspace_op ops[2];
	unsigned n_ops;
};

static uint32_t vma_flags_of(const struct mm *mm, unsigned map_flags)
{
	uint32_t f = 0;

	if (map_flags & MM_MAP_SHARED)
		f |= VMA_SHARED;
	if (map_flags & MM_MAP_GROWSDOWN)
		f |= VMA_GROWSDOWN;
	if (map_flags & MM_MAP_NORESERVE)
		f |= VMA_NORESERVE;
	if ((map_flags & MM_MAP_LOCKED) || mm->lock_future)
		f |= VMA_LOCKED;
	return f;
}

/* The checks of mmap(2) on a file: what may ever be done with the mapping goes into v->maxprot. */
static int check_file(struct vma *v, const struct file *f)
{
	if (v->flags & VMA_SHARED) {
		if ((v->prot & PROT_WRITE) && !file_writable(f))
			return -EACCES;
		if (!file_writable(f))
			v->maxprot &= ~PROT_WRITE;
	}
	if (!file_readable(f))
		return -EACCES;
	if (f->mnt && (f->mnt->flags & MNT_NOEXEC)) {
		if (v->prot & PROT_EXEC)
			return -EPERM;
		v->maxprot &= ~PROT_EXEC;
	}
	if (v->flags & VMA_GROWSDOWN)
		return -EINVAL;
	return 0;
}

/* A memfd may be sealed against writing through new mappings: then a readable one stays so. */
static bool may_become_writable(const struct vma *v)
{
	struct file_map unused;

	return !v->file || !(v->flags & VMA_SHARED) || !(v->maxprot & ~v->prot & PROT_WRITE) ||
	       vfs_mmap(v->file, PROT_READ | PROT_WRITE, true, &unused) == 0;
}

/* Fills the VMA of the plan, in the order of Linux's checks. */
static int plan_vma(struct task *t, struct mm *mm, const struct mm_map_args *a, struct map_plan *p)
{
	struct vma *v = p->vma;
	uint64_t len = p->end - p->start;
	int rc;

	v->start = p->start;
	v->end = p->end;
	v->prot = a->prot & PROT_ALL;
	v->maxprot = PROT_ALL;
	v->flags = vma_flags_of(mm, a->flags);
	v->offset = a->file ? a->offset : 0;
	if (v->flags & VMA_LOCKED) {
		rc = mm_may_lock(t, mm, len, -EAGAIN);
		if (rc < 0)
			return rc;
	}
	if (a->file) {
		rc = check_file(v, a->file);
		if (rc < 0)
			return rc;
		v->file = file_get(a->file);
	} else if ((v->flags & VMA_SHARED) && (v->flags & VMA_GROWSDOWN)) {
		return -EINVAL;
	}
	rc = mm_op_of_vma(v, p->start, p->end, &p->ops[p->n_ops]);
	if (rc < 0)
		return rc;
	if (!may_become_writable(v))
		v->maxprot &= ~PROT_WRITE;
	if ((a->flags & MM_MAP_POPULATE) && len <= MM_POPULATE_MAX)
		p->ops[p->n_ops].flags |= ASPACE_LOCKED;
	if ((v->flags & VMA_SHARED) && p->ops[p->n_ops].fd < 0) {
		v->shm = shm_object_create();
		if (!v->shm)
			return -ENOMEM;
	}
	p->n_ops++;
	return mm_may_grow(t, mm, v, len, p->replaced);
}

static void plan_fini(struct map_plan *p)
{
	if (p->vma)
		vma_free(p->vma);
	vma_spares_fini(&p->spares);
}

/* 0, or -errno with nothing left to free. */
static int plan_map(struct task *t, struct mm *mm, const struct mm_map_args *a, struct map_plan *p)
{
	uint64_t len, end_off;
	int rc;

	*p = (struct map_plan){ .n_ops = 0 };
	if (!a->len)
		return -EINVAL;
	if (__builtin_add_overflow(a->len, PAGE_SIZE - 1, &len))
		return -ENOMEM;
	len = ROUND_DOWN(len, PAGE_SIZE);
	if (a->offset % PAGE_SIZE)
		return -EINVAL;
	if (__builtin_add_overflow(a->offset, len, &end_off))
		return -EOVERFLOW;
	if (mm->vmas.count > MM_MAP_COUNT_MAX)
		return -ENOMEM;
	rc = mm_place(t, mm, a, len, &p->start);
	if (rc < 0)
		return rc;
	p->end = p->start + len;
	p->replaced = mm_mapped_bytes(mm, p->start, p->end);
	rc = vma_spares_fill(&p->spares, p->replaced ? 3 : 1);
	if (rc < 0)
		goto fail;
	p->vma = p->spares.v[--p->spares.n];
	p->n_ops = mm_arena_release(mm, p->start, p->end, &p->ops[0]);
	rc = plan_vma(t, mm, a, p);
	if (rc == 0)
		return 0;
fail:
	plan_fini(p);
	return rc;
}

static void map_commit(struct mm *mm, struct map_plan *p)
{
	if (p->replaced)
		mm_drop_range(mm, p->start, p->end, &p->spares);
	vma_insert(&mm->vmas, p->vma);
	mm_account(mm, p->vma, 1);
	p->vma = NULL;
	vma_merge(&mm->vmas, p->start, p->end);
}

int64_t mm_map(struct task *t, const struct mm_map_args *args, bool may_resume)
{
	struct mm *mm = t->mm;
	struct map_plan p;
	uaddr_t addr;
	int64_t rc = plan_map(t, mm, args, &p);

	if (rc < 0)
		return rc;
	addr = p.start;
	rc = mm_apply(t, p.ops, p.n_ops, may_resume);
	if (p.n_ops == 2)
		mm_arena_forget(mm);
	if (rc >= 0)
		map_commit(mm, &p);
	else if (p.replaced)
		mm_abandon(t, p.start, p.end, &p.spares);
	plan_fini(&p);
	if (rc < 0)
		return rc;
	return rc == ASPACE_RESUMED ? SYS_NO_RETURN : (int64_t)addr;
}

int64_t mm_batch_map(struct mm_batch *b, struct task *t, const struct mm_map_args *args)
{
	struct map_plan p;
	int rc;

	if (b->n == MM_BATCH_MAX)
		return -ENOMEM;
	rc = plan_map(t, b->mm, args, &p);
	if (rc < 0)
		return rc;
	BUG_ON(p.n_ops != 1); /* there is no heap yet */
	b->ops[b->n++] = p.ops[0];
	map_commit(b->mm, &p);
	plan_fini(&p);
	return (int64_t)p.start;
}

int mm_batch_apply(struct mm_batch *b, struct vcpu_ctx *ctx)
{
	unsigned done = 0;
	int64_t rc = kernel.plat->aspace_apply(ctx, b->ops, b->n, false, &done);

	return rc < 0 ? (int)rc : 0;
}

int64_t mm_unmap(struct task *t, uaddr_t addr, uint64_t len, bool may_resume)
{
	struct mm *mm = t->mm;
	struct vma_spares s = { .n = 0 };
	struct aspace_op ops[2];
	unsigned n, cost;
	uaddr_t end;
	int64_t rc;

	if (addr % PAGE_SIZE || addr > GUEST_TASK_SIZE || len > GUEST_TASK_SIZE - addr || !len)
		return -EINVAL;
	end = ROUND_UP(addr + len, PAGE_SIZE);
	if (mm_meets_reserved(addr, end))
		return -EINVAL;
	n = mm_arena_release(mm, addr, end, &ops[0]);
	if (!n && !vma_first_in(&mm->vmas, addr, end))
		return 0;
	cost = vma_cut_cost(&mm->vmas, addr, end);
	/* One VMA that becomes two is refused at the limit; cutting off a piece is not. */
	if (cost == 2 && mm->vmas.count >= MM_MAP_COUNT_MAX)
		return -ENOMEM;
	if (vma_spares_fill(&s, cost) < 0)
		return -ENOMEM;
	ops[n++] = (struct aspace_op){ .op = ASPACE_UNMAP, .addr = addr, .len = end - addr };
	rc = mm_apply(t, ops, n, may_resume);
	if (n == 2)
		mm_arena_forget(mm);
	if (rc >= 0) {
		mm_drop_range(mm, addr, end, &s);
	}
	vma_spares_fini(&s);
	return rc == ASPACE_RESUMED ? SYS_NO_RETURN : rc;
}

/* The state of mprotect(2) over its VMAs. */
struct protect {
	int prot;
	uaddr_t start, end; /* what can be done: up to the first VMA that refuses */
	uint64_t new_data;  /* bytes that become private writable */
	bool change;
	int rc; /* what the call returns in the end */
};

static void protect_check(struct task *t, struct mm *mm, struct protect *p)
{
	uaddr_t at = p->start;

	for (struct vma *v = vma_find(&mm->vmas, at); at < p->end; v = vma_next(v)) {
		if (!v || v->start > at || (v->flags & VMA_RESERVED))
			p->rc = -ENOMEM; /* a hole: what is before it is done */
		else if (p->prot & ~v->maxprot)
			p->rc = -EACCES;
		if (p->rc < 0)
			break;
		if (v->prot != p->prot)
			p->change = true;
		if ((p->prot & PROT_WRITE) && !(v->prot & PROT_WRITE) &&
		    !(v->flags & (VMA_SHARED | VMA_GROWSDOWN))) {
			struct vma like = { .prot = p->prot, .flags = v->flags };

			p->new_data += MIN(v->end, p->end) - at;
			p->rc = mm_may_grow(t, mm, &like, p->new_data, p->new_data);
			if (p->rc < 0)
				break;
		}
		at = v->end;
	}
	p->end = MIN(at, p->end);
}

static void protect_commit(struct mm *mm, const struct protect *p, struct vma_spares *s)
{
	vma_cut(&mm->vmas, p->start, p->end, s);
	for (struct vma *v = vma_find(&mm->vmas, p->start); v && v->start < p->end;
	     v = vma_next(v)) {
		mm_account(mm, v, -1);
		v->prot = p->prot;
		mm_account(mm, v, 1);
	}
	vma_merge(&mm->vmas, p->start, p->end);
}

/* The platform failed in the middle: gives each VMA back what the books say. */
static void protect_undo(struct task *t, const struct protect *p)
{
	for (struct vma *v = vma_find(&t->mm->vmas, p->start); v && v->start < p->end;
	     v = vma_next(v)) {
		uaddr_t start = MAX(v->start, p->start);
		struct aspace_op op = {
			.op = ASPACE_PROTECT,
			.prot = v->prot,
			.addr = start,
			.len = MIN(v->end, p->end) - start,
		};

		/* Best effort: without memory for a host VMA the piece was never changed. */
		(void)mm_apply(t, &op, 1, false);
	}
}

/* PROT_GROWSDOWN: down to the start of the stack that holds the range. */
static int protect_growsdown(struct mm *mm, int *prot, struct protect *p)
{
	struct vma *v = vma_at(&mm->vmas, p->start);

	if ((*prot & PROT_GROWSDOWN) && (*prot & PROT_GROWSUP))
		return -EINVAL;
	if (*prot & (PROT_GROWSDOWN | PROT_GROWSUP)) {
		if (!v)
			return -ENOMEM;
		if ((*prot & PROT_GROWSUP) || !(v->flags & VMA_GROWSDOWN))
			return -EINVAL;
		p->start = v->start;
	}
	*prot &= ~(PROT_GROWSDOWN | PROT_GROWSUP);
	return 0;
}

int64_t mm_protect(struct task *t, uaddr_t addr, uint64_t len, int prot, bool may_resume)
{
	struct mm *mm = t->mm;
	struct protect p = { .start = addr, .rc = 0 };
	struct vma_spares s = { .n = 0 };
	struct aspace_op op;
	unsigned cost;
	int64_t rc;

	if ((prot & PROT_GROWSDOWN) && (prot & PROT_GROWSUP))
		return -EINVAL;
	if (addr % PAGE_SIZE)
		return -EINVAL;
	if (!len)
		return 0;
	if (__builtin_add_overflow(addr, len, &p.end) || p.end > GUEST_TASK_SIZE)
		return -ENOMEM;
	p.end = ROUND_UP(p.end, PAGE_SIZE);
	if (prot & ~(PROT_ALL | LINUX_PROT_SEM | PROT_GROWSDOWN | PROT_GROWSUP))
		return -EINVAL;
	rc = protect_growsdown(mm, &prot, &p);
	if (rc < 0)
		return rc;
	p.prot = prot & PROT_ALL;
	protect_check(t, mm, &p);
	if (p.end <= p.start || !p.change)
		return p.rc;
	cost = vma_cut_cost(&mm->vmas, p.start, p.end);
	if (cost && mm->vmas.count + cost > MM_MAP_COUNT_MAX)
		return -ENOMEM;
	if (vma_spares_fill(&s, cost) < 0)
		return -ENOMEM;
	op = (struct aspace_op){
		.op = ASPACE_PROTECT, .prot = p.prot, .addr = p.start, .len = p.end - p.start
	};
	rc = mm_apply(t, &op, 1, may_resume && p.rc == 0);
	if (rc >= 0)
		protect_commit(mm, &p, &s);
	else
		protect_undo(t, &p);
	vma_spares_fini(&s);
	if (rc < 0)
		return rc;
	return rc == ASPACE_RESUMED ? SYS_NO_RETURN : p.rc;
}
