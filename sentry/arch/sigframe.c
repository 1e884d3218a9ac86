/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The frame, from low to high addresses, as arch/x86/kernel/signal_64.c lays it out:
 *
 *	rsp ->  pretcode (the restorer)            8   at a multiple of 16, minus 8: as after a call
 *	        struct ucontext                  304
 *	        siginfo                          128
 *	        (gap)
 *	        FPU state, 64-byte aligned      >= 512, then FP_XSTATE_MAGIC2
 *	        (gap)
 *	        red zone                         128   not on a fresh alternate stack
 *
 * All of it goes out in one write and comes back in one read: the return reads as much as a frame
 * of the usual size takes and looks for the FPU state in that; only a state that lies elsewhere
 * costs a second read.
 */
#include "sentry/arch/sigframe.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/macros.h"
#include "sentry/abi/signal.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/sig_priv.h"
#include "sentry/kernel/uaccess.h"

#define REDZONE  128u
#define USER_CS  0x33u
#define USER_DS  0x2bu

#define EFLAGS_TF 0x100ull
#define EFLAGS_DF 0x400ull
#define EFLAGS_RF 0x10000ull
/* What sigreturn may change: AC OF DF TF SF ZF AF PF CF RF. */
#define EFLAGS_RESTORED 0x50dd5ull

struct rt_sigframe {
	uint64_t pretcode;
	struct linux_ucontext uc;
	struct linux_siginfo info;
};
static_assert(sizeof(struct rt_sigframe) == 440, "struct rt_sigframe");
static_assert(offsetof(struct rt_sigframe, uc) == 8, "the handler's third argument");

/* The frame, two gaps of alignment, the FPU state and its end mark. */
#define FRAME_BUF (sizeof(struct rt_sigframe) + 80 + FPU_STATE_MAX + 4)

static uint8_t frame_buf[FRAME_BUF] __attribute__((aligned(64))); /* the leader's */
static uint8_t fpu_buf[FPU_STATE_MAX + 4] __attribute__((aligned(64)));
static size_t usual_fpu_size = LINUX_FXSAVE_SIZE; /* of the last frame pushed */

/* Linux's __on_sig_stack(): the stack grows down, so its top belongs to it. */
static bool in_altstack(const struct task *t, uaddr_t sp)
{
	return sp > t->altstack_sp && sp - t->altstack_sp <= t->altstack_size;
}

static bool on_altstack(const struct task *t, uaddr_t sp)
{
	return !((uint32_t)t->altstack_flags & LINUX_SS_AUTODISARM) && in_altstack(t, sp);
}

bool sigframe_on_altstack(const struct task *t, uaddr_t sp)
{
	return on_altstack(t, sp);
}

/* Gets the FPU state into fpu_buf with both marks; returns its size with the end mark. */
static ssize_t fetch_fpu(struct task *t)
{
	struct linux_fpx_sw_bytes sw;
	const uint32_t magic2 = LINUX_FP_XSTATE_MAGIC2;
	size_t len = FPU_STATE_MAX;
	int r = kernel.plat->ctx_fpu_get(t->ctx, fpu_buf, &len);

	if (r < 0)
		return r;
	if (len < LINUX_FXSAVE_SIZE)
		return -EFAULT;
	memcpy(&sw, fpu_buf + LINUX_FXSAVE_SW_BYTES, sizeof(sw));
	if (sw.magic1 != LINUX_FP_XSTATE_MAGIC1 || sw.xstate_size > len ||
	    sw.xstate_size < LINUX_FXSAVE_SIZE)
		return LINUX_FXSAVE_SIZE;
	sw.extended_size = sw.xstate_size + sizeof(magic2);
	memcpy(fpu_buf + LINUX_FXSAVE_SW_BYTES, &sw, sizeof(sw));
	memcpy(fpu_buf + sw.xstate_size, &magic2, sizeof(magic2));
	return (ssize_t)sw.extended_size;
}

static void fill_sigcontext(struct linux_sigcontext *sc, const struct gregs *r,
			    const struct sig_thread *st)
{
	*sc = (struct linux_sigcontext){
		.r8 = r->r8, .r9 = r->r9, .r10 = r->r10, .r11 = r->r11,
		.r12 = r->r12, .r13 = r->r13, .r14 = r->r14, .r15 = r->r15,
		.di = r->rdi, .si = r->rsi, .bp = r->rbp, .bx = r->rbx,
		.dx = r->rdx, .ax = r->rax, .cx = r->rcx, .sp = r->rsp,
		.ip = r->rip, .flags = r->eflags, .cs = USER_CS, .ss = USER_DS,
		.err = st->err, .trapno = st->trapno, .cr2 = st->cr2,
	};
}

