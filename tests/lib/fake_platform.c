/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/fake_platform.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sentry/fs/fs.h"
#include "sentry/kernel/cred.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/task.h"
#include "sentry/mm/mm.h"
#include "sentry/vfs/dentry.h"
#include "sentry/vfs/fdtable.h"
#include "sentry/vfs/vfs.h"

struct aspace {
	unsigned refs;
	uint8_t mem[FAKE_MEM_SIZE];
};

unsigned fake_n_ctx, fake_n_aspace, fake_wakes, fake_errors;
bool fake_stopped;

static void rule(bool ok, const char *what)
{
	if (!ok) {
		printf("# platform rule broken: %s\n", what);
		fake_errors++;
	}
}

static struct aspace *as_new(void)
{
	struct aspace *as = calloc(1, sizeof(*as));

	as->refs = 1;
	fake_n_aspace++;
	return as;
}

static struct aspace *as_get(struct aspace *as)
{
	as->refs++;
	return as;
}

static void as_put(struct aspace *as)
{
	if (as && --as->refs == 0) {
		free(as);
		fake_n_aspace--;
	}
}

static int ctx_new(struct aspace *as, struct vcpu_ctx **ret)
{
	struct fake_ctx *c = calloc(1, sizeof(*c));

	c->as = as_get(as);
	fake_n_ctx++;
	*ret = &c->vc;
	return 0;
}

static int fake_ctx_create(struct platform *p, struct aspace **as, struct vcpu_ctx **ctx)
{
	(void)p;
	*as = as_new();
	return ctx_new(*as, ctx);
}

static int fake_ctx_clone(struct vcpu_ctx *ctx, const struct ctx_clone_args *args, struct aspace **as,
			  struct vcpu_ctx **child)
{
	struct fake_ctx *c = fake_ctx(ctx);
	int r;

	rule(c->state == FAKE_STOPPED, "clone of a running context");
	if (args->kind == CTX_CLONE_FORK) {
		*as = as_new();
		memcpy((*as)->mem, c->as->mem, FAKE_MEM_SIZE);
	} else {
		*as = as_get(c->as);
	}
	r = ctx_new(*as, child);
	fake_ctx(*child)->regs = c->regs;
	if (args->stack)
		fake_ctx(*child)->regs.rsp = args->stack;
	return r;
}

static int fake_ctx_exec(struct vcpu_ctx *ctx, bool alone, struct aspace **as, struct vcpu_ctx **new_ctx)
{
	(void)ctx;
	(void)alone;
	*as = as_new();
	return ctx_new(*as, new_ctx);
}

static void fake_ctx_destroy(struct vcpu_ctx *ctx)
{
	if (!ctx)
		return;
	as_put(fake_ctx(ctx)->as);
	free(ctx);
	fake_n_ctx--;
}

static int fake_ctx_return(struct vcpu_ctx *ctx, int64_t result)
{
	struct fake_ctx *c = fake_ctx(ctx);

	rule(c->state == FAKE_STOPPED, "return to a running context");
	rule(result >= -4095 || result < -4200, "a result that is no errno");
	rule(!(result <= -512 && result >= -531), "a restart code reached the guest");
	c->state = FAKE_RUNNING;
	c->result = result;
	c->by_regs = false;
	return 0;
}

static int fake_ctx_resume(struct vcpu_ctx *ctx)
{
	struct fake_ctx *c = fake_ctx(ctx);

	rule(c->state == FAKE_STOPPED, "resume of a running context");
	c->state = FAKE_RUNNING;
	c->by_regs = true;
	return 0;
}

static void fake_ctx_interrupt(struct vcpu_ctx *ctx)
{
	if (fake_ctx(ctx)->state == FAKE_RUNNING)
		fake_ctx(ctx)->interrupts++;
}

static void fake_ctx_parked(struct vcpu_ctx *ctx)
{
	rule(fake_ctx(ctx)->state == FAKE_STOPPED, "parking of a running context");
	fake_ctx(ctx)->parks++;
}

static int fake_regs_get(struct vcpu_ctx *ctx, unsigned flags, struct gregs *regs)
{
	(void)flags;
	rule(fake_ctx(ctx)->state == FAKE_STOPPED, "registers of a running context");
	*regs = fake_ctx(ctx)->regs;
	return 0;
}

static int fake_regs_set(struct vcpu_ctx *ctx, unsigned flags, const struct gregs *regs)
{
	(void)flags;
	rule(fake_ctx(ctx)->state == FAKE_STOPPED, "registers of a running context");
	fake_ctx(ctx)->regs = *regs;
	return 0;
}

static int fake_fpu_get(struct vcpu_ctx *ctx, void *buf, size_t *len)
{
	(void)ctx;
	memset(buf, 0, 576);
	*len = 576;
	return 0;
}

static int fake_fpu_set(struct vcpu_ctx *ctx, const void *buf, size_t len)
{
	(void)ctx;
	(void)buf;
	(void)len;
	return 0;
}

static int64_t fake_apply(struct vcpu_ctx *ctx, const struct aspace_op *ops, unsigned n, bool may_resume,
                          unsigned *done)
{
	(void)ctx;
	(void)ops;
	(void)may_resume;
	if (done)
		*done = n;
	return 0;
}

static ssize_t clip(uaddr_t addr, size_t n)
{
	if (addr < FAKE_MEM_BASE || addr >= FAKE_MEM_BASE + FAKE_MEM_SIZE)
		return -EFAULT;
	return (ssize_t)MIN(n, (size_t)(FAKE_MEM_BASE + FAKE_MEM_SIZE - addr));
}

