/* SPDX-License-Identifier: Apache-2.0 */
/* Guest programs of stub_suite.c, freestanding; one flat image at GUEST_CODE. Entered with the program and its
 * argument. */
#include <asm/unistd.h>
#include <stdint.h>

#include "platform/stub/hostcall.h"
#include "platform/stub/layout.h"
#include "tests/unit/stub_guest.h"

#define ARCH_SET_FS 0x1002
#define ARCH_GET_FS 0x1003
#define SIGUSR2_NR 12

#define CALL HOSTCALL
#define CHECK(cond, name) CALL(H_CHECK, !!(cond), name)

void guest_main(long program, long arg);

struct ymm {
	uint64_t v[4];
};

static void exit_group(int code)
{
	for (;;)
		CALL(__NR_exit_group, code);
}

static uint64_t stacks[8][1024] __attribute__((aligned(64)));
static uint64_t tls[8][8];
static volatile uint64_t shared, seen[8];

/* A thread or VM child: runs fn(i) on its own stack. */
long spawn(long kind, uint64_t *stack_top, uint64_t *fs, void (*fn)(long), long i);
__asm__(".text\n"
	"spawn:\n"
	"	mov %rcx, -16(%rsi)\n"
	"	mov %r8, -8(%rsi)\n"
	"	sub $16, %rsi\n"
	"	mov $56, %eax\n"
	"	syscall\n"
	"	test %rax, %rax\n"
	"	jz 1f\n"
	"	ret\n"
	"1:	pop %rax\n"
	"	pop %rdi\n"
	"	and $-16, %rsp\n"
	"	call *%rax\n"
	"	xor %edi, %edi\n"
	"	mov $60, %eax\n"
	"	syscall\n"
	"	ud2\n");

static long start_thread(int i, void (*fn)(long), long arg)
{
	tls[i][0] = 0x1000 + (uint64_t)i;
	return spawn(CLONE_KIND_THREAD, stacks[i] + 1024, tls[i], fn, arg);
}

static void values(long unused)
{
	static const long v[] = { 0, 1, -1, -38, -4095, -4096, 0x7fffffffffffffff, 0x123456789abcdef, -(1l << 60) };
	long ok_a = 1, ok_b = 1, r;

	for (unsigned i = 0; i < sizeof(v) / sizeof(v[0]); i++) {
		ok_a &= CALL(H_RET, v[i]) == v[i];
		ok_b &= CALL(__NR_clone3, v[i]) == v[i];
	}
	CHECK(ok_a, "values of class A arrive");
	CHECK(ok_b, "values of class B arrive");
	CHECK(CALL(H_RET, -512) == -4 && CALL(H_RET, -516) == -4, "restart codes do not leak");
	CHECK(CALL(0x40000000 + 39) == -38 && CALL(-1) == -38, "x32 and -1 are ENOSYS");
	__asm__ volatile("int $0x80" : "=a"(r) : "0"(20l) : "r8", "r9", "r10", "r11", "memory");
	CHECK(r == -38, "int 0x80 is ENOSYS");
}

#define KEEPS(nr, want) \
	({ \
		register long x12 __asm__("r12") = 12, x13 __asm__("r13") = 13, x8 __asm__("r8") = 8; \
		register long x9 __asm__("r9") = 9, x10 __asm__("r10") = 10; \
		long a_ = (nr), di_ = 7, si_ = 8, dx_ = 9; \
		__asm__ volatile("syscall" \
				 : "+a"(a_), "+r"(x12), "+r"(x13), "+r"(x8), "+r"(x9), "+r"(x10), "+D"(di_), \
				   "+S"(si_), "+d"(dx_) \
				 : : "rcx", "r11", "memory"); \
		a_ == (want) && x12 == 12 && x13 == 13 && x8 == 8 && x9 == 9 && x10 == 10 && di_ == 7 && si_ == 8 && \
			dx_ == 9; \
	})

static void put_ymm(const struct ymm *y)
{
	__asm__ volatile("vmovdqu %0, %%ymm7" : : "m"(*y));
}

