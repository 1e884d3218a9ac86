/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Address spaces: changes by orders, and the slots of their threads.
 *
 * An op costs one order; the fds of files are injected into the stopped thread for the time of the batch, which ends
 * with closing them. As all orders of a sandbox are given by one leader that waits for them, no other order can meet
 * these fds. Where the thread is alone in its address space nothing can overtake its change, so it need not be waited
 * for: its own call is continued when it is the very change, or the last order's result goes straight to the guest. So
 * it is, with other threads too, for a change that may come late (any_time()).
 * What the host then refuses (too many mappings) only the guest gets to know; its next fault there is a SIGSEGV.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "platform/stub/hostcall.h"
#include "platform/unotify/unotify_priv.h"

#define INJECT_FD   10 /* first number for injected files */
#define INJECT_MAX  8u
#define SLOTS_AT_ONCE 8u
#define BIG_MAP     (1ull << 30) /* the host may refuse it for lack of memory: the sentry must know */

struct aspace *aspace_alloc(struct platform *p)
{
	struct aspace *as = calloc(1, sizeof(*as));

	if (!as)
		return NULL;
	as->used = calloc(2, sizeof(uint64_t));
	if (!as->used) {
		free(as);
		return NULL;
	}
	as->mapped = as->used + 1;
	as->slot_words = 1;
	as->used[0] = as->mapped[0] = 1;
	as->p = p;
	ref_init(&as->ref);
	list_init(&as->ctxs);
	return as;
}

struct aspace *aspace_dup(const struct aspace *from, uint32_t keep_slot)
{
	struct aspace *as = aspace_alloc(from->p);
	uint64_t *bits;

	if (!as)
		return NULL;
	bits = calloc(2 * from->slot_words, sizeof(uint64_t));
	if (!bits) {
		unotify_aspace_put(as);
		return NULL;
	}
	free(as->used);
	as->used = bits;
	as->mapped = bits + from->slot_words;
	as->slot_words = from->slot_words;
	memcpy(as->mapped, from->mapped, from->slot_words * sizeof(uint64_t));
	as->used[keep_slot / 64] |= 1ull << keep_slot % 64;
	return as;
}

struct aspace *unotify_aspace_get(struct aspace *as)
{
	ref_get(&as->ref);
	return as;
}

void unotify_aspace_put(struct aspace *as)
{
	if (!as || !ref_put(&as->ref))
		return;
	free(as->used);
	free(as);
}

static int slots_grow(struct aspace *as)
{
	unsigned n = as->slot_words * 2;
	uint64_t *bits;

	if (n * 64 > SLOT_MAX)
		return -EAGAIN;
	bits = calloc(2 * n, sizeof(uint64_t));
	if (!bits)
		return -ENOMEM;
	memcpy(bits, as->used, as->slot_words * sizeof(uint64_t));
	memcpy(bits + n, as->mapped, as->slot_words * sizeof(uint64_t));
	free(as->used);
	as->used = bits;
	as->mapped = bits + n;
	as->slot_words = n;
	return 0;
}

static int slot_take(struct aspace *as)
{
	for (unsigned w = 0; w < as->slot_words; w++) {
		uint64_t avail = as->mapped[w] & ~as->used[w];

		if (!avail)
			continue;
		as->used[w] |= avail & -avail;
		return (int)(w * 64 + (unsigned)__builtin_ctzll(avail));
	}
	return -ENOENT;
}

/* Maps the next few slots; slots are mapped from 0 on without gaps. */
static int slots_map(struct aspace *as, struct uctx *c)
{
	unsigned first = 0, n = SLOTS_AT_ONCE;
	struct order o;
	int64_t r;

	while (first < as->slot_words * 64 && (as->mapped[first / 64] >> first % 64 & 1))
		first++;
	if (first + n > as->slot_words * 64) {
		r = slots_grow(as);
		if (r < 0)
			return (int)r;
	}
	o = (struct order){ SYS_mmap, { slot_base(first), (uint64_t)n * SLOT_SIZE, PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, (uint64_t)-1, 0 } };
	r = order_run1(c, &o);
	if (r < 0)
		return (int)r;
	for (unsigned i = first; i < first + n; i++)
		as->mapped[i / 64] |= 1ull << i % 64;
	return 0;
}

int aspace_slot_get(struct aspace *as, struct uctx *c)
{
	int slot = slot_take(as), r;

	if (slot >= 0)
		return slot;
	r = slots_map(as, c);
	return r < 0 ? r : slot_take(as);
}

void aspace_slot_put(struct aspace *as, uint32_t slot)
{
	if (slot < as->slot_words * 64)
		as->used[slot / 64] &= ~(1ull << slot % 64);
}

void aspace_add_clear_orders(const struct platform *p, struct order_batch *b)
{
	order_add(b, SYS_munmap, 0, SHIM_BASE, 0, 0, 0, 0);
	if (!p->stubs.report.keep_hi) {
		order_add(b, SYS_munmap, SHIM_END, STUB_TASK_SIZE - SHIM_END, 0, 0, 0, 0);
		return;
	}
	order_add(b, SYS_munmap, SHIM_END, p->stubs.report.keep_lo - SHIM_END, 0, 0, 0, 0);
	order_add(b, SYS_munmap, p->stubs.report.keep_hi, STUB_TASK_SIZE - p->stubs.report.keep_hi, 0, 0, 0, 0);
}

