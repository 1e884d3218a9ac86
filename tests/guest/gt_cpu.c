/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instructions that a program may not execute, or only in part, and the exceptions they raise. Where processors and
 * virtual machines differ, all of their answers are right; what never is: that one has an effect, or that somebody
 * else but the program suffers.
 */
#include <cpuid.h>
#include <stddef.h>

#include "gt_fault.h"

static uint8_t mem[64] __attribute__((aligned(64)));

#define INSN(name, text) \
	static void i_##name(void) \
	{ \
		__asm__ volatile(text : : "D"(mem), "a"(0), "c"(0), "d"(0), "b"(0) : "memory", "cc"); \
	}
#define ROW(name) { #name, i_##name }

struct insn {
	const char *name;
	void (*fn)(void);
};

/* Ports, interrupt flag, halt, control, debug and model-specific registers, descriptor tables, caches. */
INSN(in_byte, "inb $0x60, %%al")
INSN(in_dx, "mov $0x3f8, %%edx; inl %%dx, %%eax")
INSN(out_byte, "outb %%al, $0x80")
INSN(out_dx, "mov $0x64, %%edx; outw %%ax, %%dx")
INSN(ins, "mov $0x1f0, %%edx; insb")
INSN(rep_outs, "mov $0x1f0, %%edx; mov $4, %%ecx; mov %%rdi, %%rsi; rep outsl")
INSN(cli, "cli")
INSN(sti, "sti")
INSN(hlt, "hlt")
INSN(rdmsr, "mov $0xc0000082, %%ecx; rdmsr")
INSN(wrmsr, "mov $0xc0000082, %%ecx; wrmsr")
INSN(rdmsr_bad, "mov $0x12345678, %%ecx; rdmsr")
INSN(from_cr0, "mov %%cr0, %%rax")
INSN(from_cr2, "mov %%cr2, %%rax")
INSN(from_cr3, "mov %%cr3, %%rax")
INSN(from_cr4, "mov %%cr4, %%rax")
INSN(from_cr8, "mov %%cr8, %%rax")
INSN(to_cr0, "mov %%rax, %%cr0")
INSN(to_cr3, "mov %%rax, %%cr3")
INSN(to_cr4, "mov %%rax, %%cr4")
INSN(from_dr0, "mov %%dr0, %%rax")
INSN(to_dr7, "mov $0x401, %%eax; mov %%rax, %%dr7")
INSN(lgdt, "lgdt (%%rdi)")
INSN(lidt, "lidt (%%rdi)")
INSN(lldt, "lldt %%ax")
INSN(ltr, "ltr %%ax")
INSN(lmsw, "lmsw %%ax")
INSN(clts, "clts")
INSN(invd, "invd")
INSN(wbinvd, "wbinvd")
INSN(invlpg, "invlpg (%%rdi)")
INSN(xsetbv, "mov $7, %%eax; xsetbv")
INSN(swapgs, "swapgs")
INSN(sysret, "sysretq")
INSN(rdpmc, "rdpmc")

static void refused(void)
{
	static const struct insn insns[] = {
		ROW(in_byte), ROW(in_dx), ROW(out_byte), ROW(out_dx), ROW(ins), ROW(rep_outs), ROW(cli), ROW(sti),
		ROW(hlt), ROW(rdmsr), ROW(wrmsr), ROW(rdmsr_bad), ROW(from_cr0), ROW(from_cr2), ROW(from_cr3),
		ROW(from_cr4), ROW(from_cr8), ROW(to_cr0), ROW(to_cr3), ROW(to_cr4), ROW(from_dr0), ROW(to_dr7),
		ROW(lgdt), ROW(lidt), ROW(lldt), ROW(ltr), ROW(lmsw), ROW(clts), ROW(invd), ROW(wbinvd), ROW(invlpg),
		ROW(xsetbv), ROW(swapgs), ROW(sysret), ROW(rdpmc),
	};

	gt_fault_init();
	for (size_t i = 0; i < sizeof(insns) / sizeof(*insns); i++) {
		printf("# %s\n", insns[i].name);
		CHECK_GP(insns[i].fn());
		CHECK(gt_fault.rip >= (uintptr_t)insns[i].fn && gt_fault.rip < (uintptr_t)insns[i].fn + 64);
	}
}

