/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Single ptrace(2) requests. -ESRCH of any of them means that the thread is being killed; its end will be reported by
 * wait4(2), so most callers need not look. General registers go by PTRACE_GETREGS, whose layout is the tracer's; the
 * layout of PTRACE_GETREGSET follows the tracee's code segment, which the guest can change.
 */
#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

#include "platform/ptrace/ptrace_priv.h"
#include "platform/stub/hostcall.h"

#ifndef PTRACE_SYSEMU
#define PTRACE_SYSEMU 31
#endif

long pt_req(long request, pid_t tid, unsigned long addr, const void *data)
{
	return HOSTCALL(SYS_ptrace, request, tid, addr, data);
}

void pt_set_state(struct pctx *c, enum pctx_state state)
{
	c->p->n_run += (state == PCTX_RUN) - (c->state == PCTX_RUN);
	c->state = state;
}

int pt_get_regs(struct pctx *c, struct host_regs *regs)
{
	return pt_req(PTRACE_GETREGS, c->tid, 0, regs) < 0 ? -ESRCH : 0;
}

int pt_go(struct pctx *c)
{
	struct platform *p = c->p;

	if (unlikely(c->cpu != (c->free ? -1 : p->cpu)) || unlikely(c->free))
		pt_affinity_follow(c);
	c->n_runs++;
	p->last_run = c;
	pt_set_state(c, PCTX_RUN);
	if (c->dirty) {
		long r = pt_req(PTRACE_SETREGS, c->tid, 0, &c->regs);

		if (unlikely(r < 0)) {
			if (r != -ESRCH) /* registers that the host does not take, though checked */
				pt_proc_kill(c->proc, SIGKILL);
			return -ESRCH;
		}
		c->dirty = false;
	}
	return pt_req(PTRACE_SYSEMU, c->tid, 0, NULL) < 0 ? -ESRCH : 0;
}

int pt_xstate_get(struct pctx *c, uint8_t *buf, size_t *len)
{
	struct iovec v = { buf, FPU_STATE_MAX };
	long r = pt_req(PTRACE_GETREGSET, c->tid, NT_X86_XSTATE, &v);

	*len = v.iov_len;
	return (int)r;
}

int pt_xstate_set(struct pctx *c, const uint8_t *buf)
{
	struct iovec v = { (void *)buf, c->p->xstate_len };

	return (int)pt_req(PTRACE_SETREGSET, c->tid, NT_X86_XSTATE, &v);
}
