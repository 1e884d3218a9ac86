/* SPDX-License-Identifier: Apache-2.0 */
/* Our frame against the one that the host's Linux pushes for this very process, and hostile
 * frames. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "sentry/abi/signal.h"
#include "sentry/arch/sigframe.h"
#include "sentry/kernel/sig.h"
#include "sentry/kernel/task.h"
#include "tests/lib/fake_guest.h"
#include "tests/lib/tap.h"

const struct sys_desc sys_table[SYS_TABLE_SIZE];

#define FRAME_HEAD (8 + sizeof(struct linux_ucontext) + sizeof(struct linux_siginfo))

/* What the handler saw. */
static struct {
	uint64_t frame, uc, info, fpstate;
	struct linux_ucontext copy;
	struct linux_fpx_sw_bytes sw;
	uint32_t magic2;
	greg_t gregs[23];
} host;

static void on_signal(int sig, siginfo_t *info, void *ctx)
{
	const ucontext_t *uc = ctx;

	(void)sig;
	host.uc = (uint64_t)(uintptr_t)ctx;
	host.info = (uint64_t)(uintptr_t)info;
	host.frame = host.uc - 8;
	memcpy(&host.copy, ctx, sizeof(host.copy));
	host.fpstate = host.copy.uc_mcontext.fpstate;
	memcpy(&host.sw, (char *)uc->uc_mcontext.fpregs + LINUX_FXSAVE_SW_BYTES, sizeof(host.sw));
	memcpy(host.gregs, uc->uc_mcontext.gregs, sizeof(host.gregs));
	if (host.sw.magic1 == LINUX_FP_XSTATE_MAGIC1)
		memcpy(&host.magic2, (char *)uc->uc_mcontext.fpregs + host.sw.xstate_size,
		       sizeof(host.magic2));
}

static void capture(void)
{
	struct sigaction sa = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };

	sigemptyset(&sa.sa_mask);
	sigaction(SIGUSR1, &sa, NULL);
	syscall(SYS_tgkill, getpid(), getpid(), SIGUSR1);
}

static void test_layout(void)
{
	const struct linux_sigcontext *sc = &host.copy.uc_mcontext;

	capture();
	tap_eq(host.frame % 16, 8, "host: frame alignment");
	tap_eq(host.info - host.uc, sizeof(struct linux_ucontext),
	       "host: siginfo follows the ucontext");
	tap_eq(host.fpstate % 64, 0, "host: FPU state alignment");
	tap_ok(host.fpstate - host.frame >= FRAME_HEAD &&
		       host.fpstate - host.frame < FRAME_HEAD + 32,
	       "host: FPU state follows the frame");
	tap_eq(sc->fpstate, (long long)(uintptr_t)host.fpstate, "fpstate");
	tap_eq(sc->ip, host.gregs[REG_RIP], "rip");
	tap_eq(sc->sp, host.gregs[REG_RSP], "rsp");
	tap_eq(sc->r8, host.gregs[REG_R8], "r8");
	tap_eq(sc->r15, host.gregs[REG_R15], "r15");
	tap_eq(sc->di, host.gregs[REG_RDI], "rdi");
	tap_eq(sc->cx, host.gregs[REG_RCX], "rcx");
	tap_eq(sc->flags, host.gregs[REG_EFL], "eflags");
	tap_eq(sc->cs, 0x33, "cs");
	tap_eq(sc->ss, 0x2b, "ss");
	tap_eq(sc->err, host.gregs[REG_ERR], "err");
	tap_eq(sc->trapno, host.gregs[REG_TRAPNO], "trapno");
	tap_eq(sc->cr2, host.gregs[REG_CR2], "cr2");
	if (host.sw.magic1 != LINUX_FP_XSTATE_MAGIC1) {
		tap_skip("the host has no XSAVE", "marks of the FPU state");
		return;
	}
	tap_eq(host.copy.uc_flags,
	       LINUX_UC_FP_XSTATE | LINUX_UC_SIGCONTEXT_SS | LINUX_UC_STRICT_RESTORE_SS,
	       "uc_flags");
	tap_eq(host.magic2, LINUX_FP_XSTATE_MAGIC2, "end mark");
	tap_eq(host.sw.extended_size, host.sw.xstate_size + 4, "extended_size counts the end mark");
}

