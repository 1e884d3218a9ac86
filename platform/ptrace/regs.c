/* SPDX-License-Identifier: Apache-2.0 */
/* Register files of stopped contexts. */
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>

#include "platform/ptrace/ptrace_priv.h"

#define ARCH_SET_GS 0x1001
#define ARCH_SET_FS 0x1002
#define ARCH_GET_FS 0x1003
#define ARCH_GET_GS 0x1004

#define XSTATE_X87 1ull
#define XSTATE_SSE 2ull

static int stopped(const struct pctx *c)
{
	if (likely(c->state == PCTX_STOP))
		return 0;
	return c->state == PCTX_DEAD ? -ESRCH : -EBUSY;
}

void pt_regs_fresh(struct pctx *c)
{
	memset(&c->regs, 0, sizeof(c->regs));
	c->regs.orig_rax = (uint64_t)-1;
	c->regs.cs = USER_CS;
	c->regs.ss = USER_SS;
	c->regs.eflags = EFLAGS_FIXED;
	c->dirty = true;
}

int pt_ctx_regs_get(struct vcpu_ctx *ctx, unsigned flags, struct gregs *regs)
{
	struct pctx *c = pctx_of(ctx);
	const struct host_regs *r = &c->regs;
	int e = stopped(c);

	if (e < 0)
		return e;
	*regs = (struct gregs){
		.r15 = r->r15, .r14 = r->r14, .r13 = r->r13, .r12 = r->r12, .rbp = r->rbp, .rbx = r->rbx,
		.r11 = r->r11, .r10 = r->r10, .r9 = r->r9, .r8 = r->r8, .rax = r->rax, .rcx = r->rcx,
		.rdx = r->rdx, .rsi = r->rsi, .rdi = r->rdi, .rip = r->rip, .eflags = r->eflags, .rsp = r->rsp,
	};
	if (flags & CTX_REGS_BASES) {
		regs->fs_base = r->fs_base;
		regs->gs_base = r->gs_base;
	}
	return 0;
}

int pt_ctx_regs_set(struct vcpu_ctx *ctx, unsigned flags, const struct gregs *regs)
{
	struct pctx *c = pctx_of(ctx);
	struct host_regs *r = &c->regs;
	int e = stopped(c);

	if (e < 0)
		return e;
	if (flags & CTX_REGS_BASES) {
		if (regs->fs_base >= STUB_TASK_SIZE || regs->gs_base >= STUB_TASK_SIZE)
			return -EINVAL;
		r->fs_base = regs->fs_base;
		r->gs_base = regs->gs_base;
	}
	r->r15 = regs->r15, r->r14 = regs->r14, r->r13 = regs->r13, r->r12 = regs->r12;
	r->rbp = regs->rbp, r->rbx = regs->rbx;
	r->r11 = regs->r11, r->r10 = regs->r10, r->r9 = regs->r9, r->r8 = regs->r8;
	r->rax = regs->rax, r->rcx = regs->rcx, r->rdx = regs->rdx;
	r->rsi = regs->rsi, r->rdi = regs->rdi;
	r->rip = regs->rip, r->rsp = regs->rsp;
	r->eflags = (regs->eflags & EFLAGS_USER) | EFLAGS_FIXED;
	r->cs = USER_CS;
	r->ss = USER_SS;
	c->dirty = true;
	return 0;
}

int pt_ctx_fpu_get(struct vcpu_ctx *ctx, void *buf, size_t *len)
{
	struct pctx *c = pctx_of(ctx);
	const struct fpu_layout *l = &c->p->fpu;
	uint8_t area[FPU_STATE_MAX];
	uint64_t features;
	size_t got;
	int e = stopped(c);

	if (e == 0)
		e = pt_xstate_get(c, area, &got);
	if (e < 0)
		return e;
	if (got < l->size)
		memset(area + got, 0, l->size - got);
	memcpy(&features, area + FPU_LEGACY, sizeof(features));
	/* As in Linux's frames: who edits the legacy state need not know of the header. */
	features = (features & l->xfeatures) | XSTATE_X87 | XSTATE_SSE;
	memcpy(area + FPU_LEGACY, &features, sizeof(features));
	memset(buf, 0, l->ext_size);
	memcpy(buf, area, l->size);
	fpu_put_software_bytes(l, buf);
	*len = l->ext_size;
	return 0;
}

/* XRSTOR gives components without their bit the initial value, but takes MXCSR from memory. The host kernel's
 * SETREGSET leaves MXCSR alone then; so the two legacy components are always given. */
static void give_legacy(const struct fpu_layout *l, uint8_t *area)
{
	uint8_t fresh[FPU_STATE_MAX];
	uint64_t features;

	memcpy(&features, area + FPU_LEGACY, sizeof(features));
	fpu_initial(l, fresh);
	if (!(features & XSTATE_X87)) {
		memcpy(area, fresh, 24);
		memcpy(area + 32, fresh + 32, 128);
	}
	if (!(features & XSTATE_SSE))
		memcpy(area + 160, fresh + 160, 256);
	features |= XSTATE_X87 | XSTATE_SSE;
	memcpy(area + FPU_LEGACY, &features, sizeof(features));
}

int pt_ctx_fpu_set(struct vcpu_ctx *ctx, const void *buf, size_t len)
{
	struct pctx *c = pctx_of(ctx);
	const struct fpu_layout *l = &c->p->fpu;
	uint8_t area[FPU_STATE_MAX];
	int e = stopped(c);

	if (e < 0)
		return e;
	if (len == 0) {
		e = pt_xstate_set(c, c->p->xstate_init);
	} else {
		e = fpu_check(l, buf, len, area);
		if (e < 0)
			return e;
		give_legacy(l, area);
		if (c->p->xstate_len > l->size)
			memset(area + l->size, 0, c->p->xstate_len - l->size);
		e = pt_xstate_set(c, area);
	}
	return e == 0 || e == -ESRCH ? e : -EINVAL;
}

int pt_ctx_arch_prctl(struct vcpu_ctx *ctx, int code, uint64_t value)
{
	struct pctx *c = pctx_of(ctx);
	uint64_t *base = code == ARCH_SET_FS || code == ARCH_GET_FS ? &c->regs.fs_base : &c->regs.gs_base;
	int e = stopped(c);

	if (e < 0)
		return e;
	if (code < ARCH_SET_GS || code > ARCH_GET_GS)
		return -EINVAL;
	if (code == ARCH_GET_FS || code == ARCH_GET_GS) {
		e = mem_poke(c->tid, value, base, sizeof(*base));
	} else if (value >= STUB_TASK_SIZE) {
		e = -EPERM;
	} else {
		*base = value;
		c->dirty = true;
	}
	return e == -ESRCH ? e : pt_ctx_return(ctx, e);
}
