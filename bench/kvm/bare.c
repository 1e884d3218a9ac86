/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A machine as the sentry has it, with one page of guest code: a loop of system calls, or of reads of a page that is
 * never there. The bare costs come from kvcpu_enter() in a loop, nothing around it; the platform's own from its run
 * loop with a kernel that answers each call with 0.
 */
#include "bench/kvm/bare.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "platform/kvm/kvm.h"
#include "platform/kvm/monitor.h"
#include "policy/seccomp/load.h"

#define CODE_AT   0x10000u
#define LOOP      0u    /* offset of: syscall; jmp back */
#define READ_LOOP 16u   /* of: mov al, [0x30000]; jmp back */
#define ROUNDS    9
#define CALLS     1000u /* in a round */

static struct {
	struct platform *p;
	unsigned calls;
} run_state;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

static int cmp(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static uint64_t median(uint64_t t[ROUNDS])
{
	qsort(t, ROUNDS, sizeof(t[0]), cmp);
	return t[ROUNDS / 2] / CALLS;
}

static void answer(void *arg, struct vcpu_ctx *ctx, const struct trap *trap)
{
	(void)arg;
	if (++run_state.calls == CALLS || trap->kind != TRAP_SYSCALL)
		kvm_platform_ops.stop(run_state.p);
	if (trap->kind == TRAP_SYSCALL)
		DISCARD(kvm_platform_ops.ctx_return(ctx, 0));
}

static void idle(void *arg)
{
	(void)arg;
}

static int load(struct vcpu_ctx *ctx, struct aspace *as)
{
	static const uint8_t code[32] = {
		[LOOP] = 0x0f, 0x05, 0xeb, 0xfc,
		[READ_LOOP] = 0x8a, 0x04, 0x25, 0x00, 0x00, 0x03, 0x00, 0xeb, 0xf7,
	};
	const struct aspace_op map = { .op = ASPACE_MAP, .prot = PROT_READ | PROT_WRITE | PROT_EXEC, .fd = -1,
				       .addr = CODE_AT, .len = PAGE_SIZE };
	const struct gregs regs = { .rip = CODE_AT + LOOP };
	unsigned done;
	int64_t r = kvm_platform_ops.aspace_apply(ctx, &map, 1, false, &done);

	if (r == 0 && kvm_platform_ops.write(as, CODE_AT, code, sizeof(code)) != (ssize_t)sizeof(code))
		r = -EFAULT;
	return r == 0 ? kvm_platform_ops.ctx_regs_set(ctx, 0, &regs) : (int)r;
}

/* Till the guest stopped for what it was expected to. */
static int enter(struct kvcpu *cpu, struct kctx *c, struct kvm_regs *regs, bool fault)
{
	struct kevent ev;

	do {
		__atomic_store_n(&cpu->where, KVCPU_GUEST, __ATOMIC_SEQ_CST);
		kvcpu_enter(cpu, kaspace_root(c->as), regs, &ev);
		/* The first fetch finds no page either. */
		if (ev.kind == KEV_VECTOR && ev.vec == VEC_PF && (!fault || ev.cr2 == regs->rip) &&
		    kaspace_fault(c->as, ev.cr2, ev.err, &c->trap) == 0)
			ev.kind = KEV_KICKED;
	} while (ev.kind == KEV_KICKED);
	if (fault)
		return ev.kind == KEV_VECTOR && ev.vec == VEC_PF ? 0 : -EIO;
	return ev.kind == KEV_SYSCALL ? 0 : -EIO;
}

static int bare(struct kctx *c, unsigned at, uint64_t *ns)
{
	struct kvcpu *cpu = run_state.p->vcpus[0];
	struct kvm_regs regs = c->regs;
	uint64_t t[ROUNDS];
	int r = kctx_load(c, cpu);

	regs.rip = CODE_AT + at;
	for (unsigned round = 0; r == 0 && round < ROUNDS; round++) {
		r = enter(cpu, c, &regs, at == READ_LOOP); /* warm */
		t[round] = now_ns();
		for (unsigned i = 0; r == 0 && i < CALLS; i++)
			r = enter(cpu, c, &regs, at == READ_LOOP);
		t[round] = now_ns() - t[round];
	}
	if (r == 0)
		*ns = median(t);
	return r;
}

static int with_run_loop(struct vcpu_ctx *ctx, uint64_t *ns)
{
	uint64_t t[ROUNDS];
	int r = kvm_platform_ops.ctx_resume(ctx);

	for (unsigned round = 0; r == 0 && round < ROUNDS; round++) {
		run_state.calls = 0;
		t[round] = now_ns();
		r = kvm_platform_ops.run(run_state.p);
		t[round] = now_ns() - t[round];
		if (run_state.calls < CALLS)
			r = -EIO;
	}
	if (r == 0)
		*ns = median(t);
	return r;
}

int bare_measure(struct bare_costs *costs, struct sbx_err *err)
{
	static const struct platform_up up = { .trap = answer, .idle = idle };
	const struct platform_config cfg = { .stub_fd = -1, .proc_fd = -1, .max_contexts = 16 };
	const struct platform_ops *ops = &kvm_platform_ops;
	struct vcpu_ctx *ctx = NULL;
	struct aspace *as = NULL;
	uint64_t t0 = now_ns();
	int r = ops->prepare(err);

	if (r == 0)
		r = ops->start(&cfg, &up, NULL, &run_state.p, err);
	if (r < 0)
		return r;
	costs->start = now_ns() - t0;
	r = ops->ctx_create(run_state.p, &as, &ctx);
	if (r == 0)
		r = load(ctx, as);
	if (r == 0)
		r = bare(kctx_of(ctx), LOOP, &costs->syscall);
	if (r == 0)
		r = bare(kctx_of(ctx), READ_LOOP, &costs->fault);
	if (r == 0)
		r = with_run_loop(ctx, &costs->call);
	if (r == 0)
		r = seccomp_filter_load(FILTER_SENTRY_KVM, false);
	if (r == 0)
		r = bare(kctx_of(ctx), LOOP, &costs->filtered);
	ops->ctx_destroy(ctx);
	ops->aspace_put(as);
	ops->destroy(run_state.p);
	return r < 0 ? sbx_fail(err, r, "the guest did not do what it was to") : 0;
}
