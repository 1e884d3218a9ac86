/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Register files: the frame that the host kernel built in the thread's slot and will load again by rt_sigreturn. It is
 * guest memory: read once, used as a copy; what we write back can be changed again by the guest's other threads, which
 * gives them nothing but wrong registers of their own. The host's rt_sigreturn checks what it loads as for any process:
 * a bad rip is a SIGSEGV of the guest.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/uio.h>

#include "platform/stub/hostcall.h"
#include "platform/unotify/unotify_priv.h"

#define ARCH_SET_GS 0x1001
#define ARCH_SET_FS 0x1002
#define ARCH_GET_FS 0x1003
#define ARCH_GET_GS 0x1004

#define USER_CS 0x33
#define USER_SS 0x2b
#define EFLAGS_USER  0x244dd5ull /* AC ID OF DF TF and the arithmetic ones, NT */
#define EFLAGS_FIXED 0x202ull
#define ALTSTACK_AUTODISARM (1u << 31)

/*
 * The FPU state that belongs to a frame is kept in one buffer of the platform, as its frame is in uctx.fr: signals read
 * and write both. The buffer is the owner's as long as owner->frame_valid; somebody else takes it after it was flushed.
 */
static uint8_t *fpu_peek(const struct uctx *c)
{
	return c->p->fpu_owner == c && c->frame_valid ? c->p->fpu_area : NULL;
}

static void fpu_forget(struct uctx *c)
{
	if (c->p->fpu_owner != c)
		return;
	c->p->fpu_owner = NULL;
	c->p->fpu_dirty = false;
}

static int fpu_take(struct uctx *c)
{
	struct uctx *old = c->p->fpu_owner;

	if (old && fpu_peek(old) && c->p->fpu_dirty && frame_flush(old) < 0) {
		proc_kill(old->proc, SIGKILL); /* it cannot go on, and is dying already */
		if (c->state == UCTX_DEAD)
			return -ESRCH;
	}
	c->p->fpu_owner = c;
	c->p->fpu_dirty = false;
	return 0;
}

void frame_forget(struct uctx *c)
{
	fpu_forget(c);
	c->frame_valid = c->frame_dirty = false;
}

/* Where FPU state lies above a frame: as the host kernel does it. */
static uint64_t fpstate_place(const struct uctx *c)
{
	return ROUND_UP(c->frame + sizeof(struct hframe) + HFRAME_SIGINFO, 64ull);
}

static bool fpstate_in_slot(const struct uctx *c, uint64_t fp)
{
	uint64_t end = slot_base(c->slot) + SLOT_SIZE;

	return fp >= c->frame + sizeof(struct hframe) && fp < end && end - fp >= c->p->fpu.ext_size && !(fp & 63);
}

/* One copy of the frame and of @n bytes at @fp, from or to the slot of @c by the thread @tid. */
static int frame_transfer(long nr, pid_t tid, struct uctx *c, uint64_t fp, uint8_t *area, size_t n)
{
	struct iovec local[2] = { { &c->fr, sizeof(c->fr) }, { area, n } };
	struct iovec remote[2] = { { (void *)c->frame, sizeof(c->fr) }, { (void *)fp, n } };
	unsigned long cnt = n ? 2 : 1;
	long r = HOSTCALL(nr, tid, local, cnt, remote, cnt, 0);

	if (r == (long)(sizeof(c->fr) + n))
		return 0;
	return r == -ESRCH ? -ESRCH : -EFAULT;
}

int frame_load(struct uctx *c, bool fpu)
{
	struct platform *p = c->p;
	uint64_t fp = fpstate_place(c);
	int r;

	if (c->frame_valid)
		return 0;
	fpu_forget(c);
	fpu = fpu && fpstate_in_slot(c, fp);
	r = fpu ? fpu_take(c) : 0;
	if (r == 0)
		r = frame_transfer(SYS_process_vm_readv, c->tid, c, fp, p->fpu_area, fpu ? p->fpu.ext_size : 0);
	if (r == 0) {
		c->frame_valid = true;
		if (fpu && c->fr.fpstate != fp)
			fpu_forget(c); /* it has its state elsewhere, or none */
	}
	return r;
}

/* What every frame that we write has, whatever the guest or the caller wants. */
static void frame_seal(struct uctx *c)
{
	struct hframe *f = &c->fr;

	f->flags = (f->flags & HFRAME_FP_XSTATE) | HFRAME_FLAGS;
	f->link = 0;
	f->ss_sp = slot_base(c->slot) + SLOT_STACK;
	f->ss_size = SLOT_SIZE - SLOT_STACK;
	f->ss_flags = ALTSTACK_AUTODISARM;
	f->pad = 0;
	f->cs = USER_CS;
	f->ss = USER_SS;
	f->eflags = (f->eflags & EFLAGS_USER) | EFLAGS_FIXED;
	f->sigmask = 0;
}

