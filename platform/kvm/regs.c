/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Register files. The general registers of a context that is not in the guest are in kctx.regs. Its FPU state and the
 * bases of fs and gs stay in the vCPU it ran on last (kctx.loaded) until that vCPU is wanted by another context, or
 * this one by another vCPU. The guest can write the bases itself (wrfsbase), so they are asked for, never remembered
 * while it runs.
 *
 * Whatever a guest can choose goes through kregs_sanitise() or fpu_check(): the processor, which on some hosts ends the
 * machine over a bad value, never sees it.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "platform/kvm/kvm.h"
#include "platform/kvm/monitor.h"

#define ARCH_SET_GS 0x1001
#define ARCH_SET_FS 0x1002
#define ARCH_GET_FS 0x1003
#define ARCH_GET_GS 0x1004

#define MSR_FS_BASE 0xc0000100u
#define MSR_GS_BASE 0xc0000101u

#define FP_CWD    0
#define FP_SWD    2
#define FP_MXCSR  24
#define FP_HEADER 512
#define XFEATURES_LEGACY 3ull

struct base_msrs { /* as struct kvm_msrs */
	uint32_t nmsrs, pad;
	struct kvm_msr_entry e[2];
};

void kregs_sanitise(struct kvm_regs *r)
{
	r->rflags = (r->rflags & RFLAGS_USER) | RFLAGS_FIXED;
}

static int broken(const struct kvcpu *cpu, const char *why)
{
	kvm_broken(cpu->p, cpu, why);
	return -EIO;
}

/* KVM_GET_XSAVE fills the area from what is loaded; else the area is right as it is. */
int kctx_fpu_fetch(struct kctx *c)
{
	if (!c->loaded)
		return 0;
	if (HOSTCALL(SYS_ioctl, c->loaded->fd, KVM_GET_XSAVE, c->xsave) < 0)
		return broken(c->loaded, "its FPU state cannot be read");
	return 0;
}

static int fpu_store(const struct kvcpu *cpu, const struct kctx *c)
{
	if (HOSTCALL(SYS_ioctl, cpu->fd, KVM_SET_XSAVE, c->xsave) < 0)
		return broken(cpu, "its FPU state is refused");
	return 0;
}

int kctx_bases(struct kctx *c)
{
	struct base_msrs m = { .nmsrs = 2, .e = { { .index = MSR_FS_BASE }, { .index = MSR_GS_BASE } } };

	if (c->bases_known)
		return 0;
	if (HOSTCALL(SYS_ioctl, c->loaded->fd, KVM_GET_MSRS, &m) != 2)
		return broken(c->loaded, "the bases of fs and gs cannot be read");
	c->fs_base = m.e[0].data;
	c->gs_base = m.e[1].data;
	c->bases_known = true;
	return 0;
}

/*
 * Intel's processors with five levels of page tables take bases of 57 bits by wrfsbase whatever the mode, and many
 * versions of KVM do not give them back. Another as useless serves: of the upper half, where a guest can touch nothing.
 */
static uint64_t base_canonical(uint64_t base)
{
	uint64_t top = base >> 47;

	return top == 0 || top == 0x1ffff ? base : base | 0xffff800000000000ull;
}

static int bases_store(struct kvcpu *cpu, struct kctx *c)
{
	struct base_msrs m = {
		.nmsrs = 2,
		.e = { { .index = MSR_FS_BASE, .data = c->fs_base }, { .index = MSR_GS_BASE, .data = c->gs_base } },
	};

	if (HOSTCALL(SYS_ioctl, cpu->fd, KVM_SET_MSRS, &m) != 2) {
		m.e[0].data = c->fs_base = base_canonical(c->fs_base);
		m.e[1].data = c->gs_base = base_canonical(c->gs_base);
		if (HOSTCALL(SYS_ioctl, cpu->fd, KVM_SET_MSRS, &m) != 2)
			return broken(cpu, "the bases of fs and gs are refused");
	}
	c->bases_set = false;
	return 0;
}

int kctx_save(struct kctx *c)
{
	int r;

	if (!c->loaded)
		return 0;
	r = kctx_fpu_fetch(c);
	if (r == 0)
		r = kctx_bases(c);
	c->loaded->loaded = NULL;
	c->loaded = NULL;
	return r;
}

int kctx_load(struct kctx *c, struct kvcpu *cpu)
{
	int r = 0;

	if (likely(c->loaded == cpu))
		return unlikely(c->bases_set) ? bases_store(cpu, c) : 0;
	if (cpu->loaded)
		r = kctx_save(cpu->loaded);
	if (r == 0)
		r = kctx_save(c);
	if (r == 0)
		r = fpu_store(cpu, c);
	if (r == 0)
		r = bases_store(cpu, c);
	if (r < 0)
		return r;
	c->loaded = cpu;
	cpu->loaded = c;
	return 0;
}

static int stopped(const struct kctx *c)
{
	return c->state == KCTX_STOPPED ? 0 : c->state == KCTX_DEAD ? -ESRCH : -EBUSY;
}

