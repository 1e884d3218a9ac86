/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The unotify platform under a tiny kernel of its own, with guest programs that are friendly, clumsy and hostile
 * (unotify_guest.c). The suite runs with and without namespaces, as root and as an ordinary user.
 */
#include <errno.h>
#include <grp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "platform/platform.h"
#include "tests/lib/tap.h"
#include "tests/unit/unotify_guest.h"

#define MAX_TASKS 2048
#define MAX_PIDS  256
#define FILE_LEN  0x20000
#define INTERRUPTS 100

extern const char guest_image[], guest_image_end[];

struct gtask {
	struct vcpu_ctx *ctx;
	struct aspace *as;
	int group;
	bool live, sleeping, waits_alone, interrupt;
	struct trap trap;
};

static const struct platform_ops *const ops = &unotify_platform_ops;
static struct platform *plat;
static const char *mode_name;
static struct gtask tasks[MAX_TASKS];
static int n_live, n_sleeping, n_groups, high_task;
static int code_fd, file_fd;
static long results[64];
static int n_exited, n_faults, n_interrupts;
static int fault_signals[8];
static bool interrupting, quiet;
static struct platform_info info;

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

/* ---- the tiny kernel ---- */

static struct gtask *task_new(struct vcpu_ctx *ctx, struct aspace *as, int group)
{
	for (int i = 0; i < MAX_TASKS; i++) {
		if (tasks[i].live)
			continue;
		tasks[i] = (struct gtask){ .ctx = ctx, .as = as, .group = group, .live = true };
		ctx->owner = &tasks[i];
		n_live++;
		high_task = i >= high_task ? i + 1 : high_task;
		return &tasks[i];
	}
	abort();
}

static void wake_lonely(void)
{
	for (int i = 0; i < high_task; i++) {
		if (!tasks[i].live || !tasks[i].waits_alone || n_live != 1)
			continue;
		tasks[i].waits_alone = false;
		ops->ctx_return(tasks[i].ctx, 0);
	}
	if (n_live == 0)
		ops->stop(plat);
}

static void task_end(struct gtask *t)
{
	n_sleeping -= t->sleeping;
	t->live = false;
	n_live--;
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
		{ .op = ASPACE_MAP, .prot = PROT_READ | PROT_WRITE | PROT_EXEC, .fd = code_fd, .addr = GUEST_CODE,
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
	struct ctx_clone_args args = { .kind = (enum ctx_clone_kind)a[0], .stack = a[1], .set_tls = a[2] != 0, .tls = a[2] };
	struct vcpu_ctx *ctx;
	struct aspace *as;
	int r;

	if (a[0] > CTX_CLONE_VM) {
		ops->ctx_return(t->ctx, -EINVAL);
		return;
	}
	if (a[0] == CTX_CLONE_FORK)
		args.stack = 0, args.set_tls = false;
	r = ops->ctx_clone(t->ctx, &args, &as, &ctx);
	if (r < 0) {
		ops->ctx_return(t->ctx, r);
		return;
	}
	task_new(ctx, as, args.kind == CTX_CLONE_THREAD ? t->group : ++n_groups)->interrupt = t->interrupt;
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
	if (!quiet)
		tap_eq(ctx == t->ctx, a[1] == 0, "exec is %s", a[1] ? "into a fresh stub" : "in place");
	if (ctx != t->ctx)
		ops->ctx_destroy(t->ctx);
	ops->aspace_put(t->as);
	t->as = as;
	t->ctx = ctx;
	ctx->owner = t;
	r = load(t, (long)a[0], 0);
	if (r < 0 || !quiet)
		tap_eq(r, 0, "the new program loads");
}

static void do_mmap(struct gtask *t, const uint64_t *a)
{
	struct aspace_op op = { .op = ASPACE_MAP, .prot = (int)a[2], .fd = -1, .addr = a[0], .len = a[1] };
	int64_t r;

	if ((int)a[4] >= 100)
		op.fd = a[4] == 100 ? file_fd : 9999;
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
	struct aspace_op op = { .op = (enum aspace_opcode)a[0], .prot = (int)a[3] & 7, .fd = -1, .addr = a[1], .len = a[2],
				.new_addr = a[3], .new_len = a[2] };
	struct aspace_op many[32];
	unsigned done = 0;
	int64_t r;

	if (a[0] != 5) {
		ops->ctx_return(t->ctx, ops->aspace_apply(t->ctx, &op, 1, false, &done));
		return;
	}
	for (int i = 0; i < 32; i++)
		many[i] = (struct aspace_op){ .op = ASPACE_MAP, .prot = PROT_READ, .fd = i % 2 ? dup(file_fd) : file_fd,
					      .offset = (uint64_t)i * PAGE_SIZE, .addr = a[1] + (uint64_t)i * PAGE_SIZE,
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
		results[20] = e;
		if (e != -ESRCH)
			ops->ctx_return(t->ctx, e);
		return;
	}
	if (bases) {
		tap_ok(r.fs_base == a[1] && r.gs_base == 0, "regs_get tells the bases");
		r.fs_base = a[2];
	} else {
		tap_ok(r.rbx == 5 && r.rip > GUEST_CODE && r.rip < GUEST_CODE + GUEST_IMAGE && r.rcx == r.rip,
		       "regs_get tells the registers");
		r.rbx = 0x1234;
	}
	r.rax = 55;
	tap_eq(ops->ctx_regs_set(t->ctx, bases ? CTX_REGS_BASES : 0, &r), 0, "regs_set");
	ops->ctx_resume(t->ctx);
}

#define YMM7_LOW 272 /* xmm7 in the legacy area */

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
		n_sleeping--;
		n++;
		if (n % 7 == 0) { /* some that were parked are looked at first */
			struct gregs r;

			ops->ctx_regs_get(tasks[i].ctx, 0, &r);
		}
		ops->ctx_return(tasks[i].ctx, 77);
	}
	ops->ctx_return(t->ctx, n);
}

