/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ptrace platform: guest code runs natively in host processes ("stubs") whose every system call stops them before it
 * is executed (PTRACE_SYSEMU), traced by the leader, the one thread in run(). The same stubs as those of the unotify
 * platform, for hosts where a seccomp listener cannot be had.
 *
 *   start.c      init, zygote, attaching          event.c    stops, the state machine
 *   tracee.c     ptrace requests                  order.c    host calls made by a stub for us
 *   ctx.c run.c  contexts: birth, life, end       regs.c     register files, FPU state
 *   aspace.c     address spaces, memory           fds.c      files to be mapped
 *   fault.c      error codes of page faults       proc.c     host processes
 *   affinity.c   tracer and tracee on one CPU
 *
 * A typical sequence: run() -> pt_pump() -> wait4(2), a system-call stop queues a TRAP_SYSCALL -> up->trap() ->
 * ops->ctx_return() -> pt_go(). Orders pump events themselves until the stub has carried them out; traps of other
 * contexts then stay queued until run() goes on.
 */
#include "platform/ptrace/ptrace_priv.h"

static void pt_info(const struct platform *p, struct platform_info *info)
{
	*info = p->info;
}

static void deliver(void *arg)
{
	struct platform *p = arg;

	while (!list_empty(&p->traps) && !p->leader.stopping) {
		struct pctx *c = list_first_entry(&p->traps, struct pctx, trap_node);
		struct trap trap;

		list_del(&c->trap_node);
		if (unlikely(c->raw_fault)) {
			pt_fault_details(c);
			if (c->state != PCTX_STOP) /* it died, and that is queued */
				continue;
		}
		trap = c->trap; /* the callback may resume or destroy it */
		p->up->trap(p->up_arg, &c->base, &trap);
	}
	if (p->ghosts_new)
		pt_tell_ghosts(p);
}

static void run_idle(void *arg)
{
	struct platform *p = arg;

	p->up->idle(p->up_arg);
}

static bool busy(void *arg)
{
	const struct platform *p = arg;

	return !list_empty(&p->traps) || p->ghosts_new;
}

static int pump(void *arg)
{
	return pt_pump(arg, NULL);
}

static int pt_run(struct platform *p)
{
	static const struct leader_ops ops = { .deliver = deliver, .idle = run_idle, .busy = busy, .pump = pump };

	return leader_run(&p->leader, &ops, p);
}

static void pt_stop(struct platform *p)
{
	p->leader.stopping = true;
}

static void pt_wake(struct platform *p)
{
	leader_request_idle(&p->leader);
}

static uaddr_t pt_vdso(const struct platform *p)
{
	return p->stubs.report.vdso;
}

const struct platform_ops ptrace_platform_ops = {
	.name = "ptrace",
	.start = pt_start,
	.info = pt_info,
	.run = pt_run,
	.stop = pt_stop,
	.wake = pt_wake,
	.destroy = pt_destroy,
	.ctx_create = pt_ctx_create,
	.ctx_clone = pt_ctx_clone,
	.ctx_exec = pt_ctx_exec,
	.ctx_destroy = pt_ctx_destroy,
	.ctx_return = pt_ctx_return,
	.ctx_resume = pt_ctx_resume,
	.ctx_interrupt = pt_ctx_interrupt,
	.ctx_parked = pt_ctx_parked,
	.ctx_regs_get = pt_ctx_regs_get,
	.ctx_regs_set = pt_ctx_regs_set,
	.ctx_fpu_get = pt_ctx_fpu_get,
	.ctx_fpu_set = pt_ctx_fpu_set,
	.ctx_arch_prctl = pt_ctx_arch_prctl,
	.aspace_apply = pt_aspace_apply,
	.aspace_get = pt_aspace_get,
	.aspace_put = pt_aspace_put,
	.read = pt_read,
	.write = pt_write,
	.vdso = pt_vdso,
};
