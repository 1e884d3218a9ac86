/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A guest address space: its VMAs, brk, limits, and the platform's aspace that realises them. mmap(2), munmap(2),
 * mprotect(2), mremap(2), madvise(2), brk(2), proc(5). Changes are made by a stopped task of the address space.
 */
#ifndef SBX_SENTRY_MM_MM_H
#define SBX_SENTRY_MM_MM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/ref.h"
#include "platform/platform.h"

struct file;
struct mm;
struct task;

/* An empty one; takes @as over. NULL: no memory. */
struct mm *mm_create(struct aspace *as);
struct mm *mm_get(struct mm *mm);
void mm_put(struct mm *mm);
struct aspace *mm_aspace(const struct mm *mm); /* borrowed */
/* For fork: the VMAs are copied, @as (taken over) is the platform's copy. */
struct mm *mm_fork(struct mm *mm, struct aspace *as);
unsigned mm_users_add(struct mm *mm, int delta); /* tasks that run in it, for ctx_exec's @alone */

#define MM_MAP_FIXED     1u /* MAP_FIXED: replaces */
#define MM_MAP_NOREPLACE 2u /* MAP_FIXED_NOREPLACE: -EEXIST */
#define MM_MAP_SHARED    4u
#define MM_MAP_GROWSDOWN 8u /* a stack: grows on fault, kept apart from the mapping below */
#define MM_MAP_POPULATE  16u
#define MM_MAP_NORESERVE 32u
#define MM_MAP_STACK     64u
#define MM_MAP_32BIT     128u

struct mm_map_args {
	uaddr_t addr;     /* hint, or place with FIXED */
	uint64_t len;     /* > 0; rounded up here */
	int prot;
	unsigned flags;
	struct file *file; /* borrowed (a reference is taken); NULL: anonymous */
	uint64_t offset;   /* page aligned */
	const char *name;  /* static, "[heap]", "[stack]"; NULL */
};

/* All return a result or -errno as the man pages say; *_call ones may return SYS_NO_RETURN (ASPACE_RESUMED). */
int64_t mm_map(struct task *t, const struct mm_map_args *args, bool may_resume);
int64_t mm_unmap(struct task *t, uaddr_t addr, uint64_t len, bool may_resume);
int64_t mm_protect(struct task *t, uaddr_t addr, uint64_t len, int prot, bool may_resume);
int64_t mm_brk(struct task *t, uaddr_t addr);

/* A batch for the loader: maps several pieces with as few platform round trips as possible. */
int mm_map_many(struct task *t, const struct mm_map_args *args, unsigned n);

/* A SIGSEGV or SIGBUS at @addr: true when the fault was seen to (stack growth) and the task may be resumed. */
bool mm_fault(struct task *t, uaddr_t addr, uint64_t err);

struct mm_stats {
	uint64_t total, rss, shared, text, data, stack; /* bytes; rss is an estimate where the host does not tell */
};
void mm_stats(struct mm *mm, struct mm_stats *st);
/* The lines of /proc/PID/maps from @skip on: into buf, returns bytes; *next for the following call, 0 at the end. */
size_t mm_maps_text(struct mm *mm, bool smaps, uint64_t *cursor, char *buf, size_t cap);
/* Places that the loader notes and /proc shows. */
struct mm_layout {
	uaddr_t start_code, end_code, start_data, end_data, start_brk, start_stack, arg_start, arg_end, env_start, env_end;
	uint64_t auxv[64];
	unsigned n_auxv;
};
struct mm_layout *mm_layout(struct mm *mm);
void mm_set_brk(struct mm *mm, uaddr_t start);

#endif