static int find_stub(void);

static void do_check(struct gtask *t, const uint64_t *a)
{
	char name[80] = "";

	ops->read(t->as, a[1], name, sizeof(name) - 1);
	tap_ok(a[0], "%s: %s", mode_name, name);
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
		results[a[0] % 64] = (long)a[1];
		ops->ctx_return(t->ctx, 0);
		break;
	case H_PARK:
		t->sleeping = true;
		n_sleeping++;
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
		do_fpu(t, (long)a[0]);
		break;
	case H_INTR:
		t->interrupt = interrupting = true;
		ops->ctx_return(t->ctx, 0);
		break;
	case H_MM:
		do_h_mm(t, a);
		break;
	case H_KILL:
		if (find_stub())
			kill(find_stub(), SIGKILL);
		break;
	case H_SLEEPERS:
		ops->ctx_return(t->ctx, n_sleeping);
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
static bool skipping, spinning;

static void on_fault(struct gtask *t, const struct trap *trap)
{
	struct gregs r;

	if (!skipping || n_faults >= (int)sizeof(fault_skip)) {
		n_faults++;
		group_end(t->group, NULL);
		wake_lonely();
		return;
	}
	if (n_faults == 0)
		tap_ok(trap->fault.addr == 0x123 && trap->fault.trapno == 14 && trap->fault.code == 1,
		       "a page fault tells its address");
	if (n_faults == 4)
		tap_ok(trap->fault.addr == 0x4000000 && (trap->fault.err & 2), "a write fault tells that it is one");
	ops->ctx_regs_get(t->ctx, 0, &r);
	r.rip += fault_skip[n_faults];
	fault_signals[n_faults++] = trap->fault.signo;
	ops->ctx_regs_set(t->ctx, 0, &r);
	ops->ctx_resume(t->ctx);
}

static void interrupt_all(void)
{
	for (int i = 0; interrupting && i < high_task; i++)
		if (tasks[i].live && tasks[i].interrupt)
			ops->ctx_interrupt(tasks[i].ctx);
}

static void on_interrupt(struct gtask *t)
{
	struct gregs r;

	if (++n_interrupts >= INTERRUPTS && spinning) {
		ops->ctx_regs_get(t->ctx, 0, &r);
		r.rbx = 0;
		ops->ctx_regs_set(t->ctx, 0, &r);
		spinning = false;
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
		n_exited++;
		task_end(t);
		wake_lonely();
		break;
	}
	if (trap->kind == TRAP_SYSCALL)
		interrupt_all();
}

static uint64_t idle_seen, idle_posted;

static void on_idle(void *arg)
{
	interrupt_all();
	__atomic_store_n(&idle_seen, __atomic_load_n(&idle_posted, __ATOMIC_SEQ_CST), __ATOMIC_SEQ_CST);
}

static const struct platform_up up = { on_trap, on_idle };

static int run_guest(long program, long arg)
{
	struct vcpu_ctx *ctx;
	struct aspace *as;
	int r = ops->ctx_create(plat, &as, &ctx);

	n_exited = n_faults = n_interrupts = 0;
	memset(results, 0, sizeof(results));
	if (!tap_ok(r == 0, "%s: ctx_create for program %ld.%ld", mode_name, program, arg))
		return r;
	r = load(task_new(ctx, as, ++n_groups), program, arg);
	if (r == 0)
		r = ops->run(plat);
	interrupting = false;
	tap_ok(r == 0 && n_live == 0, "%s: program %ld.%ld ends", mode_name, program, arg);
	return r;
}

/* ---- the host side ---- */

static int parent_of(int pid)
{
	char path[40], line[256];
	int ppid = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "PPid: %d", &ppid) == 1)
			break;
	if (f)
		fclose(f);
	return ppid;
}