static void get_ymm(struct ymm *y)
{
	__asm__ volatile("vmovdqu %%ymm7, %0" : "=m"(*y));
}

static void fork_test(long unused)
{
	struct ymm y = { { 1, 2, 3, 4 } }, z;
	long pid;
	int i;

	CHECK(KEEPS(H_RET, 7), "class A keeps registers");
	CHECK(KEEPS(__NR_clone3, 7), "class B keeps registers");
	shared = 1;
	put_ymm(&y);
	pid = CALL(__NR_clone, CLONE_KIND_FORK);
	get_ymm(&z);
	if (pid == 0) {
		shared = 2;
		CALL(H_RESULT, 1, shared == 2 && z.v[0] == 1 && z.v[3] == 4);
		exit_group(0);
	}
	CHECK(pid > 0, "fork returns the child");
	CALL(H_ALONE);
	CHECK(shared == 1, "fork copies on write");
	CHECK(z.v[0] == 1 && z.v[3] == 4, "fork keeps the parent's ymm");
	for (i = 0; i < 50; i++) {
		if (CALL(__NR_clone, CLONE_KIND_FORK) == 0) {
			if (CALL(__NR_clone, CLONE_KIND_FORK) == 0)
				CALL(H_RESULT, 2, i);
			exit_group(0);
		}
		if (i % 10 == 0)
			CALL(H_ALONE);
	}
	CALL(H_ALONE);
}

static uint64_t read_fs(void)
{
	uint64_t v;

	__asm__ volatile("mov %%fs:0, %0" : "=r"(v));
	return v;
}

static void thread_main(long i)
{
	struct ymm z;

	get_ymm(&z);
	seen[i] = read_fs() + (z.v[3] << 32);
	shared++;
}

static void thread_test(long unused)
{
	struct ymm y = { { 1, 2, 3, 5 } };
	int i, ok = 1;

	shared = 0;
	for (i = 0; i < 8; i++) {
		put_ymm(&y);
		ok &= start_thread(i, thread_main, i) > 0;
	}
	CHECK(ok, "threads start");
	CALL(H_ALONE);
	for (i = 0; i < 8; i++)
		ok &= seen[i] == (5ull << 32) + 0x1000 + (unsigned)i;
	CHECK(ok, "threads have their own fs base and the parent's ymm");
	CHECK(shared == 8, "threads share memory");
	for (i = 0; i < 100; i++) {
		start_thread(i % 8, thread_main, i % 8);
		CALL(H_ALONE);
	}
	CHECK(shared == 108, "slots are used again");
	ok = 1;
	for (i = 0; i < 20; i++) /* the host refuses the base */
		ok &= spawn(CLONE_KIND_THREAD, stacks[0] + 1024, (uint64_t *)~0ul, thread_main, 0) < 0;
	CHECK(ok && start_thread(0, thread_main, 0) > 0, "a clone that fails is told, and the next one succeeds");
	CALL(H_ALONE);
	CHECK(shared == 109, "one thread came of it");
}

static void vm_main(long i)
{
	shared = (uint64_t)i;
	exit_group(3);
}

static void vm_test(long unused)
{
	long r = spawn(CLONE_KIND_VM, stacks[0] + 1024, 0, vm_main, 99);

	CHECK(r > 0, "a VM clone starts");
	CALL(H_ALONE);
	CHECK(shared == 99, "and shares memory");
}

