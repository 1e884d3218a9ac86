/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What wait4(2) tells of a tracee, and what follows: the state machine of ptrace_priv.h.
 *
 *   RUN    system-call stop                    STOP, TRAP_SYSCALL; the call is never executed
 *          a fault's signal, from the kernel   STOP, TRAP_FAULT
 *          PTRACE_EVENT_STOP                   STOP, TRAP_INTERRUPT when one was asked for
 *          any other signal                    goes on without it: host signals are not the guest's
 *   ORDER  a clone's event                     names the child; the order goes on
 *          the breakpoint behind the call      STOP with its result
 *          anything else                       the order goes on
 *   BORN   any stop                            STOP
 * The end of a thread that was not told to exit ends its whole process.
 *
 * A group leader that exited before its other threads is reported only after them, and a thread that ended keeps its
 * number until it was waited for; so a number in our tables is never another thread's.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/ptrace.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/log.h"
#include "platform/ptrace/ptrace_priv.h"
#include "platform/stub/hostcall.h"

#ifndef __WALL
#define __WALL 0x40000000
#endif
#ifndef __WNOTHREAD
#define __WNOTHREAD 0x20000000
#endif
#define WAIT_FLAGS (__WALL | __WNOTHREAD)

#define SYSCALL_STOP (SIGTRAP | 0x80)
#define X32_BIT      0x40000000u
#define BREAKPOINT_LEN 1

static struct pctx *tid_lookup(const struct platform *p, pid_t tid)
{
	struct pctx *c = p->tids[(unsigned)tid % TID_BUCKETS];

	while (c && c->tid != tid)
		c = c->tid_next;
	return c;
}

void pt_tid_add(struct pctx *c)
{
	struct pctx **bucket = &c->p->tids[(unsigned)c->tid % TID_BUCKETS];

	c->tid_next = *bucket;
	*bucket = c;
}

void pt_raise(struct pctx *c, enum trap_kind kind)
{
	c->trap.kind = kind;
	list_del(&c->trap_node);
	list_add_tail(&c->p->traps, &c->trap_node);
}

/* Goes on with an order. */
static void order_on(struct pctx *c)
{
	(void)pt_req(PTRACE_CONT, c->tid, 0, NULL); /* ESRCH: its end comes */
}

static void violation(struct pctx *c, const char *why, int status)
{
	log_dbg(CH_PLATFORM, "stub %d killed: %s (status %#x)", c->tid, why, (unsigned)status);
	pt_proc_kill(c->proc, SIGKILL);
}

/* Not by a syscall instruction in 64-bit mode. The instruction leaves rip in rcx and the flags in r11. */
static bool is_foreign(const struct pctx *c, uint32_t nr)
{
	const struct host_regs *r = &c->regs;
	struct ptrace_syscall_info info;

	if (nr & X32_BIT)
		return true;
	if (likely(r->rcx == r->rip && r->cs == USER_CS))
		return false;
	return pt_req(PTRACE_GET_SYSCALL_INFO, c->tid, sizeof(info), &info) <= 0 || info.arch != AUDIT_ARCH_X86_64;
}

static void on_call(struct pctx *c, uint32_t nr)
{
	const struct host_regs *r = &c->regs;

	c->trap.foreign = is_foreign(c, nr);
	c->trap.sys.nr = nr & ~X32_BIT;
	c->trap.sys.args[0] = r->rdi;
	c->trap.sys.args[1] = r->rsi;
	c->trap.sys.args[2] = r->rdx;
	c->trap.sys.args[3] = r->r10;
	c->trap.sys.args[4] = r->r8;
	c->trap.sys.args[5] = r->r9;
	pt_raise(c, TRAP_SYSCALL);
}

static bool is_fault_signal(int sig)
{
	return sig == SIGSEGV || sig == SIGBUS || sig == SIGILL || sig == SIGFPE || sig == SIGTRAP;
}

/* True: a fault of the guest; the trap is filled in. */
static bool take_fault(struct pctx *c, int sig)
{
	siginfo_t si;

	/* A code of 0 or less is a signal that another process of the host sent. */
	if (!is_fault_signal(sig) || pt_req(PTRACE_GETSIGINFO, c->tid, 0, &si) < 0 || si.si_code <= 0)
		return false;
	c->trap.foreign = false;
	c->trap.fault.signo = sig;
	c->trap.fault.code = si.si_code;
	c->trap.fault.addr = si.si_code == SI_KERNEL_CODE ? 0 : (uaddr_t)(uintptr_t)si.si_addr;
	c->trap.fault.err = 0;
	c->trap.fault.trapno = 0;
	c->raw_fault = true;
	return true;
}

static void on_run_stop(struct pctx *c, int status)
{
	int sig = WSTOPSIG(status), event = status >> 16;
	bool wanted = c->interrupt;
	uint32_t nr;

	if (pt_get_regs(c, &c->regs) < 0)
		return; /* killed meanwhile */
	/* With a number the host kernel would restart a call when it finds a signal. */
	nr = (uint32_t)c->regs.orig_rax;
	c->regs.orig_rax = (uint64_t)-1;
	pt_set_state(c, PCTX_STOP);
	c->interrupt = false;
	if (unlikely(c->free))
		pt_affinity_stopped(c);
	if (unlikely(!c->owned)) {
		pt_order_exit(c);
		return;
	}
	if (likely(sig == SYSCALL_STOP))
		on_call(c, nr);
	else if (event == 0 && take_fault(c, sig))
		pt_raise(c, TRAP_FAULT);
	else if (event == PTRACE_EVENT_STOP && wanted)
		pt_raise(c, TRAP_INTERRUPT);
	else
		(void)pt_go(c);
}

