/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kvm platform under the tiny kernel of stub_suite.c, with the same guest programs where they do not speak of
 * stubs. Skips where the host has no KVM.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "platform/kvm/kvm.h"
#include "platform/kvm/monitor.h"
#include "tests/lib/tap.h"
#include "tests/unit/stub_guest.h"
#include "tests/unit/stub_kernel.h"
#include "tests/unit/stub_programs.h"

static struct platform_info info;

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

static bool start(void)
{
	struct platform_config cfg = { .stub_fd = -1, .max_contexts = MAX_TASKS };
	struct sbx_err err;
	uint64_t t0 = now_ns();

	tk_reset();
	if (!tap_ok(ops->start(&cfg, &tk_up, NULL, &tk.plat, &err) == 0, "%s: starts", tk.mode)) {
		printf("# %s\n", err.msg);
		return false;
	}
	ops->info(tk.plat, &info);
	printf("# note %s: start %llu us, vdso %#llx '%s'\n", tk.mode, (unsigned long long)(now_ns() - t0) / 1000,
	       (unsigned long long)ops->vdso(tk.plat), info.note);
	return true;
}

/* Each wake-up must be followed by an idle call, whatever the workers do. */
static void *waker_main(void *arg)
{
	uint64_t n = *(const uint64_t *)arg, lost = 0;

	for (uint64_t i = 1; i <= n; i++) {
		uint64_t t0 = now_ns();

		__atomic_store_n(&tk.idle_posted, i, __ATOMIC_SEQ_CST);
		ops->wake(tk.plat);
		/* Every few rounds without a wait, so that wake-ups overlap. */
		while (i % 4 == 0 && !lost && __atomic_load_n(&tk.idle_seen, __ATOMIC_SEQ_CST) < i) {
			sched_yield();
			lost = now_ns() - t0 > 10 * NSEC_PER_SEC ? i : 0;
		}
	}
	return (void *)lost;
}

static void test_wake(long program, long arg, const char *what)
{
	uint64_t n = 3000;
	pthread_t th;
	void *lost;

	tap_eq(tk_load(program, arg), 0, "%s: load", tk.mode);
	tk.idle_seen = tk.idle_posted = 0;
	tk.stop_at = n;
	pthread_create(&th, NULL, waker_main, &n);
	tap_eq(ops->run(tk.plat), 0, "%s: run", tk.mode);
	pthread_join(th, &lost);
	tk.stop_at = 0;
	tap_ok(!lost, "%s: no wake-up is lost with %s", tk.mode, what);
	tk_end();
	tap_eq(tk.n_live, 0, "%s: contexts are destroyed while they run", tk.mode);
}

static void test_scheduling(void)
{
	tk_run(G_FAIR, 1);
	tk_run(G_FAIR, 6);
	tk_run(G_KEEP, 2);
	tk_run(G_KEEP, 6);
	test_wake(G_NOP, 1 << 30, "a busy worker");
	test_wake(G_SLEEP, 1 << 30, "sleeping workers");
	test_wake(G_FAIR, 8, "guests that spin");
	tk_run(G_HELLO, 0);
	tap_eq(tk.results[0], 1, "%s: and goes on", tk.mode);
}

static bool hidden(uint32_t leaf, uint32_t index, unsigned reg, uint32_t bits)
{
	for (uint32_t i = 0; i < tk.plat->cpuid.nent; i++) {
		const struct kvm_cpuid_entry2 *e = &tk.plat->cpuid.e[i];
		const uint32_t regs[] = { e->eax, e->ebx, e->ecx, e->edx };

		if (e->function == leaf && e->index == index && (regs[reg] & bits))
			return false;
	}
	return true;
}

