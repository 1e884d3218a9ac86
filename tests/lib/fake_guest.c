/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/fake_guest.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/ref.h"
#include "sentry/abi/signal.h"
#include "sentry/kernel/clone.h"
#include "sentry/kernel/cred.h"
#include "sentry/kernel/event.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/task_priv.h"
#include "sentry/kernel/timer.h"
#include "sentry/kernel/uaccess.h"
#include "sentry/mm/mm.h"
#include "sentry/vfs/dentry.h"
#include "sentry/vfs/fdtable.h"
#include "sentry/vfs/file.h"
#include "sentry/vfs/uio.h"

unsigned fake_reads, fake_writes;

/*
 * The platform.
 */

static struct fake_ctx *to_fake(struct vcpu_ctx *c)
{
	return container_of(c, struct fake_ctx, base);
}

static void fpu_init(uint8_t *fpu)
{
	const struct linux_fpx_sw_bytes sw = {
		.magic1 = LINUX_FP_XSTATE_MAGIC1,
		.extended_size = FAKE_FPU_SIZE + 4,
		.xfeatures = 7,
		.xstate_size = FAKE_FPU_SIZE,
	};

	memset(fpu, 0, FAKE_FPU_SIZE);
	memcpy(fpu + LINUX_FXSAVE_SW_BYTES, &sw, sizeof(sw));
}

static struct fake_ctx *ctx_new(struct aspace *as)
{
	struct fake_ctx *c = calloc(1, sizeof(*c));

	c->as = as;
	c->regs.rip = 0x400000;
	c->regs.rsp = FAKE_BASE + 0x20000;
	c->regs.eflags = 0x202;
	fpu_init(c->fpu);
	return c;
}

static int plat_ctx_create(struct platform *p, struct aspace **as, struct vcpu_ctx **ctx)
{
	(void)p;
	*as = calloc(1, sizeof(**as));
	(*as)->refs = 1;
	*ctx = &ctx_new(*as)->base;
	return 0;
}

static int plat_ctx_clone(struct vcpu_ctx *ctx, const struct ctx_clone_args *args, struct aspace **as,
			  struct vcpu_ctx **child)
{
	struct fake_ctx *c = to_fake(ctx), *n;

	if (args->kind == CTX_CLONE_FORK) {
		*as = malloc(sizeof(**as));
		memcpy(*as, c->as, sizeof(**as));
		(*as)->refs = 1;
	} else {
		*as = c->as;
		c->as->refs++;
	}
	n = ctx_new(*as);
	n->regs = c->regs;
	n->regs.rax = 0;
	if (args->stack)
		n->regs.rsp = args->stack;
	*child = &n->base;
	return 0;
}

static void plat_ctx_destroy(struct vcpu_ctx *ctx)
{
	if (ctx)
		to_fake(ctx)->destroyed = true; /* kept, so that a test can look at it */
}

static int plat_ctx_return(struct vcpu_ctx *ctx, int64_t result)
{
	struct fake_ctx *c = to_fake(ctx);

	c->result = result;
	c->regs.rax = (uint64_t)result;
	c->running = true;
	return 0;
}

static int plat_ctx_resume(struct vcpu_ctx *ctx)
{
	to_fake(ctx)->running = true;
	to_fake(ctx)->n_resume++;
	return 0;
}

static void plat_ctx_interrupt(struct vcpu_ctx *ctx)
{
	if (to_fake(ctx)->running)
		to_fake(ctx)->kicked = true;
}

static void plat_ctx_parked(struct vcpu_ctx *ctx)
{
	(void)ctx;
}

static int plat_regs_get(struct vcpu_ctx *ctx, unsigned flags, struct gregs *regs)
{
	(void)flags;
	to_fake(ctx)->n_regs_get++;
	*regs = to_fake(ctx)->regs;
	return 0;
}

static int plat_regs_set(struct vcpu_ctx *ctx, unsigned flags, const struct gregs *regs)
{
	(void)flags;
	to_fake(ctx)->regs = *regs;
	return 0;
}

static int plat_fpu_get(struct vcpu_ctx *ctx, void *buf, size_t *len)
{
	const uint32_t magic2 = LINUX_FP_XSTATE_MAGIC2;

	memcpy(buf, to_fake(ctx)->fpu, FAKE_FPU_SIZE);
	memcpy((uint8_t *)buf + FAKE_FPU_SIZE, &magic2, sizeof(magic2));
	*len = FAKE_FPU_SIZE + sizeof(magic2);
	return 0;
}

static int plat_fpu_set(struct vcpu_ctx *ctx, const void *buf, size_t len)
{
	uint8_t *fpu = to_fake(ctx)->fpu;
	uint32_t magic2 = 0;

	fpu_init(fpu);
	if (len == 0)
		return 0;
	if (len == FAKE_FPU_SIZE + sizeof(magic2))
		memcpy(&magic2, (const uint8_t *)buf + FAKE_FPU_SIZE, sizeof(magic2));
	if (len < LINUX_FXSAVE_SIZE)
		return -EINVAL;
	memcpy(fpu, buf, magic2 == LINUX_FP_XSTATE_MAGIC2 ? FAKE_FPU_SIZE : LINUX_FXSAVE_SW_BYTES);
	return 0;
}