static void regs_test(long unused)
{
	register uint64_t rbx __asm__("rbx") = 5;
	long r = H_REGS;

	__asm__ volatile("syscall" : "+a"(r), "+r"(rbx) : "D"(0l) : "rcx", "r11", "memory");
	CHECK(r == 55 && rbx == 0x1234, "registers set by the kernel (class A)");
	rbx = 5;
	r = __NR_execveat;
	__asm__ volatile("syscall" : "+a"(r), "+r"(rbx) : "D"(0l) : "rcx", "r11", "memory");
	CHECK(r == 55 && rbx == 0x1234, "registers set by the kernel (class B)");
	CALL(__NR_arch_prctl, ARCH_SET_FS, tls[3]);
	tls[3][0] = 0xabc;
	CHECK(read_fs() == 0xabc, "arch_prctl sets the fs base");
	CALL(__NR_arch_prctl, ARCH_GET_FS, &shared);
	CHECK(shared == (uint64_t)tls[3], "and gets it");
	tls[4][0] = 0xdef;
	CALL(H_RET, 0);
	CALL(H_REGS, 1, tls[3], tls[4]);
	CHECK(read_fs() == 0xdef, "and the kernel can set it");
	CHECK(CALL(__NR_arch_prctl, 0x1023, 18) == -22, "AMX cannot be asked for");
}

static void bad_regs_test(long unused)
{
	CALL(H_REGS, 2);
}

static void fpu_test(long unused)
{
	struct ymm y = { { 1, 2, 3, 4 } }, z;

	put_ymm(&y);
	CALL(H_FPU, 0);
	get_ymm(&z);
	CHECK(z.v[0] == 1 && z.v[3] == 4, "ymm survives reading the FPU state");
	put_ymm(&y);
	CALL(H_FPU, 1);
	get_ymm(&z);
	CHECK(z.v[0] == 77 && z.v[1] == 2 && z.v[3] == 4, "a changed FPU state arrives");
	put_ymm(&y);
	CALL(H_FPU, 2);
	get_ymm(&z);
	CHECK(z.v[0] == 0 && z.v[3] == 0, "the initial FPU state arrives");
	put_ymm(&y);
	CALL(H_FPU, 3);
	get_ymm(&z);
	CHECK(z.v[0] == 1 && z.v[3] == 4, "refused states change nothing");
	CALL(H_FPU, 4);
	get_ymm(&z);
	CHECK(z.v[0] == 88 && z.v[3] == 0, "a legacy area resets the rest");
}

/* One sleeps while the kernel changes both. */
static void fpu_two_test(long unused)
{
	struct ymm y = { { 1, 2, 3, 4 } }, z;

	if (CALL(__NR_clone, CLONE_KIND_FORK) == 0) {
		put_ymm(&y);
		CALL(H_PARK);
		get_ymm(&z);
		CHECK(z.v[0] == 105 && z.v[3] == 4, "the sleeper has its own FPU state");
		exit_group(0);
	}
	do
		put_ymm(&y);
	while (CALL(H_FPU, 5) == 1);
	get_ymm(&z);
	CHECK(z.v[0] == 104 && z.v[3] == 4, "the caller has its own FPU state");
	CALL(H_WAKE);
	CALL(H_ALONE);
}

static void fault_test(long unused)
{
	__asm__ volatile("mov $0x123, %%eax; .byte 0x48, 0x8b, 0x00" : : : "rax"); /* mov (%rax),%rax */
	__asm__ volatile("ud2");
	__asm__ volatile("xor %%ecx, %%ecx; mov $1, %%eax; cltd; .byte 0xf7, 0xf9" : : : "eax", "ecx", "edx");
	__asm__ volatile("int3");
	__asm__ volatile("mov $0x4000000, %%eax; .byte 0xc6, 0x00, 0x01" : : : "rax", "memory"); /* movb $1,(%rax) */
	CHECK(1, "faults are survived");
}

static void spin(long unused)
{
	uint64_t n = 1, count = 0;

	CALL(H_INTR);
	/* The kernel sets rbx to 0 when it has interrupted often enough. */
	__asm__ volatile("1: inc %1; test %%rbx, %%rbx; jnz 1b" : "+b"(n), "+r"(count));
	CHECK(count > 0, "a spinning thread is interrupted");
	for (count = 0; count < 3000; count++)
		if (CALL(H_RET, count) != (long)count)
			break;
	CHECK(count == 3000, "calls are exact under a storm of interrupts");
}

static void parker(long i)
{
	uint64_t *slot = (uint64_t *)(uintptr_t)(GUEST_FREE + 0x100000 * 16) + i;
	long r = CALL(H_PARK);

	*slot = r == 77 && CALL(H_RET, 5) == 5 ? 1 : 2;
}

