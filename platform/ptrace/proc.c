/* SPDX-License-Identifier: Apache-2.0 */
/* Host processes of stubs and the contexts in them: their tables, and their end. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "platform/ptrace/ptrace_priv.h"
#include "platform/stub/hostcall.h"

struct hostproc *pt_proc_alloc(struct platform *p)
{
	struct hostproc *proc = calloc(1, sizeof(*proc));

	if (!proc)
		return NULL;
	proc->p = p;
	list_init(&proc->ctxs);
	list_add_tail(&p->procs, &proc->node);
	return proc;
}

void pt_proc_free(struct hostproc *proc)
{
	if (!proc)
		return;
	list_del(&proc->node);
	free(proc);
}

struct pctx *pt_ctx_alloc(struct platform *p, struct aspace *as, struct hostproc *proc)
{
	struct pctx *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->p = p;
	c->as = pt_aspace_get(as);
	c->proc = proc;
	c->state = PCTX_BORN;
	c->owned = true;
	c->cpu = -1;
	list_init(&c->as_node);
	list_init(&c->trap_node);
	list_add_tail(&proc->ctxs, &c->proc_node);
	proc->n_threads++;
	proc->n_owned++;
	as->n_threads++;
	p->n_ctxs++;
	return c;
}

void pt_ctx_free(struct pctx *c)
{
	list_del(&c->trap_node);
	pt_aspace_put(c->as);
	free(c);
}

void pt_ctx_gone(struct pctx *c)
{
	struct platform *p = c->p;
	struct pctx **q = &p->tids[(unsigned)c->tid % TID_BUCKETS];

	for (; *q; q = &(*q)->tid_next) {
		if (*q != c)
			continue;
		*q = c->tid_next;
		break;
	}
	list_del(&c->as_node);
	list_del(&c->proc_node);
	c->proc->n_threads--;
	c->proc = NULL;
	pt_set_state(c, PCTX_DEAD);
	c->as->n_threads--;
	p->n_ctxs--;
	if (p->last_run == c)
		p->last_run = NULL;
	if (!c->owned)
		pt_ctx_free(c);
}

void pt_proc_died(struct hostproc *proc, int status)
{
	struct platform *p = proc->p;
	struct pctx *c, *tmp;

	list_for_each_entry_safe(c, tmp, &proc->ctxs, proc_node) {
		bool owned = c->owned;

		if (c == p->zygote)
			p->broken = -EIO; /* no fresh stubs any more */
		pt_ctx_gone(c);
		if (owned) {
			c->trap.exit_status = status;
			c->raw_fault = false;
			pt_raise(c, TRAP_EXITED);
		}
	}
	pt_proc_free(proc);
}

void pt_proc_kill(struct hostproc *proc, int status)
{
	/* The number is its own: the leader is not waited for before all its threads are. */
	if (proc->pid)
		HOSTCALL(SYS_kill, proc->pid, SIGKILL);
	pt_proc_died(proc, status);
}
