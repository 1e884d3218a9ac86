/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making contexts. All are born the same way: a stopped thread in the shim is ordered a raw clone(2) whose sixth
 * argument, of which the kernel makes no use, is a random token. The shim never touches that register between the clone
 * and the child's first report, so only the true child can bring the token. A fresh stub is a clone of the zygote, a
 * fork one of the parent (native copy-on-write), a thread or a vfork child one with CLONE_VM on a slot of its own that
 * holds a copy of the parent's frame: one rt_sigreturn then loads registers, FPU state and alternate stack.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "platform/stub/hostcall.h"
#include "platform/unotify/unotify_priv.h"

#define FORK_FLAGS   (CLONE_PARENT | SIGCHLD)
#define VM_FLAGS     (CLONE_VM | CLONE_PARENT | SIGCHLD)
#define THREAD_FLAGS (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM)
#define SET_FS       0x1002
#define SET_GS       0x1001

struct uctx *uctx_alloc(struct platform *p, struct aspace *as, struct hostproc *proc)
{
	struct uctx *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->p = p;
	c->as = unotify_aspace_get(as);
	c->proc = proc;
	c->state = UCTX_NEW;
	c->owned = true;
	list_init(&c->as_node);
	list_init(&c->trap_node);
	list_init(&c->park_node);
	list_add_tail(&proc->ctxs, &c->proc_node);
	proc->n_owned++;
	as->n_threads++;
	p->n_ctxs++;
	return c;
}

void uctx_gone(struct uctx *c)
{
	struct platform *p = c->p;
	struct uctx **q = &p->tids[(unsigned)c->tid % TID_BUCKETS];

	for (; *q; q = &(*q)->tid_next) {
		if (*q != c)
			continue;
		*q = c->tid_next;
		break;
	}
	uctx_unpark(c);
	frame_forget(c);
	list_del(&c->as_node);
	list_del(&c->proc_node);
	c->proc = NULL;
	c->state = UCTX_DEAD;
	c->as->n_threads--;
	p->n_ctxs--;
	aspace_slot_put(c->as, c->slot);
	if (!c->owned)
		uctx_free(c);
}

void uctx_free(struct uctx *c)
{
	list_del(&c->trap_node);
	list_del(&c->park_node);
	unotify_aspace_put(c->as);
	free(c);
}

/* Gives up a context that was never born, or of which the kernel will never know. */
static void uctx_discard(struct uctx *c, bool own_proc)
{
	struct hostproc *proc = c->proc;

	if (proc) {
		proc->n_owned--;
		uctx_gone(c);
		if (own_proc)
			proc_kill(proc, 0);
	}
	uctx_free(c);
}

/*
 * The parent goes on by itself after its clone with @result in rax, instead of reporting first. Only a clone that
 * failed is reported. A parent that reports so though its child lives loses it: no child with that token is waited for
 * then, so the process is killed.
 */
static int clone_and_go(struct uctx *c, struct uctx *child, const struct order *o, uint64_t result)
{
	int r;

	c->goal = GOAL_STOP;
	c->own_orders[0] = *o;
	c->cloning = true;
	r = order_send(c, c->own_orders, 1, SHIM_ORDER_CLONE, &result);
	if (r == 0)
		r = event_wait_birth(child, c);
	if (r == 0) {
		c->cloning = false; /* tail stays: nobody knows yet that it has left the shim */
		return CTX_RESUMED;
	}
	if (r != -EAGAIN && c->state != UCTX_DEAD)
		proc_kill(c->proc, SIGKILL); /* it goes on and believes in its child */
	c->cloning = false;
	list_del(&child->as_node);
	return -EAGAIN;
}

static int clone_order(struct uctx *c, struct uctx *child, uint64_t flags, uint64_t stack,
		       const struct ctx_clone_args *args)
{
	struct order o = { SYS_clone, { flags, stack, 0, 0, args->tls } };
	int64_t r;

	if (args->set_tls)
		o.a[0] |= CLONE_SETTLS;
	do {
		if (HOSTCALL(SYS_getrandom, &child->token, sizeof(child->token), 0) != sizeof(child->token))
			return -EAGAIN;
	} while (!child->token);
	o.a[5] = child->token;
	list_add_tail(&c->p->births, &child->as_node);
	if (args->may_resume && args->kind == CTX_CLONE_THREAD)
		return clone_and_go(c, child, &o, (uint64_t)args->result);
	r = order_run1(c, &o);
	if (r < 0) {
		list_del(&child->as_node);
		return (int)r;
	}
	return event_wait_shim(child) < 0 ? -EAGAIN : 0;
}

/* Without a pid namespace nothing else ends a stub when init dies. */
static int tie_to_init(struct uctx *c)
{
	struct order o = { SYS_prctl, { PR_SET_PDEATHSIG, SIGKILL } };

	return c->p->info.pidns ? 0 : (int)order_run1(c, &o);
}

static bool at_limit(const struct platform *p)
{
	return p->n_ctxs >= p->cfg.max_contexts;
}

int uctx_spawn(struct platform *p, struct uctx **ret)
{
	const struct ctx_clone_args args = { .kind = CTX_CLONE_FORK };
	struct hostproc *proc;
	struct aspace *as;
	struct uctx *c;
	int r;

	if (at_limit(p))
		return -EAGAIN;
	if (p->broken || p->zygote->state != UCTX_SHIM)
		return -EIO;
	as = aspace_alloc(p);
	proc = as ? proc_alloc(p) : NULL;
	c = proc ? uctx_alloc(p, as, proc) : NULL;
	unotify_aspace_put(as);
	if (!c) {
		proc_free(proc);
		return -ENOMEM;
	}
	c->frame = slot_base(0) + SLOT_FRAME;
	r = clone_order(p->zygote, c, FORK_FLAGS, 0, &args);
	if (r == 0)
		r = tie_to_init(c);
	if (r == 0) {
		frame_init_fresh(c);
		c->bases_zero = c->untouched = true;
	}
	if (r < 0) {
		uctx_discard(c, true);
		return r;
	}
	*ret = c;
	return 0;
}