int kvm_ctx_regs_get(struct vcpu_ctx *ctx, unsigned flags, struct gregs *regs)
{
	struct kctx *c = kctx_of(ctx);
	const struct kvm_regs *g = &c->regs;
	int r = stopped(c);

	if (r == 0 && (flags & CTX_REGS_BASES))
		r = kctx_bases(c);
	if (r < 0)
		return r;
	*regs = (struct gregs){
		.r15 = g->r15, .r14 = g->r14, .r13 = g->r13, .r12 = g->r12, .rbp = g->rbp, .rbx = g->rbx,
		.r11 = g->r11, .r10 = g->r10, .r9 = g->r9, .r8 = g->r8, .rax = g->rax, .rcx = g->rcx,
		.rdx = g->rdx, .rsi = g->rsi, .rdi = g->rdi, .rip = g->rip, .eflags = g->rflags, .rsp = g->rsp,
	};
	if (flags & CTX_REGS_BASES) {
		regs->fs_base = c->fs_base;
		regs->gs_base = c->gs_base;
	}
	return 0;
}

int kvm_ctx_regs_set(struct vcpu_ctx *ctx, unsigned flags, const struct gregs *regs)
{
	struct kctx *c = kctx_of(ctx);
	int r = stopped(c);

	if (r < 0)
		return r;
	if (flags & CTX_REGS_BASES) {
		if (regs->fs_base >= GUEST_TASK_SIZE || regs->gs_base >= GUEST_TASK_SIZE)
			return -EINVAL;
		c->fs_base = regs->fs_base;
		c->gs_base = regs->gs_base;
		c->bases_known = c->bases_set = true;
	}
	c->regs = (struct kvm_regs){
		.r15 = regs->r15, .r14 = regs->r14, .r13 = regs->r13, .r12 = regs->r12, .rbp = regs->rbp,
		.rbx = regs->rbx, .r11 = regs->r11, .r10 = regs->r10, .r9 = regs->r9, .r8 = regs->r8,
		.rax = regs->rax, .rcx = regs->rcx, .rdx = regs->rdx, .rsi = regs->rsi, .rdi = regs->rdi,
		.rip = regs->rip, .rflags = regs->eflags, .rsp = regs->rsp,
	};
	kregs_sanitise(&c->regs);
	return 0;
}

int kvm_ctx_fpu_get(struct vcpu_ctx *ctx, void *buf, size_t *len)
{
	struct kctx *c = kctx_of(ctx);
	const struct fpu_layout *l = &c->p->fpu;
	uint8_t *fp = buf;
	uint64_t bv;
	int r = stopped(c);

	if (r == 0)
		r = kctx_fpu_fetch(c);
	if (r < 0)
		return r;
	memcpy(fp, c->xsave, l->size);
	memcpy(&bv, fp + FP_HEADER, sizeof(bv));
	bv &= l->xfeatures;
	bv |= XFEATURES_LEGACY; /* as in the frames of Linux; KVM writes out what is initial */
	memset(fp + FP_HEADER, 0, FPU_HEADER - FP_HEADER);
	memcpy(fp + FP_HEADER, &bv, sizeof(bv));
	fpu_put_software_bytes(l, fp);
	*len = l->ext_size;
	return 0;
}

int kvm_ctx_fpu_set(struct vcpu_ctx *ctx, const void *buf, size_t len)
{
	struct kctx *c = kctx_of(ctx);
	uint8_t area[KVM_XSAVE_AREA] = { 0 };
	int r = stopped(c);

	if (r < 0)
		return r;
	if (len == 0)
		fpu_initial(&c->p->fpu, area);
	else
		r = fpu_check(&c->p->fpu, buf, len, area);
	if (r < 0)
		return r;
	memcpy(c->xsave, area, sizeof(area));
	return c->loaded ? fpu_store(c->loaded, c) : 0;
}

int kvm_ctx_arch_prctl(struct vcpu_ctx *ctx, int code, uint64_t value)
{
	struct kctx *c = kctx_of(ctx);
	bool set = code == ARCH_SET_FS || code == ARCH_SET_GS, fs = code == ARCH_SET_FS || code == ARCH_GET_FS;
	uint64_t *base = fs ? &c->fs_base : &c->gs_base;
	int64_t result = 0;
	int r = stopped(c);

	if (r < 0)
		return r;
	if (code < ARCH_SET_GS || code > ARCH_GET_GS)
		return -EINVAL;
	r = kctx_bases(c);
	if (r < 0)
		return r;
	if (set && value >= GUEST_TASK_SIZE) {
		result = -EPERM;
	} else if (set) {
		*base = value;
		c->bases_set = true;
	} else if (kvm_aspace_write(c->as, value, base, sizeof(*base)) != (ssize_t)sizeof(*base)) {
		result = -EFAULT;
	}
	return kvm_ctx_return(ctx, result);
}

int kctx_fpe_code(struct kctx *c, bool simd)
{
	uint16_t cwd, swd;
	uint32_t mxcsr, e;

	if (kctx_fpu_fetch(c) < 0)
		return 0;
	memcpy(&cwd, c->xsave + FP_CWD, sizeof(cwd));
	memcpy(&swd, c->xsave + FP_SWD, sizeof(swd));
	memcpy(&mxcsr, c->xsave + FP_MXCSR, sizeof(mxcsr));
	e = simd ? ~(mxcsr >> 7) & mxcsr : (uint32_t)(swd & ~cwd);
	if (e & 0x01)
		return FPE_FLTINV;
	if (e & 0x04)
		return FPE_FLTDIV;
	if (e & 0x08)
		return FPE_FLTOVF;
	if (e & 0x12)
		return FPE_FLTUND;
	return e & 0x20 ? FPE_FLTRES : 0;
}