/* True when the guest's own pending call, continued, does just what @op says. */
static bool is_own_call(const struct uctx *c, const struct aspace_op *op)
{
	const uint64_t *a = c->trap.sys.args;
	struct order o = mmop_order(op, -1);

	/* The host rounds the length up as our caller did. */
	if (c->state != UCTX_CALL || c->trap.sys.nr != o.nr || a[0] != op->addr || a[1] > op->len ||
	    ROUND_UP(a[1], PAGE_SIZE) != op->len)
		return false;
	return op->op == ASPACE_UNMAP ||
	       ((op->op == ASPACE_PROTECT || op->op == ASPACE_ADVISE) && a[2] == o.a[2]);
}

/*
 * Whether it is all the same to us when @op takes effect before its call returns, whatever other threads do meanwhile:
 * it drops contents and changes no mapping. So Linux may do it late, too.
 */
static bool any_time(const struct uctx *c, const struct aspace_op *op)
{
	bool drops = op->op == ASPACE_ADVISE && (op->advice == MADV_DONTNEED || op->advice == MADV_FREE);

	return drops && is_own_call(c, op);
}

static int64_t apply_and_resume(struct uctx *c, const struct aspace_op *op)
{
	bool file = op->op == ASPACE_MAP && op->fd >= 0;
	int64_t r;

	if (is_own_call(c, op)) {
		uctx_unpark(c);
		c->state = UCTX_GUEST;
		return listener_continue(c->p, c->id) < 0 ? -ESRCH : ASPACE_RESUMED;
	}
	r = uctx_to_shim(c);
	if (r < 0)
		return r;
	if (file) {
		r = listener_addfd(c->p, c->id, op->fd, INJECT_FD);
		if (r < 0)
			return r;
	}
	c->own_orders[0] = mmop_order(op, file ? INJECT_FD : -1);
	c->own_orders[1] = (struct order){ SYS_close, { INJECT_FD } };
	r = file ? order_send(c, c->own_orders, 2, SHIM_ORDER_KEEP, &op->addr)
		 : order_send(c, c->own_orders, 1, SHIM_ORDER_RES, NULL);
	return r < 0 ? r : ASPACE_RESUMED;
}

/* A batch under construction: its orders are ops[first ..] one by one, then the closing one. */
struct apply {
	struct uctx *c;
	unsigned first;
	struct order_batch b;
	int fds[INJECT_MAX];
	unsigned n_fds;
};

/* The number of @fd in the stub, or -errno; -ENOSPC: flush first. */
static int apply_inject(struct apply *a, int fd)
{
	int r;

	for (unsigned i = 0; i < a->n_fds; i++)
		if (a->fds[i] == fd)
			return INJECT_FD + (int)i;
	if (a->n_fds == INJECT_MAX)
		return -ENOSPC;
	r = listener_addfd(a->c->p, a->c->id, fd, INJECT_FD + (int)a->n_fds);
	if (r < 0)
		return r == -ENOSPC ? -ENOMEM : r;
	a->fds[a->n_fds] = fd;
	return INJECT_FD + (int)a->n_fds++;
}

/* Executes what has been gathered. 0, or the error of ops[*done]. */
static int64_t apply_flush(struct apply *a, unsigned *done)
{
	const struct order close = { SYS_close_range, { INJECT_FD, INJECT_FD + INJECT_MAX - 1 } };
	unsigned n = a->b.n;
	int64_t result = 0;
	int r;

	if (n == 0 && a->n_fds == 0)
		return 0;
	if (a->n_fds)
		a->b.o[a->b.n++] = close;
	r = order_run(a->c, &a->b, &result);
	if (r < 0)
		return r;
	if ((unsigned)r < n) {
		*done = a->first + (unsigned)r;
		if (a->n_fds && order_run1(a->c, &close) < 0)
			return -ESRCH;
		return result;
	}
	*done = a->first += n;
	a->b.n = 0;
	a->n_fds = 0;
	return 0;
}

static int64_t apply_all(struct uctx *c, const struct aspace_op *ops, unsigned n, unsigned *done)
{
	struct apply a = { .c = c };
	int64_t r = 0;

	for (unsigned i = 0; i < n && r == 0; i++) {
		int fd = -1;

		if (a.b.n == ORDERS_MAX - 1)
			r = apply_flush(&a, done);
		if (r == 0 && ops[i].op == ASPACE_MAP && ops[i].fd >= 0) {
			fd = apply_inject(&a, ops[i].fd);
			if (fd == -ENOSPC) {
				r = apply_flush(&a, done);
				if (r == 0)
					fd = apply_inject(&a, ops[i].fd);
			}
			if (r == 0 && fd < 0) {
				r = apply_flush(&a, done);
				return r < 0 ? r : fd;
			}
		}
		if (r == 0)
			a.b.o[a.b.n++] = mmop_order(&ops[i], fd);
	}
	return r < 0 ? r : apply_flush(&a, done);
}

int64_t unotify_aspace_apply(struct vcpu_ctx *ctx, const struct aspace_op *ops, unsigned n, bool may_resume,
			     unsigned *done)
{
	struct uctx *c = uctx_of(ctx);
	unsigned unused;
	int64_t r;

	if (!done)
		done = &unused;
	*done = 0;
	for (unsigned i = 0; i < n; i++)
		if (!mmop_ok(&ops[i]))
			return -EINVAL;
	if (may_resume && n == 1 && c->trap.kind == TRAP_SYSCALL && uctx_stopped(c) &&
	    (c->as->n_threads == 1 || any_time(c, &ops[0])) && !(ops[0].op == ASPACE_MAP && ops[0].len > BIG_MAP))
		return apply_and_resume(c, &ops[0]);
	r = uctx_to_shim(c);
	return r < 0 ? r : apply_all(c, ops, n, done);
}
