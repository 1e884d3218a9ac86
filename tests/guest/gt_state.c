/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machine state of a thread is its own: vector and mask registers, control words, segment bases, over preemption,
 * system calls, signals, forks and new threads. Many run at once on few processors, each with a pattern of its own.
 */
#include <asm/prctl.h>
#include <pthread.h>
#include <stddef.h>
#include <sched.h>
#include <sys/auxv.h>
#include <sys/time.h>
#include <ucontext.h>

#include "gt_fault.h"

static bool have_avx, have_avx512;

static void detect(void)
{
	have_avx = __builtin_cpu_supports("avx");
	have_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw");
}

/* What is loaded, and what is read back. */
struct vec {
	uint64_t v[16][8]; /* zmm0-15, or their lower part */
	uint64_t hi[8];    /* zmm31 */
	uint64_t k;
	uint32_t mxcsr;
	uint16_t cw;
	double st;
};

static void vec_make(struct vec *s, uint64_t seed)
{
	memset(s, 0, sizeof(*s));
	for (int i = 0; i < 16; i++)
		for (int j = 0; j < (have_avx512 ? 8 : have_avx ? 4 : 2); j++)
			s->v[i][j] = seed * 0x9e3779b97f4a7c15ull + (uint64_t)(i * 8 + j);
	for (int j = 0; have_avx512 && j < 8; j++)
		s->hi[j] = ~seed * 0x9e3779b97f4a7c15ull - (uint64_t)j;
	s->k = have_avx512 ? seed * 0x0123456789abcdefull : 0;
	s->mxcsr = 0x1f80 | (uint32_t)(seed & 3) << 13 | (uint32_t)(seed >> 2 & 1) << 15;
	s->cw = (uint16_t)(0x37f & ~0xc00) | (uint16_t)((seed & 3) << 10);
	s->st = (double)seed + 0.125;
}

#define EACH16(op) op(0) op(1) op(2) op(3) op(4) op(5) op(6) op(7) op(8) op(9) op(10) op(11) op(12) op(13) op(14) op(15)
#define LOAD_Z(i) "vmovdqu64 " #i "*64(%0), %%zmm" #i "\n\t"
#define LOAD_Y(i) "vmovdqu " #i "*64(%0), %%ymm" #i "\n\t"
#define LOAD_X(i) "movdqu " #i "*64(%0), %%xmm" #i "\n\t"
#define SAVE_Z(i) "vmovdqu64 %%zmm" #i ", " #i "*64(%1)\n\t"
#define SAVE_Y(i) "vmovdqu %%ymm" #i ", " #i "*64(%1)\n\t"
#define SAVE_X(i) "movdqu %%xmm" #i ", " #i "*64(%1)\n\t"
/* Loads all, does @middle (which may use rax, rcx, rdx, rsi, rdi, r8-r11 and get its argument in rsi), saves all. */
#define VEC_RUN(load, save, middle, in, out, nr, a0, a1) \
	__asm__ volatile("ldmxcsr 1096(%0)\n\tfninit\n\tfldcw 1100(%0)\n\tfldl 1104(%0)\n\t" load middle save \
			 "stmxcsr 1096(%1)\n\tfnstcw 1100(%1)\n\tfstpl 1104(%1)\n\t" \
			 : : "b"(in), "r"(out), "a"((long)(nr)), "D"((long)(a0)), "S"((long)(a1)) \
			 : "rcx", "rdx", "r8", "r9", "r10", "r11", "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", \
			   "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15")

/* Spins @loops times, or executes the system call @nr(a0, a1), with all registers loaded; they must be as before. */
enum { SPIN = -1 };

#define MIDDLE "cmp $-1, %%rax\n\tje 1f\n\tsyscall\n\tjmp 2f\n1:\tdec %%rsi\n\tjnz 1b\n2:\n\t"

static long vec_over(uint64_t seed, long nr, long a0, long a1)
{
	struct vec in, out;

	_Static_assert(offsetof(struct vec, hi) == 1024 && offsetof(struct vec, mxcsr) == 1096, "offsets in VEC_RUN");
	_Static_assert(offsetof(struct vec, cw) == 1100 && offsetof(struct vec, st) == 1104, "offsets in VEC_RUN");
	vec_make(&in, seed);
	memset(&out, 0, sizeof(out));
	if (have_avx512)
		VEC_RUN(EACH16(LOAD_Z) "vmovdqu64 1024(%0), %%zmm31\n\tkmovq 1088(%0), %%k5\n\t",
			EACH16(SAVE_Z) "vmovdqu64 %%zmm31, 1024(%1)\n\tkmovq %%k5, 1088(%1)\n\t", MIDDLE, &in, &out, nr, a0, a1);
	else if (have_avx)
		VEC_RUN(EACH16(LOAD_Y), EACH16(SAVE_Y), MIDDLE, &in, &out, nr, a0, a1);
	else
		VEC_RUN(EACH16(LOAD_X), EACH16(SAVE_X), MIDDLE, &in, &out, nr, a0, a1);
	__asm__ volatile("fninit; ldmxcsr %0" : : "m"((uint32_t){ 0x1f80 }));
	return memcmp(&in, &out, sizeof(in)) ? -1 : 0;
}