int unotify_ctx_create(struct platform *p, struct aspace **as, struct vcpu_ctx **ctx)
{
	struct uctx *c;
	int r = uctx_spawn(p, &c);

	if (r < 0)
		return r;
	*as = unotify_aspace_get(c->as);
	*ctx = &c->base;
	return 0;
}

int uctx_to_shim(struct uctx *c)
{
	int r;

	if (c->state == UCTX_SHIM)
		return 0;
	if (c->state == UCTX_DEAD)
		return -ESRCH;
	if (!uctx_stopped(c))
		return -EBUSY;
	uctx_unpark(c);
	c->goal = GOAL_STOP;
	if (c->state == UCTX_CALL) {
		r = uctx_escalate(c);
		if (r < 0)
			return r;
	} else if (c->state == UCTX_ASLEEP) {
		uctx_kick(c);
	}
	return event_wait_shim(c);
}

static struct uctx *child_alloc(struct uctx *c, enum ctx_clone_kind kind)
{
	struct platform *p = c->p;
	struct aspace *as = kind == CTX_CLONE_FORK ? aspace_dup(c->as, c->slot) : unotify_aspace_get(c->as);
	struct hostproc *proc = kind == CTX_CLONE_THREAD ? c->proc : NULL;
	struct uctx *child;

	if (as && !proc)
		proc = proc_alloc(p);
	child = as && proc ? uctx_alloc(p, as, proc) : NULL;
	if (!child && proc != c->proc)
		proc_free(proc);
	unotify_aspace_put(as);
	return child;
}

/* Slot and frame of a child that shares our address space. */
static int child_frame(struct uctx *c, struct uctx *child, uint64_t rsp)
{
	int slot = aspace_slot_get(c->as, c);

	if (slot < 0)
		return slot;
	child->slot = (uint32_t)slot;
	return frame_copy(c, child, rsp);
}

static int fork_child(struct uctx *c, struct uctx *child, const struct ctx_clone_args *args)
{
	int r;

	child->slot = c->slot;
	child->frame = c->frame;
	r = frame_flush(c); /* the child has what is in the slot */
	if (r < 0)
		return r;
	r = clone_order(c, child, FORK_FLAGS, 0, args);
	if (r < 0)
		return r;
	child->set_rax = true;
	child->frame_valid = c->frame_valid;
	child->fr = c->fr;
	if (!args->stack)
		return 0;
	r = frame_load(child, false);
	if (r < 0)
		return r;
	child->fr.rsp = args->stack;
	frame_changed(child);
	return 0;
}

static int vm_child(struct uctx *c, struct uctx *child, const struct ctx_clone_args *args)
{
	uint64_t flags = args->kind == CTX_CLONE_THREAD ? THREAD_FLAGS : VM_FLAGS;
	int r = child_frame(c, child, args->stack);

	if (r < 0)
		return r;
	return clone_order(c, child, flags, child->frame, args);
}

int unotify_ctx_clone(struct vcpu_ctx *ctx, const struct ctx_clone_args *args, struct aspace **as,
		      struct vcpu_ctx **ret)
{
	struct uctx *c = uctx_of(ctx), *child;
	bool own_proc = args->kind != CTX_CLONE_THREAD;
	int r;

	if (at_limit(c->p))
		return -EAGAIN;
	r = uctx_to_shim(c);
	if (r < 0)
		return r;
	child = child_alloc(c, args->kind);
	if (!child)
		return -ENOMEM;
	child->slot = UINT32_MAX;
	r = args->kind == CTX_CLONE_FORK ? fork_child(c, child, args) : vm_child(c, child, args);
	if (r == 0 && own_proc)
		r = tie_to_init(child);
	if (r < 0) {
		uctx_discard(child, own_proc);
		return c->state == UCTX_DEAD ? -ESRCH : r;
	}
	*as = unotify_aspace_get(child->as);
	*ret = &child->base;
	return r;
}

/* The thread keeps its slot; all guest memory goes, and what arch_prctl(2) set. */
static int exec_in_place(struct uctx *c)
{
	struct order_batch b = { .n = 0 };
	int64_t result = 0;
	int r = uctx_to_shim(c);

	if (r < 0 || c->untouched) /* the first program: nothing is to be cleared */
		return r;
	aspace_add_clear_orders(c->p, &b);
	order_add(&b, SYS_arch_prctl, SET_FS, 0, 0, 0, 0, 0);
	order_add(&b, SYS_arch_prctl, SET_GS, 0, 0, 0, 0, 0);
	r = order_run(c, &b, &result);
	if (r < 0)
		return r;
	if (r != (int)b.n) {
		proc_kill(c->proc, SIGKILL); /* half cleared */
		return -ESRCH;
	}
	frame_init_fresh(c);
	c->bases_zero = true;
	return 0;
}

int unotify_ctx_exec(struct vcpu_ctx *ctx, bool alone, struct aspace **as, struct vcpu_ctx **new_ctx)
{
	struct uctx *c = uctx_of(ctx), *fresh;
	int r;

	if (c->state == UCTX_DEAD)
		return -ESRCH;
	if (alone && c->as->n_threads == 1) {
		r = exec_in_place(c);
		fresh = c;
	} else {
		r = uctx_spawn(c->p, &fresh);
	}
	if (r < 0)
		return r;
	*as = unotify_aspace_get(fresh->as);
	*new_ctx = &fresh->base;
	return 0;
}
