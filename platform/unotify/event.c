/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a notification means: the state machine of unotify_priv.h. Trusted are only the notification's id, pid, nr,
 * arguments and instruction pointer; shim, slots and frames are the guest's memory. A notification is one of
 *
 *   outside the shim    a system call of the guest               GUEST -> CALL
 *   at site_trap        the same, of a call that traps           GUEST -> SHIM
 *   at site_sig         a signal: a fault, or our kick           GUEST, KICKED -> SHIM
 *   at site_order       an ordered call, equal to the order      ORDERED: continued
 *   at site_done        the end of a batch, or a child's birth   ORDERED, ASLEEP, NEW -> SHIM
 *
 * and nothing else; the host process of anything else is killed.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/log.h"
#include "platform/stub/hostcall.h"
#include "platform/unotify/unotify_priv.h"

#define WAIT_TICKS_MAX 2u

static struct uctx *tid_lookup(const struct platform *p, pid_t tid)
{
	struct uctx *c = p->tids[(unsigned)tid % TID_BUCKETS];

	while (c && c->tid != tid)
		c = c->tid_next;
	return c;
}

void trap_raise(struct uctx *c, enum trap_kind kind)
{
	c->trap.kind = kind;
	list_del(&c->trap_node);
	list_add_tail(&c->p->traps, &c->trap_node);
}

static void violation(struct platform *p, struct uctx *c, const struct seccomp_notif *n, const char *why)
{
	log_dbg(CH_PLATFORM, "stub %u killed: %s (nr %#x at %#llx)", n->pid, why, (unsigned)n->data.nr,
		(unsigned long long)n->data.instruction_pointer);
	if (c && c->proc) {
		proc_kill(c->proc, SIGKILL);
		return;
	}
	/* A thread that we know nothing of: the tid is its own as long as the notification is valid. */
	if (n->pid && listener_id_valid(p, n->id))
		HOSTCALL(SYS_kill, n->pid, SIGKILL);
}

/* The thread stopped by itself. False: it is on its way out and was told so. */
static bool stopped(struct uctx *c, const struct seccomp_notif *n, enum uctx_state state)
{
	c->id = n->id;
	c->state = state;
	c->interrupt = false;
	c->tail = c->cloning = false;
	c->set_rax = false;
	c->frame_valid = c->frame_dirty = false;
	c->bases_zero = false;
	if (likely(c->goal != GOAL_EXIT))
		return true;
	if (state == UCTX_SHIM)
		(void)order_exit(c);
	else
		c->p->ghosts_new = true;
	return false;
}

static void on_call(struct platform *p, struct uctx *c, const struct seccomp_notif *n)
{
	if (unlikely(!c || c->state != UCTX_GUEST)) {
		violation(p, c, n, "a call from a thread that should not run");
		return;
	}
	c->trap.foreign = false;
	c->trap.sys.nr = (uint32_t)n->data.nr;
	memcpy(c->trap.sys.args, n->data.args, sizeof(c->trap.sys.args));
	if (likely(stopped(c, n, UCTX_CALL)))
		trap_raise(c, TRAP_SYSCALL);
}

static bool frame_in_slot(const struct uctx *c, uint64_t frame)
{
	uint64_t base = slot_base(c->slot) + SLOT_STACK;

	return frame >= base && frame - base <= SLOT_SIZE - SLOT_STACK - sizeof(struct hframe) && !(frame & 7);
}

static void on_trap(struct platform *p, struct uctx *c, const struct seccomp_notif *n)
{
	uint32_t nr = (uint32_t)n->data.nr;
	uint64_t frame;

	if (!c || c->state != UCTX_GUEST || !(nr & SHIM_TRAP)) {
		violation(p, c, n, "entered the shim from nowhere");
		return;
	}
	frame = slot_base(c->slot) + (nr >> 12 & (SLOT_SIZE - 1));
	if (!frame_in_slot(c, frame)) {
		violation(p, c, n, "frame outside its slot");
		return;
	}
	c->frame = frame;
	c->trap.foreign = nr & SHIM_TRAP32;
	c->trap.sys.nr = nr & 0xfff;
	memcpy(c->trap.sys.args, n->data.args, sizeof(c->trap.sys.args));
	if (stopped(c, n, UCTX_SHIM))
		trap_raise(c, TRAP_SYSCALL);
}

