/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/stub_kernel.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/lib/tap.h"
#include "tests/unit/stub_guest.h"

struct gtask {
	struct vcpu_ctx *ctx;
	struct aspace *as;
	int group;
	bool live, sleeping, waits_alone, interrupt;
};

struct tiny_kernel tk;
const struct platform_ops *ops;
static struct gtask tasks[MAX_TASKS];
static int n_groups, high_task;

static struct gtask *task_new(struct vcpu_ctx *ctx, struct aspace *as, int group)
{
	for (int i = 0; i < MAX_TASKS; i++) {
		if (tasks[i].live)
			continue;
		tasks[i] = (struct gtask){ .ctx = ctx, .as = as, .group = group, .live = true };
		ctx->owner = &tasks[i];
		tk.n_live++;
		high_task = i >= high_task ? i + 1 : high_task;
		return &tasks[i];
	}
	abort();
}

static void wake_lonely(void)
{
	for (int i = 0; i < high_task; i++) {
		if (!tasks[i].live || !tasks[i].waits_alone || tk.n_live != 1)
			continue;
		tasks[i].waits_alone = false;
		ops->ctx_return(tasks[i].ctx, 0);
	}
	if (tk.n_live == 0)
		ops->stop(tk.plat);
}

static void task_end(struct gtask *t)
{
	tk.n_sleeping -= t->sleeping;
	t->live = false;
	tk.n_live--;
	ops->ctx_destroy(t->ctx);
	ops->aspace_put(t->as);
}

static void group_end(int group, const struct gtask *but)
{
	for (int i = 0; i < high_task; i++)
		if (tasks[i].live && tasks[i].group == group && &tasks[i] != but)
			task_end(&tasks[i]);
}

static int load(struct gtask *t, long program, long arg)
{
	struct aspace_op m[] = {
		{ .op = ASPACE_MAP, .prot = PROT_READ | PROT_WRITE | PROT_EXEC, .fd = tk.code_fd, .addr = GUEST_CODE,
		  .len = GUEST_IMAGE },
		{ .op = ASPACE_MAP, .prot = PROT_READ | PROT_WRITE, .fd = -1, .addr = GUEST_STACK,
		  .len = GUEST_STACK_SIZE },
	};
	struct gregs r = { .rip = GUEST_CODE, .rsp = GUEST_STACK + GUEST_STACK_SIZE - 64, .rdi = (uint64_t)program,
			   .rsi = (uint64_t)arg };
	unsigned done;
	int64_t e = ops->aspace_apply(t->ctx, m, 2, false, &done);

	if (e < 0)
		return (int)e;
	e = ops->ctx_regs_set(t->ctx, 0, &r);
	return e < 0 ? (int)e : ops->ctx_resume(t->ctx);
}

static void do_clone(struct gtask *t, const uint64_t *a)
{
	struct ctx_clone_args args = {
		.kind = (enum ctx_clone_kind)a[0], .stack = a[1], .set_tls = a[2] != 0, .tls = a[2]
	};
	struct vcpu_ctx *ctx;
	struct aspace *as;
	int r;

	if (a[0] > CTX_CLONE_VM) {
		ops->ctx_return(t->ctx, -EINVAL);
		return;
	}
	if (a[0] == CTX_CLONE_FORK)
		args.stack = 0, args.set_tls = false;
	args.may_resume = !t->interrupt;
	args.result = 1000 + n_groups;
	r = ops->ctx_clone(t->ctx, &args, &as, &ctx);
	if (r < 0) {
		ops->ctx_return(t->ctx, r);
		return;
	}
	task_new(ctx, as, args.kind == CTX_CLONE_THREAD ? t->group : ++n_groups)->interrupt = t->interrupt;
	if (r != CTX_RESUMED)
		ops->ctx_return(t->ctx, 1000 + n_groups);
	ops->ctx_resume(ctx);
}

