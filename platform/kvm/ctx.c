/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts: birth, life, end. No host thread belongs to one: a context is memory, and costs nothing while it waits. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "platform/kvm/kvm.h"

/* Takes over the reference to @as; NULL frees it. */
static struct kctx *alloc(struct platform *p, struct aspace *as)
{
	struct kctx *c = as ? calloc(1, sizeof(*c)) : NULL;

	if (c)
		c->xsave = calloc(1, KVM_XSAVE_AREA);
	if (!c || !c->xsave) {
		free(c);
		kvm_aspace_put(as);
		return NULL;
	}
	c->p = p;
	c->as = as;
	c->state = KCTX_STOPPED;
	c->bases_known = true;
	list_init(&c->node);
	p->n_ctxs++;
	return c;
}

static int fresh(struct platform *p, struct aspace **as, struct vcpu_ctx **ret)
{
	struct kctx *c;

	if (p->n_ctxs >= p->cfg.max_contexts)
		return -EAGAIN;
	c = alloc(p, kaspace_create(p));
	if (!c)
		return -ENOMEM;
	(void)kvm_ctx_fpu_set(&c->base, NULL, 0);
	*as = kvm_aspace_get(c->as);
	*ret = &c->base;
	return 0;
}

int kvm_ctx_create(struct platform *p, struct aspace **as, struct vcpu_ctx **ctx)
{
	return p->broken ? p->broken : fresh(p, as, ctx);
}

static int copy_state(struct kctx *c, struct kctx *child)
{
	int r = kctx_bases(c);

	if (r == 0)
		r = kctx_fpu_fetch(c);
	if (r < 0)
		return r;
	memcpy(child->xsave, c->xsave, KVM_XSAVE_AREA);
	child->fs_base = c->fs_base;
	child->gs_base = c->gs_base;
	child->regs = c->regs;
	child->regs.rax = 0;
	return 0;
}

int kvm_ctx_clone(struct vcpu_ctx *ctx, const struct ctx_clone_args *args, struct aspace **as, struct vcpu_ctx **ret)
{
	struct kctx *c = kctx_of(ctx), *child;
	int r;

	if (c->state != KCTX_STOPPED)
		return c->state == KCTX_DEAD ? -ESRCH : -EBUSY;
	if (args->set_tls && args->tls >= GUEST_TASK_SIZE)
		return -EPERM; /* as in Linux */
	if (c->p->n_ctxs >= c->p->cfg.max_contexts)
		return -EAGAIN;
	child = alloc(c->p, args->kind == CTX_CLONE_FORK ? kaspace_fork(c->as) : kvm_aspace_get(c->as));
	if (!child)
		return -ENOMEM;
	r = copy_state(c, child);
	if (r < 0) {
		kvm_ctx_destroy(&child->base);
		return r;
	}
	if (args->stack)
		child->regs.rsp = args->stack;
	if (args->set_tls)
		child->fs_base = args->tls;
	*as = kvm_aspace_get(child->as);
	*ret = &child->base;
	return 0;
}

int kvm_ctx_exec(struct vcpu_ctx *ctx, bool alone, struct aspace **as, struct vcpu_ctx **new_ctx)
{
	struct kctx *c = kctx_of(ctx);

	if (c->state != KCTX_STOPPED)
		return c->state == KCTX_DEAD ? -ESRCH : -EBUSY;
	if (!alone)
		return fresh(c->p, as, new_ctx);
	kaspace_clear(c->as);
	c->regs = (struct kvm_regs){ 0 };
	c->fs_base = c->gs_base = 0;
	c->bases_known = c->bases_set = true;
	*as = kvm_aspace_get(c->as);
	*new_ctx = ctx;
	return kvm_ctx_fpu_set(ctx, NULL, 0);
}

void kvm_ctx_destroy(struct vcpu_ctx *ctx)
{
	struct kctx *c = ctx ? kctx_of(ctx) : NULL;
	struct platform *p;

	if (!c)
		return;
	p = c->p;
	krun_forget(c);
	if (c->loaded)
		c->loaded->loaded = NULL;
	p->n_ctxs--;
	kvm_aspace_put(c->as);
	free(c->xsave);
	free(c);
}

static int ready(struct kctx *c)
{
	if (c->state != KCTX_STOPPED)
		return c->state == KCTX_DEAD ? -ESRCH : -EBUSY;
	c->state = KCTX_READY;
	krun_ready(c);
	return 0;
}

int kvm_ctx_return(struct vcpu_ctx *ctx, int64_t result)
{
	struct kctx *c = kctx_of(ctx);

	/* The kernel's own restart codes are nobody else's business. */
	c->regs.rax = unlikely(result >= -516 && result <= -512) ? (uint64_t)-EINTR : (uint64_t)result;
	return ready(c);
}

int kvm_ctx_resume(struct vcpu_ctx *ctx)
{
	return ready(kctx_of(ctx));
}

void kvm_ctx_interrupt(struct vcpu_ctx *ctx)
{
	struct kctx *c = kctx_of(ctx);

	if (c->interrupt || (c->state != KCTX_READY && c->state != KCTX_GUEST))
		return;
	c->interrupt = true;
	if (c->state == KCTX_GUEST)
		kvcpu_kick(c->on);
}

void kvm_ctx_parked(struct vcpu_ctx *ctx)
{
	(void)ctx; /* nothing is held for it */
}

struct aspace *kctx_aspace(struct vcpu_ctx *ctx)
{
	return kctx_of(ctx)->as;
}
