/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Orders: host calls that the shim makes for us. They are written into the order block of the thread's slot, guest
 * memory that its other threads can change at any time; so each call is compared with our own copy when it is notified
 * (event.c) and only then continued. Ordered are only calls whose arguments are values, or point into the shim page.
 */
#include <errno.h>
#include <signal.h>
#include <sys/uio.h>

#include "platform/stub/hostcall.h"
#include "platform/unotify/unotify_priv.h"

static int poke_orders(struct uctx *c, const struct order *orders, unsigned n, const uint64_t *rax)
{
	size_t len = n * sizeof(*orders);
	struct iovec local[2] = { { (void *)orders, len }, { (void *)rax, 8 } };
	struct iovec remote[2] = { { (void *)(slot_base(c->slot) + SLOT_ORDERS), len },
				   { (void *)(c->frame + offsetof(struct hframe, rax)), 8 } };
	unsigned cnt = rax ? 2 : 1;
	long r = HOSTCALL(SYS_process_vm_writev, c->tid, local, cnt, remote, cnt, 0);

	return r == (long)(len + (rax ? 8 : 0)) ? 0 : -ESRCH;
}

int order_send(struct uctx *c, const struct order *orders, unsigned n, unsigned cmd, const uint64_t *rax)
{
	c->untouched = false;
	c->orders = orders;
	c->n_orders = n;
	c->i_order = 0;
	c->order_cmd = cmd;
	/* After the last order the thread goes on by itself. */
	if (cmd != SHIM_ORDER && frame_flush(c) < 0) {
		proc_kill(c->proc, SIGKILL);
		return -ESRCH;
	}
	if (rax)
		frame_forget(c);
	if (poke_orders(c, orders, n, rax) == 0) {
		c->state = UCTX_ORDERED;
		if (listener_send(c->p, c->id, (int64_t)n << 8 | cmd) == 0)
			return 0;
	}
	/* The thread is dying, or memory for its slot ran out. */
	proc_kill(c->proc, SIGKILL);
	return -ESRCH;
}

int order_run(struct uctx *c, const struct order_batch *b, int64_t *result)
{
	int r;

	c->goal = GOAL_STOP;
	r = order_send(c, b->o, b->n, SHIM_ORDER, NULL);
	if (r == 0)
		r = event_wait_shim(c);
	if (r < 0)
		return r;
	*result = c->result;
	return (uint64_t)c->result >= (uint64_t)-4095 ? (int)c->i_order - 1 : (int)c->i_order;
}

int64_t order_run1(struct uctx *c, const struct order *o)
{
	struct order_batch b;
	int64_t result = 0;
	int r;

	b.n = 1;
	b.o[0] = *o;
	r = order_run(c, &b, &result);
	return r < 0 ? r : result;
}

int order_sleep(struct uctx *c)
{
	c->own_orders[0] = (struct order){ SYS_rt_sigtimedwait, { c->p->stubs.sites.kickset, 0, 0, 8 } };
	c->sleep_order = true;
	return order_send(c, c->own_orders, 1, SHIM_ORDER, NULL);
}

int order_exit(struct uctx *c)
{
	c->own_orders[0] = (struct order){ SYS_exit, { 0 } };
	return order_send(c, c->own_orders, 1, SHIM_ORDER, NULL);
}