/* All our descendants. */
static int descendants(int *pids)
{
	int n = 1, me = getpid();
	FILE *f = popen("exec ps -A -o pid= --sort=start_time,pid", "r");
	int pid;

	pids[0] = me;
	while (f && fscanf(f, "%d", &pid) == 1) {
		int parent = parent_of(pid);

		for (int i = 0; i < n && n < MAX_PIDS; i++)
			if (parent == pids[i]) {
				pids[n++] = pid;
				break;
			}
	}
	if (f)
		pclose(f);
	return n;
}

static int base_pids[MAX_PIDS], n_base; /* init and zygote */

/* A stub: any descendant that was not there after the start (nor the ps that looked). */
static int find_stub(void)
{
	int pids[MAX_PIDS], n = descendants(pids);

	for (int i = 1; i < n; i++) {
		bool base = false;

		for (int k = 0; k < n_base; k++)
			base |= base_pids[k] == pids[i];
		if (!base && kill(pids[i], 0) == 0)
			return pids[i];
	}
	return 0;
}

static bool start(bool no_userns)
{
	struct platform_config cfg = { .stub_fd = -1, .max_contexts = MAX_TASKS, .no_userns = no_userns };
	struct sbx_err err;
	uint64_t t0 = now_ns();

	memset(tasks, 0, sizeof(tasks));
	high_task = n_live = n_sleeping = 0;
	if (!tap_ok(ops->start(&cfg, &up, NULL, &plat, &err) == 0, "%s: starts", mode_name)) {
		printf("# %s\n", err.msg);
		return false;
	}
	ops->info(plat, &info);
	printf("# note %s: start %llu us, userns %d pidns %d netns %d sync %d vdso %#llx '%s'\n", mode_name,
	       (unsigned long long)(now_ns() - t0) / 1000, info.userns, info.pidns, info.netns, info.sync_wakeup,
	       (unsigned long long)ops->vdso(plat), info.note);
	n_base = descendants(base_pids);
	return true;
}

static void finish(void)
{
	int pids[MAX_PIDS], n = descendants(pids), left = 0;

	ops->destroy(plat);
	for (int tries = 0; tries < 200; tries++) {
		left = 0;
		for (int i = 1; i < n; i++)
			left += parent_of(pids[i]) > 0;
		if (!left)
			break;
		usleep(10000);
	}
	tap_ok(n > 2 && left == 0, "%s: destroy leaves no process", mode_name);
}

static bool ticking;

static void *ticker_main(void *arg)
{
	while (__atomic_load_n(&ticking, __ATOMIC_SEQ_CST)) {
		usleep(500);
		ops->wake(plat);
	}
	return NULL;
}

static void test_spin(void)
{
	pthread_t th;

	spinning = ticking = true;
	pthread_create(&th, NULL, ticker_main, NULL);
	run_guest(G_SPIN, 0);
	__atomic_store_n(&ticking, false, __ATOMIC_SEQ_CST);
	pthread_join(th, NULL);
	tap_ok(n_interrupts >= INTERRUPTS, "%s: interrupts came", mode_name);
	printf("# note %d interrupts\n", n_interrupts);
}

