/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making contexts: a stopped thread is ordered a raw clone(2). The host kernel attaches the child to us and stops it
 * before its first instruction; the parent's event tells its number. A fresh stub is a clone of the zygote, a fork one
 * of the parent (native copy-on-write), a thread or a vfork child one with CLONE_VM. The child's registers are set from
 * here, so neither stack nor TLS is an argument of the call.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>

#include "platform/ptrace/ptrace_priv.h"
#include "platform/stub/hostcall.h"

/* CLONE_FILES: see ptrace_priv.h. */
#define FORK_FLAGS   (CLONE_PARENT | CLONE_FILES | SIGCHLD)
#define VM_FLAGS     (CLONE_VM | FORK_FLAGS)
#define THREAD_FLAGS (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM)

/* Gives up a context of which the kernel will never know. */
static void discard(struct pctx *c, bool own_proc)
{
	struct hostproc *proc = c->proc;

	if (proc) {
		proc->n_owned--;
		if (c->tid && !own_proc) {
			/* Born, but of no use: it ends as any other thread that is not wanted any more. */
			c->owned = false;
			list_del(&c->as_node);
			list_add_tail(&c->p->ghosts, &c->trap_node);
			c->p->ghosts_new = true;
			return;
		}
		if (c->tid)
			HOSTCALL(SYS_kill, c->tid, SIGKILL);
		pt_ctx_gone(c);
		if (own_proc)
			pt_proc_free(proc);
	}
	pt_ctx_free(c);
}

/* The child of @c's ordered clone is @child, which ends up stopped. */
static int clone_order(struct pctx *c, struct pctx *child, uint64_t flags)
{
	const struct order o = { SYS_clone, { flags } };
	struct platform *p = c->p;
	int64_t r;

	child->cpu = c->cpu; /* inherited */
	p->birth = child;
	r = pt_order(c, &o);
	p->birth = NULL;
	if (p->early) /* of a parent that died */
		HOSTCALL(SYS_kill, p->early, SIGKILL);
	p->early = 0;
	if (r < 0)
		return (int)r;
	return child->tid && pt_wait_stop(child) == 0 ? 0 : -EAGAIN;
}

static bool at_limit(const struct platform *p)
{
	return p->n_ctxs >= p->cfg.max_contexts;
}

static int spawn(struct platform *p, struct pctx **ret)
{
	struct hostproc *proc;
	struct aspace *as;
	struct pctx *c;
	int r;

	if (at_limit(p))
		return -EAGAIN;
	if (p->broken || p->zygote->state != PCTX_STOP)
		return -EIO;
	as = pt_aspace_alloc(p);
	proc = as ? pt_proc_alloc(p) : NULL;
	c = proc ? pt_ctx_alloc(p, as, proc) : NULL;
	pt_aspace_put(as);
	if (!c) {
		pt_proc_free(proc);
		return -ENOMEM;
	}
	r = clone_order(p->zygote, c, FORK_FLAGS);
	if (r < 0) {
		discard(c, true);
		return r;
	}
	pt_regs_fresh(c);
	*ret = c;
	return 0;
}

int pt_ctx_create(struct platform *p, struct aspace **as, struct vcpu_ctx **ctx)
{
	struct pctx *c;
	int r = spawn(p, &c);

	if (r < 0)
		return r;
	*as = pt_aspace_get(c->as);
	*ctx = &c->base;
	return 0;
}

static struct pctx *child_alloc(struct pctx *c, enum ctx_clone_kind kind)
{
	struct platform *p = c->p;
	struct aspace *as = kind == CTX_CLONE_FORK ? pt_aspace_alloc(p) : pt_aspace_get(c->as);
	struct hostproc *proc = kind == CTX_CLONE_THREAD ? c->proc : NULL;
	struct pctx *child;

	if (as && !proc)
		proc = pt_proc_alloc(p);
	child = as && proc ? pt_ctx_alloc(p, as, proc) : NULL;
	if (!child && proc != c->proc)
		pt_proc_free(proc);
	pt_aspace_put(as);
	return child;
}

int pt_ctx_clone(struct vcpu_ctx *ctx, const struct ctx_clone_args *args, struct aspace **as, struct vcpu_ctx **ret)
{
	static const uint64_t flags[] = {
		[CTX_CLONE_FORK] = FORK_FLAGS,
		[CTX_CLONE_THREAD] = THREAD_FLAGS,
		[CTX_CLONE_VM] = VM_FLAGS,
	};
	struct pctx *c = pctx_of(ctx), *child;
	int r;

	if (c->state != PCTX_STOP)
		return c->state == PCTX_DEAD ? -ESRCH : -EBUSY;
	if (at_limit(c->p))
		return -EAGAIN;
	if (args->set_tls && args->tls >= STUB_TASK_SIZE)
		return -EPERM;
	child = child_alloc(c, args->kind);
	if (!child)
		return -ENOMEM;
	r = clone_order(c, child, flags[args->kind]);
	if (r < 0) {
		discard(child, args->kind != CTX_CLONE_THREAD);
		return c->state == PCTX_DEAD ? -ESRCH : r;
	}
	child->regs = c->regs;
	child->regs.rax = 0;
	if (args->stack)
		child->regs.rsp = args->stack;
	if (args->set_tls)
		child->regs.fs_base = args->tls;
	child->dirty = true;
	*as = pt_aspace_get(child->as);
	*ret = &child->base;
	return 0;
}

static int exec_in_place(struct pctx *c)
{
	int r = pt_order_clear(c);

	if (r == 0)
		r = pt_xstate_set(c, c->p->xstate_init);
	if (r < 0) {
		if (c->state != PCTX_DEAD)
			pt_proc_kill(c->proc, SIGKILL); /* half cleared */
		return -ESRCH;
	}
	pt_regs_fresh(c);
	return 0;
}

int pt_ctx_exec(struct vcpu_ctx *ctx, bool alone, struct aspace **as, struct vcpu_ctx **new_ctx)
{
	struct pctx *c = pctx_of(ctx), *fresh = c;
	int r;

	if (c->state != PCTX_STOP)
		return c->state == PCTX_DEAD ? -ESRCH : -EBUSY;
	r = alone && c->as->n_threads == 1 ? exec_in_place(c) : spawn(c->p, &fresh);
	if (r < 0)
		return r;
	*as = pt_aspace_get(fresh->as);
	*new_ctx = &fresh->base;
	return 0;
}
