/* SPDX-License-Identifier: Apache-2.0 */
/* Address spaces: changes by orders to the stopped context, files through the zygote; copies through any thread. */
#include <errno.h>
#include <stdlib.h>

#include "platform/ptrace/ptrace_priv.h"

struct aspace *pt_aspace_alloc(struct platform *p)
{
	struct aspace *as = calloc(1, sizeof(*as));

	if (!as)
		return NULL;
	as->p = p;
	ref_init(&as->ref);
	list_init(&as->ctxs);
	return as;
}

struct aspace *pt_aspace_get(struct aspace *as)
{
	ref_get(&as->ref);
	return as;
}

void pt_aspace_put(struct aspace *as)
{
	if (as && ref_put(&as->ref))
		free(as);
}

/* The files of a run of ops, and their numbers in the stubs. */
struct files {
	int fds[INJECT_MAX], numbers[INJECT_MAX];
	unsigned n;
};

static bool needs_file(const struct aspace_op *op)
{
	return op->op == ASPACE_MAP && op->fd >= 0;
}

/* The number of @fd in the stubs, or -ENOENT. */
static int file_number(const struct files *f, int fd)
{
	for (unsigned i = 0; i < f->n; i++)
		if (f->fds[i] == fd)
			return f->numbers[i];
	return -ENOENT;
}

/* Replaces the files in the stubs' table by the first ones of @ops. */
static int files_turn(struct platform *p, struct files *f, const struct aspace_op *ops, unsigned n)
{
	int r = f->n ? pt_fds_drop(p) : 0;

	f->n = 0;
	if (r < 0)
		return -ESRCH;
	for (unsigned i = 0; i < n && f->n < INJECT_MAX; i++)
		if (needs_file(&ops[i]) && file_number(f, ops[i].fd) < 0)
			f->fds[f->n++] = ops[i].fd, f->numbers[f->n - 1] = -1;
	r = pt_fds_inject(p, f->fds, f->n, f->numbers);
	if (r < 0)
		f->n = 0;
	return r;
}

static int64_t apply_all(struct pctx *c, const struct aspace_op *ops, unsigned n, unsigned *done)
{
	struct files f = { .n = 0 };
	int64_t r = 0;

	for (unsigned i = 0; i < n && r >= 0; i++) {
		struct order o;
		int fd = -1;

		if (needs_file(&ops[i])) {
			fd = file_number(&f, ops[i].fd);
			if (fd < 0) {
				r = files_turn(c->p, &f, ops + i, n - i);
				fd = f.numbers[0];
			}
		}
		if (r < 0)
			break;
		o = mmop_order(&ops[i], fd);
		r = pt_order(c, &o);
		*done = r < 0 ? i : i + 1;
	}
	if (f.n && pt_fds_drop(c->p) < 0)
		return -ESRCH;
	return r < 0 ? r : 0;
}

int64_t pt_aspace_apply(struct vcpu_ctx *ctx, const struct aspace_op *ops, unsigned n, bool may_resume,
			unsigned *done)
{
	struct pctx *c = pctx_of(ctx);
	unsigned unused;

	if (!done)
		done = &unused;
	*done = 0;
	for (unsigned i = 0; i < n; i++)
		if (!mmop_ok(&ops[i]))
			return -EINVAL;
	if (c->state != PCTX_STOP)
		return c->state == PCTX_DEAD ? -ESRCH : -EBUSY;
	return apply_all(c, ops, n, done);
}

ssize_t pt_read(struct aspace *as, uaddr_t addr, void *buf, size_t n)
{
	struct pctx *c;

	if (n == 0)
		return 0;
	if (mem_clip(addr, &n) < 0)
		return -EFAULT;
	list_for_each_entry(c, &as->ctxs, as_node) {
		ssize_t r = mem_read(c->tid, addr, buf, n);

		if (r != -ESRCH)
			return r;
	}
	return -ESRCH;
}

ssize_t pt_write(struct aspace *as, uaddr_t addr, const void *buf, size_t n)
{
	struct pctx *c;

	if (n == 0)
		return 0;
	if (mem_clip(addr, &n) < 0)
		return -EFAULT;
	list_for_each_entry(c, &as->ctxs, as_node) {
		ssize_t r = mem_write(c->tid, addr, buf, n);

		if (r != -ESRCH)
			return r;
	}
	return -ESRCH;
}