/* Where the frame begins and its FPU state; false when it would leave the alternate stack. */
static bool place_frame(const struct task *t, uint64_t sa_flags, uaddr_t rsp, size_t fpu_size,
			uaddr_t *frame, uaddr_t *fpstate)
{
	uaddr_t sp = rsp - REDZONE;
	bool alt = on_altstack(t, rsp);

	if ((sa_flags & LINUX_SA_ONSTACK) && t->altstack_size && !on_altstack(t, sp)) {
		sp = t->altstack_sp + t->altstack_size;
		alt = true;
	}
	*fpstate = ROUND_DOWN(sp - fpu_size, 64);
	*frame = ROUND_DOWN(*fpstate - sizeof(struct rt_sigframe), 16) - 8;
	return *frame < sp && (!alt || in_altstack(t, *frame));
}

int sigframe_push(struct task *t, const struct linux_sigaction *act,
		  const struct linux_siginfo *info, uint64_t saved_mask, struct gregs *regs)
{
	struct rt_sigframe *f = (struct rt_sigframe *)frame_buf;
	ssize_t fpu_size = fetch_fpu(t);
	uaddr_t frame, fpstate;
	size_t fpu_off;
	int r;

	if (fpu_size == -ESRCH)
		return -ESRCH;
	if (fpu_size < 0 || !(act->flags & LINUX_SA_RESTORER) ||
	    !place_frame(t, act->flags, regs->rsp, (size_t)fpu_size, &frame, &fpstate))
		return -EFAULT;
	fpu_off = fpstate - frame;
	memset(frame_buf, 0, fpu_off);
	f->pretcode = act->restorer;
	f->uc.uc_flags = LINUX_UC_SIGCONTEXT_SS | LINUX_UC_STRICT_RESTORE_SS |
			 (fpu_size > (ssize_t)LINUX_FXSAVE_SIZE ? LINUX_UC_FP_XSTATE : 0);
	f->uc.uc_stack.ss_sp = t->altstack_sp;
	f->uc.uc_stack.ss_flags = t->altstack_flags;
	f->uc.uc_stack.ss_size = t->altstack_size;
	fill_sigcontext(&f->uc.uc_mcontext, regs, sig_thread(t));
	f->uc.uc_mcontext.oldmask = saved_mask;
	f->uc.uc_mcontext.fpstate = fpstate;
	f->uc.uc_sigmask = saved_mask;
	f->info = *info;
	memcpy(frame_buf + fpu_off, fpu_buf, (size_t)fpu_size);
	if (copy_out(t, frame, frame_buf, fpu_off + (size_t)fpu_size) < 0)
		return user_memory_gone(t) ? -ESRCH : -EFAULT;
	r = kernel.plat->ctx_fpu_set(t->ctx, NULL, 0);
	if (r < 0)
		return r == -ESRCH ? r : -EFAULT;
	usual_fpu_size = (size_t)fpu_size;
	if ((uint32_t)t->altstack_flags & LINUX_SS_AUTODISARM) {
		t->altstack_sp = t->altstack_size = 0;
		t->altstack_flags = LINUX_SS_DISABLE;
	}
	regs->rdi = (uint64_t)info->si_signo;
	regs->rsi = frame + offsetof(struct rt_sigframe, info);
	regs->rdx = frame + offsetof(struct rt_sigframe, uc);
	regs->rax = 0;
	regs->rip = act->handler;
	regs->rsp = frame;
	regs->eflags &= ~(EFLAGS_DF | EFLAGS_RF | EFLAGS_TF);
	return 0;
}

static void read_sigcontext(const struct linux_sigcontext *sc, struct gregs *r)
{
	r->r8 = sc->r8, r->r9 = sc->r9, r->r10 = sc->r10, r->r11 = sc->r11;
	r->r12 = sc->r12, r->r13 = sc->r13, r->r14 = sc->r14, r->r15 = sc->r15;
	r->rdi = sc->di, r->rsi = sc->si, r->rbp = sc->bp, r->rbx = sc->bx;
	r->rdx = sc->dx, r->rax = sc->ax, r->rcx = sc->cx, r->rsp = sc->sp;
	r->rip = sc->ip;
	r->eflags = (r->eflags & ~EFLAGS_RESTORED) | (sc->flags & EFLAGS_RESTORED);
}