static size_t mem_span(uaddr_t a, size_t n)
{
	if (a < FAKE_BASE || a >= FAKE_BASE + FAKE_SIZE)
		return 0;
	return MIN(n, (size_t)(FAKE_BASE + FAKE_SIZE - a));
}

static ssize_t plat_read(struct aspace *as, uaddr_t a, void *buf, size_t n)
{
	size_t k = mem_span(a, n);

	fake_reads++;
	memcpy(buf, as->mem + (a - FAKE_BASE) * !!k, k);
	return k ? (ssize_t)k : -EFAULT;
}

static ssize_t plat_write(struct aspace *as, uaddr_t a, const void *buf, size_t n)
{
	size_t k = mem_span(a, n);

	fake_writes++;
	memcpy(as->mem + (a - FAKE_BASE) * !!k, buf, k);
	return k ? (ssize_t)k : -EFAULT;
}

static struct aspace *plat_aspace_get(struct aspace *as)
{
	as->refs++;
	return as;
}

static void plat_aspace_put(struct aspace *as)
{
	(void)as; /* contexts that a test looks at still point to it */
}

static void plat_wake(struct platform *p)
{
	(void)p;
}

static const struct platform_ops fake_platform_ops = {
	.name = "fake",
	.ctx_create = plat_ctx_create,
	.ctx_clone = plat_ctx_clone,
	.ctx_destroy = plat_ctx_destroy,
	.ctx_return = plat_ctx_return,
	.ctx_resume = plat_ctx_resume,
	.ctx_interrupt = plat_ctx_interrupt,
	.ctx_parked = plat_ctx_parked,
	.ctx_regs_get = plat_regs_get,
	.ctx_regs_set = plat_regs_set,
	.ctx_fpu_get = plat_fpu_get,
	.ctx_fpu_set = plat_fpu_set,
	.read = plat_read,
	.write = plat_write,
	.aspace_get = plat_aspace_get,
	.aspace_put = plat_aspace_put,
	.wake = plat_wake,
};

/*
 * mm, files, events: just enough.
 */

struct mm {
	struct ref ref;
	struct aspace *as;
	unsigned users;
};

struct mm *mm_create(struct aspace *as)
{
	struct mm *mm = calloc(1, sizeof(*mm));

	ref_init(&mm->ref);
	mm->as = as;
	return mm;
}

struct mm *mm_get(struct mm *mm)
{
	ref_get(&mm->ref);
	return mm;
}

void mm_put(struct mm *mm)
{
	if (mm && ref_put(&mm->ref))
		free(mm);
}

struct aspace *mm_aspace(const struct mm *mm)
{
	return mm->as;
}

struct mm *mm_fork(struct mm *mm, struct aspace *as)
{
	(void)mm;
	return mm_create(as);
}

unsigned mm_users_add(struct mm *mm, int delta)
{
	return mm->users += (unsigned)delta;
}

bool mm_fault(struct task *t, uaddr_t addr, uint64_t err)
{
	(void)t;
	(void)addr;
	(void)err;
	return false;
}

void mm_stats(struct mm *mm, struct mm_stats *st)
{
	(void)mm;
	memset(st, 0, sizeof(*st));
}

int mm_prot_at(struct mm *mm, uaddr_t a)
{
	return 3; /* PROT_READ | PROT_WRITE: everything is mapped */
}

bool mm_shared_object(struct mm *mm, uaddr_t a, const void **object, uint64_t *offset)
{
	static const int shared;

	if (a < FAKE_SHARED || a >= FAKE_SHARED + PAGE_SIZE)
		return false;
	(void)mm;
	*object = &shared;
	*offset = a - FAKE_SHARED;
	return true;
}

struct fdtable {
	struct ref ref;
	struct file *file[8];
};

struct fdtable *fdtable_get(struct fdtable *t)
{
	ref_get(&t->ref);
	return t;
}

void fdtable_put(struct fdtable *t)
{
	if (!t || !ref_put(&t->ref))
		return;
	for (unsigned i = 0; i < ARRAY_SIZE(t->file); i++)
		file_put(t->file[i]);
	free(t);
}

struct fdtable *fdtable_copy(struct fdtable *t)
{
	struct fdtable *c = calloc(1, sizeof(*c));

	ref_init(&c->ref);
	for (unsigned i = 0; i < ARRAY_SIZE(t->file); i++)
		c->file[i] = t->file[i] ? file_get(t->file[i]) : NULL;
	return c;
}

void fdtable_close_on_exec(struct fdtable *t)
{
	(void)t;
}

int fd_get(struct task *t, int fd, struct file **ret)
{
	if (fd < 0 || fd >= (int)ARRAY_SIZE(t->fdt->file) || !t->fdt->file[fd])
		return -EBADF;
	*ret = file_get(t->fdt->file[fd]);
	return 0;
}