static void exec_test(long fresh)
{
	struct ymm y = { { 1, 2, 3, 4 } };

	put_ymm(&y);
	CALL(__NR_arch_prctl, ARCH_SET_FS, tls[0]);
	CALL(__NR_mmap, GUEST_FREE, 0x1000, 3, 0x32, -1, 0);
	if (fresh)
		start_thread(1, parker, 0);
	CALL(__NR_execve, G_EXECED, fresh);
	CHECK(0, "execve returns only when it fails");
}

static void execed(long unused)
{
	struct ymm z;
	uint64_t fs = 1;

	get_ymm(&z);
	CHECK(z.v[0] == 0 && z.v[3] == 0, "exec resets the FPU");
	CALL(__NR_arch_prctl, ARCH_GET_FS, &fs);
	CHECK(fs == 0, "exec resets the fs base");
	CHECK(CALL(H_MM, 2, GUEST_FREE, 0x1000, 1) == -12, "exec unmaps all");
	if (CALL(__NR_clone, CLONE_KIND_FORK) == 0)
		exit_group(0);
	CALL(H_ALONE);
	CHECK(1, "an executed program can fork");
}

static void park_test(long n)
{
	uint64_t *ok = (uint64_t *)(uintptr_t)(GUEST_FREE + 0x100000 * 16);
	long good = 0, i, round;

	CALL(__NR_mmap, GUEST_FREE, 0x100000 * 17, 3, 0x32, -1, 0);
	for (round = 0; round < 2; round++) {
		for (i = 0; i < n; i++) {
			ok[i] = 0;
			spawn(CLONE_KIND_THREAD, (uint64_t *)(uintptr_t)(GUEST_FREE + (i + 1) * 0x1000), 0, parker, i);
		}
		while (CALL(H_SLEEPERS) < n)
			CALL(__NR_sched_yield);
		if (round)
			for (i = 0; i < 200; i++)
				CALL(H_RET, 1);
		CALL(H_WAKE);
		CALL(H_ALONE);
		for (i = 0; i < n; i++)
			good += ok[i] == 1;
	}
	CHECK(good == 2 * n, "all sleepers woke with their value");
}

static void mm_test(long unused)
{
	volatile char *m = (char *)GUEST_FREE;
	long r;

	CHECK(CALL(__NR_mmap, m, 0x10000, 3, 0x32, -1, 0) == GUEST_FREE, "mmap anonymous, answered by the host");
	m[0] = 1;
	m[0xffff] = 2;
	CHECK(CALL(__NR_mprotect, m, 0x1000, 1) == 0, "mprotect continued");
	CHECK(CALL(__NR_munmap, m, 0xff01) == 0, "munmap continued, length rounded");
	CHECK(CALL(H_MM, 2, m, 0x1000, 1) == -12, "an order's error arrives");
	CHECK(CALL(__NR_mmap, m, 0x4000, 3, 2, 100, 0) == GUEST_FREE, "mmap of a file, answered by the host");
	CHECK(m[0x1000] == 'f', "and it is the file");
	CHECK(CALL(H_MM, 0, m, 0x2000, 3) == 0 && m[0] == 0, "an anonymous map by order from class A");
	m[0] = 9;
	CHECK(CALL(H_MM, 3, m, 0x1000, (long)m + 0x100000) == 0 && m[0x100000] == 9, "remap");
	CHECK(CALL(H_MM, 5, m, 0x20000, 0) == 0, "a long batch with many files");
	CHECK(m[0x1000] == 'f' && m[0x1f000] == 'f', "and all are the file");
	CHECK(CALL(__NR_mmap, m, 0x1000, 3, 2, 101, 0) == -9, "a bad fd is refused");
	for (r = 0; r < 64; r++) {
		long base = (r & 1) ? SHIM_BASE - 0x1000 : SHIM_END - 0x1000 * (r / 2 + 1);

		if (CALL(H_MM, r % 5, base, 0x2000, 1) != -22)
			break;
	}
	CHECK(r == 64, "the reserved range is refused");
	CHECK(CALL(H_MM, 1, -0x1000l, 0x2000, 1) == -22, "a wrapping range is refused");
	start_thread(0, parker, 0);
	while (CALL(H_SLEEPERS) < 1)
		CALL(__NR_sched_yield);
	CHECK(CALL(__NR_mmap, m, 0x10000, 3, 0x32, -1, 0) == GUEST_FREE, "mmap with a second thread");
	CHECK(CALL(__NR_munmap, m, 0x10000) == 0, "munmap with a second thread");
	CHECK(CALL(H_MM, 2, m, 0x1000, 1) == -12, "took effect");
	exit_group(0);
}

