/* SPDX-License-Identifier: Apache-2.0 */
/* What a machine is made of: the VM, its vCPUs (one a worker thread), contexts. kvm_priv.h tells who holds the lock. */
#ifndef SBX_PLATFORM_KVM_MACHINE_H
#define SBX_PLATFORM_KVM_MACHINE_H

#include <linux/kvm.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/host/thread.h"
#include "base/list.h"
#include "base/lock.h"
#include "platform/kvm/kvm_priv.h"
#include "platform/stub/fpu.h"

#define KVM_VCPUS_MAX   16u
#define KVM_CPUID_MAX   200u
#define KVM_XSAVE_AREA  4096u /* what KVM_GET_XSAVE fills without dynamic features */
#define KVM_WORKER_STACK (1024u * 1024) /* the kernel runs on it */
#define KVM_ZAP_BATCH   300u
#define KVM_GPA_BASE    0x100000000ull /* clear of the holes of a PC below 4 GiB */

/*
 * Where a worker is:
 *   OUT    holds platform.lock, or is on its way to it
 *   GUEST  in KVM_RUN, or about to: leaves it when immediate_exit is set and a signal comes
 *   IDLE   waits for kvcpu.doorbell
 * A worker that goes to GUEST or IDLE looks at platform.wake_bits after it said so.
 */
enum kvcpu_where { KVCPU_OUT, KVCPU_GUEST, KVCPU_IDLE };

/*
 * States of a context:
 *   STOPPED  its trap was reported and not answered, or it is new
 *   READY    may run: on platform.runq, or kvcpu.next
 *   GUEST    a worker runs it (kctx.on)
 *   DEAD     the platform ended it; only ctx_destroy() is left
 */
enum kctx_state { KCTX_STOPPED, KCTX_READY, KCTX_GUEST, KCTX_DEAD };

/*
 * The host had no page for an access of the guest and cannot tell which (trap.c). While @tries: the last page fault
 * that was seen to, and the registers it was made with.
 */
struct klost {
	unsigned tries;
	bool known;
	uaddr_t addr;
	uint64_t err;
	struct kvm_regs regs;
};

struct kctx {
	struct vcpu_ctx base;
	struct platform *p;
	struct aspace *as;      /* counted */
	enum kctx_state state;
	bool interrupt;         /* ctx_interrupt() asked, and not yet stopped since */
	bool bases_known;       /* fs_base, gs_base are what the context has */
	bool bases_set;         /* they must be loaded before it runs */
	struct kvcpu *on;       /* GUEST: who runs it */
	struct kvcpu *loaded;   /* whose processor state has its FPU state and bases; NULL: they are here */
	struct list node;       /* on platform.runq */
	uint64_t ready_since;   /* ns */
	struct kvm_regs regs;   /* the user's view; valid unless GUEST */
	uint64_t fs_base, gs_base;
	uint8_t *xsave;         /* KVM_XSAVE_AREA bytes */
	struct klost lost;
	struct trap trap;
};

struct kvcpu {
	struct platform *p;
	unsigned idx;
	int fd;
	struct kvm_run *run;
	struct host_thread thread;
	bool thread_up;
	pid_t tid;
	uint8_t *stack;         /* the exception stack's page in our address space */
	gpa_t gdt_page, stack_page;
	uint64_t stack_top;     /* in the monitor's */

	/* Under platform.lock. */
	struct kctx *cur;       /* GUEST: what it runs; NULL then: destroyed meanwhile */
	struct kctx *told;      /* the trap callback runs for it */
	struct kctx *next;      /* READY, not on the queue: told's answer came at once */
	struct kctx *loaded;    /* whose FPU state and bases it has */

	/* The worker's own while it is GUEST, else under platform.lock. */
	gpa_t cr3;              /* the root it stands on, or will before it runs */
	bool cpl0;              /* stopped in the monitor, so that its stubs can be used */
	bool root_gone;         /* its processor is to be told of cr3: the root before it was freed while it was out */

	/* Atomic. */
	uint32_t where;         /* enum kvcpu_where */
	uint32_t flush;         /* translations must be forgotten before the guest runs */
	uint32_t doorbell;      /* IDLE: a futex; 1: look again */
	uint64_t slice_end;     /* in ticks: then it is another's turn */
};

#define KVM_WAKE_IDLE 1u /* platform_ops.wake */

struct platform {
	const struct platform_up *up;
	void *up_arg;
	struct platform_config cfg;
	struct platform_info info;
	struct kmem *mem;       /* mem.c */
	struct kvdso *vdso;     /* the vDSO's pages, or NULL */

	int kvm_fd, vm_fd;
	bool shadow;            /* the host shadows our page tables: kvcpu_zap(), not kvcpu_shootdown() */
	bool tsc_is_host;       /* the guest's time stamp counter is the host's */
	bool syscall_cpl3;      /* syscall leaves CPL 3: its end is a page fault at the entry */
	size_t run_size;
	struct fpu_layout fpu;  /* of the user's standard area; xfeatures is XCR0 */
	unsigned phys_bits;
	struct {
		uint32_t nent, pad;
		struct kvm_cpuid_entry2 e[KVM_CPUID_MAX];
	} cpuid;                /* as struct kvm_cpuid2 */
	gpa_t text_page, idt_page;

	struct sbx_mutex lock;
	struct kvcpu *me;       /* the holder's */
	struct kvcpu *vcpus[KVM_VCPUS_MAX];
	unsigned n_vcpus, n_ctxs;
	struct list runq;       /* READY, by kctx.node, oldest first */
	bool stopping, running, quit;
	int broken;             /* -errno: no machine any more */

	uint32_t n_ready;       /* atomic: length of runq */
	uint32_t wake_bits;     /* atomic: KVM_WAKE_* */
	uint32_t tick_wanted;   /* atomic, futex: the ticker has something to watch */
	uint32_t ticker_quit;   /* atomic */
	uint64_t ticks;         /* atomic: the ticker's count */
	struct host_thread ticker;
	bool ticker_up;
};

static inline struct kctx *kctx_of(struct vcpu_ctx *ctx)
{
	return container_of(ctx, struct kctx, base);
}

#endif
