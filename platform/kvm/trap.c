/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a stop of the guest means, told as Linux would tell it: arch/x86/kernel/traps.c, mm/fault.c. Where hosts differ
 * (an int n that is no interrupt is #GP, on some #UD) the instruction is looked at.
 */
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>

#include "platform/kvm/kvm.h"
#include "platform/kvm/monitor.h"

#define X32_BIT 0x40000000u

#define PF_PRESENT 1u
#define PF_USER    4u
#define PF_FETCH   16u

#define VSYSCALL_PAGE 0xffffffffff600000ull
#define VSYSCALL_STEP 0x400u

/* si_code of the kernel, by no fault of an instruction */
#define CODE_KERNEL 0x80

/* How often it is tried to find out which page the host lacks. */
#define LOST_TRIES 8u

static bool fault(struct kctx *c, int signo, int code, uint64_t addr, const struct kevent *ev)
{
	c->trap.kind = TRAP_FAULT;
	c->trap.foreign = false;
	c->trap.fault.signo = signo;
	c->trap.fault.code = code;
	c->trap.fault.addr = addr;
	c->trap.fault.err = ev->err;
	c->trap.fault.trapno = ev->vec;
	return true;
}

static bool system_call(struct kctx *c, uint64_t nr, bool foreign)
{
	const struct kvm_regs *g = &c->regs;

	c->trap.kind = TRAP_SYSCALL;
	c->trap.sys.nr = (uint32_t)nr; /* as in Linux, eax counts */
	c->trap.foreign = foreign || (c->trap.sys.nr & X32_BIT);
	c->trap.sys.args[0] = g->rdi;
	c->trap.sys.args[1] = g->rsi;
	c->trap.sys.args[2] = g->rdx;
	c->trap.sys.args[3] = g->r10;
	c->trap.sys.args[4] = g->r8;
	c->trap.sys.args[5] = g->r9;
	return true;
}

/* Old programs call the page that Linux has at a fixed place; it acts as a system call and a return. */
static bool vsyscall(struct kctx *c, const struct kevent *ev)
{
	static const uint32_t calls[] = { SYS_gettimeofday, SYS_time, SYS_getcpu };
	uint64_t off = ev->cr2 - VSYSCALL_PAGE, back;

	if (!(ev->err & PF_FETCH) || c->regs.rip != ev->cr2 || off % VSYSCALL_STEP ||
	    off / VSYSCALL_STEP >= ARRAY_SIZE(calls))
		return false;
	if (kvm_aspace_read(c->as, c->regs.rsp, &back, sizeof(back)) != (ssize_t)sizeof(back))
		return false;
	c->regs.rip = back;
	c->regs.rsp += sizeof(back);
	return system_call(c, calls[off / VSYSCALL_STEP], false);
}

static bool page_fault(struct kctx *c, const struct kevent *ev)
{
	if (ev->cr2 >= GUEST_TASK_SIZE || !(ev->err & PF_USER)) {
		struct kevent e = *ev;

		if (ev->cr2 - VSYSCALL_PAGE < PAGE_SIZE && vsyscall(c, ev))
			return true;
		e.err |= PF_PRESENT | PF_USER; /* tells nothing of what is there */
		return fault(c, SIGSEGV, SEGV_MAPERR, ev->cr2, &e);
	}
	kaspace_fill_single(c->as, c->lost.tries);
	if (kaspace_fault(c->as, ev->cr2, ev->err, &c->trap) == 0) {
		if (unlikely(c->lost.tries)) {
			c->lost.known = true;
			c->lost.addr = ev->cr2;
			c->lost.err = ev->err;
			c->lost.regs = c->regs;
		}
		return false;
	}
	c->trap.foreign = false;
	return true;
}

/* The same registers: the same step of the same instruction. A fault may have set RF. */
static bool same_step(const struct kvm_regs *a, const struct kvm_regs *b)
{
	return !memcmp(a, b, offsetof(struct kvm_regs, rflags));
}

/*
 * The host could not give a page that the guest touched. Mostly its file was cut; what is behind the end now goes, and
 * the guest's own fault tells where. Else all pages of files go: the access faults again page by page, and when the
 * host fails again right after a fault, the page of that fault is the one (a hole of a file that the disk has no room
 * for). When no fault came before, another thread had the page filled in; it is tried again.
 */
static bool lost_page(struct kctx *c, struct kevent *ev)
{
	struct klost *l = &c->lost;
	uint64_t addr = c->regs.rip;

	if (kaspace_drop_truncated(c->as))
		return false;
	ev->vec = VEC_PF;
	if (l->tries && l->known && same_step(&l->regs, &c->regs)) {
		addr = l->addr;
		ev->err = l->err;
	} else if (l->tries++ < LOST_TRIES) {
		l->known = false;
		kaspace_drop_files(c->as);
		return false;
	}
	l->tries = 0;
	return fault(c, SIGBUS, BUS_ADRERR, addr, ev);
}

/* An int n that the host takes for an undefined instruction. */
static bool undefined(struct kctx *c, struct kevent *ev)
{
	uint8_t b[2];

	if (kvm_aspace_read(c->as, c->regs.rip, b, sizeof(b)) == (ssize_t)sizeof(b) && b[0] == 0xcd) {
		if (b[1] == VEC_INT80) {
			c->regs.rip += sizeof(b);
			return system_call(c, c->regs.rax, true);
		}
		ev->vec = VEC_GP;
		ev->err = (uint64_t)b[1] * 8 + 2;
		return fault(c, SIGSEGV, CODE_KERNEL, 0, ev);
	}
	return fault(c, SIGILL, ILL_ILLOPN, c->regs.rip, ev);
}

/* A step that cleared TF itself is told apart from int1 by the instruction: dr6 would cost two more host calls. */
static int debug_code(struct kctx *c)
{
	const uint8_t int1 = 0xf1;
	uint8_t b;

	if (c->regs.rflags & RFLAGS_TF)
		return TRAP_TRACE;
	return kvm_aspace_read(c->as, c->regs.rip - 1, &b, 1) == 1 && b == int1 ? TRAP_BRKPT : TRAP_TRACE;
}

static bool floating_point(struct kctx *c, const struct kevent *ev)
{
	int code = kctx_fpe_code(c, ev->vec == VEC_XM);

	/* Nothing is pending: as Linux does, go on. */
	return code && fault(c, SIGFPE, code, c->regs.rip, ev);
}

static bool vector(struct kctx *c, struct kevent *ev)
{
	uint64_t rip = c->regs.rip;

	switch (ev->vec) {
	case VEC_PF:
		return page_fault(c, ev);
	case VEC_DE:
		return fault(c, SIGFPE, FPE_INTDIV, rip, ev);
	case VEC_DB:
		return fault(c, SIGTRAP, debug_code(c), rip, ev);
	case VEC_BP:
		return fault(c, SIGTRAP, CODE_KERNEL, 0, ev);
	case VEC_UD:
		return undefined(c, ev);
	case VEC_CSO:
		return fault(c, SIGFPE, CODE_KERNEL, 0, ev);
	case VEC_NP:
	case VEC_SS:
		return fault(c, SIGBUS, CODE_KERNEL, 0, ev);
	case VEC_AC:
		return fault(c, SIGBUS, BUS_ADRALN, 0, ev);
	case VEC_MF:
	case VEC_XM:
		return floating_point(c, ev);
	case VEC_INT80:
		return system_call(c, c->regs.rax, true);
	default: /* GP, OF, BR, TS */
		return fault(c, SIGSEGV, CODE_KERNEL, 0, ev);
	}
}

static __attribute__((noinline)) bool other(struct kctx *c, const struct kevent *ev)
{
	struct kevent e = *ev;

	switch (ev->kind) {
	case KEV_VECTOR:
		return vector(c, &e);
	case KEV_MEMORY:
		return lost_page(c, &e);
	case KEV_NO_MEMORY:
		return fault(c, SIGKILL, SI_KERNEL, 0, &e);
	case KEV_SYSCALL: /* ktrap_decode() */
	case KEV_KICKED:
	case KEV_BROKEN:
		break;
	}
	return false;
}

bool ktrap_decode(struct kctx *c, const struct kevent *ev)
{
	if (unlikely(ev->kind != KEV_SYSCALL))
		return other(c, ev);
	c->lost.tries = 0;
	return system_call(c, c->regs.rax, false);
}

void ktrap_bad_rip(struct kctx *c)
{
	const struct kevent gp = { .vec = VEC_GP };
	const struct kevent pf = { .vec = VEC_PF, .err = PF_PRESENT | PF_USER | PF_FETCH };
	uint64_t rip = c->regs.rip;

	if (rip >> 47 == 0x1ffff)
		(void)fault(c, SIGSEGV, SEGV_MAPERR, rip, &pf);
	else
		(void)fault(c, SIGSEGV, CODE_KERNEL, 0, &gp);
}