static void on_kick(struct uctx *c, const struct seccomp_notif *n)
{
	bool wanted = c->interrupt, escalated = c->state == UCTX_KICKED;

	if (escalated) {
		c->id = n->id;
		c->state = UCTX_SHIM;
		c->frame_valid = c->frame_dirty = false;
		uctx_in_shim(c);
		return;
	}
	if (!stopped(c, n, UCTX_SHIM))
		return;
	if (wanted)
		trap_raise(c, TRAP_INTERRUPT);
	else
		(void)uctx_go(c, false, 0); /* came too late: the context stopped by itself meanwhile */
}

static void on_signal(struct platform *p, struct uctx *c, const struct seccomp_notif *n)
{
	const uint64_t *a = (const uint64_t *)n->data.args;
	int sig = (int)(a[0] >> 8 & 0xff);

	if (!c || (a[0] & 0xff) != SHIM_OP_SIGNAL || n->data.nr != SHIM_MAGIC || !frame_in_slot(c, a[5]) ||
	    !(c->state == UCTX_GUEST || (c->state == UCTX_KICKED && sig == SHIM_KICK))) {
		violation(p, c, n, "bad signal report");
		return;
	}
	c->frame = a[5];
	if (sig == SHIM_KICK) {
		on_kick(c, n);
		return;
	}
	if (sig != SIGSEGV && sig != SIGBUS && sig != SIGILL && sig != SIGFPE && sig != SIGTRAP) {
		violation(p, c, n, "unknown signal");
		return;
	}
	c->trap.foreign = false;
	c->trap.fault.signo = sig;
	c->trap.fault.code = (int)a[1];
	c->trap.fault.addr = a[2];
	c->trap.fault.trapno = a[3];
	c->trap.fault.err = a[4];
	if (stopped(c, n, UCTX_SHIM))
		trap_raise(c, TRAP_FAULT);
}

static void on_order(struct platform *p, struct uctx *c, const struct seccomp_notif *n)
{
	const struct order *o;
	bool last;

	if (!c || c->state != UCTX_ORDERED || c->i_order >= c->n_orders) {
		violation(p, c, n, "a call that was not ordered");
		return;
	}
	o = &c->orders[c->i_order];
	if ((uint32_t)o->nr != (uint32_t)n->data.nr || memcmp(o->a, n->data.args, sizeof(o->a))) {
		violation(p, c, n, "order mismatch");
		return;
	}
	last = ++c->i_order == c->n_orders;
	if (o->nr == SYS_exit) {
		(void)listener_continue(p, n->id);
		uctx_gone(c);
		return;
	}
	if (c->sleep_order) {
		c->sleep_order = false;
		if (c->goal == GOAL_SLEEP) {
			c->state = UCTX_ASLEEP;
			(void)listener_continue(p, n->id);
		} else {
			(void)listener_send(p, n->id, 0); /* overtaken: do not sleep at all */
		}
		return;
	}
	if (last && c->order_cmd != SHIM_ORDER) {
		bool interrupt = c->interrupt;

		c->state = UCTX_GUEST;
		c->tail = true;
		(void)listener_continue(p, n->id);
		if (interrupt || c->goal == GOAL_EXIT)
			uctx_kick(c);
		return;
	}
	(void)listener_continue(p, n->id);
}

static struct uctx *birth_lookup(const struct platform *p, uint64_t token)
{
	struct uctx *c;

	list_for_each_entry(c, &p->births, as_node)
		if (c->token == token && token)
			return c;
	return NULL;
}

static void on_birth(struct platform *p, const struct seccomp_notif *n)
{
	struct uctx *c = birth_lookup(p, n->data.args[5]), **bucket;

	if (!c) {
		violation(p, NULL, n, "unknown thread");
		return;
	}
	c->token = 0;
	if (!c->proc->pid && proc_born(c->proc, (pid_t)n->pid) < 0) {
		violation(p, NULL, n, "no pidfd");
		proc_died(c->proc, SIGKILL);
		return;
	}
	list_del(&c->as_node);
	list_add_tail(&c->as->ctxs, &c->as_node);
	c->tid = (pid_t)n->pid;
	bucket = &p->tids[(unsigned)c->tid % TID_BUCKETS];
	c->tid_next = *bucket;
	*bucket = c;
	c->id = n->id;
	c->state = UCTX_SHIM;
}

