/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Orders: one host call, made by a stopped thread at the shim's system call instruction for orders. The arguments go
 * into its registers while it is stopped and only values, or addresses in the zygote, are ever passed. The thread is
 * continued without PTRACE_SYSEMU, so that the call is made, and stops at the breakpoint behind it: one stop, where
 * PTRACE_SYSCALL and a single step have two. That no guest code runs in between rests on the shim page: it is r-x, its
 * file is sealed, and no change of the reserved range is ever ordered. Stops of other kinds (a host signal, an
 * interrupt that came late) leave the thread within these two instructions and are passed over. The guest's registers
 * stay in pctx.regs and are put back when the thread goes on.
 */
#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include "platform/ptrace/ptrace_priv.h"

#define SYSCALL_LEN 2

int pt_order_start(struct pctx *c, const struct order *o)
{
	struct host_regs r = c->regs;

	r.rip = c->p->stubs.sites.once - SYSCALL_LEN;
	r.rax = o->nr;
	r.orig_rax = (uint64_t)-1;
	r.rdi = o->a[0];
	r.rsi = o->a[1];
	r.rdx = o->a[2];
	r.r10 = o->a[3];
	r.r8 = o->a[4];
	r.r9 = o->a[5];
	r.cs = USER_CS;
	r.ss = USER_SS;
	r.eflags = EFLAGS_FIXED;
	c->dirty = true;
	if (unlikely(c->cpu != c->p->cpu && !c->free))
		pt_affinity_follow(c);
	pt_set_state(c, PCTX_ORDER);
	if (pt_req(PTRACE_SETREGS, c->tid, 0, &r) < 0 || pt_req(PTRACE_CONT, c->tid, 0, NULL) < 0) {
		pt_proc_kill(c->proc, SIGKILL); /* it is dying already */
		return -ESRCH;
	}
	return 0;
}

int64_t pt_order(struct pctx *c, const struct order *o)
{
	int r;

	if (c->state != PCTX_STOP)
		return c->state == PCTX_DEAD ? -ESRCH : -EBUSY;
	r = pt_order_start(c, o);
	if (r == 0)
		r = pt_wait_stop(c);
	return r < 0 ? r : c->result;
}

void pt_order_exit(struct pctx *c)
{
	const struct order o = { SYS_exit, { 0 } };

	c->exiting = true;
	(void)pt_order_start(c, &o);
}

int pt_order_clear(struct pctx *c)
{
	const struct boot_report *b = &c->p->stubs.report;
	const struct order o[3] = {
		{ SYS_munmap, { 0, SHIM_BASE } },
		{ SYS_munmap, { SHIM_END, (b->keep_hi ? b->keep_lo : STUB_TASK_SIZE) - SHIM_END } },
		{ SYS_munmap, { b->keep_hi, STUB_TASK_SIZE - b->keep_hi } },
	};
	int64_t r = 0;

	for (int i = 0; i < (b->keep_hi ? 3 : 2) && r == 0; i++)
		r = pt_order(c, &o[i]);
	return (int)r;
}