static ssize_t fake_read(struct aspace *as, uaddr_t addr, void *buf, size_t n)
{
	ssize_t k = clip(addr, n);

	if (k > 0)
		memcpy(buf, as->mem + (addr - FAKE_MEM_BASE), (size_t)k);
	return k;
}

static ssize_t fake_write(struct aspace *as, uaddr_t addr, const void *buf, size_t n)
{
	ssize_t k = clip(addr, n);

	if (k > 0)
		memcpy(as->mem + (addr - FAKE_MEM_BASE), buf, (size_t)k);
	return k;
}

static void fake_stop(struct platform *p)
{
	(void)p;
	fake_stopped = true;
}

static void fake_wake(struct platform *p)
{
	(void)p;
	__atomic_fetch_add(&fake_wakes, 1, __ATOMIC_RELAXED);
}

static uaddr_t fake_vdso(const struct platform *p)
{
	(void)p;
	return 0;
}

const struct platform_ops fake_platform_ops = {
	.name = "fake",
	.stop = fake_stop,
	.wake = fake_wake,
	.ctx_create = fake_ctx_create,
	.ctx_clone = fake_ctx_clone,
	.ctx_exec = fake_ctx_exec,
	.ctx_destroy = fake_ctx_destroy,
	.ctx_return = fake_ctx_return,
	.ctx_resume = fake_ctx_resume,
	.ctx_interrupt = fake_ctx_interrupt,
	.ctx_parked = fake_ctx_parked,
	.ctx_regs_get = fake_regs_get,
	.ctx_regs_set = fake_regs_set,
	.ctx_fpu_get = fake_fpu_get,
	.ctx_fpu_set = fake_fpu_set,
	.aspace_apply = fake_apply,
	.aspace_get = as_get,
	.aspace_put = as_put,
	.read = fake_read,
	.write = fake_write,
	.vdso = fake_vdso,
};

static void must(bool ok, const char *what)
{
	if (!ok) {
		printf("Bail out! %s\n", what);
		exit(1);
	}
}

struct task *fake_boot(const struct kernel_limits *limits, uint32_t uid)
{
	struct fdtable *fdt;
	struct super *root;
	struct store *store;
	struct fs_ctx *fs;
	struct cred *cred;
	struct task *t;
	int err = 0;

	kernel.plat = &fake_platform_ops;
	kernel.platform = (struct platform *)&fake_stopped;
	must(kernel_init(limits, NULL) == 0, "kernel_init");
	must(vfs_init() == 0, "vfs_init");
	must(store_create(1 << 20, 100, &store) == 0, "store");
	must(tmpfs_create(store, 0755, &root) == 0, "tmpfs");
	must(mount_add(kernel.mnt_ns, root, NULL, NULL, 0, "none") == 0, "mount");
	cred = cred_create(uid, uid, NULL, 0);
	fdt = fdtable_create();
	fs = fs_ctx_create();
	must(cred && fdt && fs, "memory");
	t = task_create_first(cred, fs, fdt, &err);
	must(t, "the first task");
	cred_put(cred);
	fdtable_put(fdt);
	fs_ctx_put(fs);
	(void)kernel.plat->ctx_resume(t->ctx);
	task_put(t); /* borrowed from here on: it lives until the test ends it */
	return t;
}

int64_t fake_result(const struct task *t)
{
	const struct fake_ctx *c;

	if (t->exiting)
		return FAKE_GONE;
	c = fake_ctx(t->ctx);
	if (c->state == FAKE_STOPPED)
		return FAKE_BLOCKED;
	return c->by_regs ? FAKE_RESUMED : c->result;
}

static void do_trap(struct task *t, const struct trap *trap)
{
	struct fake_ctx *c = fake_ctx(t->ctx);

	rule(c->state == FAKE_RUNNING, "a test's trap of a stopped context");
	c->state = FAKE_STOPPED;
	kernel_trap(NULL, &c->vc, trap);
}

int64_t fake_call(struct task *t, uint64_t nr, uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4)
{
	const struct trap trap = { .kind = TRAP_SYSCALL, .sys = { nr, { a0, a1, a2, a3, a4, 0 } } };
	int64_t r;

	(void)task_get(t);
	do_trap(t, &trap);
	r = fake_result(t);
	task_put(t);
	return r;
}

void fake_interrupt(struct task *t)
{
	const struct trap trap = { .kind = TRAP_INTERRUPT };

	do_trap(t, &trap);
}

void fake_fault(struct task *t, uint64_t addr)
{
	const struct trap trap = { .kind = TRAP_FAULT, .fault = { SIGSEGV, 1, addr, 4, 14 } };

	do_trap(t, &trap);
}

static struct task *find_interrupted(void)
{
	struct tgroup *tg;
	struct task *t;

	list_for_each_entry(tg, &kernel.tgroups, all_node) {
		list_for_each_entry(t, &tg->tasks, tg_node) {
			if (fake_ctx(t->ctx)->interrupts && fake_ctx(t->ctx)->state == FAKE_RUNNING)
				return t;
		}
	}
	return NULL;
}

void fake_settle(void)
{
	struct task *t;

	while ((t = find_interrupted())) {
		fake_ctx(t->ctx)->interrupts = 0;
		fake_interrupt(t);
	}
	kernel_idle(NULL);
}

void *fake_mem(const struct task *t, uint64_t addr)
{
	return fake_ctx(t->ctx)->as->mem + (addr - FAKE_MEM_BASE);
}