static void do_exec(struct gtask *t, const uint64_t *a)
{
	struct vcpu_ctx *ctx;
	struct aspace *as;
	int r;

	group_end(t->group, t);
	r = ops->ctx_exec(t->ctx, a[1] == 0, &as, &ctx);
	if (r < 0) {
		ops->ctx_return(t->ctx, r);
		return;
	}
	if (!tk.quiet)
		tap_eq(ctx == t->ctx, a[1] == 0, "exec is %s", a[1] ? "into a fresh stub" : "in place");
	if (ctx != t->ctx)
		ops->ctx_destroy(t->ctx);
	ops->aspace_put(t->as);
	t->as = as;
	t->ctx = ctx;
	ctx->owner = t;
	r = load(t, (long)a[0], 0);
	if (r < 0 || !tk.quiet)
		tap_eq(r, 0, "the new program loads");
}

static void do_mmap(struct gtask *t, const uint64_t *a)
{
	struct aspace_op op = { .op = ASPACE_MAP, .prot = (int)a[2], .fd = -1, .addr = a[0], .len = a[1] };
	int64_t r;

	if ((int)a[4] >= 100)
		op.fd = a[4] == 100 ? tk.file_fd : 9999;
	r = ops->aspace_apply(t->ctx, &op, 1, true, NULL);
	if (r != ASPACE_RESUMED)
		ops->ctx_return(t->ctx, r < 0 ? r : (int64_t)a[0]);
}

static void do_mm(struct gtask *t, enum aspace_opcode opcode, const uint64_t *a)
{
	struct aspace_op op = { .op = opcode, .prot = (int)a[2], .addr = a[0], .len = ROUND_UP(a[1], PAGE_SIZE),
				.advice = (int)a[2] };
	int64_t r = ops->aspace_apply(t->ctx, &op, 1, true, NULL);

	if (r != ASPACE_RESUMED)
		ops->ctx_return(t->ctx, r);
}

/* H_MM: nothing is answered by the platform. Op 5: 32 one-page maps of many fds. */
static void do_h_mm(struct gtask *t, const uint64_t *a)
{
	struct aspace_op op = { .op = (enum aspace_opcode)a[0],
		                .prot = (int)a[3] & 7,
		                .fd = -1,
		                .addr = a[1],
		                .len = a[2],
		                .new_addr = a[3],
		                .new_len = a[2] };
	struct aspace_op many[32];
	unsigned done = 0;
	int64_t r;

	if (a[0] != 5) {
		ops->ctx_return(t->ctx, ops->aspace_apply(t->ctx, &op, 1, false, &done));
		return;
	}
	for (int i = 0; i < 32; i++)
		many[i] = (struct aspace_op){ .op = ASPACE_MAP,
			                      .prot = PROT_READ,
			                      .fd = i % 2 ? dup(tk.file_fd) : tk.file_fd,
			                      .offset = (uint64_t)i * PAGE_SIZE,
			                      .addr = a[1] + (uint64_t)i * PAGE_SIZE,
			                      .len = PAGE_SIZE };
	r = ops->aspace_apply(t->ctx, many, 32, false, &done);
	for (int i = 1; i < 32; i += 2)
		close(many[i].fd);
	if (r == 0 && done != 32)
		r = -EIO;
	ops->ctx_return(t->ctx, r);
}