static void forever(long i)
{
	for (;;)
		__asm__ volatile("pause");
}

static void exit_group_test(long how)
{
	for (int i = 0; i < 6; i++)
		start_thread(i, i & 1 ? forever : parker, 0);
	while (CALL(H_SLEEPERS) < 3)
		CALL(__NR_sched_yield);
	if (how)
		CALL(__NR_execve, G_EXECED, 1);
	exit_group(0);
}

#define JUMP(to, nr, a, b, c, e, f) \
	do { \
		register long r8_ __asm__("r8") = (long)(e); \
		register long r9_ __asm__("r9") = (long)(f); \
		__asm__ volatile("mov %0, %%r12; jmp *%%r12" \
				 : : "r"(to), "a"((long)(nr)), "D"((long)(a)), "S"((long)(b)), "d"((long)(c)), \
				   "r"(r8_), "r"(r9_) : "r12", "memory"); \
	} while (0)

void hidden(void);
__asm__("hidden:\n"
	"	mov $1006, %eax\n" /* H_REGS */
	"	syscall\n"
	"1:	jmp 1b\n");

/* The shim's free rt_sigreturn, used to run with every signal blocked: kicks do not come through. */
static void hide(uint64_t sigret)
{
	static uint64_t frame[64];
	uint16_t *seg = (uint16_t *)(frame + 5 + 18);

	frame[0] = 6;
	frame[5 + 16] = (uint64_t)hidden;
	frame[5 + 15] = (uint64_t)(stacks[3] + 512);
	frame[5 + 17] = 0x202;
	seg[0] = 0x33;
	seg[3] = 0x2b;
	frame[37] = ~0ull;
	__asm__ volatile("mov %0, %%rsp; mov $15, %%eax; jmp *%1" : : "c"(frame), "d"(sigret) : "memory");
}

static void scribble(void)
{
	volatile char *s = (char *)(SLOT_BASE + SLOT_STACK);

	for (int i = 0; i < SLOT_SIZE - SLOT_STACK; i++)
		s[i] = (char)0xcc;
	if (CALL(__NR_clone, CLONE_KIND_FORK) == 0)
		exit_group(0);
	CALL(H_ALONE);
	CALL(H_RESULT, 3, 1);
}

