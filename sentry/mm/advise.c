/* SPDX-License-Identifier: Apache-2.0 */
/*
 * madvise(2), msync(2), mlock(2): calls that go over the VMAs of a range, pass over holes and tell
 * of them with -ENOMEM in the end.
 */
#include <errno.h>
#include <linux/capability.h>
#include <linux/mman.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "sentry/kernel/cred.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/restart.h"
#include "sentry/kernel/task.h"
#include "sentry/mm/mm_priv.h"
#include "sentry/vfs/file.h"

/* What an advice does. */
struct advice {
	bool known;
	bool host;           /* is passed to the platform */
	bool populate;       /* ... unless it is long */
	bool no_locked;      /* -EINVAL on locked memory */
	bool private_anon;   /* -EINVAL on anything else */
	uint32_t set, clear; /* VMA_* */
	int pass_as;         /* the platform's value where it is another; 0: the same */
};

#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24
#endif

/* By MADV_*. The hints about reading order are accepted and mean nothing here: the host reads ahead
 * by itself. KSM (MADV_MERGEABLE) is refused as on kernels without it: it would let sandboxes learn
 * of each other's pages. */
static const struct advice advices[] = {
	[MADV_NORMAL] = { .known = true },
	[MADV_RANDOM] = { .known = true },
	[MADV_SEQUENTIAL] = { .known = true },
	[MADV_WILLNEED] = { .known = true },
	[MADV_DONTNEED] = { .known = true, .host = true, .no_locked = true },
	[MADV_FREE] = { .known = true, .host = true, .no_locked = true, .private_anon = true },
	[MADV_REMOVE] = { .known = true, .host = true, .no_locked = true },
	[MADV_DONTFORK] = { .known = true, .host = true, .set = VMA_DONTFORK },
	[MADV_DOFORK] = { .known = true, .host = true, .clear = VMA_DONTFORK },
	[MADV_HUGEPAGE] = { .known = true, .host = true, .set = VMA_HUGE, .clear = VMA_NOHUGE },
	[MADV_NOHUGEPAGE] = { .known = true, .host = true, .set = VMA_NOHUGE, .clear = VMA_HUGE },
	[MADV_DONTDUMP] = { .known = true, .set = VMA_DONTDUMP },
	[MADV_DODUMP] = { .known = true, .clear = VMA_DONTDUMP },
	[MADV_WIPEONFORK] = { .known = true,
	                      .host = true,
	                      .private_anon = true,
	                      .set = VMA_WIPEONFORK },
	[MADV_KEEPONFORK] = { .known = true, .host = true, .clear = VMA_WIPEONFORK },
	[MADV_COLD] = { .known = true, .no_locked = true },
	[MADV_PAGEOUT] = { .known = true, .no_locked = true },
	[MADV_POPULATE_READ] = { .known = true, .host = true, .populate = true },
	[MADV_POPULATE_WRITE] = { .known = true, .host = true, .populate = true },
	[MADV_DONTNEED_LOCKED] = { .known = true, .host = true, .pass_as = MADV_DONTNEED },
};

static int advice_allowed(const struct vma *v, int advice)
{
	const struct advice *a = &advices[advice];

	if (a->no_locked && (v->flags & VMA_LOCKED))
		return -EINVAL;
	if (a->private_anon && (v->file || (v->flags & VMA_SHARED)))
		return -EINVAL;
	if (advice == MADV_REMOVE) {
		if (!v->file && !v->shm)
			return -EINVAL;
		if (!(v->flags & VMA_SHARED) || !(v->prot & PROT_WRITE))
			return -EACCES;
	}
	return 0;
}

/* Changes flags in the range, which is mapped. The lock flag is accounted. Needs two spares. */
static void change_flags(struct mm *mm, uaddr_t start, uaddr_t end, uint32_t set, uint32_t clear,
                         struct vma_spares *s)
{
	vma_cut(&mm->vmas, start, end, s);
	for (struct vma *v = vma_find(&mm->vmas, start); v && v->start < end; v = vma_next(v)) {
		mm_account(mm, v, -1);
		v->flags = (v->flags & ~clear) | set;
		mm_account(mm, v, 1);
	}
	vma_merge(&mm->vmas, start, end);
}

