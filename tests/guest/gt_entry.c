/* SPDX-License-Identifier: Apache-2.0 */
/* The ways into the kernel that a program has, also those that no library uses. */
#include <setjmp.h>
#include <sys/prctl.h>
#include <ucontext.h>

#include "gt_child.h"

static sigjmp_buf back;

static void on_fault(int sig, siginfo_t *si, void *uc)
{
	siglongjmp(back, sig);
}

static bool in_sbx(void)
{
	char buf[256] = "";
	int fd = open("/proc/sys/kernel/osrelease", O_RDONLY);

	if (fd >= 0 && read(fd, buf, sizeof(buf) - 1) < 0)
		buf[0] = 0;
	close(fd);
	return strstr(buf, "sbx") != NULL;
}

static long raw(long nr, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
	long r;

	__asm__ volatile("syscall" : "=a"(r) : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return r;
}

static void numbers(void)
{
	/* Not 335 and 336, the kernel's own for probes: new kernels let no filter see them, and kill the caller. */
	static const long bad[] = { -1, 423, 500, 511, 1000, 0x3fffffff, 0x40000000, 0x40000027, 0x40000200,
				    0x7fffffff };

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		CHECK_EQ(raw(bad[i], 0, 0, 0, 0, 0, 0), -ENOSYS);
	/* Only the low half counts, as Linux has it. */
	CHECK_EQ(raw(SYS_getpid | 0x100000000l, 0, 0, 0, 0, 0, 0), getpid());
	CHECK_EQ(raw((long)(~0ul << 32) | SYS_getpid, 0, 0, 0, 0, 0, 0), getpid());
}

static void registers_kept(void)
{
	unsigned long in[6] = { 0x1111, 0x2222, 0x3333, 0x4444, 0x5555, 0x6666 }, out[6], rcx, r11, rax, rbx;

	for (int i = 0; i < 3; i++) {
		static const long nrs[] = { SYS_getpid, SYS_sched_yield, 1000 };

		__asm__ volatile(
			"mov %[in], %%rbx\n\t"
			"mov (%%rbx), %%rdi\n\tmov 8(%%rbx), %%rsi\n\tmov 16(%%rbx), %%rdx\n\t"
			"mov 24(%%rbx), %%r10\n\tmov 32(%%rbx), %%r8\n\tmov 40(%%rbx), %%r9\n\t"
			"stc\n\tsyscall\n\t"
			"mov %%rbx, %%r12\n\tmov %[out], %%rbx\n\t"
			"mov %%rdi, (%%rbx)\n\tmov %%rsi, 8(%%rbx)\n\tmov %%rdx, 16(%%rbx)\n\t"
			"mov %%r10, 24(%%rbx)\n\tmov %%r8, 32(%%rbx)\n\tmov %%r9, 40(%%rbx)\n\t"
			"mov %%rcx, %[rcx]\n\tmov %%r11, %[r11]\n\tmov %%r12, %[rb]\n\t"
			: "=a"(rax), [rcx] "=m"(rcx), [r11] "=m"(r11), [rb] "=m"(rbx)
			: "a"(nrs[i]), [in] "m"(*(unsigned long *[]){ in }), [out] "m"(*(unsigned long *[]){ out })
			: "rbx", "rcx", "rdx", "rdi", "rsi", "r8", "r9", "r10", "r11", "r12", "memory", "cc");
		CHECK(!memcmp(in, out, sizeof(in)));
		CHECK_EQ(rbx, (unsigned long)in);
		CHECK(r11 & 1); /* the flags with carry */
		CHECK(rcx > 0x1000);
	}
}

static void int80(void)
{
	volatile long ret = 0;
	int s;

	gt_handle_info(SIGSEGV, on_fault, 0);
	s = sigsetjmp(back, 1);
	if (!s) {
		long r;

		__asm__ volatile("int $0x80"
		                 : "=a"(r)
		                 : "a"(20)
		                 : "memory", "r8", "r9", "r10", "r11"); /* getpid there */
		ret = r;
	}
	/* sbx has no 32-bit calls: ENOSYS; a kernel without them faults. */
	if (in_sbx())
		CHECK(s == SIGSEGV || ret == -ENOSYS);
	else
		CHECK(s == SIGSEGV || ret == getpid() || ret == -ENOSYS);
}

static void far_32bit(void)
{
	/* A far jump to 32-bit code that calls by int 0x80: exit(5) natively, refused in sbx. */
	unsigned char *p =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	static const unsigned char code[] = { 0xb8, 1, 0, 0, 0, 0xbb, 5, 0, 0, 0, 0xcd, 0x80, 0x0f, 0x0b };
	struct {
		uint32_t off;
		uint16_t sel;
	} __attribute__((packed)) far;
	int st;

	CHECK(p != MAP_FAILED);
	memcpy(p, code, sizeof(code));
	far.off = (uint32_t)(uintptr_t)p;
	far.sel = 0x23;
	st = gt_status(CHILD(__asm__ volatile("ljmp *%0" : : "m"(far))));
	if (in_sbx())
		CHECK(WIFSIGNALED(st));
	else
		CHECK(WIFSIGNALED(st) || WEXITSTATUS(st) == 5);
}

static void sysenter(void)
{
	/* Of no use in 64-bit code, but must not get past anybody. */
	int st = gt_status(CHILD(__asm__ volatile("sysenter" : : "a"(39) : "memory")));

	CHECK(WIFSIGNALED(st));
}

static void vsyscall(void)
{
	int s;

	gt_handle_info(SIGSEGV, on_fault, 0);
	s = sigsetjmp(back, 1);
	if (!s) {
		/* Emulated or not there: never more than the time. */
		long t = ((long (*)(long *))0xffffffffff600400ul)(NULL);

		CHECK(labs(t - time(NULL)) < 5 || t == -ENOSYS);
	}
}

static void from_jit_page(void)
{
	static const unsigned char code[] = { 0x48, 0x89, 0xf8, 0x0f, 0x05, 0xc3 }; /* mov rax, rdi; syscall; ret */
	unsigned char *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	memcpy(p, code, sizeof(code));
	CHECK_EQ(((long (*)(long))p)(SYS_getpid), getpid());
	CHECK_EQ(((long (*)(long))p)(SYS_getuid), getuid());
	CHECK_EQ(((long (*)(long))p)(9999), -ENOSYS);
	/* On the last bytes of a page, and from the stack's neighbour. */
	memcpy(p + 4096 - sizeof(code), code, sizeof(code));
	CHECK_EQ(((long (*)(long))(p + 4096 - sizeof(code)))(SYS_getpid), getpid());
	CHECK_OK(mprotect(p, 4096, PROT_READ | PROT_EXEC));
	CHECK_EQ(((long (*)(long))p)(SYS_getpid), getpid());
}

static void trap_flag(void)
{
	/* A program that single-steps itself over a call gets its SIGTRAPs, or dies; the sandbox goes on. */
	int st = gt_status(CHILD({
		signal(SIGTRAP, SIG_DFL);
		__asm__ volatile("pushf; orl $0x100, (%%rsp); popf; mov $39, %%eax; syscall; nop"
				 : : : "rax", "rcx", "r11", "memory", "cc");
	}));

	CHECK(WIFSIGNALED(st) && WTERMSIG(st) == SIGTRAP);
}

static volatile int traps;

static void on_trap(int sig)
{
	traps++;
}

static void trap_flag_handled(void)
{
	gt_handle(SIGTRAP, on_trap, 0);
	__asm__ volatile("pushf; orl $0x100, (%%rsp); popf; nop; mov $39, %%eax; syscall; nop; pushf; andl $~0x100, "
	                 "(%%rsp); popf"
	                 :
	                 :
	                 : "rax", "rcx", "r11", "memory", "cc");
	CHECK(traps >= 4);
}

static void reserved_range(void)
{
	/* The platform's own pages, wherever they are: nothing of the guest may change them. Natively nothing is there.
	 */
	const uintptr_t places[] = { 0x7fff00000000ul, 0x7ffe00000000ul };
	int st;

	if (!in_sbx())
		_exit(GT_SKIP);
	st = gt_status(CHILD({
		for (size_t i = 0; i < 2; i++) {
			(void)munmap((void *)places[i], 4096);
			CHECK_EQ(getpid(), gettid());
		}
	}));
	CHECK_EQ(st, 0);
}

static void unmap_everything(void)
{
	/* A program that unmaps all of its address space dies alone. sbx refuses what would take the platform's pages.
	 */
	int st = gt_status(CHILD(munmap(NULL, 0x7ffffffff000ul); _exit(3)));

	CHECK(in_sbx() ? WIFSIGNALED(st) || WEXITSTATUS(st) == 3 : WTERMSIG(st) == SIGSEGV);
	CHECK_KILLED(CHILD(mprotect((void *)((uintptr_t)unmap_everything & -4096ul), 8192, PROT_NONE); _exit(3)),
	             SIGSEGV);
}

static void no_new_privs(void)
{
	CHECK_EXIT(CHILD({
		(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		CHECK_EQ(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 1);
	}), 0);
}

static const struct gt_case cases[] = {
	{ "numbers", numbers },
	{ "registers_kept", registers_kept },
	{ "int80", int80 },
	{ "far_32bit", far_32bit },
	{ "sysenter", sysenter },
	{ "vsyscall", vsyscall },
	{ "from_jit_page", from_jit_page },
	{ "trap_flag", trap_flag },
	{ "trap_flag_handled", trap_flag_handled },
	{ "reserved_range", reserved_range },
	{ "unmap_everything", unmap_everything },
	{ "no_new_privs", no_new_privs },
	{ NULL, NULL },
};
GT_MAIN(cases)
