/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The unotify platform: guest code runs natively in host processes ("stubs") whose every system call is a seccomp user
 * notification to the leader, the one thread in run(). A guest address space is a stub's, a guest thread a stub thread.
 *
 *   start.c      init, zygote, listener        event.c   notifications, the state machine
 *   listener.c   receive, answer, wake         order.c   host calls made by the shim for us
 *   ctx.c run.c  contexts: birth, life, end    regs.c    register files
 *   aspace.c mem.c  address spaces, memory     proc.c deathwatch.c  host processes and their deaths
 *
 * A typical sequence: run() -> event_pump() -> listener_recv(), event_handle() queues a TRAP_SYSCALL -> up->trap() ->
 * ops->ctx_return() -> listener_send(). Functions that need the guest thread's help (a kick into the shim, an order)
 * pump events themselves until it has answered; traps of other contexts then stay queued until run() goes on.
 */
#include "platform/stub/hostcall.h"
#include "platform/unotify/unotify_priv.h"

static void unotify_info(const struct platform *p, struct platform_info *info)
{
	*info = p->info;
}

static void deliver(void *arg)
{
	struct platform *p = arg;

	while (!list_empty(&p->traps) && !p->leader.stopping) {
		struct uctx *c = list_first_entry(&p->traps, struct uctx, trap_node);
		struct trap trap = c->trap; /* the callback may resume or destroy it */

		list_del(&c->trap_node);
		p->up->trap(p->up_arg, &c->base, &trap);
	}
	if (p->ghosts_new)
		uctx_tell_ghosts(p);
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
	return event_pump(arg);
}

static int unotify_run(struct platform *p)
{
	static const struct leader_ops ops = { .deliver = deliver, .idle = run_idle, .busy = busy, .pump = pump };

	return leader_run(&p->leader, &ops, p);
}

static void unotify_stop(struct platform *p)
{
	p->leader.stopping = true;
}

static void unotify_wake(struct platform *p)
{
	leader_request_idle(&p->leader);
}

static uaddr_t unotify_vdso(const struct platform *p)
{
	return p->stubs.report.vdso;
}

const struct platform_ops unotify_platform_ops = {
	.name = "unotify",
	.start = unotify_start,
	.info = unotify_info,
	.run = unotify_run,
	.stop = unotify_stop,
	.wake = unotify_wake,
	.abandon = unotify_abandon,
	.destroy = unotify_destroy,
	.ctx_create = unotify_ctx_create,
	.ctx_clone = unotify_ctx_clone,
	.ctx_exec = unotify_ctx_exec,
	.ctx_destroy = unotify_ctx_destroy,
	.ctx_return = unotify_ctx_return,
	.ctx_resume = unotify_ctx_resume,
	.ctx_interrupt = unotify_ctx_interrupt,
	.ctx_parked = unotify_ctx_parked,
	.ctx_regs_get = unotify_ctx_regs_get,
	.ctx_regs_set = unotify_ctx_regs_set,
	.ctx_fpu_get = unotify_ctx_fpu_get,
	.ctx_fpu_set = unotify_ctx_fpu_set,
	.ctx_arch_prctl = unotify_ctx_arch_prctl,
	.aspace_apply = unotify_aspace_apply,
	.aspace_get = unotify_aspace_get,
	.aspace_put = unotify_aspace_put,
	.read = unotify_read,
	.write = unotify_write,
	.vdso = unotify_vdso,
};