static const struct linux_sigaction action = {
	.handler = 0x401000,
	.flags = LINUX_SA_RESTORER | LINUX_SA_SIGINFO,
	.restorer = 0x402000,
};

/* The same stack pointer gives the same places as the host's Linux, for the host's size of FPU
 * state. */
static void test_places(struct task *t)
{
	struct gregs r = { .rsp = FAKE_BASE + 0x8000, .rip = 1, .eflags = 0x10746 };
	const struct linux_siginfo info = { .si_signo = SIGUSR1, .si_code = -1 };
	uint64_t fp = (r.rsp - 128 - (FAKE_FPU_SIZE + 4)) & ~63ull,
		 frame = ((fp - FRAME_HEAD) & ~15ull) - 8;
	struct linux_fpx_sw_bytes sw;
	struct linux_ucontext *uc;
	uint64_t host_sp = (uint64_t)host.gregs[REG_RSP];

	if (host.sw.magic1 == LINUX_FP_XSTATE_MAGIC1)
		tap_eq((host_sp - 128 - host.sw.extended_size) & ~63ull, (long long)host.fpstate,
		       "host: by the same rule");
	tap_eq(((host.fpstate - FRAME_HEAD) & ~15ull) - 8, (long long)host.frame,
	       "host: frame by the same rule");
	tap_eq(sigframe_push(t, &action, &info, 0x55, &r), 0, "push");
	tap_eq(r.rsp, (long long)frame, "frame");
	uc = fake_mem(t, frame + 8);
	tap_eq(uc->uc_mcontext.fpstate, (long long)fp, "FPU state");
	tap_ok(r.rdi == SIGUSR1 && r.rsi == frame + 312 && r.rdx == frame + 8 && r.rax == 0,
	       "arguments");
	tap_eq(r.eflags, 0x10746 & ~0x10500, "DF, TF and RF are off");
	tap_eq(uc->uc_mcontext.flags, 0x10746, "but kept in the frame");
	tap_eq(uc->uc_flags, 7, "uc_flags");
	tap_eq(uc->uc_sigmask, 0x55, "mask");
	memcpy(&sw, (char *)fake_mem(t, fp) + LINUX_FXSAVE_SW_BYTES, sizeof(sw));
	tap_ok(sw.magic1 == LINUX_FP_XSTATE_MAGIC1 &&
		       *(uint32_t *)fake_mem(t, fp + sw.xstate_size) == LINUX_FP_XSTATE_MAGIC2,
	       "both marks");
}

static void test_refused(struct task *t)
{
	const struct linux_siginfo info = { .si_signo = SIGUSR1 };
	struct linux_sigaction act = action;
	struct gregs r = { .rsp = FAKE_BASE + 0x8000 };

	act.flags = 0;
	tap_eq(sigframe_push(t, &act, &info, 0, &r), -EFAULT, "no restorer");
	r.rsp = 64;
	tap_eq(sigframe_push(t, &action, &info, 0, &r), -EFAULT, "a stack pointer that wraps");
	r.rsp = 1ull << 63;
	tap_eq(sigframe_push(t, &action, &info, 0, &r), -EFAULT, "one that is not canonical");
	r.rsp = FAKE_BASE + 0x100;
	tap_eq(sigframe_push(t, &action, &info, 0, &r), -EFAULT, "a stack that is full");
	act = action;
	act.flags |= LINUX_SA_ONSTACK;
	t->altstack_sp = FAKE_BASE + 0x4000;
	t->altstack_size = 1000; /* as if it had shrunk: smaller than a frame */
	t->altstack_flags = 0;
	r.rsp = FAKE_BASE + 0x8000;
	tap_eq(sigframe_push(t, &act, &info, 0, &r), -EFAULT,
	       "a frame that leaves the alternate stack");
	tap_eq(r.rsp, FAKE_BASE + 0x8000, "registers are untouched by failures");
	t->altstack_size = 0;
	t->altstack_flags = LINUX_SS_DISABLE;
}

/* A fresh frame to spoil; regs as at rt_sigreturn. */
static struct linux_ucontext *fresh(struct task *t, struct gregs *r)
{
	const struct linux_siginfo info = { .si_signo = SIGUSR1 };

