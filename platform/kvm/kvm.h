/* SPDX-License-Identifier: Apache-2.0 */
/* The machine half of the kvm platform, among itself: who does what is told in kvm.c. */
#ifndef SBX_PLATFORM_KVM_KVM_H
#define SBX_PLATFORM_KVM_KVM_H

#include <stdbool.h>

#include "platform/kvm/machine.h"
#include "platform/stub/hostcall.h"

/* machine.c: before the first guest instruction */
int kvm_prepare(struct sbx_err *err);
/* Opens the VM and finds out what the host offers. What a failure leaves kvm_machine_close() ends. */
int kvm_machine_open(struct platform *p, struct sbx_err *err);
void kvm_machine_close(struct platform *p);
/* A fd, or -errno. */
int kvm_create_vm(struct platform *p, struct sbx_err *err);
/* Text and tables of the monitor into guest memory. */
int kvm_monitor_init(struct platform *p, struct sbx_err *err);
/* The next of p->vcpus, with its pages. */
int kvcpu_create(struct platform *p, unsigned idx, struct sbx_err *err);
/* The vCPU itself in @vm_fd; idx, cr3 and stack_top of @c are set. */
int kvcpu_open(struct platform *p, int vm_fd, struct kvcpu *c, struct sbx_err *err);
void kvcpu_close(struct kvcpu *c);
void kvcpu_segments(struct kvm_sregs *s, bool user);

/* selftest.c: sets p->syscall_cpl3 and p->shadow */
int kvm_selftest(struct platform *p, struct sbx_err *err);

/* vcpu.c: into the guest and out again */
enum kevent_kind {
	KEV_SYSCALL,
	KEV_VECTOR, /* an exception, or int n */
	KEV_KICKED, /* nothing happened; the registers are the user's */
	KEV_MEMORY, /* the host has no page there (a truncated file); rip is exact */
	KEV_NO_MEMORY, /* the host's kernel has none for its own tables; the registers are the user's */
	KEV_BROKEN, /* no machine any more */
};

struct kevent {
	enum kevent_kind kind;
	unsigned vec;
	uint64_t err, cr2;
};

/* Runs the guest with @regs on page tables @root until it stops; @regs must have been through kregs_sanitise(). The
 * lock is not held, c->where is GUEST. */
void kvcpu_enter(struct kvcpu *c, gpa_t root, struct kvm_regs *regs, struct kevent *ev);
/* Makes a vCPU come out of KVM_RUN soon. Async-signal-safe. */
void kvcpu_kick(struct kvcpu *c);
/* Kicks and waits until it is out. */
void kvcpu_expel(struct kvcpu *c);
/* One call of a stub of the monitor that ends in hlt, from any thread; @c is not in KVM_RUN. 0 or -EIO. */
int kvcpu_call(struct kvcpu *c, uint64_t rip, uint64_t rax, uint64_t rsp);
/* The machine is broken: run() ends. */
void kvm_broken(struct platform *p, const struct kvcpu *c, const char *why);
static inline enum kvcpu_where kvcpu_where(const struct kvcpu *c)
{
	return (enum kvcpu_where)__atomic_load_n(&c->where, __ATOMIC_SEQ_CST);
}

/* regs.c */
static inline bool kregs_rip_ok(const struct kvm_regs *r)
{
	return r->rip >> 47 == 0;
}
void kregs_sanitise(struct kvm_regs *r);
/* Brings FPU state and bases of @c into @c / onto @cpu. 0 or -EIO. */
int kctx_save(struct kctx *c);
/* c->xsave is what the context has. */
int kctx_fpu_fetch(struct kctx *c);
int kctx_load(struct kctx *c, struct kvcpu *cpu);
/* Only the bases, wherever they are. */
int kctx_bases(struct kctx *c);
int kvm_ctx_regs_get(struct vcpu_ctx *ctx, unsigned flags, struct gregs *regs);
int kvm_ctx_regs_set(struct vcpu_ctx *ctx, unsigned flags, const struct gregs *regs);
int kvm_ctx_fpu_get(struct vcpu_ctx *ctx, void *buf, size_t *len);
int kvm_ctx_fpu_set(struct vcpu_ctx *ctx, const void *buf, size_t len);
int kvm_ctx_arch_prctl(struct vcpu_ctx *ctx, int code, uint64_t value);
/* si_code of a floating-point exception of @c, by its FPU state. */
int kctx_fpe_code(struct kctx *c, bool simd);

/* trap.c: what a stop of the guest means. True: c->trap is to be delivered; false: it just goes on. */
bool ktrap_decode(struct kctx *c, const struct kevent *ev);
/* A context that is to run at an address where no code can be. */
void ktrap_bad_rip(struct kctx *c);

/* ctx.c */
int kvm_ctx_create(struct platform *p, struct aspace **as, struct vcpu_ctx **ctx);
int kvm_ctx_clone(struct vcpu_ctx *ctx, const struct ctx_clone_args *args, struct aspace **as,
		  struct vcpu_ctx **child);
int kvm_ctx_exec(struct vcpu_ctx *ctx, bool alone, struct aspace **as, struct vcpu_ctx **new_ctx);
void kvm_ctx_destroy(struct vcpu_ctx *ctx);
int kvm_ctx_return(struct vcpu_ctx *ctx, int64_t result);
int kvm_ctx_resume(struct vcpu_ctx *ctx);
void kvm_ctx_interrupt(struct vcpu_ctx *ctx);
void kvm_ctx_parked(struct vcpu_ctx *ctx);

/* run.c: workers */
int kvm_workers_start(struct platform *p, struct sbx_err *err);
void kvm_workers_end(struct platform *p);
int kvm_run_loop(struct platform *p);
void kvm_stop(struct platform *p);
void kvm_wake(struct platform *p);
/* It may run from now on. */
void krun_ready(struct kctx *c);
/* It is to be destroyed: nobody runs it or will. */
void krun_forget(struct kctx *c);

#endif