static void test_programs(void)
{
	run_guest(G_HELLO, 0);
	tap_eq(results[0], 1, "%s: getppid", mode_name);
	run_guest(G_VALUES, 0);
	run_guest(G_FORK, 0);
	tap_eq(results[1], 1, "%s: the child of fork has ymm and its own memory", mode_name);
	run_guest(G_THREAD, 0);
	run_guest(G_VM, 0);
	run_guest(G_REGS, 0);
	run_guest(G_FPU, 0);
	skipping = true;
	run_guest(G_FAULT, 0);
	skipping = false;
	tap_ok(n_faults == 5 && fault_signals[0] == SIGSEGV && fault_signals[1] == SIGILL &&
	       fault_signals[2] == SIGFPE && fault_signals[3] == SIGTRAP && fault_signals[4] == SIGSEGV,
	       "%s: faults are told", mode_name);
	test_spin();
	run_guest(G_EXEC, 0);
	run_guest(G_EXEC, 1);
	run_guest(G_PARK, 20);
	run_guest(G_PARK, 200);
	run_guest(G_MM, 0);
	run_guest(G_EXIT_GROUP, 0);
	run_guest(G_EXIT_GROUP, 1);
	run_guest(G_STRESS, 0);
	tap_ok(results[10] == 0 && results[11] == 0 && results[12] == 0 && results[13] == 0,
	       "%s: four threads under interrupts see no mistake", mode_name);
	printf("# note %d interrupts, wrong: %ld %ld %ld %ld\n", n_interrupts, results[10], results[11], results[12],
	       results[13]);
}

static void test_death(void)
{
	run_guest(G_DIE, 0);
	tap_eq(n_exited, 1, "%s: the death of a stub is told", mode_name);
}

static void alive(void)
{
	run_guest(G_HELLO, 0);
	tap_eq(results[0], 1, "%s: the sandbox is alive", mode_name);
}

static void test_hostile(void)
{
	static const char *const what[] = {
		"a call at the site of orders", "a forged end of orders", "a forged signal report",
		"a report from the wrong site", "hiding from kicks", "a write to the shim",
		"scribbling over the signal stack", "rsp in the signal stack", "a call at the free site", "a forged trap",
	};

	for (long i = 0; i < (long)ARRAY_SIZE(what); i++) {
		uint64_t t0 = now_ns();

		run_guest(G_HOSTILE, i);
		if (i < 5 || i == 8)
			tap_eq(n_exited, 1, "%s: killed for %s", mode_name, what[i]);
		else if (i == 5)
			tap_eq(n_faults, 1, "%s: a fault for %s", mode_name, what[i]);
		else if (i == 6)
			tap_eq(results[3], 1, "%s: no harm by %s", mode_name, what[i]);
		printf("# note %s: exited %d faults %d, %llu ms\n", what[i], n_exited, n_faults,
		       (unsigned long long)(now_ns() - t0) / 1000000);
		if (i == 4)
			tap_ok(results[20] == -ESRCH && now_ns() - t0 < 4 * NSEC_PER_SEC, "after a deadline");
		alive();
	}
	run_guest(G_RACE_ORDER, 1000);
	tap_ok(n_exited == 2 || results[4] == 1, "%s: the race on the order block is noticed or lost", mode_name);
	printf("# note race on orders: exited %d\n", n_exited);
	alive();
	run_guest(G_RACE_CONTINUE, 1000);
	alive();
}

/* Each wake-up must be followed by an idle call, whatever the leader does. */
static uint64_t wake_rounds;

static void *waker_main(void *arg)
{
	uint64_t lost = 0;

	for (uint64_t i = 1; i <= wake_rounds && !lost; i++) {
		uint64_t t0 = now_ns();

		__atomic_store_n(&idle_posted, i, __ATOMIC_SEQ_CST);
		ops->wake(plat);
		/* Every few rounds without a wait, so that wake-ups overlap. */
		while (i % 4 == 0 && __atomic_load_n(&idle_seen, __ATOMIC_SEQ_CST) < i && !lost) {
			sched_yield();
			lost = now_ns() - t0 > 3 * NSEC_PER_SEC ? i : 0;
		}
	}
	if (arg)
		kill((pid_t)(intptr_t)arg, SIGKILL); /* the guest has done its part */
	return (void *)lost;
}

static void test_wake(long program, const char *what)
{
	struct vcpu_ctx *ctx;
	struct aspace *as;
	pthread_t th;
	void *lost;
	int stub;

	tap_eq(ops->ctx_create(plat, &as, &ctx), 0, "%s: ctx_create", mode_name);
	load(task_new(ctx, as, ++n_groups), program, 1 << 30);
	stub = find_stub();
	idle_seen = idle_posted = 0;
	wake_rounds = 50000;
	pthread_create(&th, NULL, waker_main, (void *)(intptr_t)stub);
	tap_eq(ops->run(plat), 0, "%s: run", mode_name);
	pthread_join(th, &lost);
	tap_ok(!lost, "%s: no wake-up is lost with %s", mode_name, what);
}