/* About a millisecond or two. */
#define SPINS 2000000

static void preempted(void)
{
	pid_t pids[5];

	detect();
	printf("# vectors of %d bits\n", have_avx512 ? 512 : have_avx ? 256 : 128);
	for (unsigned i = 0; i < 5; i++)
		pids[i] = CHILD({
			for (uint64_t k = 0; k < 40; k++)
				CHECK_EQ(vec_over(i * 1000003 + k, SPIN, 0, SPINS), 0);
		});
	for (unsigned i = 0; i < 5; i++)
		CHECK_EXIT(pids[i], 0);
}

static void *vec_thread(void *arg)
{
	for (uint64_t k = 0; k < 40; k++) {
		CHECK_EQ(vec_over((uintptr_t)arg * 7919 + k, SPIN, 0, SPINS), 0);
		CHECK_EQ(vec_over((uintptr_t)arg * 7919 + k, SYS_sched_yield, 0, 0), 0);
	}
	return NULL;
}

static void between_threads(void)
{
	pthread_t th[4];

	detect();
	for (uintptr_t i = 0; i < 4; i++)
		CHECK_EQ(pthread_create(&th[i], NULL, vec_thread, (void *)i), 0);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(pthread_join(th[i], NULL), 0);
}

static void over_calls(void)
{
	struct timespec ts = { 0, 2000000 };
	char *map = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	detect();
	CHECK(map != MAP_FAILED);
	for (uint64_t k = 0; k < 20; k++) {
		CHECK_EQ(vec_over(k, SYS_getpid, 0, 0), 0);
		CHECK_EQ(vec_over(k, SYS_nanosleep, (long)&ts, 0), 0);
		CHECK_EQ(vec_over(k, SYS_munmap, (long)map + (long)k * 4096, 4096), 0);
		CHECK_EQ(vec_over(k, SYS_mmap, 0, 4096), 0);
		CHECK_EQ(vec_over(k, 1000, 0, 0), 0);
	}
}

/* Both sides of a fork have them. */
static void over_fork(void)
{
	pid_t self = getpid();

	detect();
	for (uint64_t k = 0; k < 10; k++) {
		long r = vec_over(k + 77, SYS_fork, 0, 0);
		int st;

		if (getpid() != self)
			_exit(r == 0 ? 9 : 8);
		CHECK_EQ(r, 0);
		CHECK(waitpid(-1, &st, 0) > 0);
		CHECK_EQ(st, 9 << 8);
	}
}

static volatile int hits;
static volatile uint32_t handler_mxcsr;
static volatile uint16_t handler_cw;

static void on_clobber(int sig)
{
	uint32_t csr;
	uint16_t cw;

	__asm__ volatile("stmxcsr %0; fnstcw %1" : "=m"(csr), "=m"(cw));
	handler_mxcsr = csr;
	handler_cw = cw;
	(void)vec_over(~(uint64_t)hits, SYS_getpid, 0, 0);
	hits++;
}

static void over_signals(void)
{
	detect();
	gt_handle(SIGUSR1, on_clobber, 0);
	for (uint64_t k = 0; k < 20; k++)
		CHECK_EQ(vec_over(k + 5, SYS_kill, getpid(), SIGUSR1), 0);
	CHECK_EQ(hits, 20);
	/* A handler begins with the defaults. */
	CHECK_EQ(handler_mxcsr, 0x1f80);
	CHECK_EQ(handler_cw, 0x37f);
	gt_handle(SIGALRM, on_clobber, 0);
	setitimer(ITIMER_REAL, &(struct itimerval){ { 0, 4000 }, { 0, 4000 } }, NULL);
	for (uint64_t k = 0; k < 30 || hits < 25; k++)
		CHECK_EQ(vec_over(k, SPIN, 0, SPINS), 0);
	setitimer(ITIMER_REAL, &(struct itimerval){ 0 }, NULL);
}