/* Virtualization, system management, supervisor access: undefined, refused, or a call that answers with an error. */
INSN(vmcall, "mov $-1, %%eax; vmcall")
INSN(vmmcall, "mov $-1, %%eax; vmmcall")
INSN(vmlaunch, "vmlaunch")
INSN(vmresume, "vmresume")
INSN(vmxoff, "vmxoff")
INSN(vmxon, "vmxon (%%rdi)")
INSN(vmptrld, "vmptrld (%%rdi)")
INSN(vmread, "vmread %%rax, %%rcx")
INSN(vmrun, "vmrun %%rax")
INSN(vmload, "vmload %%rax")
INSN(vmsave, "vmsave %%rax")
INSN(clgi, "clgi")
INSN(stgi, "stgi")
INSN(skinit, "skinit %%eax")
INSN(invlpga, "invlpga %%rax, %%ecx")
INSN(invept, "invept (%%rdi), %%rax")
INSN(invvpid, "invvpid (%%rdi), %%rax")
INSN(invpcid, "invpcid (%%rdi), %%rax")
INSN(rsm, "rsm")
INSN(clac, "clac")
INSN(stac, "stac")
INSN(monitor, "mov %%rdi, %%rax; monitor")
INSN(mwait, "mwait")
INSN(getsec, "getsec")
INSN(sysexit, "sysexitl")
INSN(sysenter_none, "mov $-1, %%eax; sysenter")
INSN(into, ".byte 0xce")
INSN(aaa, ".byte 0x37")
INSN(lcall_7, ".byte 0x9a,0,0,0,0,7,0")
INSN(no_such, ".byte 0x0f,0xff")

static void undefined(void)
{
	static const struct insn insns[] = {
		ROW(vmcall), ROW(vmmcall), ROW(vmlaunch), ROW(vmresume), ROW(vmxoff), ROW(vmxon), ROW(vmptrld),
		ROW(vmread), ROW(vmrun), ROW(vmload), ROW(vmsave), ROW(clgi), ROW(stgi), ROW(skinit), ROW(invlpga),
		ROW(invept), ROW(invvpid), ROW(invpcid), ROW(rsm), ROW(clac), ROW(stac), ROW(monitor), ROW(mwait),
		ROW(getsec), ROW(sysexit), ROW(sysenter_none), ROW(into), ROW(aaa), ROW(lcall_7), ROW(no_such),
	};

	gt_fault_init();
	for (size_t i = 0; i < sizeof(insns) / sizeof(*insns); i++) {
		int sig;

		printf("# %s\n", insns[i].name);
		sig = CATCH(insns[i].fn());
		CHECK(sig == SIGILL || sig == SIGSEGV || (i < 2 && sig == 0));
		CHECK(sig != SIGILL || (gt_fault.code == ILL_ILLOPN && gt_fault.addr == gt_fault.rip));
	}
	CHECK_EQ(CATCH(__asm__ volatile("ud2")), SIGILL);
	CHECK_EQ(CATCH(i_into()), SIGILL);
}

/* Where the descriptor tables are is nobody's business; many kernels answer with something made up. */
INSN(sgdt, "sgdt (%%rdi)")
INSN(sidt, "sidt (%%rdi)")
INSN(sldt, "sldt (%%rdi)")
INSN(str, "str (%%rdi)")
INSN(smsw, "smsw (%%rdi)")

static void tables_told(void)
{
	static const struct insn insns[] = { ROW(sgdt), ROW(sidt), ROW(sldt), ROW(str), ROW(smsw) };
	char *edge = gt_edge_page();

	gt_fault_init();
	for (size_t i = 0; i < sizeof(insns) / sizeof(*insns); i++) {
		int sig = CATCH(insns[i].fn());

		CHECK(sig == 0 || sig == SIGSEGV || sig == SIGILL);
	}
	/* Into memory that is not there. */
	CHECK(CATCH(__asm__ volatile("sgdt (%0)" : : "r"(edge + 4092) : "memory")) != 0);
	CHECK(CATCH(__asm__ volatile("sidt (%0)" : : "r"(BAD_PTR) : "memory")) != 0);
	CHECK(CATCH(__asm__ volatile("smsw (%0)" : : "r"(edge + 4095) : "memory")) != 0);
	CHECK(CATCH(__asm__ volatile("sgdt (%0)" : : "r"(0xffffffff81000000ul) : "memory")) != 0);
}

/* int n for each n: only 3 and 4 are a program's; 0x80 is a 32-bit system call where there are any. */
static void software_interrupts(void)
{
	uint8_t *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int n1;

	CHECK(code != MAP_FAILED);
	gt_fault_init();
	code[0] = 0xcd;
	code[2] = 0xc3;
	for (int n = 0; n < 256; n++) {
		int sig;

		if (n == 0x80)
			continue;
		code[1] = (uint8_t)n;
		sig = CATCH(__asm__ volatile("call *%0" : : "r"(code), "a"(-1) : "memory", "cc"));
		if (n == 3) {
			CHECK_EQ(sig, SIGTRAP);
			CHECK_EQ(gt_fault.rip, (uintptr_t)code + 2);
		} else if (n == 4) {
			CHECK_EQ(sig, SIGSEGV);
		} else {
			/* Some hypervisors say SIGILL, or keep the vectors of a PC's firmware for themselves. */
			bool firmware = n >= 0x10 && n < 0x20;

			CHECK(sig == SIGSEGV || sig == SIGILL || (firmware && !sig));
			CHECK(gt_fault.rip == (uintptr_t)code || firmware);
		}
	}
	CHECK_EQ(CATCH(__asm__ volatile("int3")), SIGTRAP);
	CHECK_EQ(gt_fault.code, SI_KERNEL);
	CHECK_EQ(gt_fault.trapno, 3);
	/* int1, which emulators do not know. */
	n1 = CATCH(__asm__ volatile(".byte 0xf1"));
	CHECK(n1 == SIGTRAP || n1 == SIGILL);
}