/* The creator's event: its child's number. */
static void on_birth(struct platform *p, struct pctx *parent)
{
	struct pctx *c = p->birth;
	unsigned long tid = 0;

	if (pt_req(PTRACE_GETEVENTMSG, parent->tid, 0, &tid) < 0 || !c || c->tid || !tid) {
		violation(parent, "a child that nobody ordered", 0);
		return;
	}
	c->tid = (pid_t)tid;
	if (!c->proc->pid)
		c->proc->pid = c->tid;
	pt_tid_add(c);
	list_add_tail(&c->as->ctxs, &c->as_node);
	if (p->early == c->tid) {
		pt_set_state(c, PCTX_STOP);
		p->early = 0;
	}
	order_on(parent);
}

static void on_order_stop(struct pctx *c, int status)
{
	int sig = WSTOPSIG(status), event = status >> 16;
	struct host_regs r;

	if (event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK || event == PTRACE_EVENT_CLONE) {
		on_birth(c->p, c);
		return;
	}
	if (c->probing) {
		pt_set_state(c, PCTX_STOP);
		return;
	}
	if (event || sig != SIGTRAP) {
		if (!event && is_fault_signal(sig))
			violation(c, "a fault of an order", status);
		else
			order_on(c);
		return;
	}
	if (pt_get_regs(c, &r) < 0)
		return;
	if (r.rip != c->p->stubs.sites.once + BREAKPOINT_LEN || c->exiting) {
		order_on(c);
		return;
	}
	c->result = (int64_t)r.rax;
	pt_set_state(c, PCTX_STOP);
}

static void on_end(struct platform *p, pid_t tid, struct pctx *c, int status)
{
	struct hostproc *proc;

	if (!c) {
		if (tid == p->stubs.init_pid) {
			p->stubs.init_pid = 0;
			p->broken = -ENOTCONN;
		}
		return;
	}
	proc = c->proc;
	if (c->exiting && WIFEXITED(status)) {
		pt_ctx_gone(c);
		if (list_empty(&proc->ctxs))
			pt_proc_free(proc);
		return;
	}
	log_dbg(CH_PLATFORM, "stub %d ended, status %#x", tid, (unsigned)status);
	if (tid == proc->pid)
		pt_proc_died(proc, status);
	else
		pt_proc_kill(proc, status);
}

static void on_stop(struct platform *p, pid_t tid, struct pctx *c, int status)
{
	if (!c) {
		if (p->birth && !p->birth->tid && !p->early)
			p->early = tid;
		else
			HOSTCALL(SYS_kill, tid, SIGKILL);
		return;
	}
	switch (c->state) {
	case PCTX_RUN:
		on_run_stop(c, status);
		break;
	case PCTX_ORDER:
		on_order_stop(c, status);
		break;
	case PCTX_BORN:
		pt_set_state(c, PCTX_STOP);
		if (!c->owned)
			pt_order_exit(c);
		break;
	default:
		violation(c, "stopped twice", status);
	}
}

static void handle(struct platform *p, pid_t tid, int status)
{
	struct pctx *c = tid_lookup(p, tid);

	if (likely(WIFSTOPPED(status)))
		on_stop(p, tid, c, status);
	else
		on_end(p, tid, c, status);
}

void pt_sweep(struct platform *p)
{
	int status;

	for (;;) {
		long tid = HOSTCALL(SYS_wait4, -1, &status, WAIT_FLAGS | WNOHANG, NULL);

		if (tid <= 0)
			return;
		handle(p, (pid_t)tid, status);
	}
}

static void take_wake_bits(struct platform *p)
{
	uint32_t bits = leader_take_bits(&p->leader);

	if (bits & WAKE_TICK) {
		pt_sweep(p);
		pt_affinity_tick(p);
	}
}

/* wait4(-1) looks at every tracee, so where only one can have news it is asked alone. What else happens the ticker's
 * sweep finds; a group leader that dies is reported only after its other threads, which the sweep takes too. */
static pid_t whom(const struct platform *p, const struct pctx *c)
{
	if (!p->ticking)
		return -1;
	if (!c)
		c = p->n_run == 1 ? p->last_run : NULL;
	return c && c->tid && c->state != PCTX_DEAD && c->state != PCTX_STOP && !c->free ? c->tid : -1;
}

int pt_pump(struct platform *p, const struct pctx *c)
{
	int status;
	long r;

	if (unlikely(p->broken))
		return p->broken;
	r = leader_wait(&p->leader.wake_bits, SYS_wait4, whom(p, c), (long)&status, WAIT_FLAGS, 0);
	if (likely(r > 0))
		handle(p, (pid_t)r, status);
	else if (r == -EINTR)
		take_wake_bits(p);
	else
		p->broken = r ? (int)r : -EIO;
	return p->broken;
}

int pt_wait_stop(struct pctx *c)
{
	while (c->state != PCTX_STOP && c->state != PCTX_DEAD)
		if (pt_pump(c->p, c) < 0)
			return -ESRCH;
	return c->state == PCTX_STOP ? 0 : -ESRCH;
}