/* A program that is executed begins with the defaults as well. */
static void over_exec(void)
{
	char self[256];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	CHECK(n > 0);
	self[n] = 0;
	CHECK_EXIT(CHILD({
		__asm__ volatile("ldmxcsr %0; fldcw %1" : : "m"((uint32_t){ 0x7f80 }), "m"((uint16_t){ 0xf7f }));
		execl(self, self, "--initial-state", (char *)NULL);
		_exit(3);
	}), 0);
}

static int initial_state(void)
{
	uint32_t csr;
	uint16_t cw;
	uint64_t gs = 1;

	__asm__ volatile("stmxcsr %0; fnstcw %1" : "=m"(csr), "=m"(cw));
	syscall(SYS_arch_prctl, ARCH_GET_GS, &gs);
	return csr == 0x1f80 && cw == 0x37f && gs == 0 ? 0 : 4;
}

/* What a handler writes into its frame is what the program goes on with. */
static void on_edit(int sig, siginfo_t *si, void *ucp)
{
	struct _libc_fpstate *fp = ((ucontext_t *)ucp)->uc_mcontext.fpregs;

	memset(&fp->_xmm[7], 0xa5, 16);
	fp->mxcsr = 0x3f80;
	hits++;
}

static void on_bad_mxcsr(int sig, siginfo_t *si, void *ucp)
{
	((ucontext_t *)ucp)->uc_mcontext.fpregs->mxcsr = 0xffffffff;
}

static void frame_edited(void)
{
	uint64_t x[2] = { 0, 0 };
	uint32_t csr;
	long r;

	gt_handle_info(SIGUSR1, on_edit, 0);
	__asm__ volatile("pxor %%xmm7, %%xmm7; syscall; movdqu %%xmm7, %[x]; stmxcsr %[c]"
			 : "=a"(r), [x] "=m"(x), [c] "=m"(csr)
			 : "a"(SYS_kill), "D"((long)getpid()), "S"((long)SIGUSR1)
			 : "rcx", "r11", "xmm7", "memory");
	CHECK_EQ(r, 0);
	CHECK(x[0] == 0xa5a5a5a5a5a5a5a5 && x[1] == x[0]);
	CHECK_EQ(csr, 0x3f80);
	__asm__ volatile("ldmxcsr %0" : : "m"((uint32_t){ 0x1f80 }));
	/* Reserved bits: Linux kills, or takes what can be taken. */
	gt_handle_info(SIGUSR1, on_bad_mxcsr, 0);
	r = gt_status(CHILD(raise(SIGUSR1)));
	CHECK(r == 0 || WTERMSIG(r) == SIGSEGV);
}

/* Segment bases. */
static uint64_t gs_of_call(void)
{
	uint64_t v = 1;

	CHECK_OK(syscall(SYS_arch_prctl, ARCH_GET_GS, &v));
	return v;
}

static void bases_by_call(void)
{
	static const uint64_t refused[] = { 0x7ffffffff000, 0x800000000000, 0x8000000000000000, 0xffff800000000000,
					    0xffffffffffffffff };
	uint64_t fs = 0, word = 0x1122334455667788, got;

	if (gt_five_levels())
		_exit(GT_SKIP);
	CHECK_OK(syscall(SYS_arch_prctl, ARCH_GET_FS, &fs));
	CHECK(fs != 0);
	CHECK_ERR(syscall(SYS_arch_prctl, ARCH_GET_FS, BAD_PTR), EFAULT);
	CHECK_ERR(syscall(SYS_arch_prctl, 0x1005, 0), EINVAL);
	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
		CHECK_ERR(syscall(SYS_arch_prctl, ARCH_SET_GS, refused[i]), EPERM);
		CHECK_ERR(syscall(SYS_arch_prctl, ARCH_SET_FS, refused[i]), EPERM);
	}
	CHECK_OK(syscall(SYS_arch_prctl, ARCH_SET_GS, &word));
	CHECK_EQ(gs_of_call(), (uintptr_t)&word);
	__asm__ volatile("mov %%gs:0, %0" : "=r"(got));
	CHECK_EQ(got, word);
	CHECK_OK(syscall(SYS_arch_prctl, ARCH_SET_GS, 0));
	CHECK_EQ(gs_of_call(), 0);
}

static bool have_fsgsbase(void)
{
	return getauxval(AT_HWCAP2) & 2;
}

static void gs_set(uint64_t v)
{
	__asm__ volatile("wrgsbase %0" : : "r"(v));
}

static uint64_t gs_get(void)
{
	uint64_t v;

	__asm__ volatile("rdgsbase %0" : "=r"(v));
	return v;
}

static void on_gs(int sig)
{
	/* The frame does not hold the bases: what a handler sets stays. */
	gs_set(gs_get() + 1);
}