static void arithmetic(void)
{
	volatile int zero = 0, one = 1, min = -2147483647 - 1, minus = -1;

	gt_fault_init();
	CHECK_EQ(CATCH(one = one / zero), SIGFPE);
	CHECK_EQ(gt_fault.code, FPE_INTDIV);
	CHECK_EQ(gt_fault.addr, gt_fault.rip);
	CHECK_EQ(gt_fault.trapno, 0);
	CHECK_EQ(CATCH(one = min / minus), SIGFPE);
	CHECK_EQ(gt_fault.code, FPE_INTDIV);
}

static void x87_exceptions(void)
{
	uint16_t cw = 0x37f & ~4;

	gt_fault_init();
	/* It tells with the next instruction that waits. */
	CHECK_EQ(CATCH(__asm__ volatile("fninit; fldcw %0; fld1; fldz; fdivrp; fwait" : : "m"(cw))), SIGFPE);
	CHECK_EQ(gt_fault.code, FPE_FLTDIV);
	CHECK_EQ(gt_fault.trapno, 16);
	__asm__ volatile("fninit");
}

/* Each exception of SSE that is not masked: its flag is in the low half, its mask seven bits above. */
static void sse_exceptions(void)
{
	unsigned csr = 0x1f80, want;
	volatile double z = 0, x = 1;

	gt_fault_init();
	want = csr & ~0x200u;
	CHECK_EQ(CATCH(__asm__ volatile("ldmxcsr %0" : : "m"(want)); x = x / z), SIGFPE);
	CHECK_EQ(gt_fault.code, FPE_FLTDIV);
	CHECK_EQ(gt_fault.trapno, 19);
	want = csr & ~0x80u;
	CHECK_EQ(CATCH(__asm__ volatile("ldmxcsr %0" : : "m"(want)); z = z / z), SIGFPE);
	CHECK_EQ(gt_fault.code, FPE_FLTINV);
	want = csr & ~0x1000u;
	CHECK_EQ(CATCH(__asm__ volatile("ldmxcsr %0" : : "m"(want)); x = 1; x = x / 3), SIGFPE);
	CHECK_EQ(gt_fault.code, FPE_FLTRES);
	want = csr & ~0x400u;
	CHECK_EQ(CATCH(__asm__ volatile("ldmxcsr %0" : : "m"(want)); x = 1e300; x = x * 1e300), SIGFPE);
	CHECK_EQ(gt_fault.code, FPE_FLTOVF);
	want = csr & ~0x800u;
	CHECK_EQ(CATCH(__asm__ volatile("ldmxcsr %0" : : "m"(want)); x = 1e-300; x = x * 1e-300), SIGFPE);
	CHECK_EQ(gt_fault.code, FPE_FLTUND);
	/* A reserved bit. */
	want = 0x1f80 | 1u << 31;
	CHECK_GP(__asm__ volatile("ldmxcsr %0" : : "m"(want)));
}

static void alignment(void)
{
	uint8_t *p = mem;

	gt_fault_init();
	CHECK_GP(__asm__ volatile("movaps 8(%0), %%xmm0" : : "r"(p) : "xmm0"));
	CHECK_GP(__asm__ volatile("movdqa %%xmm0, 1(%0)" : : "r"(p) : "memory"));
	CHECK_GP(__asm__ volatile("fxsave 8(%0)" : : "r"(p) : "memory"));
	/* Alignment checks are off until a program asks for them by the flag. */
	CHECK_EQ(CATCH(__asm__ volatile("movl 1(%0), %%eax" : : "r"(p) : "rax")), 0);
}

