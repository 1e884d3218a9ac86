/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The error code and the vector of a fault, which ptrace(2) does not tell, but a signal frame does. So the signal is
 * delivered for once: to a handler in the shim page that never runs, with the frame in the stub's slot; the thread
 * stops before the handler's first instruction, the two words are read from the frame, and registers and FPU state are
 * put back. What a thread of the guest writes into the frame meanwhile only spoils its own process's error code.
 */
#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>

#include "platform/ptrace/ptrace_priv.h"
#include "platform/stub/hframe.h"

/* Sends the thread into the handler, one step, and waits. */
static int enter_handler(struct pctx *c)
{
	struct host_regs r = c->regs;

	r.rsp = SLOT_BASE + SLOT_SIZE;
	c->probing = true;
	pt_set_state(c, PCTX_ORDER);
	if (pt_req(PTRACE_SETREGS, c->tid, 0, &r) < 0 ||
	    pt_req(PTRACE_SINGLESTEP, c->tid, 0, (const void *)(uintptr_t)c->trap.fault.signo) < 0) {
		pt_proc_kill(c->proc, SIGKILL);
		return -ESRCH;
	}
	return pt_wait_stop(c);
}

static void read_frame(struct pctx *c)
{
	struct host_regs r;
	struct hframe f;

	if (pt_get_regs(c, &r) < 0 || r.rip - SHIM_BASE >= SHIM_SIZE || r.rsp < SLOT_BASE ||
	    r.rsp > SLOT_BASE + SLOT_SIZE - sizeof(f) || mem_peek(c->tid, r.rsp, &f, sizeof(f)) < 0)
		return;
	c->trap.fault.err = f.err;
	c->trap.fault.trapno = f.trapno;
}

void pt_fault_details(struct pctx *c)
{
	uint8_t area[FPU_STATE_MAX];
	size_t len;
	int r;

	c->raw_fault = false;
	if (pt_xstate_get(c, area, &len) < 0)
		return;
	c->dirty = true;
	r = enter_handler(c);
	c->probing = false;
	if (r < 0)
		return;
	read_frame(c);
	if (pt_xstate_set(c, area) < 0)
		pt_proc_kill(c->proc, SIGKILL); /* dying */
}