/* What is not virtualised is not told of. */
static void test_cpuid(void)
{
	enum { EAX, EBX, ECX, EDX };

	tap_ok(hidden(1, 0, ECX, 1u << 3 | 1u << 5 | 1u << 21 | 1u << 31), "no MONITOR, VMX, X2APIC, HYPERVISOR");
	tap_ok(hidden(7, 0, EBX, 1u << 2 | 1u << 4 | 1u << 11 | 1u << 14), "no SGX, HLE, RTM, MPX");
	tap_ok(hidden(7, 0, ECX, 1u << 3 | 1u << 4 | 1u << 5 | 1u << 7), "no PKU, WAITPKG, SHSTK");
	tap_ok(hidden(7, 0, EDX, 1u << 5 | 1u << 20 | 1u << 22 | 1u << 24 | 1u << 25), "no UINTR, IBT, AMX");
	tap_ok(hidden(7, 1, EAX, 1u << 17 | 1u << 21 | 1u << 26) && hidden(7, 1, EDX, 1u << 8 | 1u << 19 | 1u << 21),
	       "no FRED, AMX, LAM, AVX10, APX");
	tap_ok(hidden(0xd, 0, EAX, ~0xe7u) && hidden(0xd, 1, ECX, ~0u) && hidden(0xd, 1, EAX, 1u << 4),
	       "no state that is not kept");
	tap_ok(hidden(0x80000001, 0, ECX, 1u << 2 | 1u << 23 | 1u << 29), "no SVM, counters, MWAITX");
	for (unsigned reg = EAX; reg <= EDX; reg++)
		tap_ok(hidden(0x40000000, 0, reg, ~0u) && hidden(0xa, 0, reg, ~0u) && hidden(0x8000000a, 0, reg, ~0u),
		       "no hypervisor's leaf, no counters, no SVM");
}

/* System calls with nothing but the way out of the VM and in again. */
static uint64_t bare_exits(long n)
{
	struct kctx *c = kctx_of(tk.first);
	struct kvcpu *cpu = tk.plat->vcpus[0];
	struct kvm_regs regs = c->regs;
	uint64_t t0 = now_ns();
	struct kevent ev;
	long done = 0;

	if (kctx_load(c, cpu) < 0)
		return 0;
	while (done < n) {
		__atomic_store_n(&cpu->where, KVCPU_GUEST, __ATOMIC_SEQ_CST);
		kvcpu_enter(cpu, kaspace_root(c->as), &regs, &ev);
		if (ev.kind == KEV_VECTOR && (ev.vec != VEC_PF || kaspace_fault(c->as, ev.cr2, ev.err, &c->trap)))
			return 0;
		if (ev.kind == KEV_SYSCALL && !done++)
			t0 = now_ns();
		if (ev.kind == KEV_BROKEN)
			return 0;
		regs.rax = ev.kind == KEV_SYSCALL ? 1 : regs.rax;
	}
	return (now_ns() - t0) / (uint64_t)n;
}

/* What a call costs beside the bare exit, and the common operations; figures, no test. */
static void bench(void)
{
	static const char *const what[] = { "getppid", "mmap", "munmap", "fork, exit and wait", "thread, exit and join",
					    "fork, exec, exit and wait" };
	const long n = 20000;
	uint64_t bare, t0, whole;

	if (!start() || tk_load(G_NOP, 1 << 30) < 0)
		return;
	bare = bare_exits(n);
	tk_end();
	if (tk_load(G_NOP, n) < 0)
		return;
	t0 = now_ns();
	ops->run(tk.plat);
	whole = (now_ns() - t0) / (uint64_t)n;
	printf("# note bare exit %llu ns, a call %llu ns, ratio %.3f\n", (unsigned long long)bare,
	       (unsigned long long)whole, bare ? (double)whole / (double)bare : 0);
	tk.quiet = true;
	tk_run(G_BENCH, 0);
	tk.quiet = false;
	for (unsigned i = 0; i < ARRAY_SIZE(what); i++)
		printf("# note %s: %ld ticks, getppids %.2f\n", what[i], tk.results[30 + i],
		       (double)tk.results[30 + i] / (double)(tk.results[30] ? tk.results[30] : 1));
	ops->destroy(tk.plat);
}

int main(int argc, char **argv)
{
	struct sbx_err err;

	ops = &kvm_platform_ops;
	tk.mode = "kvm";
	if (ops->prepare(&err)) {
		printf("1..0 # SKIP %s\n", err.msg);
		return 0;
	}
	if (!tk_files())
		return 1;
	if (argc > 1 && !strcmp(argv[1], "bench")) {
		bench();
		return tap_done();
	}
	if (start()) {
		test_cpuid();
		tk_programs(2000);
		test_scheduling();
		ops->destroy(tk.plat);
		tap_ok(start(), "starts again");
		ops->destroy(tk.plat);
	}
	return tap_done();
}