/*
 * Reads @n bytes at @addr into fpu_buf + @off: from what was read of the frame (@have bytes at
 * @frame) or, outside of it, from the guest.
 */
static int fpu_bytes(struct task *t, uaddr_t frame, size_t have, uaddr_t addr, size_t off, size_t n)
{
	if (addr >= frame && addr - frame <= have && n <= have - (addr - frame)) {
		memcpy(fpu_buf + off, frame_buf + (addr - frame), n);
		return 0;
	}
	return copy_in(t, addr, fpu_buf + off, n);
}

static int pop_fpu(struct task *t, uaddr_t frame, size_t have, uaddr_t fpstate)
{
	struct linux_fpx_sw_bytes sw;
	size_t size = LINUX_FXSAVE_SIZE;

	if (!fpstate)
		return kernel.plat->ctx_fpu_set(t->ctx, NULL, 0);
	if (fpu_bytes(t, frame, have, fpstate, 0, LINUX_FXSAVE_SIZE) < 0)
		return -EFAULT;
	memcpy(&sw, fpu_buf + LINUX_FXSAVE_SW_BYTES, sizeof(sw));
	if (sw.magic1 == LINUX_FP_XSTATE_MAGIC1 &&
	    sw.xstate_size >= LINUX_FXSAVE_SIZE + LINUX_XSAVE_HDR_SIZE &&
	    sw.xstate_size <= FPU_STATE_MAX && sw.xstate_size <= sw.extended_size) {
		size = sw.xstate_size +
		       sizeof(uint32_t); /* with the end mark, which the platform checks */
		if (fpu_bytes(t, frame, have, fpstate + LINUX_FXSAVE_SIZE, LINUX_FXSAVE_SIZE,
			      size - LINUX_FXSAVE_SIZE) < 0)
			return -EFAULT;
	}
	return kernel.plat->ctx_fpu_set(t->ctx, fpu_buf, size) < 0 ? -EFAULT : 0;
}

int sigframe_pop(struct task *t, struct gregs *regs, uint64_t *mask)
{
	size_t want = sizeof(struct rt_sigframe) + 24 + usual_fpu_size; /* fits into frame_buf */
	uaddr_t frame = regs->rsp - 8; /* the handler's ret took pretcode */
	struct rt_sigframe f;
	struct gregs r = *regs;
	ssize_t have;

	if (frame >= GUEST_TASK_SIZE)
		return -EFAULT;
	want = MIN(want, GUEST_TASK_SIZE - frame);
	have = copy_in_part(t, frame, frame_buf, want);
	if (have < (ssize_t)sizeof(f))
		return -EFAULT;
	memcpy(&f, frame_buf, sizeof(f));
	/* 32-bit code segments do not exist here; Linux's iret would fault on others. */
	if ((f.uc.uc_mcontext.cs | 3u) != USER_CS)
		return -EFAULT;
	read_sigcontext(&f.uc.uc_mcontext, &r);
	if (pop_fpu(t, frame, (size_t)have, f.uc.uc_mcontext.fpstate) < 0)
		return -EFAULT;
	*regs = r;
	*mask = f.uc.uc_sigmask;
	/* As Linux: a stack that sigaltstack(2) would refuse is left as it was. */
	(void)sigframe_set_altstack(t, &f.uc.uc_stack, r.rsp);
	return 0;
}

int sigframe_set_altstack(struct task *t, const struct linux_stack *ss, uaddr_t sp)
{
	uint32_t flags = (uint32_t)ss->ss_flags, mode = flags & ~LINUX_SS_AUTODISARM;

	if (on_altstack(t, sp))
		return -EPERM;
	if (mode != LINUX_SS_DISABLE && mode != LINUX_SS_ONSTACK && mode != 0)
		return -EINVAL;
	if (mode == LINUX_SS_DISABLE) {
		t->altstack_sp = t->altstack_size = 0;
		t->altstack_flags = (int)flags;
		return 0;
	}
	if (ss->ss_size < LINUX_MINSIGSTKSZ)
		return -ENOMEM;
	t->altstack_sp = ss->ss_sp;
	t->altstack_size = ss->ss_size;
	t->altstack_flags = (int)flags;
	return 0;
}