static void hostile(long what)
{
	const struct shim_sites *s = (const struct shim_sites *)(SHIM_BASE + SHIM_TABLE);
	uint64_t rsp;

	__asm__ volatile("mov %%rsp, %0" : "=r"(rsp));
	switch (what) {
	case 0: /* a call of its own at the site of orders */
		JUMP(s->order - 2, __NR_mmap, 0, 4096, 7, 0, 0);
		break;
	case 1: /* a forged end of orders */
		JUMP(s->done - 2, SHIM_MAGIC, SHIM_OP_DONE, 0, 0, 0, 0);
		break;
	case 2: /* a forged signal with a frame elsewhere */
		JUMP(s->sig - 2, SHIM_MAGIC, SIGUSR2_NR << 8 | SHIM_OP_SIGNAL, 0, 0, 0, rsp);
		break;
	case 3: /* a report from the wrong site */
		JUMP(s->order - 2, SHIM_MAGIC, SHIM_OP_DONE, 0, 0, 0, 0);
		break;
	case 4:
		hide(s->sigret - 2);
		break;
	case 5: /* writes to the shim */
		*(volatile char *)SHIM_BASE = 1;
		break;
	case 6:
		scribble();
		break;
	case 7: /* rsp in the alternate stack, near its bottom */
		__asm__ volatile("mov %0, %%rsp; mov $57, %%eax; syscall" : : "r"(SLOT_BASE + SLOT_STACK + 0x200l));
		break;
	case 8: /* another call at the free site */
		JUMP(s->sigret - 2, __NR_getpid, 0, 0, 0, 0, 0);
		break;
	case 9: /* a forged trap: an order would go to a stack of its own */
		__asm__ volatile("mov %0, %%rsp" : : "r"(GUEST_STACK + 0x8000l));
		JUMP(s->trap - 2, SHIM_TRAP | SLOT_FRAME << 12 | __NR_mmap, GUEST_FREE, 4096, 3, -1l, 0);
		break;
	case 10: /* says that its clone failed, though the child lives */
		start_thread(0, forever, 0);
		JUMP(s->done - 2, SHIM_MAGIC, SHIM_OP_DONE, -11l, 0, 0, 0);
		break;
	}
}

static void order_racer(long i)
{
	volatile uint64_t *block = (volatile uint64_t *)(SLOT_BASE + SLOT_ORDERS);

	for (;;) {
		block[1] = 0x7ff000000000;
		block[0] = 0;
		block[4] = 0x1234;
	}
}

static void race_order(long n)
{
	start_thread(0, order_racer, 0);
	for (long i = 0; i < n; i++) {
		CALL(__NR_mmap, GUEST_FREE, 0x4000, 3, 0x32, -1, 0);
		CALL(__NR_munmap, GUEST_FREE, 0x4000);
	}
	CALL(H_RESULT, 4, 1);
	exit_group(0);
}

static volatile uint64_t flip;

static void flipper(long i)
{
	for (;;)
		flip = flip == (uint64_t)tls[1] ? (uint64_t)tls[2] : (uint64_t)tls[1];
}

static void race_continue(long n)
{
	long bad = 0;

	tls[1][0] = 1;
	tls[2][0] = 2;
	start_thread(0, flipper, 0);
	for (long i = 0; i < n; i++) {
		uint64_t v = flip == (uint64_t)tls[1] ? (uint64_t)tls[1] : (uint64_t)tls[2];

		CALL(__NR_arch_prctl, ARCH_SET_FS, v);
		bad += read_fs() != (v == (uint64_t)tls[1] ? 1 : 2);
	}
	CHECK(bad == 0, "arguments of continued calls cannot change");
	exit_group(0);
}

static void stress_main(long id)
{
	volatile uint64_t *m = (volatile uint64_t *)(uintptr_t)(GUEST_FREE + id * 0x100000);
	struct ymm y, z;
	long i, bad = 0;

	for (i = 0; i < 100; i++) {
		y.v[0] = (uint64_t)i;
		y.v[3] = (uint64_t)id;
		bad += CALL(H_RET, i) != i;
		CALL(__NR_mmap, m, 0x4000, 3, 0x32, -1, 0);
		bad += m[0] != 0 || m[2047] != 0;
		m[0] = m[2047] = (uint64_t)i;
		put_ymm(&y);
		CALL(H_FPU, 0);
		get_ymm(&z);
		bad += z.v[0] != (uint64_t)i || z.v[3] != (uint64_t)id;
		bad += m[0] != (uint64_t)i;
		CALL(__NR_munmap, m, 0x4000);
		if (id == 0 && CALL(__NR_clone, CLONE_KIND_FORK) == 0)
			exit_group(0);
	}
	CALL(H_RESULT, 10 + id, bad);
}

static void stress(long unused)
{
	CALL(H_INTR);
	for (int i = 0; i < 4; i++)
		start_thread(i, stress_main, i);
	CALL(H_ALONE);
}

static void nothing(long i)
{
}

static uint64_t samples[2048];