static void do_regs(struct gtask *t, const uint64_t *a, bool class_b)
{
	bool bases = !class_b && a[0] == 1;
	struct gregs r;
	int e = ops->ctx_regs_get(t->ctx, bases ? CTX_REGS_BASES : 0, &r);

	if (e < 0) {
		tk.results[20] = e;
		if (e != -ESRCH)
			ops->ctx_return(t->ctx, e);
		return;
	}
	if (bases) {
		tap_ok(r.fs_base == a[1] && r.gs_base == 0, "regs_get tells the bases");
		r.fs_base = a[2];
	} else {
		tap_ok((a[0] == 2 || r.rbx == 5) && r.rip > GUEST_CODE && r.rip < GUEST_CODE + GUEST_IMAGE &&
		               r.rcx == r.rip,
		       "regs_get tells the registers");
		r.rbx = 0x1234;
	}
	if (!class_b && a[0] == 2) {
		r.rip = 0x8000000000000000ull; /* and flags that the processor must not see */
		r.eflags = ~0ull & ~0x100ull;
	}
	r.rax = 55;
	tap_eq(ops->ctx_regs_set(t->ctx, bases ? CTX_REGS_BASES : 0, &r), 0, "regs_set");
	ops->ctx_resume(t->ctx);
}

#define YMM7_LOW 272 /* xmm7 in the legacy area */

static struct gtask *find_sleeper(void)
{
	for (int i = 0; i < high_task; i++)
		if (tasks[i].live && tasks[i].sleeping)
			return &tasks[i];
	return NULL;
}

/* Changes the FPU states and registers of two stopped tasks in turn; both go on with their own. */
static void do_fpu_two(struct gtask *t)
{
	static uint8_t fp[FPU_STATE_MAX];
	const uint32_t bad_mxcsr = 0xffffffff;
	struct gtask *both[2] = { t, find_sleeper() };
	uint64_t v;
	struct gregs r;
	size_t len;
	bool ok = true;

	if (!both[1]) {
		ops->ctx_return(t->ctx, 1);
		return;
	}
	for (v = 100; v < 106; v++) {
		struct vcpu_ctx *ctx = both[v & 1]->ctx;

		ok &= ops->ctx_fpu_get(ctx, fp, &len) == 0;
		ok &= v < 102 || *(uint64_t *)(fp + YMM7_LOW) == v - 2;
		memcpy(fp + YMM7_LOW, &v, 8);
		ok &= ops->ctx_fpu_set(ctx, fp, len) == 0;
		ok &= ops->ctx_regs_get(ctx, 0, &r) == 0;
		r.rax = 0;
		ok &= ops->ctx_regs_set(ctx, 0, &r) == 0;
	}
	memcpy(fp + 24, &bad_mxcsr, 4);
	ok &= ops->ctx_fpu_set(t->ctx, fp, len) == -EINVAL;
	tap_ok(ok, "%s: states of two contexts are kept apart", tk.mode);
	ops->ctx_resume(t->ctx);
}

static void do_fpu(struct gtask *t, long what)
{
	static uint8_t fp[FPU_STATE_MAX];
	const uint32_t bad_mxcsr = 0xffffffff;
	const uint64_t v = what == 4 ? 88 : 77, one = 1;
	size_t len = 0;
	int r = ops->ctx_fpu_get(t->ctx, fp, &len);

	if (what && !tap_ok(r == 0 && len > 576 && len <= sizeof(fp), "fpu_get"))
		printf("# %d, %zu\n", r, len);
	memcpy(fp + YMM7_LOW, &v, 8);
	switch (what) {
	case 1:
		tap_eq(ops->ctx_fpu_set(t->ctx, fp, len), 0, "fpu_set");
		break;
	case 2:
		tap_eq(ops->ctx_fpu_set(t->ctx, NULL, 0), 0, "fpu_set to the initial state");
		break;
	case 3:
		tap_eq(ops->ctx_fpu_set(t->ctx, fp, 100), -EINVAL, "a short FPU state is refused");
		memcpy(fp + 24, &bad_mxcsr, 4);
		tap_eq(ops->ctx_fpu_set(t->ctx, fp, len), -EINVAL, "a bad mxcsr is refused");
		r = ops->ctx_fpu_get(t->ctx, fp, &len);
		memcpy(fp + 528, &one, 8);
		tap_eq(ops->ctx_fpu_set(t->ctx, fp, len), -EINVAL, "a bad header is refused");
		break;
	case 4:
		memset(fp + 464, 0, 48);
		tap_eq(ops->ctx_fpu_set(t->ctx, fp, 512), 0, "a legacy FPU state is taken");
		break;
	}
	ops->ctx_return(t->ctx, 0);
}

