/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Letting contexts run, stopping them, parking and ending them.
 *
 * Parking: the host kernel walks a listener's outstanding notifications one by one, so of the contexts that wait for
 * long only the last PARK_LIMIT keep theirs. An older one is demoted: brought into the shim and ordered to sleep in the
 * host's rt_sigtimedwait(2) for the kick. Its answer then wakes it by a kick.
 *
 * Ending: the last context of a host process takes the process with it. Any other becomes a ghost, which is made to
 * exit(2) from the shim; a ghost that does not come in time costs its process. Ghosts are told by run(), not at once:
 * the kernel often ends all threads of a process one after the other, and then nobody need be told.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "platform/stub/hostcall.h"
#include "platform/unotify/unotify_priv.h"

void uctx_kick(struct uctx *c)
{
	HOSTCALL(SYS_tgkill, c->proc->pid, c->tid, SHIM_KICK);
}

int uctx_escalate(struct uctx *c)
{
	uctx_kick(c);
	c->state = UCTX_KICKED;
	c->interrupt = false;
	return listener_send(c->p, c->id, 0) < 0 ? -ESRCH : 0;
}

void uctx_unpark(struct uctx *c)
{
	if (likely(list_empty(&c->park_node)))
		return;
	list_del(&c->park_node);
	c->p->n_parked--;
}

static int go(struct uctx *c, int64_t cmd)
{
	int r;

	c->state = UCTX_GUEST;
	c->goal = GOAL_STOP;
	c->set_rax = c->untouched = false;
	r = listener_send(c->p, c->id, cmd);
	if (unlikely(c->interrupt))
		uctx_kick(c);
	return r < 0 ? -ESRCH : 0;
}

int uctx_go(struct uctx *c, bool set_rax, int64_t val)
{
	int64_t cmd = (int64_t)((uint64_t)val << 8) | SHIM_RESUME_RAX;

	uctx_unpark(c);
	if (unlikely(c->frame_dirty) && frame_flush(c) < 0) {
		proc_kill(c->proc, SIGKILL);
		return -ESRCH;
	}
	if (!set_rax)
		return go(c, SHIM_RESUME);
	if (likely(cmd >> 8 == val))
		return go(c, cmd);
	/* The shim takes 56 bits; the rest of the world must go through the frame. */
	if (mem_poke(c->tid, c->frame + offsetof(struct hframe, rax), &val, sizeof(val)) < 0) {
		proc_kill(c->proc, SIGKILL);
		return -ESRCH;
	}
	return go(c, SHIM_RESUME);
}

/* Lets a demoted context go on: at once in effect, when the thread is awake in truth. */
static int go_later(struct uctx *c, bool set_rax, int64_t val)
{
	if (c->state == UCTX_DEAD)
		return -ESRCH;
	if (!uctx_stopped(c))
		return -EBUSY;
	c->goal = GOAL_RESUME;
	c->reply_rax = set_rax;
	c->reply = val;
	if (c->state == UCTX_ASLEEP)
		uctx_kick(c);
	return 0;
}

int unotify_ctx_return(struct vcpu_ctx *ctx, int64_t result)
{
	struct uctx *c = uctx_of(ctx);

	/* Values that the host kernel would take for its own restart codes. */
	if (unlikely(result >= -516 && result <= -512))
		result = -EINTR;
	if (likely(c->state == UCTX_CALL)) {
		uctx_unpark(c);
		c->state = UCTX_GUEST;
		return unlikely(listener_send(c->p, c->id, result) < 0) ? -ESRCH : 0;
	}
	if (c->state == UCTX_SHIM)
		return uctx_go(c, true, result);
	return go_later(c, true, result);
}

int unotify_ctx_resume(struct vcpu_ctx *ctx)
{
	struct uctx *c = uctx_of(ctx);

	if (c->state == UCTX_SHIM)
		return uctx_go(c, c->set_rax, 0);
	if (c->state == UCTX_CALL)
		return unotify_ctx_return(ctx, 0);
	return go_later(c, false, 0);
}

void unotify_ctx_interrupt(struct vcpu_ctx *ctx)
{
	struct uctx *c = uctx_of(ctx);

	if (c->interrupt || c->state == UCTX_DEAD || uctx_stopped(c))
		return;
	c->interrupt = true;
	if (c->state == UCTX_GUEST)
		uctx_kick(c);
	/* else it is on its way to GUEST, where the kick follows */
}

void unotify_ctx_parked(struct vcpu_ctx *ctx)
{
	struct uctx *c = uctx_of(ctx);
	struct platform *p = c->p;

	if ((c->state != UCTX_CALL && c->state != UCTX_SHIM) || !list_empty(&c->park_node))
		return;
	list_add_tail(&p->parked, &c->park_node);
	if (++p->n_parked <= p->park_limit)
		return;
	c = list_first_entry(&p->parked, struct uctx, park_node);
	uctx_unpark(c);
	c->goal = GOAL_SLEEP;
	if (c->state == UCTX_CALL)
		(void)uctx_escalate(c);
	else
		(void)order_sleep(c);
}

/* The last context of its process. */
static void end_process(struct uctx *c)
{
	struct hostproc *proc = c->proc;
	bool exits = c->state == UCTX_CALL &&
		     (c->trap.sys.nr == SYS_exit_group ||
		      (c->trap.sys.nr == SYS_exit && proc->ctxs.next->next == &proc->ctxs));

	if (!exits) {
		proc_kill(proc, 0);
		return;
	}
	/* The cheapest way to die is the guest's own call. The pidfd goes first, so that the death is no event. */
	HOSTCALL(SYS_close, proc->pidfd);
	proc->pidfd = -1;
	if (listener_continue(c->p, c->id) < 0)
		HOSTCALL(SYS_kill, proc->pid, SIGKILL);
	proc_died(proc, 0);
}

void unotify_ctx_destroy(struct vcpu_ctx *ctx)
{
	struct uctx *c = ctx ? uctx_of(ctx) : NULL;

	if (!c)
		return;
	list_del(&c->trap_node);
	if (c->state == UCTX_DEAD) {
		uctx_free(c);
		return;
	}
	uctx_unpark(c);
	list_del(&c->as_node); /* no memory access through it any more */
	c->owned = false;
	c->base.owner = NULL;
	c->interrupt = false;
	if (--c->proc->n_owned == 0) {
		end_process(c);
		return;
	}
	if (c->state == UCTX_CALL && c->trap.sys.nr == SYS_exit) {
		(void)listener_continue(c->p, c->id);
		uctx_gone(c);
		return;
	}
	c->goal = GOAL_EXIT;
	list_add_tail(&c->p->ghosts, &c->trap_node);
	c->p->ghosts_new = true;
}

/* False: the process was killed and ghosts with it. */
static bool tell_ghost(struct uctx *c)
{
	switch (c->state) {
	case UCTX_CALL:
		(void)uctx_escalate(c);
		break;
	case UCTX_SHIM:
		return order_exit(c) == 0;
	case UCTX_GUEST:
	case UCTX_ASLEEP:
		uctx_kick(c);
		break;
	default:
		break; /* on its way into the shim */
	}
	return true;
}

void uctx_tell_ghosts(struct platform *p)
{
	struct uctx *c;

	p->ghosts_new = false;
	list_for_each_entry(c, &p->ghosts, trap_node) {
		if (tell_ghost(c))
			continue;
		p->ghosts_new = true; /* the list has changed: once more */
		return;
	}
	if (!list_empty(&p->ghosts))
		watchdog_arm(p);
}