static void alignment_checks(void)
{
	uint8_t *p = mem;

	gt_fault_init();
	CHECK_EQ(CATCH(__asm__ volatile("pushf; orl $0x40000, (%%rsp); popf; movl 1(%0), %%eax; pushf; "
					"andl $~0x40000, (%%rsp); popf"
					: : "r"(p) : "rax", "cc", "memory")), SIGBUS);
	CHECK_EQ(gt_fault.code, BUS_ADRALN);
	CHECK_EQ(gt_fault.trapno, 17);
	/* A call with it set: the kernel does not care. */
	CHECK_EQ(CATCH({
		long r;
		__asm__ volatile("pushf; orl $0x40000, (%%rsp); popf; syscall; pushf; andl $~0x40000, (%%rsp); popf"
				 : "=a"(r) : "a"(SYS_getpid) : "rcx", "r11", "cc", "memory");
		CHECK_EQ(r, getpid());
	}), 0);
}

static uintptr_t steps[64];
static volatile int n_steps;

static void on_step(int sig, siginfo_t *si, void *ucp)
{
	ucontext_t *uc = ucp;

	CHECK_EQ(si->si_code, TRAP_TRACE);
	CHECK_EQ((uintptr_t)si->si_addr, (uintptr_t)uc->uc_mcontext.gregs[REG_RIP]);
	if (n_steps < 64)
		steps[n_steps++] = (uintptr_t)uc->uc_mcontext.gregs[REG_RIP];
}

/* The program steps itself over system calls: cheap ones, and one that changes the address space. */
static void single_steps(void)
{
	static const long calls[] = { SYS_getpid, SYS_sched_yield, 1000, SYS_mmap, SYS_rt_sigprocmask };

	gt_handle_info(SIGTRAP, on_step, 0);
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		uintptr_t start, call;
		int at = 0;

		n_steps = 0;
		__asm__ volatile("lea 1f(%%rip), %[s]; lea 2f(%%rip), %[c]; xor %%edi, %%edi; xor %%esi, %%esi; "
				 "xor %%edx, %%edx; xor %%r10d, %%r10d; xor %%r8d, %%r8d; xor %%r9d, %%r9d\n\t"
				 "pushf; orl $0x100, (%%rsp); popf\n\t"
				 "1: nop; nop\n"
				 "2: syscall\n\t"
				 "nop; nop; pushf; andl $~0x100, (%%rsp); popf; nop"
				 : [s] "=&r"(start), [c] "=&r"(call)
				 : "a"(calls[i])
				 : "rcx", "r11", "rdi", "rsi", "rdx", "r8", "r9", "r10", "memory", "cc");
		CHECK(n_steps >= 7);
		CHECK_EQ(steps[at++], start + 1);
		CHECK_EQ(steps[at++], call);
		/* Behind the call itself there is a trap or not, by the way back into the program. */
		if (steps[at] == call + 2)
			at++;
		CHECK_EQ(steps[at++], call + 3);
		CHECK_EQ(steps[at++], call + 4);
		CHECK_EQ(steps[at++], call + 5);
	}
}

static void what_cpuid_says(void)
{
	unsigned a, b, c, d, lo, hi, aux;
	char vendor[13] = "";
	uint64_t t;

	CHECK(__get_cpuid(0, &a, &b, &c, &d));
	memcpy(vendor, &b, 4);
	memcpy(vendor + 4, &d, 4);
	memcpy(vendor + 8, &c, 4);
	printf("# %s, %u leaves\n", vendor, a);
	CHECK(a >= 1);
	CHECK(__get_cpuid(1, &a, &b, &c, &d));
	CHECK((d & 1u << 25) && (d & 1u << 26)); /* SSE, SSE2 */
	if (c & 1u << 27) { /* OSXSAVE */
		__asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
		CHECK((lo & 3) == 3);
		CHECK(!(c & 1u << 28) || (lo & 4)); /* AVX is usable where it is told */
		CHECK(__get_cpuid_count(0xd, 0, &a, &b, &c, &d));
		CHECK((lo & ~a) == 0 && b >= 576 && b <= c && c <= 16384);
		__get_cpuid_count(7, 0, &a, &b, &c, &d);
		CHECK(!(b & 1u << 16) || (lo & 0xe0) == 0xe0); /* AVX-512 likewise */
		gt_fault_init();
		CHECK_GP(__asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(77)));
	}
	t = __builtin_ia32_rdtsc();
	CHECK(__builtin_ia32_rdtscp(&aux) > t);
	/* Any leaf has an answer. */
	for (unsigned i = 0; i < 64; i++)
		__cpuid_count(i * 0x04000001u, i, a, b, c, d);
}

static const struct gt_case cases[] = {
	{ "refused", refused },
	{ "undefined", undefined },
	{ "tables_told", tables_told },
	{ "software_interrupts", software_interrupts },
	{ "arithmetic", arithmetic },
	{ "x87_exceptions", x87_exceptions },
	{ "sse_exceptions", sse_exceptions },
	{ "alignment", alignment },
	{ "alignment_checks", alignment_checks },
	{ "single_steps", single_steps },
	{ "what_cpuid_says", what_cpuid_says },
	{ NULL, NULL },
};
GT_MAIN(cases)