/* One run of adjoining VMAs that all allow it. */
static int64_t advise_run(struct task *t, uaddr_t start, uaddr_t end, int advice, bool may_resume)
{
	const struct advice *a = &advices[advice];
	struct aspace_op op = {
		.op = ASPACE_ADVISE,
		.fd = -1,
		.addr = start,
		.len = end - start,
		.advice = a->pass_as ? a->pass_as : advice,
	};
	struct vma_spares s = { .n = 0 };
	struct mm *mm = t->mm;
	int64_t rc = 0;

	if (start == end)
		return 0;
	if (a->set || a->clear) {
		unsigned cost = vma_cut_cost(&mm->vmas, start, end);

		if (mm->vmas.count + cost > MM_MAP_COUNT_MAX || vma_spares_fill(&s, cost) < 0)
			rc = -ENOMEM;
	}
	if (rc == 0 && a->host && !(a->populate && op.len > MM_POPULATE_MAX))
		rc = mm_apply(t, &op, 1, may_resume);
	if (rc >= 0 && (a->set || a->clear))
		change_flags(mm, start, end, a->set, a->clear, &s);
	vma_spares_fini(&s);
	return rc;
}

int64_t mm_advise(struct task *t, uaddr_t addr, uint64_t len, int advice, bool may_resume)
{
	struct mm *mm = t->mm;
	uaddr_t end, run = addr, at = addr;
	int64_t rc = 0, result = 0;

	if (advice < 0 || advice >= (int)ARRAY_SIZE(advices) || !advices[advice].known ||
	    addr % PAGE_SIZE)
		return -EINVAL;
	if (len > UINT64_MAX - PAGE_SIZE ||
	    __builtin_add_overflow(addr, ROUND_UP(len, PAGE_SIZE), &end))
		return -EINVAL;
	if (!len)
		return 0;
	while (at < end) {
		struct vma *v = vma_find(&mm->vmas, at);

		if (!v || v->start > at || (v->flags & VMA_RESERVED)) {
			rc = advise_run(t, run, at, advice, false);
			if (rc < 0)
				return rc;
			result = -ENOMEM;
			if (!v || v->start >= end)
				return result;
			run = at = v->flags & VMA_RESERVED ? v->end : v->start;
			continue;
		}
		rc = advice_allowed(v, advice);
		if (rc < 0) {
			/* What is before is done; the refusal is what is told. */
			(void)advise_run(t, run, at, advice, false);
			return rc;
		}
		at = MIN(v->end, end);
	}
	rc = run < at ? advise_run(t, run, at, advice, may_resume && result == 0) : 0;
	if (rc < 0)
		return rc;
	return rc == ASPACE_RESUMED ? SYS_NO_RETURN : result;
}

static int file_sync(struct file *f)
{
	return f->ops->fsync ? f->ops->fsync(f, true) : 0;
}

int64_t mm_sync(struct task *t, uaddr_t addr, uint64_t len, int flags)
{
	struct mm *mm = t->mm;
	uaddr_t end, at = addr;
	int64_t result = 0;

	if (flags & ~(MS_ASYNC | MS_INVALIDATE | MS_SYNC))
		return -EINVAL;
	if (addr % PAGE_SIZE || ((flags & MS_ASYNC) && (flags & MS_SYNC)))
		return -EINVAL;
	if (len > UINT64_MAX - PAGE_SIZE ||
	    __builtin_add_overflow(addr, ROUND_UP(len, PAGE_SIZE), &end))
		return -ENOMEM;
	while (at < end) {
		struct vma *v = vma_find(&mm->vmas, at);

		if (!v || v->start >= end)
			return -ENOMEM;
		if (v->start > at || (v->flags & VMA_RESERVED))
			result = -ENOMEM;
		if ((flags & MS_INVALIDATE) && (v->flags & VMA_LOCKED))
			return -EBUSY;
		at = v->end;
		if ((flags & MS_SYNC) && v->file && (v->flags & VMA_SHARED)) {
			int rc = file_sync(v->file);

			if (rc < 0)
				return rc;
		}
	}
	return result;
}

