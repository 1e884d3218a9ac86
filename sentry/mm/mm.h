/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A guest address space: its VMAs, brk, limits, and the platform's aspace that realises them.
 * mmap(2), munmap(2), mprotect(2), mremap(2), madvise(2), brk(2), proc(5). Changes are made by a
 * stopped task of the address space.
 */
#ifndef SBX_SENTRY_MM_MM_H
#define SBX_SENTRY_MM_MM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/ref.h"
#include "platform/platform.h"

struct file;
struct inode;
struct mm;
struct task;

#define MM_MAP_COUNT_MAX 65530 /* vm.max_map_count: more VMAs are -ENOMEM */
#define MM_MIN_ADDR 0x10000    /* vm.mmap_min_addr */

/* An empty one; takes @as over (NULL: given later by mm_attach). NULL: no memory; @as is then still
 * the caller's. */
struct mm *mm_create(struct aspace *as);
void mm_attach(struct mm *mm, struct aspace *as);
struct mm *mm_get(struct mm *mm);
void mm_put(struct mm *mm);                    /* NULL is allowed */
struct aspace *mm_aspace(const struct mm *mm); /* borrowed */
/* For fork: the VMAs are copied, @as is the platform's copy (taken over on success). NULL: no
 * memory, or the copy would pass the sandbox's bound of committed memory. */
struct mm *mm_fork(struct mm *mm, struct aspace *as);
/* Tasks that run in it, for ctx_exec's @alone: +1 by clone and execve, -1 by execve (the old one)
 * and exit. Returns how many there are now. */
unsigned mm_users_add(struct mm *mm, int delta);

#define MM_MAP_FIXED 1u     /* MAP_FIXED: replaces */
#define MM_MAP_NOREPLACE 2u /* MAP_FIXED_NOREPLACE: -EEXIST */
#define MM_MAP_SHARED 4u
#define MM_MAP_GROWSDOWN 8u /* a stack: grows on fault, kept apart from the mapping below */
#define MM_MAP_POPULATE 16u
#define MM_MAP_NORESERVE 32u
#define MM_MAP_STACK 64u
#define MM_MAP_32BIT 128u
#define MM_MAP_LOCKED 256u

struct mm_map_args {
	uaddr_t addr; /* hint, or place with FIXED */
	uint64_t len; /* > 0; rounded up here */
	int prot;
	unsigned flags;
	struct file *file; /* borrowed (a reference is taken); NULL: anonymous */
	uint64_t offset;   /* page aligned */
};

/* @in got shorter, to @size: what mappings of it had behind its end is gone, private copies too. */
void mm_file_cut(const struct inode *in, uint64_t size);

/* All return a result or -errno as the man pages say. With @may_resume they may return
 * SYS_NO_RETURN: the platform has given the result to the guest already. */
int64_t mm_map(struct task *t, const struct mm_map_args *args, bool may_resume);
int64_t mm_unmap(struct task *t, uaddr_t addr, uint64_t len, bool may_resume);
int64_t mm_protect(struct task *t, uaddr_t addr, uint64_t len, int prot, bool may_resume);
/* The new break, or the old one when it cannot be moved there: never -errno. */
int64_t mm_brk(struct task *t, uaddr_t addr);
/* mremap(2); @flags are MREMAP_*. */
int64_t mm_remap(struct task *t, uaddr_t addr, uint64_t old_len, uint64_t new_len, unsigned flags,
                 uaddr_t new_addr);
int64_t mm_remap_file_pages(struct task *t, uaddr_t start, uint64_t len, uint64_t pgoff);
int64_t mm_advise(struct task *t, uaddr_t addr, uint64_t len, int advice, bool may_resume);
int64_t mm_sync(struct task *t, uaddr_t addr, uint64_t len, int flags);
int64_t mm_lock(struct task *t, uaddr_t addr, uint64_t len);
int64_t mm_unlock(struct task *t, uaddr_t addr, uint64_t len);
int64_t mm_lock_all(struct task *t, int flags); /* MCL_*; 0: unlocks all */
/* Where the first hole in the range is; @end when all of it is mapped. For mincore(2), mbind(2). */
uaddr_t mm_mapped_until(struct mm *mm, uaddr_t start, uaddr_t end);

/*
 * A batch for the loader: the VMAs of @mm, which no task runs in yet, are made at once; the
 * platform's part follows in one round trip by mm_batch_apply(), on a context whose (empty) address
 * space has been attached. When that fails the address space is unusable and the task must die.
 */
#define MM_BATCH_MAX 200
struct mm_batch {
	struct mm *mm;
	unsigned n;
	struct aspace_op ops[MM_BATCH_MAX];
};
/* The address, or -errno. @t gives limits and credentials. */
int64_t mm_batch_map(struct mm_batch *b, struct task *t, const struct mm_map_args *args);
MUST_CHECK int mm_batch_apply(struct mm_batch *b, struct vcpu_ctx *ctx);
/* Room for @len bytes somewhere, for an image of several pieces: the address, 0 when there is none.
 */
uaddr_t mm_find_free(struct mm *mm, uint64_t len);
/* Chooses where mmap(2) begins below a stack of at most @stack_limit bytes (RLIM_INFINITY is
 * allowed). */
void mm_set_base(struct mm *mm, uint64_t stack_limit, bool randomize);
/* A random page count below 2^@bits, as bytes. */
uint64_t mm_random_pages(unsigned bits);

/* A SIGSEGV or SIGBUS at @addr: true when the fault was seen to (stack growth) and the task may be
 * resumed. */
bool mm_fault(struct task *t, uaddr_t addr, uint64_t err);

/* Is @a in memory that other address spaces may share? Then *object and *offset name the byte for
 * all of them (the inode of a file, or an anonymous object): for keys of shared futexes. False:
 * private, or not mapped. */
bool mm_shared_object(struct mm *mm, uaddr_t a, const void **object, uint64_t *offset);
/* The access that the mapping at @a allows, PROT_*; -1 when there is none. */
int mm_prot_at(struct mm *mm, uaddr_t a);

struct mm_stats {
	uint64_t total, rss, shared, text, data,
		stack; /* bytes; rss is an estimate where the host does not tell */
	uint64_t locked;
};
void mm_stats(struct mm *mm, struct mm_stats *st);
/* Lines of /proc/PID/maps (or smaps) from the address *cursor on (0 to begin), as many whole ones
 * as fit: returns bytes and sets *cursor for the next call, to 0 at the end. @cap must hold
 * MM_MAPS_LINE_MAX. */
#define MM_MAPS_LINE_MAX 8192
size_t mm_maps_text(struct mm *mm, bool smaps, uint64_t *cursor, char *buf, size_t cap);

/* Places that the loader notes and /proc shows. */
struct mm_layout {
	uaddr_t start_code, end_code, start_data, end_data, start_brk, start_stack, arg_start,
		arg_end, env_start, env_end;
	uint64_t auxv[64];
	unsigned n_auxv;
};
struct mm_layout *mm_layout(struct mm *mm);
void mm_set_brk(struct mm *mm, uaddr_t start);
uaddr_t mm_brk_end(const struct mm *mm);
/* The running program: a reference is taken, and dropped with inode_allow_write() when the address
 * space goes; the caller has called inode_deny_write() on it. */
void mm_set_exe(struct mm *mm, struct file *exe);
struct file *mm_exe(const struct mm *mm); /* borrowed; may be NULL */

#endif