void frame_changed(struct uctx *c)
{
	frame_seal(c);
	c->frame_valid = c->frame_dirty = true;
}

int frame_flush(struct uctx *c)
{
	struct platform *p = c->p;
	bool fpu = fpu_peek(c) && p->fpu_dirty;
	int r;

	if (!c->frame_dirty && !fpu)
		return 0;
	r = frame_transfer(SYS_process_vm_writev, c->tid, c, fpstate_place(c), p->fpu_area,
			   fpu ? p->fpu.ext_size : 0);
	c->frame_dirty = false;
	if (fpu)
		p->fpu_dirty = false;
	return r;
}

void frame_init_fresh(struct uctx *c)
{
	frame_forget(c);
	memset(&c->fr, 0, sizeof(c->fr));
	c->set_rax = false;
	frame_changed(c);
}

/* The FPU state of a frame that has one, into the buffer. */
static int fpu_load(struct uctx *c)
{
	int r;

	if (fpu_peek(c))
		return 0;
	if (!fpstate_in_slot(c, c->fr.fpstate))
		return -EFAULT;
	r = fpu_take(c);
	if (r == 0)
		r = mem_peek(c->tid, c->fr.fpstate, c->p->fpu_area, c->p->fpu.ext_size);
	if (r < 0)
		fpu_forget(c);
	return r;
}

int frame_copy(struct uctx *c, struct uctx *child, uint64_t rsp)
{
	bool fpu;
	int r = frame_load(c, true);

	if (r < 0)
		return r;
	fpu = c->fr.fpstate && fpstate_in_slot(c, c->fr.fpstate);
	if (fpu) {
		r = fpu_load(c);
		if (r < 0)
			return r;
	}
	child->fr = c->fr;
	child->frame = slot_base(child->slot) + (c->frame - slot_base(c->slot));
	child->fr.rax = 0;
	if (rsp)
		child->fr.rsp = rsp;
	child->fr.fpstate = fpu ? child->frame + (c->fr.fpstate - c->frame) : 0;
	frame_seal(child);
	child->frame_valid = true;
	/* Written by the parent's thread: the child is not born yet. */
	return frame_transfer(SYS_process_vm_writev, c->tid, child, child->fr.fpstate, c->p->fpu_area,
			      fpu ? c->p->fpu.ext_size : 0);
}

static int bases_get(struct uctx *c, struct gregs *regs)
{
	uint64_t at = slot_base(c->slot) + SLOT_SCRATCH, v[2];
	struct order_batch b = { .n = 0 };
	int64_t result;
	int r;

	order_add(&b, SYS_arch_prctl, ARCH_GET_FS, at, 0, 0, 0, 0);
	order_add(&b, SYS_arch_prctl, ARCH_GET_GS, at + 8, 0, 0, 0, 0);
	r = order_run(c, &b, &result);
	if (r < 0)
		return r;
	if (r != 2)
		return -EFAULT;
	r = mem_peek(c->tid, at, v, sizeof(v));
	regs->fs_base = v[0];
	regs->gs_base = v[1];
	return r;
}

static int bases_set(struct uctx *c, const struct gregs *regs)
{
	struct order_batch b = { .n = 0 };
	int64_t result;
	int r;

	if (regs->fs_base >= STUB_TASK_SIZE || regs->gs_base >= STUB_TASK_SIZE)
		return -EINVAL;
	if (c->bases_zero && !regs->fs_base && !regs->gs_base)
		return 0;
	c->bases_zero = false;
	order_add(&b, SYS_arch_prctl, ARCH_SET_FS, regs->fs_base, 0, 0, 0, 0);
	order_add(&b, SYS_arch_prctl, ARCH_SET_GS, regs->gs_base, 0, 0, 0, 0);
	r = order_run(c, &b, &result);
	if (r < 0)
		return r;
	return r == 2 ? 0 : -EINVAL;
}