/* mlock(2) and munlock(2). Memory is not pinned on the host: only the account and the rules are
 * kept. */
static int64_t set_locked(struct mm *mm, uaddr_t start, uaddr_t end, bool lock)
{
	uaddr_t stop = start;
	struct vma_spares s = { .n = 0 };
	unsigned cost;
	int64_t rc = 0;

	for (struct vma *v = vma_find(&mm->vmas, start); stop < end; v = vma_next(v)) {
		if (!v || v->start > stop || (v->flags & VMA_RESERVED)) {
			rc = -ENOMEM;
			break;
		}
		stop = v->end;
	}
	stop = MIN(stop, end);
	if (stop <= start)
		return rc;
	cost = vma_cut_cost(&mm->vmas, start, stop);
	if (mm->vmas.count + cost > MM_MAP_COUNT_MAX || vma_spares_fill(&s, cost) < 0)
		rc = -ENOMEM;
	else
		change_flags(mm, start, stop, lock ? VMA_LOCKED : 0, lock ? 0 : VMA_LOCKED, &s);
	vma_spares_fini(&s);
	return rc;
}

/* mlock(2) takes any address: the pages that the bytes lie in. 0, -EINVAL, 1: nothing to do. */
static int lock_range(uaddr_t addr, uint64_t len, uaddr_t *start, uaddr_t *end)
{
	uint64_t n;

	*start = ROUND_DOWN(addr, PAGE_SIZE);
	if (__builtin_add_overflow(len, addr - *start + PAGE_SIZE - 1, &n) ||
	    __builtin_add_overflow(*start, ROUND_DOWN(n, PAGE_SIZE), end))
		return -EINVAL;
	return *start == *end;
}

static uint64_t locked_in(struct mm *mm, uaddr_t start, uaddr_t end)
{
	uint64_t n = 0;

	for (struct vma *v = vma_find(&mm->vmas, start); v && v->start < end; v = vma_next(v)) {
		if (v->flags & VMA_LOCKED)
			n += MIN(v->end, end) - MAX(v->start, start);
	}
	return n;
}

static bool can_lock(const struct task *t)
{
	return task_rlimit(t, RLIMIT_MEMLOCK) || cred_has_cap(t->cred, CAP_IPC_LOCK);
}

int64_t mm_lock(struct task *t, uaddr_t addr, uint64_t len)
{
	uaddr_t start, end;
	int64_t rc;

	if (!can_lock(t))
		return -EPERM;
	rc = lock_range(addr, len, &start, &end);
	if (rc)
		return rc < 0 ? rc : 0;
	rc = mm_may_lock(t, t->mm, end - start - locked_in(t->mm, start, end), -ENOMEM);
	return rc < 0 ? rc : set_locked(t->mm, start, end, true);
}

int64_t mm_unlock(struct task *t, uaddr_t addr, uint64_t len)
{
	uaddr_t start, end;
	int rc = lock_range(addr, len, &start, &end);

	if (rc)
		return rc < 0 ? rc : 0;
	return set_locked(t->mm, start, end, false);
}

int64_t mm_lock_all(struct task *t, int flags)
{
	struct mm *mm = t->mm;
	struct vma_spares none = { .n = 0 };
	uaddr_t at;

	if (flags && !can_lock(t))
		return -EPERM;
	if ((flags & MCL_CURRENT) && mm->total > task_rlimit(t, RLIMIT_MEMLOCK) &&
	    !cred_has_cap(t->cred, CAP_IPC_LOCK))
		return -ENOMEM;
	mm->lock_future = flags & MCL_FUTURE;
	if (!flags || (flags & MCL_CURRENT)) {
		/* Whole VMAs: nothing is split and no spare needed; they may be joined. */
		for (struct vma *v = vma_first(&mm->vmas); v; v = vma_find(&mm->vmas, at)) {
			at = v->end;
			if (!(v->flags & VMA_RESERVED))
				change_flags(mm, v->start, v->end, flags ? VMA_LOCKED : 0,
				             VMA_LOCKED, &none);
		}
	}
	return 0;
}
