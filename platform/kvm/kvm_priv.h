/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kvm platform's own structures: one VM a sandbox, guest code in ring 3, a monitor of a few dozen instructions in
 * ring 0 (monitor.S), the sentry outside.
 *
 * Threads and locks. The workers are vCPU threads; one of them is the thread that called run(). platform.lock is the
 * right to be the leader: a worker holds it except inside KVM_RUN and while it has nothing to do, so the trap callback
 * and every platform function run under it, one thread at a time. It spins before it parks. What is touched without
 * it is atomic: vcpu.in_guest, vcpu.flush, platform.wake_bits.
 *
 * Memory. Guest-physical memory is a window of our address space (mem.c): pages of RAM, and pieces of files mapped
 * into it. All page tables are written by us (pagetable.c, fault.c), never by the guest or by the processor (A and D
 * are always set). A page is freed only after the shootdown that follows its last present entry.
 */
#ifndef SBX_PLATFORM_KVM_PRIV_H
#define SBX_PLATFORM_KVM_PRIV_H

#include <stdbool.h>
#include <stdint.h>

#include "platform/platform.h"

typedef uint64_t gpa_t; /* a guest-physical address; 0: none */

struct kmem;
struct kvcpu;

/* The upper half, the same in every address space: supervisor only. */
#define KVM_MON_BASE   0xffffff8000000000ull
#define KVM_MON_TEXT   KVM_MON_BASE
#define KVM_MON_IDT    (KVM_MON_BASE + 0x1000)
#define KVM_MON_CPU(i) (KVM_MON_BASE + 0x100000 + (uint64_t)(i) * 0x4000)
#define KVM_MON_DIRECT 0xffff800000000000ull /* shadow-paging hosts only: writable alias of page tables */

#define PTE_P    1ull
#define PTE_W    2ull
#define PTE_U    4ull
#define PTE_A    0x20ull
#define PTE_D    0x40ull
#define PTE_NX   (1ull << 63)
#define PTE_ADDR 0x000ffffffffff000ull

/*
 * mem.c: guest-physical memory. All under platform.lock.
 */
/* Reserves the window and adds the first memslot; p->vm_fd and p->shadow are known. */
int kmem_init(struct platform *p, struct sbx_err *err);
void kmem_fini(struct platform *p);
#define KPAGE_ZERO   1u
#define KPAGE_SYSTEM 2u /* page tables and the monitor's pages: never handed to a guest mapping */
/* One page with one reference; 0: none left. */
gpa_t kpage_alloc(struct platform *p, unsigned flags);
void kpage_get(struct platform *p, gpa_t page);
void kpage_put(struct platform *p, gpa_t page);
void *kpage_ptr(struct platform *p, gpa_t page); /* valid while the page is held */

/*
 * pagetable.c, aspace.c, fault.c: address spaces.
 */
/* Maps a system page in the upper half of all address spaces. @bits: PTE_W, PTE_NX. 0 or -ENOMEM. */
int kpt_map_system(struct platform *p, uint64_t va, gpa_t page, uint64_t bits);
gpa_t kpt_kernel_root(struct platform *p); /* a root with the upper half only */

/* An empty one, the vDSO in it (p->vdso_pages); one reference. NULL: no memory. */
struct aspace *kaspace_create(struct platform *p);
/* Copy on write: for CTX_CLONE_FORK. NULL: no memory. */
struct aspace *kaspace_fork(struct aspace *as);
/* Removes every guest mapping: execve in place. */
void kaspace_clear(struct aspace *as);
gpa_t kaspace_root(const struct aspace *as);
struct platform *kaspace_platform(const struct aspace *as);
/* A page fault from ring 3. 0: seen to, run the context again. Else *trap is a TRAP_FAULT for the kernel. */
int kaspace_fault(struct aspace *as, uint64_t addr, uint64_t err, struct trap *trap);

/* The host had no page where the guest touched one: a file was cut below a mapping. Takes away the entries of all such
 * pages of @as, so that the guest faults again and kaspace_fault() tells where. False: there is none. */
bool kaspace_drop_truncated(struct aspace *as);
/* Takes away the entries of all pages of files, so that the guest faults at each again. */
void kaspace_drop_files(struct aspace *as);
/* Faults fill in the page that is asked for and no other. */
void kaspace_fill_single(struct aspace *as, bool on);

int64_t kvm_aspace_apply(struct vcpu_ctx *ctx, const struct aspace_op *ops, unsigned n, bool may_resume,
			 unsigned *done);
void kvm_aspace_cut(struct aspace *as, uaddr_t addr, uint64_t len);
struct aspace *kvm_aspace_get(struct aspace *as);
void kvm_aspace_put(struct aspace *as);
ssize_t kvm_aspace_read(struct aspace *as, uaddr_t addr, void *buf, size_t n);
ssize_t kvm_aspace_write(struct aspace *as, uaddr_t addr, const void *buf, size_t n);

/*
 * vcpu.c, run.c: what the memory side calls.
 */
/* Present entries of @as were taken away or lowered: every vCPU forgets what it holds of them. Returns when no guest
 * can use an old translation any more; after it pages may be freed. Hosts with nested paging. */
void kvcpu_shootdown(struct aspace *as);
/* The same on hosts with shadow paging: @tables, page tables of @as, were changed or are to be freed. */
void kvcpu_zap(struct aspace *as, const gpa_t *tables, unsigned n);
/* All vCPUs come out of the guest; none goes in again before the caller gives up the lock. */
void kvm_hold(struct platform *p);
/* Before the root of @as is freed: no vCPU stands on it any more. */
void kvcpu_leave(struct aspace *as);
/* The address space of a context. */
struct aspace *kctx_aspace(struct vcpu_ctx *ctx);

#endif