static void do_wake(struct gtask *t)
{
	int n = 0;

	for (int i = 0; i < high_task; i++) {
		if (!tasks[i].live || !tasks[i].sleeping)
			continue;
		tasks[i].sleeping = false;
		tk.n_sleeping--;
		n++;
		if (n % 7 == 0) { /* some that were parked are looked at first */
			struct gregs r;

			ops->ctx_regs_get(tasks[i].ctx, 0, &r);
		}
		ops->ctx_return(tasks[i].ctx, 77);
	}
	ops->ctx_return(t->ctx, n);
}

static void do_check(struct gtask *t, const uint64_t *a)
{
	char name[80] = "";

	ops->read(t->as, a[1], name, sizeof(name) - 1);
	tap_ok(a[0], "%s: %s", tk.mode, name);
	ops->ctx_return(t->ctx, 0);
}

static void do_hook(struct gtask *t, const struct trap *trap)
{
	const uint64_t *a = trap->sys.args;

	switch (trap->sys.nr) {
	case H_CHECK:
		do_check(t, a);
		break;
	case H_RESULT:
		tk.results[a[0] % 64] = (long)a[1];
		ops->ctx_return(t->ctx, 0);
		break;
	case H_PARK:
		t->sleeping = true;
		tk.n_sleeping++;
		ops->ctx_parked(t->ctx);
		break;
	case H_WAKE:
		do_wake(t);
		break;
	case H_ALONE:
		t->waits_alone = true;
		wake_lonely();
		break;
	case H_RET:
		ops->ctx_return(t->ctx, (int64_t)a[0]);
		break;
	case H_REGS:
		do_regs(t, a, false);
		break;
	case H_FPU:
		if (a[0] == 5)
			do_fpu_two(t);
		else
			do_fpu(t, (long)a[0]);
		break;
	case H_INTR:
		t->interrupt = tk.interrupting = true;
		ops->ctx_return(t->ctx, 0);
		break;
	case H_MM:
		do_h_mm(t, a);
		break;
	case H_KILL:
		kill(tk.find_stub(), SIGKILL);
		break;
	case H_SLEEPERS:
		ops->ctx_return(t->ctx, tk.n_sleeping);
		break;
	default:
		ops->ctx_return(t->ctx, -ENOSYS);
	}
}

static void on_syscall(struct gtask *t, const struct trap *trap)
{
	const uint64_t *a = trap->sys.args;

	if (trap->foreign) {
		ops->ctx_return(t->ctx, -ENOSYS);
		return;
	}
	switch (trap->sys.nr) {
	case SYS_getppid:
		ops->ctx_return(t->ctx, 1);
		break;
	case SYS_sched_yield:
		ops->ctx_return(t->ctx, 0);
		break;
	case SYS_clone:
		do_clone(t, a);
		break;
	case SYS_clone3:
		ops->ctx_return(t->ctx, (int64_t)a[0]);
		break;
	case SYS_exit:
		task_end(t);
		wake_lonely();
		break;
	case SYS_exit_group:
		group_end(t->group, NULL);
		wake_lonely();
		break;
	case SYS_execve:
		do_exec(t, a);
		break;
	case SYS_execveat:
		do_regs(t, a, true);
		break;
	case SYS_mmap:
		do_mmap(t, a);
		break;
	case SYS_munmap:
		do_mm(t, ASPACE_UNMAP, a);
		break;
	case SYS_mprotect:
		do_mm(t, ASPACE_PROTECT, a);
		break;
	case SYS_arch_prctl:
		if (ops->ctx_arch_prctl(t->ctx, (int)a[0], a[1]) < 0)
			ops->ctx_return(t->ctx, -EINVAL);
		break;
	default:
		do_hook(t, trap);
	}
}

