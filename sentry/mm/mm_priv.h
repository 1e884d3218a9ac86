/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of sentry/mm share. */
#ifndef SBX_SENTRY_MM_MM_PRIV_H
#define SBX_SENTRY_MM_MM_PRIV_H

#include "base/list.h"
#include "sentry/mm/mm.h"
#include "sentry/mm/vma.h"

struct mm {
	struct ref ref;
	struct list node; /* of all, in mm.c */
	unsigned users;
	struct aspace *as; /* owned */
	struct vma_tree vmas;
	uaddr_t mmap_base; /* placement goes down from here */
	/* The heap is [layout.start_brk, brk). The host has [page_up(brk), arena_end) mapped
	 * already (brk.c). */
	uaddr_t brk, arena_end;
	/* In bytes, kept by mm_account(). */
	uint64_t total, data, stack, text, shared, locked, committed;
	bool lock_future; /* mlockall(MCL_FUTURE) */
	struct file *exe; /* counted, writing to it denied */
	struct mm_layout layout;
};

#define PROT_ALL 7 /* PROT_READ | PROT_WRITE | PROT_EXEC */

/* Committed memory of the sandbox may pass kernel.limits.memory by this factor, or by this many
 * bytes when that is more, before a mapping is refused: programs map much that they never touch,
 * and what they do touch is limited on the host (cgroup or sampling by the monitor). Here only the
 * absurd is stopped. */
#define MM_COMMIT_FACTOR 16
#define MM_COMMIT_SPARE (8ull << 30)

/* Populating is a hint; the leader would wait for the host that long. */
#define MM_POPULATE_MAX (64ull << 20)

/* Adds (@sign 1) or takes off (-1) what @v stands for. Attributes must not change in between. */
void mm_account(struct mm *mm, const struct vma *v, int sign);
/* 0, or -ENOMEM: may @mm grow by @len bytes with these attributes, @replaced bytes of other
 * mappings going away? */
MUST_CHECK int mm_may_grow(struct task *t, struct mm *mm, const struct vma *like, uint64_t len,
                           uint64_t replaced);
/* 0, or @err: may @more bytes be locked (RLIMIT_MEMLOCK, CAP_IPC_LOCK)? */
MUST_CHECK int mm_may_lock(struct task *t, struct mm *mm, uint64_t more, int err);
bool mm_commit_allows(uint64_t more);

/* Bytes of the guest's mappings in the range. */
uint64_t mm_mapped_bytes(struct mm *mm, uaddr_t start, uaddr_t end);
/* Takes all VMAs out of the range. Needs two spares. */
void mm_drop_range(struct mm *mm, uaddr_t start, uaddr_t end, struct vma_spares *s);

/* Runs @ops for the current task of its own address space: 0 or ASPACE_RESUMED or -errno. */
int64_t mm_apply(struct task *t, const struct aspace_op *ops, unsigned n, bool may_resume);
/* After a failed change the host's state of the range is not known: takes it away in both worlds.
 * Needs two spares. */
void mm_abandon(struct task *t, uaddr_t start, uaddr_t end, struct vma_spares *s);

/* Finds a place as mmap(2) does: 0 and *ret, or -errno. @len is rounded. */
MUST_CHECK int mm_place(struct task *t, struct mm *mm, const struct mm_map_args *args, uint64_t len,
                        uaddr_t *ret);
static inline bool mm_meets_reserved(uaddr_t start, uaddr_t end)
{
	return start < PLATFORM_RESERVED_END && end > PLATFORM_RESERVED_START;
}

/* When the range meets the heap's unused arena: appends the op that gives the arena back, 1; else
 * 0. After the ops, whether they succeeded or not, the caller calls mm_arena_forget(): what is thought to
 * be unmapped and is not is replaced when the heap grows. */
unsigned mm_arena_release(struct mm *mm, uaddr_t start, uaddr_t end, struct aspace_op *op);
void mm_arena_forget(struct mm *mm);

/* The platform's op that maps what @v describes at [start, end) of it. -errno from the file. */
MUST_CHECK int mm_op_of_vma(const struct vma *v, uaddr_t start, uaddr_t end, struct aspace_op *op);

#endif
