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

/* True while the leader runs a callback: it will look at wake_bits before it sleeps, no signal is needed. */
static __thread bool in_callback;

static void unotify_info(const struct platform *p, struct platform_info *info)
{
	*info = p->info;
}

static void deliver(struct platform *p)
{
	while (!list_empty(&p->traps) && !p->stopping) {
		struct uctx *c = list_first_entry(&p->traps, struct uctx, trap_node);
		struct trap trap = c->trap; /* the callback may resume or destroy it */

		list_del(&c->trap_node);
		p->up->trap(p->up_arg, &c->base, &trap);
	}
}

/* Work that is not a trap; rare. */
static void run_idle(struct platform *p)
{
	if (p->ghosts_new)
		uctx_tell_ghosts(p);
	if (__atomic_load_n(&p->leader.wake_bits, __ATOMIC_SEQ_CST) & WAKE_IDLE) {
		__atomic_fetch_and(&p->leader.wake_bits, ~WAKE_IDLE, __ATOMIC_SEQ_CST);
		p->idle_pending = true;
	}
	if (p->idle_pending) {
		p->idle_pending = false;
		p->up->idle(p->up_arg);
	}
}

static int unotify_run(struct platform *p)
{
	int r = leader_init(&p->leader, NULL);

	if (r < 0)
		return r;
	p->stopping = false;
	p->idle_pending = true;
	while (!p->stopping) {
		in_callback = true;
		deliver(p);
		run_idle(p);
		in_callback = false;
		if (p->stopping)
			break;
		if (!list_empty(&p->traps) || p->idle_pending || p->ghosts_new)
			continue;
		r = event_pump(p);
		if (r < 0)
			return r;
	}
	return 0;
}

static void unotify_stop(struct platform *p)
{
	p->stopping = true;
}

static void unotify_wake(struct platform *p)
{
	if (in_callback)
		__atomic_fetch_or(&p->leader.wake_bits, WAKE_IDLE, __ATOMIC_SEQ_CST);
	else
		leader_wake(&p->leader, WAKE_IDLE);
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
