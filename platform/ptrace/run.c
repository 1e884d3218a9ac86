/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Letting contexts run, stopping them, ending them. The last context of a host process takes the process with it. Any
 * other becomes a ghost, which is made to exit(2). Ghosts are told by run(), not at once: the kernel often ends all
 * threads of a process one after the other, and then nobody need be told.
 */
#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>

#include "platform/ptrace/ptrace_priv.h"

#define CANONICAL_SHIFT 47
#define X86_GP 13

int pt_ctx_return(struct vcpu_ctx *ctx, int64_t result)
{
	struct pctx *c = pctx_of(ctx);

	if (unlikely(c->state != PCTX_STOP))
		return c->state == PCTX_DEAD ? -ESRCH : -EBUSY;
	/* Values that the host kernel would take for its own restart codes. */
	if (unlikely(result >= -516 && result <= -512))
		result = -EINTR;
	c->regs.rax = (uint64_t)result;
	if (!c->dirty && unlikely(pt_req(PTRACE_POKEUSER, c->tid, offsetof(struct host_regs, rax),
					 (const void *)result) < 0))
		return -ESRCH;
	return pt_go(c);
}

int pt_ctx_resume(struct vcpu_ctx *ctx)
{
	struct pctx *c = pctx_of(ctx);
	int64_t top = (int64_t)c->regs.rip >> CANONICAL_SHIFT;

	if (c->state != PCTX_STOP)
		return c->state == PCTX_DEAD ? -ESRCH : -EBUSY;
	if (likely(top == 0 || top == -1))
		return pt_go(c);
	/* What Linux makes of a return to no address at all. */
	c->trap.foreign = false;
	c->trap.fault.signo = SIGSEGV;
	c->trap.fault.code = SI_KERNEL_CODE;
	c->trap.fault.addr = 0;
	c->trap.fault.err = 0;
	c->trap.fault.trapno = X86_GP;
	pt_raise(c, TRAP_FAULT);
	return 0;
}

void pt_ctx_interrupt(struct vcpu_ctx *ctx)
{
	struct pctx *c = pctx_of(ctx);

	if (c->interrupt || c->state != PCTX_RUN)
		return;
	c->interrupt = true;
	(void)pt_req(PTRACE_INTERRUPT, c->tid, 0, NULL);
}

void pt_ctx_parked(struct vcpu_ctx *ctx)
{
	/* A stopped thread costs nothing but its place in the tracer's list (event.c, whom()). */
}

void pt_ctx_destroy(struct vcpu_ctx *ctx)
{
	struct pctx *c = ctx ? pctx_of(ctx) : NULL;

	if (!c)
		return;
	list_del(&c->trap_node);
	if (c->state == PCTX_DEAD) {
		pt_ctx_free(c);
		return;
	}
	list_del(&c->as_node); /* no memory access through it any more */
	c->owned = false;
	c->base.owner = NULL;
	if (--c->proc->n_owned == 0) {
		pt_proc_kill(c->proc, 0);
		return;
	}
	list_add_tail(&c->p->ghosts, &c->trap_node);
	c->p->ghosts_new = true;
}

void pt_tell_ghosts(struct platform *p)
{
	struct pctx *c;

	p->ghosts_new = false;
	while (!list_empty(&p->ghosts)) {
		c = list_first_entry(&p->ghosts, struct pctx, trap_node);
		list_del(&c->trap_node);
		if (c->state == PCTX_STOP)
			pt_order_exit(c);
		else if (c->state == PCTX_RUN)
			(void)pt_req(PTRACE_INTERRUPT, c->tid, 0, NULL); /* then event.c sees that it is a ghost */
	}
}