int unotify_ctx_regs_get(struct vcpu_ctx *ctx, unsigned flags, struct gregs *regs)
{
	struct uctx *c = uctx_of(ctx);
	const struct hframe *f = &c->fr;
	/* A caller that is about to return from a handler replaces the FPU state; others may want to save it. */
	bool fpu = c->trap.kind != TRAP_SYSCALL || c->trap.sys.nr != SYS_rt_sigreturn;
	int r = uctx_to_shim(c);

	if (r == 0)
		r = frame_load(c, fpu);
	if (r < 0)
		return r;
	*regs = (struct gregs){
		.r15 = f->r15, .r14 = f->r14, .r13 = f->r13, .r12 = f->r12, .rbp = f->rbp, .rbx = f->rbx,
		.r11 = f->r11, .r10 = f->r10, .r9 = f->r9, .r8 = f->r8, .rax = c->set_rax ? 0 : f->rax,
		.rcx = f->rcx, .rdx = f->rdx, .rsi = f->rsi, .rdi = f->rdi, .rip = f->rip, .eflags = f->eflags,
		.rsp = f->rsp,
	};
	return flags & CTX_REGS_BASES ? bases_get(c, regs) : 0;
}

int unotify_ctx_regs_set(struct vcpu_ctx *ctx, unsigned flags, const struct gregs *regs)
{
	struct uctx *c = uctx_of(ctx);
	struct hframe *f = &c->fr;
	int r = uctx_to_shim(c);

	if (r == 0 && (flags & CTX_REGS_BASES))
		r = bases_set(c, regs);
	if (r == 0)
		r = frame_load(c, false);
	if (r < 0)
		return r;
	f->r15 = regs->r15, f->r14 = regs->r14, f->r13 = regs->r13, f->r12 = regs->r12;
	f->rbp = regs->rbp, f->rbx = regs->rbx;
	f->r11 = regs->r11, f->r10 = regs->r10, f->r9 = regs->r9, f->r8 = regs->r8;
	f->rax = regs->rax, f->rcx = regs->rcx, f->rdx = regs->rdx;
	f->rsi = regs->rsi, f->rdi = regs->rdi;
	f->rip = regs->rip, f->rsp = regs->rsp, f->eflags = regs->eflags;
	c->set_rax = false;
	frame_changed(c);
	return 0;
}

int unotify_ctx_fpu_get(struct vcpu_ctx *ctx, void *buf, size_t *len)
{
	struct uctx *c = uctx_of(ctx);
	const struct fpu_layout *l = &c->p->fpu;
	int r = uctx_to_shim(c);

	if (r == 0)
		r = frame_load(c, true);
	if (r == 0 && c->fr.fpstate)
		r = fpu_load(c);
	if (r < 0)
		return r;
	*len = l->ext_size;
	if (c->fr.fpstate)
		memcpy(buf, c->p->fpu_area, l->ext_size);
	else
		fpu_initial(l, buf);
	fpu_put_software_bytes(l, buf);
	return 0;
}

int unotify_ctx_fpu_set(struct vcpu_ctx *ctx, const void *buf, size_t len)
{
	struct uctx *c = uctx_of(ctx);
	struct platform *p = c->p;
	uint64_t fp;
	int r = uctx_to_shim(c);

	if (r == 0)
		r = frame_load(c, false);
	if (r < 0)
		return r;
	if (len == 0) {
		fpu_forget(c);
		c->fr.fpstate = 0;
		frame_changed(c);
		return 0;
	}
	fp = fpstate_place(c);
	if (!fpstate_in_slot(c, fp))
		return -EINVAL;
	r = fpu_take(c);
	if (r == 0) {
		r = fpu_check(&p->fpu, buf, len, p->fpu_area);
		if (r < 0)
			fpu_forget(c);
	}
	if (r < 0)
		return r;
	p->fpu_dirty = true;
	c->fr.fpstate = fp;
	c->fr.flags |= HFRAME_FP_XSTATE;
	frame_changed(c);
	return 0;
}

int unotify_ctx_arch_prctl(struct vcpu_ctx *ctx, int code, uint64_t value)
{
	struct uctx *c = uctx_of(ctx);
	const uint64_t *a = c->trap.sys.args;
	int r;

	if (code < ARCH_SET_GS || code > ARCH_GET_GS)
		return -EINVAL;
	if (c->state == UCTX_CALL && c->trap.sys.nr == SYS_arch_prctl && a[0] == (uint64_t)code && a[1] == value) {
		uctx_unpark(c);
		c->state = UCTX_GUEST;
		return listener_continue(c->p, c->id) < 0 ? -ESRCH : 0;
	}
	r = uctx_to_shim(c);
	if (r < 0)
		return r;
	c->own_orders[0] = (struct order){ SYS_arch_prctl, { (uint64_t)code, value } };
	return order_send(c, c->own_orders, 1, SHIM_ORDER_RES, NULL);
}