static uint64_t cycles(void)
{
	uint32_t lo, hi;

	__asm__ volatile("lfence; rdtsc" : "=a"(lo), "=d"(hi) : : "memory");
	return (uint64_t)hi << 32 | lo;
}

/* The median of @n runs, in cycles of the time stamp counter. */
static uint64_t median(void (*fn)(void), long n)
{
	for (long i = 0; i < n; i++) {
		uint64_t t = cycles();

		fn();
		samples[i] = cycles() - t;
	}
	for (long gap = n / 2; gap; gap /= 2)
		for (long i = gap; i < n; i++)
			for (long j = i - gap; j >= 0 && samples[j] > samples[j + gap]; j -= gap) {
				uint64_t t = samples[j];

				samples[j] = samples[j + gap];
				samples[j + gap] = t;
			}
	return samples[n / 2];
}

static void bench_call(void)
{
	CALL(__NR_getppid);
}

static void bench_mmap(void)
{
	CALL(__NR_mmap, GUEST_FREE, 0x4000, 3, 0x32, -1, 0);
}

static void bench_munmap(void)
{
	CALL(__NR_munmap, GUEST_FREE, 0x4000);
}

static void bench_fork(void)
{
	if (CALL(__NR_clone, CLONE_KIND_FORK) == 0)
		exit_group(0);
	CALL(H_ALONE);
}

static void bench_thread(void)
{
	start_thread(0, nothing, 0);
	CALL(H_ALONE);
}

static void bench_exec(void)
{
	if (CALL(__NR_clone, CLONE_KIND_FORK) == 0)
		CALL(__NR_execve, G_NOTHING, 0);
	CALL(H_ALONE);
}

static void bench(long unused)
{
	CALL(H_RESULT, 30, median(bench_call, 2000));
	CALL(H_RESULT, 31, median(bench_mmap, 1000));
	CALL(H_RESULT, 32, median(bench_munmap, 1000));
	CALL(H_RESULT, 33, median(bench_fork, 100));
	CALL(H_RESULT, 34, median(bench_thread, 100));
	CALL(H_RESULT, 35, median(bench_exec, 50));
}

static void bench_parked(long unused)
{
	CALL(__NR_mmap, GUEST_FREE, 0x100000 * 17, 3, 0x32, -1, 0);
	for (long i = 0; i < 1000; i++)
		spawn(CLONE_KIND_THREAD, (uint64_t *)(uintptr_t)(GUEST_FREE + (i + 1) * 0x1000), 0, parker, i);
	while (CALL(H_SLEEPERS) < 1000)
		CALL(__NR_sched_yield);
	CALL(H_RESULT, 36, median(bench_call, 1000));
}

static void hello(long unused)
{
	long r = CALL(__NR_getppid);

	CALL(H_RESULT, 0, r);
}

static void nop(long n)
{
	while (n--)
		CALL(__NR_getppid);
}

static void die_test(long unused)
{
	CALL(H_KILL);
	for (;;)
		CALL(__NR_sched_yield);
}

static void sleep_test(long unused)
{
	CALL(H_PARK);
}

/* Itself and two children, one of which spins. */
static void orphans(long unused)
{
	if (CALL(__NR_clone, CLONE_KIND_FORK) == 0)
		forever(0);
	CALL(__NR_clone, CLONE_KIND_FORK);
	CALL(H_PARK);
}

/* A thread that outlives the leader of its host process. */
static void survivor(long i)
{
	volatile char *m = (char *)GUEST_FREE;
	long r;

	CALL(H_ALONE);
	r = CALL(__NR_mmap, m, 0x1000, 3, 0x32, -1, 0);
	m[0] = 1;
	CHECK(r == GUEST_FREE, "mmap after the leader's exit");
	CALL(H_FPU, 0);
	if (CALL(__NR_clone, CLONE_KIND_FORK) == 0) {
		m[0] = 2;
		exit_group(0);
	}
	CALL(H_ALONE);
	CHECK(m[0] == 1, "fork after the leader's exit");
	CALL(H_RESULT, 6, 1);
	exit_group(0);
}

