/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program does that knows how the platforms of stubs work: it jumps into the shim, forges its reports, races its
 * orders. The first argument "traced" tells that platform ptrace is below. Only makes sense inside sbx. Each case runs
 * in a child; what may become of it is in the table. The parent, and a bystander that counts, must go on.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "platform/stub/layout.h"

#define EXPECT_KILL 1u /* SIGKILL by the sentry */
#define EXPECT_SIG  2u /* a signal of its own making */
#define EXPECT_OK   4u /* exits with 0 */
#define CASE_TIMEOUT 20

#define CHECK(cond) \
	do { \
		if (!(cond)) { \
			printf("# line %d: %s (errno %d)\n", __LINE__, #cond, errno); \
			fflush(stdout); \
			_exit(1); \
		} \
	} while (0)

static const struct shim_sites *sites(void)
{
	return (const struct shim_sites *)(SHIM_BASE + SHIM_TABLE);
}

/* Executes the syscall instruction in front of @site with these registers. Does not come back by itself. */
static void jump(uint64_t site, uint64_t nr, uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
                 uint64_t a5)
{
	uint64_t regs[] = { nr, a0, a1, a2, a3, a4, a5, site - 2 };

	__asm__ volatile("mov 0(%0), %%rax\n"
			 "mov 8(%0), %%rdi\n"
			 "mov 16(%0), %%rsi\n"
			 "mov 24(%0), %%rdx\n"
			 "mov 32(%0), %%r10\n"
			 "mov 40(%0), %%r8\n"
			 "mov 48(%0), %%r9\n"
			 "mov 56(%0), %%r11\n"
			 "mov $1, %%r13\n"
			 "jmp *%%r11\n"
			 :
			 : "b"(regs)
			 : "memory");
}

static void order_getpid(void)
{
	jump(sites()->order, SYS_getpid, 0, 0, 0, 0, 0, 0);
}

static void order_open(void)
{
	static const char path[] = "/etc/passwd";

	jump(sites()->order, SYS_open, (uintptr_t)path, 0, 0, 0, 0, 0);
}

static void order_kill(void)
{
	jump(sites()->order, SYS_kill, (uint64_t)-1, SIGKILL, 0, 0, 0, 0);
}

static void order_clone(void)
{
	jump(sites()->order, SYS_clone, SIGCHLD, 0, 0, 0, 0, 0x1234);
}

static void order_sigreturn(void)
{
	jump(sites()->order, SYS_rt_sigreturn, 0, 0, 0, 0, 0, 0);
}

static void order_x32(void)
{
	jump(sites()->order, 0x40000000 | SYS_getpid, 0, 0, 0, 0, 0, 0);
}

static void sigret_other(void)
{
	jump(sites()->sigret, SYS_getpid, 0, 0, 0, 0, 0, 0);
}

static void done_forged(void)
{
	jump(sites()->done, SHIM_MAGIC, SHIM_OP_DONE, 0, 0, 0, 0, 0);
}

static void done_token(void)
{
	jump(sites()->done, SHIM_MAGIC, SHIM_OP_DONE, 1, 0, 0, 0, 0x123456789abcdef);
}

static void done_getpid(void)
{
	jump(sites()->done, SYS_getpid, SHIM_OP_DONE, 0, 0, 0, 0, 0);
}

static void sig_frame_outside(void)
{
	static uint64_t frame[512];

	jump(sites()->sig, SHIM_MAGIC, SIGSEGV << 8 | SHIM_OP_SIGNAL, 1, 0, 14, 4, (uintptr_t)frame);
}

static void sig_frame_shim(void)
{
	jump(sites()->sig, SHIM_MAGIC, SIGSEGV << 8 | SHIM_OP_SIGNAL, 1, 0, 14, 4, SHIM_BASE);
}

static void sig_frame_wrap(void)
{
	jump(sites()->sig, SHIM_MAGIC, SIGSEGV << 8 | SHIM_OP_SIGNAL, 1, 0, 14, 4, (uint64_t)-8);
}

static void sig_unknown(void)
{
	jump(sites()->sig, SHIM_MAGIC, SIGTERM << 8 | SHIM_OP_SIGNAL, 1, 0, 14, 4, SLOT_BASE + SLOT_FRAME);
}

static void sig_in_slot(void)
{
	jump(sites()->sig, SHIM_MAGIC, SIGSEGV << 8 | SHIM_OP_SIGNAL, 1, 0x4242, 14, 4, SLOT_BASE + SLOT_FRAME);
}

static void sig_kick(void)
{
	jump(sites()->sig, SHIM_MAGIC, SHIM_KICK << 8 | SHIM_OP_SIGNAL, 0, 0, 0, 0, SLOT_BASE + SLOT_FRAME);
}

static void trap_low_frame(void)
{
	jump(sites()->trap, SHIM_TRAP | SYS_getpid, 0, 0, 0, 0, 0, 0);
}

static void trap_no_magic(void)
{
	jump(sites()->trap, SYS_getpid, 0, 0, 0, 0, 0, 0);
}

static void trap_fork(void)
{
	jump(sites()->trap, SHIM_TRAP | SLOT_FRAME << 12 | SYS_fork, 0, 0, 0, 0, 0, 0);
}

static void trap_execve(void)
{
	static char *argv[] = { (char *)"/bin/true", NULL };

	jump(sites()->trap, SHIM_TRAP | SLOT_FRAME << 12 | SYS_execve, (uintptr_t) "/bin/true", (uintptr_t)argv, 0, 0,
	     0, 0);
}

static void trap_mmap(void)
{
	jump(sites()->trap, SHIM_TRAP | SLOT_FRAME << 12 | SYS_mmap, 0, 4096, 3, 0x22, (uint64_t)-1, 0);
}

static void mid_shim(void)
{
	__asm__ volatile("jmp *%0" : : "r"(SHIM_BASE + 1));
}

static void shim_write(void)
{
	*(volatile char *)SHIM_BASE = 0;
}

static void before_shim(void)
{
	uint8_t *p = mmap((void *)(SHIM_BASE - 4096), 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

	CHECK(p != MAP_FAILED);
	p[4094] = 0x0f; /* syscall, the address behind it is the shim's first */
	p[4095] = 0x05;
	__asm__ volatile("jmp *%1" : : "a"(SYS_getpid), "r"(p + 4094));
}

static long sys6(long nr, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f)
{
	return syscall(nr, a, b, c, d, e, f);
}

static bool refused(long r)
{
	return r == -1 && (errno == EINVAL || errno == ENOMEM || errno == ENOSYS || errno == EPERM || errno == EEXIST ||
			   errno == EFAULT);
}

static const struct {
	uint64_t at, len;
} reserved[] = {
	{ SHIM_BASE, 4096 },
	{ SHIM_BASE - 4096, 8192 },
	{ SLOT_BASE, SLOT_SIZE },
	{ SHIM_BASE - 4096, SHIM_END - SHIM_BASE + 8192 },
	{ SHIM_END - 4096, 8192 },
	{ 4096, 0x7fffffffe000 },
	{ SHIM_BASE, (uint64_t)-4096 },
	{ SHIM_BASE, (uint64_t)-1 },
	{ 0, (uint64_t)-1 },
};

static void reserved_range(void)
{
	char *own = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(own != MAP_FAILED);
	for (unsigned i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++) {
		uint64_t at = reserved[i].at, len = reserved[i].len;

		CHECK(refused(sys6(SYS_munmap, at, len, 0, 0, 0, 0)));
		CHECK(refused(sys6(SYS_mprotect, at, len, PROT_READ | PROT_WRITE, 0, 0, 0)));
		CHECK(refused(sys6(SYS_mmap, at, len, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, (uint64_t)-1, 0)));
		CHECK(refused(sys6(SYS_mmap, at, len, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
		                   (uint64_t)-1, 0)));
		CHECK(refused(sys6(SYS_mremap, at, len, 4096, MREMAP_MAYMOVE, 0, 0)));
		CHECK(refused(sys6(SYS_mremap, at, len, len + 4096, MREMAP_MAYMOVE, 0, 0)));
		CHECK(refused(sys6(SYS_mremap, at, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, (uintptr_t)own, 0)));
		CHECK(refused(sys6(SYS_mremap, (uintptr_t)own, 4096, len, MREMAP_MAYMOVE | MREMAP_FIXED, at, 0)));
		if (at < SHIM_BASE - 4096)
			continue; /* the rest is done to what else lies there */
		CHECK(refused(sys6(SYS_madvise, at, len, MADV_DONTNEED, 0, 0, 0)));
		CHECK(refused(sys6(SYS_madvise, at, len, MADV_REMOVE, 0, 0, 0)));
		CHECK(refused(sys6(SYS_mlock, at, len, 0, 0, 0, 0)));
		CHECK(refused(sys6(SYS_remap_file_pages, at, len, 0, 0, 0, 0)));
		CHECK(refused(sys6(SYS_shmat, 0, at, 040000, 0, 0, 0)));
	}
	CHECK(sys6(SYS_brk, SHIM_BASE, 0, 0, 0, 0, 0) != (long)SHIM_BASE);
	CHECK(sys6(SYS_brk, SHIM_END + 4096, 0, 0, 0, 0, 0) != (long)(SHIM_END + 4096));
	CHECK(refused(syscall(SYS_userfaultfd, 0)));
	/* What it can still do: the shim and the slot are as they were. */
	CHECK(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED);
	CHECK(sites()->order > SHIM_BASE && sites()->order < SHIM_BASE + SHIM_TABLE);
}

static void slot_scribble(void)
{
	for (int i = 0; i < 200; i++) {
		memset((void *)SLOT_BASE, i, SLOT_SIZE);
		CHECK(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED);
		memset((void *)SLOT_BASE, 0xff, SLOT_SIZE);
		CHECK(syscall(SYS_getppid) > 0);
	}
}

static void rsp_in_slot(void)
{
	__asm__ volatile("mov %1, %%rsp\n"
			 "xor %%edi, %%edi\n"
			 "mov $4096, %%esi\n"
			 "mov $1, %%edx\n"
			 "mov $0x22, %%r10d\n"
			 "mov $-1, %%r8\n"
			 "xor %%r9d, %%r9d\n"
			 "syscall\n"
			 "mov $60, %%eax\n"
			 "xor %%edi, %%edi\n"
			 "syscall\n"
			 :
			 : "a"(SYS_mmap), "r"((uint64_t)SLOT_BASE + SLOT_STACK + 1024)
			 : "rdi", "rsi", "rdx", "r10", "r8", "r9", "memory");
}

static void rsp_in_shim(void)
{
	__asm__ volatile("mov %0, %%rsp\n"
			 "push %%rax\n"
			 :
			 : "r"((uint64_t)SHIM_BASE + 2048)
			 : "memory");
}

/* Loads a context of our own by the one call that nobody is told of: host signals are blocked then, for ever. */
static volatile int returned;

static void free_sigreturn(uint64_t altstack)
{
	struct { uint64_t ret; ucontext_t uc; } __attribute__((packed, aligned(16))) f;
	static uint8_t stack[65536] __attribute__((aligned(16)));

	memset(&f, 0, sizeof(f));
	getcontext(&f.uc);
	if (returned++)
		return;
	memset(&f.uc.uc_sigmask, 0xff, sizeof(f.uc.uc_sigmask));
	f.uc.uc_stack.ss_sp = altstack ? (void *)altstack : stack;
	f.uc.uc_stack.ss_size = sizeof(stack);
	f.uc.uc_stack.ss_flags = 0;
	f.uc.uc_mcontext.gregs[REG_CSGSFS] = 0x2b000000000033;
	f.uc.uc_mcontext.fpregs = NULL;
	f.uc.uc_flags = 6;
	__asm__ volatile("mov %0, %%rsp\n"
			 "jmp *%1\n"
			 :
			 : "r"(&f.uc), "r"(sites()->sigret - 2), "a"(SYS_rt_sigreturn)
			 : "memory");
}

static void blocked_goes_on(void)
{
	free_sigreturn(0);
	for (int i = 0; i < 100; i++)
		CHECK(syscall(SYS_getppid) > 0);
	_exit(0);
}

/* A trap with SIGSYS blocked: the host kernel ends the process. */
static void blocked_traps(void)
{
	free_sigreturn(0);
	(void)!mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < 1000; i++)
		(void)!fork();
	_exit(0);
}

static void blocked_spins(void)
{
	free_sigreturn(0);
	for (;;)
		;
}

static void *spin(void *arg)
{
	if (arg)
		free_sigreturn(0);
	for (;;)
		;
	return NULL;
}

/* Ends with a thread that nobody can interrupt. */
static void blocked_thread_exit(void)
{
	pthread_t t;

	CHECK(!pthread_create(&t, NULL, spin, (void *)1));
	usleep(100000);
	syscall(SYS_exit_group, 0);
}

static void blocked_thread_exec(void)
{
	pthread_t t;

	CHECK(!pthread_create(&t, NULL, spin, (void *)1));
	usleep(100000);
	execl("/bin/true", "true", NULL);
	_exit(1);
}

static volatile int stop;

/* Changes the order block of the first thread's slot as fast as it can. */
static void *scribble_orders(void *arg)
{
	volatile uint64_t *o = (volatile uint64_t *)SLOT_BASE;

	while (!stop) {
		o[0] = SYS_write;
		o[1] = 1;
		o[2] = (uintptr_t)"ESCAPED\n";
		o[3] = 8;
	}
	return NULL;
}

static void order_race(void)
{
	pthread_t t;

	CHECK(!pthread_create(&t, NULL, scribble_orders, NULL));
	for (int i = 0; i < 20000; i++) {
		void *p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p != MAP_FAILED)
			munmap(p, 4096);
	}
	stop = 1;
	pthread_join(t, NULL);
}