/* The last order of a batch that nobody waited for failed: its error becomes the result of the guest's call. */
static void on_tail_failed(struct uctx *c)
{
	struct order *o = c->own_orders;

	c->tail = false;
	c->reply_rax = true;
	c->reply = c->result;
	if (c->goal != GOAL_EXIT)
		c->goal = GOAL_RESUME;
	if (c->n_orders == 2 && c->orders == o) { /* mmap, close: the close did not happen */
		o[0] = o[1];
		(void)order_send(c, o, 1, SHIM_ORDER, NULL);
		return;
	}
	uctx_in_shim(c);
}

static void on_done(struct platform *p, struct uctx *c, const struct seccomp_notif *n)
{
	const uint64_t *a = (const uint64_t *)n->data.args;
	bool unattended;

	if (n->data.nr != SHIM_MAGIC || a[0] != SHIM_OP_DONE) {
		violation(p, c, n, "bad report");
		return;
	}
	if (c && c->state != UCTX_ORDERED && birth_lookup(p, a[5]) && proc_check_dead(c->proc))
		c = NULL; /* a child got the number of a thread whose death is not yet known */
	if (!c) {
		on_birth(p, n);
		return;
	}
	if (!(c->state == UCTX_ORDERED && c->i_order > 0) && c->state != UCTX_ASLEEP &&
	    !(c->state == UCTX_GUEST && c->tail)) {
		violation(p, c, n, "a report that nobody waits for");
		return;
	}
	c->id = n->id;
	c->result = (int64_t)a[1];
	unattended = c->order_cmd != SHIM_ORDER;
	c->order_cmd = SHIM_ORDER;
	c->state = UCTX_SHIM;
	if (c->cloning)
		c->tail = false; /* clone_order() looks */
	else if (unattended)
		on_tail_failed(c);
	else
		uctx_in_shim(c);
}

void uctx_in_shim(struct uctx *c)
{
	switch (c->goal) {
	case GOAL_STOP:
		break;
	case GOAL_SLEEP:
		(void)order_sleep(c);
		break;
	case GOAL_RESUME:
		c->goal = GOAL_STOP;
		(void)uctx_go(c, c->reply_rax, c->reply);
		break;
	case GOAL_EXIT:
		(void)order_exit(c);
		break;
	}
}

void event_handle(struct platform *p, const struct seccomp_notif *n)
{
	uint64_t ip = n->data.instruction_pointer;
	struct uctx *c = tid_lookup(p, (pid_t)n->pid);

	if (likely(ip - SHIM_BASE >= SHIM_SIZE))
		on_call(p, c, n);
	else if (ip == p->stubs.sites.trap)
		on_trap(p, c, n);
	else if (ip == p->stubs.sites.order)
		on_order(p, c, n);
	else if (ip == p->stubs.sites.done)
		on_done(p, c, n);
	else if (ip == p->stubs.sites.sig)
		on_signal(p, c, n);
	else
		violation(p, c, n, "no site");
}

static void take_wake_bits(struct platform *p)
{
	uint32_t bits = leader_take_bits(&p->leader);

	if (bits & WAKE_DEATH)
		deathwatch_collect(p);
	if (bits & WAKE_TICK)
		watchdog_tick(p);
}

int event_pump(struct platform *p)
{
	struct seccomp_notif n;
	int r;

	if (unlikely(p->broken))
		return p->broken;
	r = listener_recv(p, &n);
	if (likely(r == 0))
		event_handle(p, &n);
	else if (r == -EINTR)
		take_wake_bits(p);
	else if (r != -ENOENT)
		p->broken = r;
	return p->broken;
}

static bool clone_failed(const struct uctx *parent)
{
	return parent && parent->cloning && !parent->tail && parent->state == UCTX_SHIM;
}

int event_wait_birth(struct uctx *c, const struct uctx *parent)
{
	struct platform *p = c->p;

	p->wait_ticks = 0;
	while (c->state != UCTX_SHIM && c->state != UCTX_DEAD) {
		if (clone_failed(parent))
			return -EAGAIN;
		watchdog_arm(p);
		if (event_pump(p) < 0)
			return -ESRCH;
		if (p->wait_ticks < WAIT_TICKS_MAX)
			continue;
		log_dbg(CH_PLATFORM, "stub %d does not answer", c->tid);
		if (c->state != UCTX_NEW)
			proc_kill(c->proc, SIGKILL);
		break;
	}
	return c->state == UCTX_SHIM ? 0 : -ESRCH;
}

int event_wait_shim(struct uctx *c)
{
	return event_wait_birth(c, NULL);
}