/* The instructions of fault_test() in order. */
static const uint8_t fault_skip[] = { 3, 2, 2, 0, 3 };

static void on_fault(struct gtask *t, const struct trap *trap)
{
	struct gregs r;

	tk.results[21] = trap->fault.signo;
	if (!tk.skipping || tk.n_faults >= (int)sizeof(fault_skip)) {
		tk.n_faults++;
		group_end(t->group, NULL);
		wake_lonely();
		return;
	}
	if (tk.n_faults == 0)
		tap_ok(trap->fault.addr == 0x123 && trap->fault.trapno == 14 && trap->fault.code == 1,
		       "a page fault tells its address");
	if (tk.n_faults == 4)
		tap_ok(trap->fault.addr == 0x4000000 && (trap->fault.err & 2), "a write fault tells that it is one");
	ops->ctx_regs_get(t->ctx, 0, &r);
	r.rip += fault_skip[tk.n_faults];
	tk.fault_signals[tk.n_faults++] = trap->fault.signo;
	ops->ctx_regs_set(t->ctx, 0, &r);
	ops->ctx_resume(t->ctx);
}

static void interrupt_all(void)
{
	for (int i = 0; tk.interrupting && i < high_task; i++)
		if (tasks[i].live && tasks[i].interrupt)
			ops->ctx_interrupt(tasks[i].ctx);
}

static void on_interrupt(struct gtask *t)
{
	struct gregs r;

	if (++tk.n_interrupts >= INTERRUPTS && tk.spinning) {
		ops->ctx_regs_get(t->ctx, 0, &r);
		r.rbx = 0;
		ops->ctx_regs_set(t->ctx, 0, &r);
		tk.spinning = false;
	}
	ops->ctx_resume(t->ctx); /* without another at once: the thread would make no progress */
}

static void on_trap(void *arg, struct vcpu_ctx *ctx, const struct trap *trap)
{
	struct gtask *t = ctx->owner;

	switch (trap->kind) {
	case TRAP_SYSCALL:
		on_syscall(t, trap);
		break;
	case TRAP_FAULT:
		on_fault(t, trap);
		break;
	case TRAP_INTERRUPT:
		on_interrupt(t);
		break;
	case TRAP_EXITED:
		tk.n_exited++;
		task_end(t);
		wake_lonely();
		break;
	}
	if (trap->kind == TRAP_SYSCALL)
		interrupt_all();
}

static void on_idle(void *arg)
{
	interrupt_all();
	__atomic_store_n(&tk.idle_seen, __atomic_load_n(&tk.idle_posted, __ATOMIC_SEQ_CST), __ATOMIC_SEQ_CST);
	if (tk.stop_at && tk.idle_seen >= tk.stop_at)
		ops->stop(tk.plat);
}

const struct platform_up tk_up = { on_trap, on_idle };

void tk_end(void)
{
	for (int i = 0; i < high_task; i++)
		if (tasks[i].live)
			task_end(&tasks[i]);
}

void tk_reset(void)
{
	memset(tasks, 0, sizeof(tasks));
	high_task = tk.n_live = tk.n_sleeping = 0;
}

int tk_load(long program, long arg)
{
	struct vcpu_ctx *ctx;
	struct aspace *as;
	int r = ops->ctx_create(tk.plat, &as, &ctx);

	tk.n_exited = tk.n_faults = tk.n_interrupts = 0;
	memset(tk.results, 0, sizeof(tk.results));
	tk.first = r < 0 ? NULL : ctx;
	return r < 0 ? r : load(task_new(ctx, as, ++n_groups), program, arg);
}

int tk_run(long program, long arg)
{
	int r = tk_load(program, arg);

	if (r == 0)
		r = ops->run(tk.plat);
	tk.interrupting = false;
	tap_ok(r == 0 && tk.n_live == 0, "%s: program %ld.%ld ends", tk.mode, program, arg);
	return r;
}