static void *gs_thread(void *arg)
{
	uint64_t want = (uint64_t)(uintptr_t)arg << 24 | 0x1000;

	gs_set(want);
	for (int i = 0; i < 300; i++) {
		for (volatile int k = 0; k < 3000; k++)
			;
		CHECK_EQ(gs_get(), want);
		sched_yield();
		CHECK_EQ(gs_get(), want);
	}
	return NULL;
}

static void bases_by_instruction(void)
{
	static const uint64_t values[] = { 0x1234, 0x7fffffffffff, 0xffff800000000000, 0xffffffffffffffff, 0 };
	pthread_t th[4];
	pid_t pids[3];

	if (!have_fsgsbase())
		_exit(GT_SKIP);
	gt_fault_init();
	for (volatile size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
		gs_set(values[i]);
		CHECK_EQ(getpid(), gettid());
		CHECK_EQ(gs_get(), values[i]);
		CHECK_EQ(gs_of_call(), values[i]);
		sched_yield();
		CHECK_EQ(gs_get(), values[i]);
		CHECK_EXIT(CHILD(CHECK_EQ(gs_get(), values[i]); gs_set(5)), 0);
		CHECK_EQ(gs_get(), values[i]);
		CHECK_EQ(CATCH(__asm__ volatile("ud2")), SIGILL);
		CHECK_EQ(gs_get(), values[i]);
	}
	gs_set(0xffff800000000000);
	CHECK_PF(0xffff800000000010, SEGV_MAPERR, __asm__ volatile("mov %%gs:0x10, %%eax" : : : "rax"));
	gt_handle(SIGUSR1, on_gs, 0);
	gs_set(0x5000);
	raise(SIGUSR1);
	CHECK_EQ(gs_get(), 0x5001);
	for (unsigned i = 0; i < 3; i++)
		pids[i] = CHILD(gs_thread((void *)(uintptr_t)(i + 100)));
	for (uintptr_t i = 0; i < 4; i++)
		CHECK_EQ(pthread_create(&th[i], NULL, gs_thread, (void *)(i + 1)), 0);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(pthread_join(th[i], NULL), 0);
	for (unsigned i = 0; i < 3; i++)
		CHECK_EXIT(pids[i], 0);
	CHECK_EQ(gs_get(), 0x5001);
}

static void bases_that_are_none(void)
{
	if (!have_fsgsbase() || gt_five_levels())
		_exit(GT_SKIP);
	gt_fault_init();
	/* Processors of five levels let it through whatever the mode, and QEMU's. Then it must do no harm. */
	if (CATCH(gs_set(0x800000000000)) == 0) {
		sched_yield();
		CHECK_EXIT(CHILD(sched_yield()), 0);
		CHECK_EQ(getpid(), gettid());
		_exit(GT_SKIP);
	}
	CHECK_EQ(gt_fault.code, SI_KERNEL);
	CHECK_GP(gs_set(0x8000000000000000));
	CHECK_GP(gs_set(0xffff7fffffffffff));
}

/* fs by instruction, while no library function runs. */
static void fs_by_instruction(void)
{
	if (!have_fsgsbase())
		_exit(GT_SKIP);
	for (int i = 0; i < 200; i++) {
		uint64_t old, during, by_call = 0;
		long r;

		__asm__ volatile("rdfsbase %[old]; wrfsbase %[new]\n\t"
				 "mov $24, %%eax; syscall\n\t" /* sched_yield */
				 "mov $158, %%eax; mov $0x1003, %%edi; mov %[p], %%rsi; syscall\n\t"
				 "rdfsbase %[during]; wrfsbase %[old]"
				 : [old] "=&r"(old), [during] "=&r"(during), "=&a"(r)
				 : [new] "r"(0x123456780ul + (unsigned)i), [p] "r"(&by_call)
				 : "rdi", "rsi", "rcx", "r11", "memory");
		CHECK_EQ(r, 0);
		CHECK_EQ(during, 0x123456780 + i);
		CHECK_EQ(by_call, 0x123456780 + i);
	}
}

static const struct gt_case cases[] = {
	{ "preempted", preempted },
	{ "between_threads", between_threads },
	{ "over_calls", over_calls },
	{ "over_fork", over_fork },
	{ "over_signals", over_signals },
	{ "over_exec", over_exec },
	{ "frame_edited", frame_edited },
	{ "bases_by_call", bases_by_call },
	{ "bases_by_instruction", bases_by_instruction },
	{ "bases_that_are_none", bases_that_are_none },
	{ "fs_by_instruction", fs_by_instruction },
	{ NULL, NULL },
};

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "--initial-state"))
		return initial_state();
	return gt_main(argc, argv, cases);
}