	*r = (struct gregs){ .rsp = FAKE_BASE + 0x8000, .rip = 0x123, .rbx = 7, .eflags = 0x202 };
	memset(fake_ctx(t)->fpu, 0x11, 32);
	fake_ctx(t)->fpu[600] = 0x33; /* AVX */
	if (sigframe_push(t, &action, &info, 0, r) < 0)
		abort();
	r->rsp += 8;
	return fake_mem(t, r->rsp);
}

static void test_pop(struct task *t)
{
	struct linux_ucontext *uc;
	struct gregs r;
	uint64_t mask, fp;
	uint8_t *fpu;

	fresh(t, &r);
	r.rbx = 0;
	tap_ok(sigframe_pop(t, &r, &mask) == 0 && r.rbx == 7 && r.rip == 0x123, "round trip");
	tap_ok(fake_ctx(t)->fpu[0] == 0x11 && fake_ctx(t)->fpu[600] == 0x33, "with the FPU state");

	uc = fresh(t, &r);
	uc->uc_mcontext.fpstate = 0;
	tap_ok(sigframe_pop(t, &r, &mask) == 0 && fake_ctx(t)->fpu[0] == 0,
	       "no FPU state: the initial one");

	uc = fresh(t, &r);
	fp = uc->uc_mcontext.fpstate;
	fpu = fake_mem(t, fp);
	memcpy(fake_mem(t, FAKE_BASE + 0x1000), fpu, FAKE_FPU_SIZE + 4);
	uc->uc_mcontext.fpstate = FAKE_BASE + 0x1000;
	tap_ok(sigframe_pop(t, &r, &mask) == 0 && fake_ctx(t)->fpu[600] == 0x33,
	       "FPU state elsewhere");

	uc = fresh(t, &r);
	fpu = fake_mem(t, uc->uc_mcontext.fpstate);
	*(uint32_t *)(fpu + LINUX_FXSAVE_SW_BYTES) = 0;
	tap_ok(sigframe_pop(t, &r, &mask) == 0 && fake_ctx(t)->fpu[0] == 0x11 &&
		       fake_ctx(t)->fpu[600] == 0,
	       "bad first mark: x87 and SSE only");

	uc = fresh(t, &r);
	fpu = fake_mem(t, uc->uc_mcontext.fpstate);
	fpu[FAKE_FPU_SIZE] = 0;
	tap_ok(sigframe_pop(t, &r, &mask) == 0 && fake_ctx(t)->fpu[600] == 0,
	       "bad end mark: the same");

	uc = fresh(t, &r);
	fpu = fake_mem(t, uc->uc_mcontext.fpstate);
	*(uint32_t *)(fpu + LINUX_FXSAVE_SW_BYTES + 16) = 0xffffffff;
	tap_ok(sigframe_pop(t, &r, &mask) == 0 && fake_ctx(t)->fpu[600] == 0,
	       "a huge size: the same");

	uc = fresh(t, &r);
	uc->uc_mcontext.fpstate = FAKE_BASE + FAKE_SIZE - 100;
	r.rbx = 1;
	tap_ok(sigframe_pop(t, &r, &mask) == -EFAULT && r.rbx == 1,
	       "FPU state that cannot be read");

	uc = fresh(t, &r);
	uc->uc_mcontext.cs = 0x23;
	tap_eq(sigframe_pop(t, &r, &mask), -EFAULT, "a 32-bit code segment");

	uc = fresh(t, &r);
	uc->uc_mcontext.flags = UINT64_MAX;
	tap_ok(sigframe_pop(t, &r, &mask) == 0 && r.eflags == (0x202 | 0x50dd5),
	       "only harmless flags are restored");

	r.rsp = FAKE_BASE + FAKE_SIZE - 16;
	tap_eq(sigframe_pop(t, &r, &mask), -EFAULT, "a frame that is cut off");
	r.rsp = 0;
	tap_eq(sigframe_pop(t, &r, &mask), -EFAULT, "rsp 0");
	r.rsp = GUEST_TASK_SIZE;
	tap_eq(sigframe_pop(t, &r, &mask), -EFAULT, "rsp at the end");
	r.rsp = UINT64_MAX;
	tap_eq(sigframe_pop(t, &r, &mask), -EFAULT, "rsp -1");
}

int main(void)
{
	struct task *t = fake_boot();

	test_layout();
	test_places(t);
	test_refused(t);
	test_pop(t);
	return tap_done();
}