int fd_install(struct task *t, struct file *f, int min, bool cloexec)
{
	(void)cloexec;
	for (int i = min; i < (int)ARRAY_SIZE(t->fdt->file); i++)
		if (!t->fdt->file[i]) {
			t->fdt->file[i] = f;
			return i;
		}
	file_put(f);
	return -EMFILE;
}

int fd_close(struct task *t, int fd)
{
	file_put(t->fdt->file[fd]);
	t->fdt->file[fd] = NULL;
	return 0;
}

struct inode *anon_inode_create(uint32_t mode)
{
	struct inode *in = calloc(1, sizeof(*in));

	ref_init(&in->ref);
	in->mode = mode;
	return in;
}

void inode_put(struct inode *in)
{
	if (in && ref_put(&in->ref))
		free(in);
}

struct file *file_create(const struct file_ops *ops, struct inode *in, uint32_t flags)
{
	struct file *f = calloc(1, ops->file_size);

	ref_init(&f->ref);
	ref_get(&in->ref);
	f->ops = ops;
	f->inode = in;
	f->flags = flags;
	return f;
}

struct file *file_get(struct file *f)
{
	ref_get(&f->ref);
	return f;
}

void file_put(struct file *f)
{
	if (!f || !ref_put(&f->ref))
		return;
	f->ops->release(f);
	inode_put(f->inode);
	free(f);
}

/* One guest segment. */
ssize_t uio_copy_to(struct uio *u, const void *buf, size_t n)
{
	n = MIN(n, (size_t)u->resid);
	if (copy_out(u->task, u->segs[0].base + u->seg_off, buf, n) < 0)
		return -EFAULT;
	u->seg_off += n;
	u->resid -= n;
	return (ssize_t)n;
}

static int fake_fs; /* stands for a struct fs_ctx that nobody looks into */

struct fs_ctx *fs_ctx_get(struct fs_ctx *fs)
{
	return fs;
}

struct fs_ctx *fs_ctx_copy(const struct fs_ctx *fs)
{
	(void)fs;
	return (struct fs_ctx *)&fake_fs;
}

void fs_ctx_put(struct fs_ctx *fs)
{
	(void)fs;
}

void event_run(void)
{
	ktimer_run(clock_mono_ns());
}

void event_timer_want(uint64_t deadline)
{
	(void)deadline;
}

/*
 * The guest.
 */

static void report_exited(int wait_status)
{
	(void)wait_status;
}

static const struct kernel_report_ops fake_report = { .exited = report_exited };

struct task *fake_boot(void)
{
	const struct kernel_limits limits = { .tasks = 1000, .open_files = 64 };
	struct cred *cred;
	struct fdtable *fdt = calloc(1, sizeof(*fdt));
	struct task *t;
	int err = 0;

	kernel.plat = &fake_platform_ops;
	if (kernel_init(&limits, &fake_report) < 0)
		abort();
	ref_init(&fdt->ref);
	cred = cred_copy(kernel.init->leader->cred);
	t = task_create_first(cred, (struct fs_ctx *)&fake_fs, fdt, &err);
	if (!t)
		abort();
	task_leave(t, 0);
	return t;
}

struct fake_ctx *fake_ctx(struct task *t)
{
	return to_fake(t->ctx);
}

void *fake_mem(struct task *t, uaddr_t a)
{
	return t->mm->as->mem + (a - FAKE_BASE);
}

static struct task *clone_of(struct task *parent, uint64_t flags, int exit_signal)
{
	const struct clone_request rq = { .flags = flags, .exit_signal = exit_signal };
	int64_t tid = task_clone(parent, &rq);
	struct task *t = tid > 0 ? task_lookup((pid_t)tid) : NULL;

	if (!t)
		abort();
	runq_drain();
	return t;
}

struct task *fake_thread(struct task *parent)
{
	return clone_of(parent, CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM, 0);
}

struct task *fake_fork(struct task *parent)
{
	return clone_of(parent, 0, 17);
}

int64_t fake_result(struct task *t)
{
	return t->ctx && fake_ctx(t)->running ? fake_ctx(t)->result : FAKE_BLOCKED;
}

int64_t fake_call(struct task *t, uint64_t nr, uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
		  uint64_t a5)
{
	const struct trap trap = { .kind = TRAP_SYSCALL, .sys = { nr, { a0, a1, a2, a3, a4, a5 } } };
	struct fake_ctx *c = fake_ctx(t);

	c->running = false;
	c->result = FAKE_BLOCKED;
	c->regs.rip += 2;
	kernel_trap(NULL, &c->base, &trap);
	return c->running ? c->result : FAKE_BLOCKED;
}

void fake_take_kick(struct task *t)
{
	const struct trap trap = { .kind = TRAP_INTERRUPT };
	struct fake_ctx *c = fake_ctx(t);

	if (!c->kicked)
		return;
	c->kicked = false;
	c->running = false;
	kernel_trap(NULL, &c->base, &trap);
}

void fake_pass_time(uint64_t ns)
{
	const struct timespec ts = { .tv_sec = (time_t)(ns / NSEC_PER_SEC), .tv_nsec = (long)(ns % NSEC_PER_SEC) };

	nanosleep(&ts, NULL);
	kernel_idle(NULL);
}