/* The guest's own thread changes the name that is being opened: either file or error, never a mix that ends the sentry.
 */
static char racy_path[64] = "/etc/passwd";

static void *flip_path(void *arg)
{
	while (!stop) {
		memcpy(racy_path, "/etc/shadow", 11);
		memcpy(racy_path, "/etc/passwd", 11);
	}
	return NULL;
}

static void path_race(void)
{
	pthread_t t;

	CHECK(!pthread_create(&t, NULL, flip_path, NULL));
	for (int i = 0; i < 3000; i++) {
		int fd = (int)syscall(SYS_open, racy_path, 0);
		char buf[16];

		if (fd < 0)
			continue;
		CHECK(read(fd, buf, 5) == 5 && !memcmp(buf, "root:", 5));
		close(fd);
	}
	stop = 1;
	pthread_join(t, NULL);
}

static void *unmap_race_thread(void *arg)
{
	while (!stop) {
		munmap(arg, 4096);
		(void)!mmap(arg, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	}
	return NULL;
}

/* Buffers vanish while they are used. */
static void buffer_race(void)
{
	char *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_t t;
	int fds[2];

	CHECK(!pipe(fds) && !pthread_create(&t, NULL, unmap_race_thread, p));
	for (int i = 0; i < 2000; i++) {
		ssize_t n = write(fds[1], p, 4096);

		CHECK(n > 0 || errno == EFAULT);
		if (n > 0) {
			n = read(fds[0], p, 4096);
			CHECK(n > 0 || errno == EFAULT);
			if (n < 0)
				break; /* the pipe is full */
		}
	}
	stop = 1;
	pthread_join(t, NULL);
}

static void int80(void)
{
	long r;

	__asm__ volatile("int $0x80" : "=a"(r) : "0"(20L) : "memory", "r8", "r9", "r10", "r11");
	CHECK(r == -ENOSYS);
}

/* The 32-bit code segment: int 0x80 from there. */
static void compat_mode(void)
{
	uint8_t *code =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	static const uint8_t prog[] = { 0xb8, 20, 0, 0, 0, 0xcd, 0x80, 0xeb, 0xfe };
	struct { uint32_t off; uint16_t seg; } __attribute__((packed)) far = { 0, 0x23 };

	CHECK(code != MAP_FAILED);
	memcpy(code, prog, sizeof(prog));
	far.off = (uint32_t)(uintptr_t)code;
	alarm(2);
	__asm__ volatile("ljmp *%0" : : "m"(far));
}

static long raw(long nr, long a, long b)
{
	long r;

	__asm__ volatile("syscall" : "=a"(r) : "0"(nr), "D"(a), "S"(b) : "rcx", "r11", "memory");
	return r;
}

static void numbers(void)
{
	static const long none[] = {
		0x40000000 + 39, 0x40000000 + 520, 0x7fffffff, 500000, SHIM_MAGIC, 1023, 0x10000027, -1
	};

	for (unsigned i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		CHECK(raw(none[i], 0, 0) == -ENOSYS);
	/* The host looks at 32 bits of the number. */
	CHECK(raw((long)(1ull << 32) + SYS_getpid, 0, 0) == getpid());
}

static void vsyscall(void)
{
	long (*gettime)(long *) = (long (*)(long *))0xffffffffff600400;
	long a = gettime(NULL), b = time(NULL);

	CHECK(b - a <= 2 && a - b <= 2);
}

#define ARCH(code, addr) raw(SYS_arch_prctl, (code), (long)(addr))

static void arch_prctls(void)
{
	uint64_t v = 0;

	CHECK(ARCH(0x1023, 18) < 0);              /* permission for AMX */
	CHECK(ARCH(0x1025, 18) < 0);              /* and for guests of ours */
	CHECK(ARCH(0x1002, 0x800000000000) < 0);  /* FS beyond user space */
	CHECK(ARCH(0x1001, 0xffff800000000000) < 0);
	CHECK(ARCH(0x1003, 0xffff800000000000) < 0);
	CHECK(ARCH(0x1004, 16) < 0);
	CHECK(ARCH(0x2001, 0) < 0);               /* map a vdso of x32 */
	CHECK(ARCH(0x2003, SHIM_BASE) < 0);       /* and the usual one */
	CHECK(ARCH(0x4002, 6) < 0);               /* tagged addresses */
	CHECK(ARCH(0x5001, 1) < 0);               /* shadow stack */
	CHECK(ARCH(0x7777, 0) == -EINVAL);
	CHECK(ARCH(0x1003, &v) == 0 && v);
	CHECK(ARCH(0x1002, v) == 0);
}

/* Registers that a signal return must not load. */
static void on_usr1(int sig, siginfo_t *si, void *ctx)
{
	ucontext_t *uc = ctx;

	uc->uc_mcontext.gregs[REG_RIP] = (long long)0xffff800000000000;
	uc->uc_mcontext.gregs[REG_EFL] |= 0x3000; /* I/O privilege */
	uc->uc_mcontext.gregs[REG_CSGSFS] = 0x10;
}

static void bad_sigreturn(void)
{
	struct sigaction sa = { .sa_sigaction = on_usr1, .sa_flags = SA_SIGINFO };

	sigaction(SIGUSR1, &sa, NULL);
	raise(SIGUSR1);
}

static void wild_rsp(void)
{
	__asm__ volatile("mov $0x8000000000000000, %%rsp\n"
			 "mov $39, %%eax\n"
			 "syscall\n"
			 "mov $57, %%eax\n"
			 "syscall\n"
			 "push %%rax\n" : : : "memory");
}

static void privileged(void)
{
	__asm__ volatile("cli");
}

static void io_port(void)
{
	__asm__ volatile("in $0x80, %%al" : : : "eax");
}

/* A traced stub's orders: the breakpoint behind them is nobody's signal but ours. */
static void once_forged(void)
{
	jump(sites()->once, SYS_getpid, 0, 0, 0, 0, 0, 0);
}

static volatile sig_atomic_t traps;

static void on_trap(int sig)
{
	traps++;
}

/* Single-steps itself over system calls: each is made once, and the steps go on behind it. */
static void single_step(void)
{
	struct sigaction sa = { .sa_handler = on_trap };
	long pid = getpid(), got[2];

	CHECK(sigaction(SIGTRAP, &sa, NULL) == 0);
	__asm__ volatile("pushf\n"
			 "orq $0x100, (%%rsp)\n"
			 "popf\n"
			 "mov $39, %%eax\n"
			 "syscall\n"
			 "mov %%rax, %0\n"
			 "mov $39, %%eax\n"
			 "syscall\n"
			 "mov %%rax, %1\n"
			 "pushf\n"
			 "andq $~0x100, (%%rsp)\n"
			 "popf\n"
			 : "=&r"(got[0]), "=&r"(got[1]) : : "rax", "rcx", "r11", "memory", "cc");
	CHECK(got[0] == pid && got[1] == pid);
	CHECK(traps >= 6);
	traps = 0;
	getppid();
	CHECK(traps == 0);
	__asm__ volatile("int3");
	CHECK(traps == 1);
}

/* Selectors of its own choice, kept or not: calls, threads and children go on. */
static void segments(void)
{
	static const uint16_t sel[] = { 0, 3, 0x2b };
	int st;

	for (unsigned i = 0; i < sizeof(sel) / sizeof(sel[0]); i++) {
		pid_t pid;

		__asm__ volatile("mov %0, %%ds; mov %0, %%es; mov %0, %%gs" : : "r"((uint32_t)sel[i]));
		CHECK(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED);
		pid = fork();
		if (pid == 0)
			_exit(getppid() > 0 ? 7 : 8);
		CHECK(pid > 0 && waitpid(pid, &st, 0) == pid && WIFEXITED(st) && WEXITSTATUS(st) == 7);
	}
}

static const struct {
	const char *name;
	void (*fn)(void);
	unsigned expect;
} cases[] = {
	{ "order_getpid", order_getpid, EXPECT_KILL },
	{ "order_open", order_open, EXPECT_KILL },
	{ "order_kill", order_kill, EXPECT_KILL },
	{ "order_clone", order_clone, EXPECT_KILL },
	{ "order_sigreturn", order_sigreturn, EXPECT_KILL },
	{ "order_x32", order_x32, EXPECT_KILL },
	{ "sigret_other", sigret_other, EXPECT_KILL },
	{ "done_forged", done_forged, EXPECT_KILL },
	{ "done_token", done_token, EXPECT_KILL },
	{ "done_getpid", done_getpid, EXPECT_KILL },
	{ "sig_frame_outside", sig_frame_outside, EXPECT_KILL },
	{ "sig_frame_shim", sig_frame_shim, EXPECT_KILL },
	{ "sig_frame_wrap", sig_frame_wrap, EXPECT_KILL },
	{ "sig_unknown", sig_unknown, EXPECT_KILL },
	{ "sig_in_slot", sig_in_slot, EXPECT_KILL | EXPECT_SIG },
	{ "sig_kick", sig_kick, EXPECT_KILL | EXPECT_SIG },
	{ "trap_low_frame", trap_low_frame, EXPECT_KILL },
	{ "trap_no_magic", trap_no_magic, EXPECT_KILL },
	{ "trap_fork", trap_fork, EXPECT_KILL | EXPECT_SIG },
	{ "trap_execve", trap_execve, EXPECT_KILL | EXPECT_SIG | EXPECT_OK },
	{ "trap_mmap", trap_mmap, EXPECT_KILL | EXPECT_SIG },
	{ "mid_shim", mid_shim, EXPECT_KILL | EXPECT_SIG },
	{ "before_shim", before_shim, EXPECT_KILL },
	{ "shim_write", shim_write, EXPECT_SIG },
	{ "reserved_range", reserved_range, EXPECT_OK },
	{ "slot_scribble", slot_scribble, EXPECT_OK },
	{ "rsp_in_slot", rsp_in_slot, EXPECT_KILL | EXPECT_SIG | EXPECT_OK },
	{ "rsp_in_shim", rsp_in_shim, EXPECT_KILL | EXPECT_SIG },
	{ "blocked_goes_on", blocked_goes_on, EXPECT_OK },
	{ "blocked_traps", blocked_traps, EXPECT_KILL | EXPECT_SIG },
	{ "blocked_spins", blocked_spins, EXPECT_KILL },
	{ "blocked_thread_exit", blocked_thread_exit, EXPECT_OK | EXPECT_KILL },
	{ "blocked_thread_exec", blocked_thread_exec, EXPECT_OK | EXPECT_KILL },
	{ "order_race", order_race, EXPECT_KILL | EXPECT_OK },
	{ "path_race", path_race, EXPECT_OK },
	{ "buffer_race", buffer_race, EXPECT_OK },
	{ "int80", int80, EXPECT_OK | EXPECT_SIG },
	{ "compat_mode", compat_mode, EXPECT_KILL | EXPECT_SIG },
	{ "numbers", numbers, EXPECT_OK },
	{ "vsyscall", vsyscall, EXPECT_OK | EXPECT_SIG },
	{ "arch_prctls", arch_prctls, EXPECT_OK },
	{ "bad_sigreturn", bad_sigreturn, EXPECT_SIG },
	{ "wild_rsp", wild_rsp, EXPECT_SIG },
	{ "privileged", privileged, EXPECT_SIG },
	{ "io_port", io_port, EXPECT_SIG },
	{ "once_forged", once_forged, EXPECT_KILL },
	{ "single_step", single_step, EXPECT_OK },
	{ "segments", segments, EXPECT_OK },
};

static volatile unsigned long *counter; /* of the bystander */

static pid_t start_bystander(void)
{
	pid_t pid;

	counter = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid = fork();
	while (pid == 0) {
		++*counter;
		usleep(1000);
	}
	return pid;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Waits for the child; one that needs it gets SIGKILL, which must then work at once. */
static bool end_of(pid_t pid, bool spins, int *st)
{
	double start = now();
	bool killed = false;

	for (;;) {
		pid_t r = waitpid(pid, st, WNOHANG);

		if (r == pid)
			return !killed || (spins && now() - start < 2);
		if (r < 0)
			return false;
		if (!killed && now() - start > (spins ? 0.3 : CASE_TIMEOUT)) {
			killed = true;
			kill(pid, SIGKILL);
		}
		if (now() - start > CASE_TIMEOUT + 5)
			return false;
		usleep(2000);
	}
}

/* On platform ptrace the shim is code like any other: to lie with its calls is to make calls of one's own. */
static bool traced;

static bool as_expected(int st, unsigned expect)
{
	if (traced && (expect & EXPECT_KILL))
		expect |= EXPECT_SIG | EXPECT_OK;
	if (WIFEXITED(st))
		return WEXITSTATUS(st) == 0 && (expect & EXPECT_OK);
	if (WTERMSIG(st) == SIGKILL)
		return expect & EXPECT_KILL;
	return expect & EXPECT_SIG;
}

int main(int argc, char **argv)
{
	unsigned n = 0, failed = 0;
	pid_t by;

	if (argc > 1 && !strcmp(argv[1], "traced")) {
		traced = true;
		argc--;
		argv++;
	}
	if (argc > 1 && !strcmp(argv[1], "spin"))
		blocked_spins();
	by = start_bystander();
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		unsigned long before = *counter;
		bool ended, ok;
		pid_t pid;
		int st = 0;

		if (argc > 1 && strcmp(argv[1], cases[i].name))
			continue;
		/* Without the shim these are a guest that kills all of its own, and a fork bomb. */
		if (traced && (cases[i].fn == order_kill || cases[i].fn == blocked_traps))
			continue;
		pid = fork();
		if (pid == 0) {
			cases[i].fn();
			_exit(0);
		}
		ended = end_of(pid, cases[i].fn == blocked_spins, &st);
		ok = ended && as_expected(st, cases[i].expect);
		if (!ok)
			printf("# %s, status %#x\n", ended ? "ended" : "did not end", st);
		usleep(3000);
		if (*counter == before) {
			printf("# the bystander stands still\n");
			ok = false;
		}
		failed += !ok;
		printf("%sok %u - %s\n", ok ? "" : "not ", ++n, cases[i].name);
	}
	kill(by, SIGKILL);
	printf("1..%u\n", n);
	return failed ? 1 : 0;
}