static void leader_test(long unused)
{
	start_thread(0, survivor, 0);
	for (;;)
		CALL(__NR_exit);
}

static volatile uint64_t turns[8], over, mistakes;

static void count_turns(long i)
{
	while (!over)
		turns[i]++;
}

/* More threads that never make a call than there are processors, and one that does. */
static void fair_test(long n)
{
	long i, rounds;

	for (i = 0; i < n; i++)
		start_thread((int)i, count_turns, i);
	if (n == 8)
		count_turns(0); /* for ever */
	for (rounds = 0; rounds < 100000; rounds++) {
		CALL(H_RET, rounds);
		for (i = 0; i < n && turns[i]; i++)
			;
		if (i == n)
			break;
	}
	CHECK(rounds < 100000, "every thread has its turn");
	for (i = 0; i < n; i++)
		turns[i] = 0;
	for (i = 0; i < n; i++)
		while (!turns[i])
			CALL(__NR_sched_yield);
	CHECK(1, "and has it again");
	over = 1;
	CALL(H_ALONE);
}

/* Vector registers and mxcsr of its own, over time slices. */
static void keep_state(long i)
{
	struct ymm y = { { (uint64_t)i, 2, 3, (uint64_t)i << 32 } }, z;
	const uint32_t csr = 0x1f80 | (uint32_t)(i & 3) << 13;
	uint32_t csr_now;

	put_ymm(&y);
	__asm__ volatile("ldmxcsr %0" : : "m"(csr));
	while (!over) {
		get_ymm(&z);
		__asm__ volatile("stmxcsr %0" : "=m"(csr_now));
		if (z.v[0] != y.v[0] || z.v[3] != y.v[3] || csr_now != csr || read_fs() != 0x1000 + (uint64_t)i)
			mistakes++;
		turns[i]++;
	}
}

static void keep_test(long n)
{
	for (long i = 0; i < n; i++)
		start_thread((int)i, keep_state, i);
	for (long round = 0; round < 5; round++) {
		for (long i = 0; i < n; i++)
			turns[i] = 0;
		for (long i = 0; i < n; i++)
			while (!turns[i])
				CALL(H_FPU, 0);
	}
	over = 1;
	CALL(H_ALONE);
	CHECK(mistakes == 0, "state of threads is kept over time slices");
}

static void (*const programs[])(long) = {
	[G_HELLO] = hello,
	[G_NOP] = nop,
	[G_VALUES] = values,
	[G_FORK] = fork_test,
	[G_THREAD] = thread_test,
	[G_VM] = vm_test,
	[G_REGS] = regs_test,
	[G_FPU] = fpu_test,
	[G_FPU_TWO] = fpu_two_test,
	[G_FAULT] = fault_test,
	[G_SPIN] = spin,
	[G_EXEC] = exec_test,
	[G_EXECED] = execed,
	[G_PARK] = park_test,
	[G_MM] = mm_test,
	[G_EXIT_GROUP] = exit_group_test,
	[G_DIE] = die_test,
	[G_HOSTILE] = hostile,
	[G_RACE_ORDER] = race_order,
	[G_RACE_CONTINUE] = race_continue,
	[G_NOTHING] = nothing,
	[G_BENCH] = bench,
	[G_BENCH_PARKED] = bench_parked,
	[G_STRESS] = stress,
	[G_SLEEP] = sleep_test,
	[G_ORPHANS] = orphans,
	[G_LEADER] = leader_test,
	[G_BAD_REGS] = bad_regs_test,
	[G_FAIR] = fair_test,
	[G_KEEP] = keep_test,
};

void guest_main(long program, long arg)
{
	programs[program](arg);
	exit_group(7);
}

__asm__(".section .text.start, \"ax\"\n"
	".globl guest_entry\n"
	"guest_entry:\n"
	"	xor %ebp, %ebp\n"
	"	and $-16, %rsp\n"
	"	call guest_main\n"
	"	ud2\n"
	".text\n");