/* A sentry that is killed takes its stubs along, spinning ones too. */
static void test_orphans(bool no_userns)
{
	int pids[MAX_PIDS], n, left = 0;
	pid_t sentry;

	fflush(stdout);
	sentry = fork();
	if (sentry == 0) {
		if (!freopen("/dev/null", "w", stdout) || !start(no_userns))
			_exit(1);
		run_guest(G_ORPHANS, 0);
		_exit(0);
	}
	do {
		usleep(20000);
		n = descendants(pids);
	} while (n < 7 && waitpid(sentry, NULL, WNOHANG) == 0);
	kill(sentry, SIGKILL);
	waitpid(sentry, NULL, 0);
	for (int tries = 0; tries < 200; tries++) {
		left = 0;
		for (int i = 2; i < n; i++)
			left += parent_of(pids[i]) > 0;
		if (!left)
			break;
		usleep(10000);
	}
	tap_ok(n >= 7 && left == 0, "%s: a killed sentry leaves no stub", mode_name);
}

static void suite(const char *name, bool no_userns, bool hostile)
{
	mode_name = name;
	if (!start(no_userns))
		return;
	test_programs();
	test_death();
	if (hostile)
		test_hostile();
	finish();
	test_orphans(no_userns);
}

static double tsc_per_ns(void)
{
	uint64_t t0 = now_ns(), c0 = __builtin_ia32_rdtsc();

	while (now_ns() - t0 < 10000000)
		;
	return (double)(__builtin_ia32_rdtsc() - c0) / (double)(now_ns() - t0);
}

static void bench(void)
{
	static const char *const what[] = { "getppid", "mmap", "munmap", "fork, exit and wait", "thread, exit and join",
					    "fork, exec, exit and wait", "getppid with 1000 parked" };
	double rate = tsc_per_ns();
	long r[ARRAY_SIZE(what)];
	cpu_set_t all, one;

	mode_name = "pinned";
	sched_getaffinity(0, sizeof(all), &all);
	CPU_ZERO(&one);
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &all) && !CPU_COUNT(&one))
			CPU_SET(i, &one);
	sched_setaffinity(0, sizeof(one), &one);
	if (start(false)) {
		quiet = true;
		run_guest(G_BENCH, 0);
		memcpy(r, results + 30, sizeof(r));
		run_guest(G_BENCH_PARKED, 0);
		quiet = false;
		r[ARRAY_SIZE(what) - 1] = results[36];
		for (unsigned i = 0; i < ARRAY_SIZE(what); i++)
			printf("# note %s: %.0f ns\n", what[i], (double)r[i] / rate);
		finish();
	}
	sched_setaffinity(0, sizeof(all), &all);
}

static void as_user(void (*fn)(void))
{
	int *shared = mmap(NULL, 2 * sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid;
	int status;

	shared[0] = tap_n;
	shared[1] = tap_failed;
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		if (geteuid() == 0 && (setgroups(0, NULL) || setresgid(65534, 65534, 65534) ||
				       setresuid(65534, 65534, 65534)))
			_exit(1);
		fn();
		shared[0] = tap_n;
		shared[1] = tap_failed;
		fflush(stdout);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	tap_n = shared[0];
	tap_failed = shared[1];
	tap_ok(status == 0, "the ordinary user's run ends");
}

static void user_suites(void)
{
	suite("user", false, true);
	suite("user without namespaces", true, false);
}

int main(int argc, char **argv)
{
	char file[FILE_LEN];

	code_fd = memfd_create("code", MFD_CLOEXEC);
	file_fd = memfd_create("file", MFD_CLOEXEC);
	memset(file, 'f', sizeof(file));
	if (ftruncate(code_fd, GUEST_IMAGE) < 0 || ftruncate(file_fd, FILE_LEN) < 0 ||
	    pwrite(code_fd, guest_image, (size_t)(guest_image_end - guest_image), 0) < 0 ||
	    pwrite(file_fd, file, sizeof(file), 0) < 0)
		return 1;
	if (argc > 1 && !strcmp(argv[1], "bench")) {
		bench();
		return tap_done();
	}
	if (geteuid() == 0) {
		suite("root", false, true);
		suite("root without user namespace", true, false);
	}
	as_user(user_suites);
	mode_name = "wake";
	if (start(false)) {
		test_wake(G_NOP, "a busy leader");
		test_wake(G_SLEEP, "a sleeping leader");
		finish();
	}
	bench();
	return tap_done();
}
