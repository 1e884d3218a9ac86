/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stack pointers, addresses, flags and selectors that no compiler makes: at a system call, at a fault, at a signal.
 * The kernel must use none of them for itself.
 */
#include <asm/prctl.h>
#include <sched.h>

#include "gt_fault.h"

/* 0, small, in the middle of nothing, at the end, not canonical, the kernel's half, the last byte. */
static const uint64_t bad_rsp[] = { 0, 8, 0x1000, 0xdead0000, 0x7ffffffff000, 0x7fffffffffff, 0x800000000000,
				    0x8000000000000000, 0xffff7fffffffffff, 0xffff800000000000, 0xffffffff81000000,
				    0xffffffffff600000, 0xfffffffffffffff8, 0xffffffffffffffff };
#define N_BAD (sizeof(bad_rsp) / sizeof(*bad_rsp))

static bool is_address(uint64_t a)
{
	return (uint64_t)((int64_t)(a << 16) >> 16) == a;
}

static long call_with_rsp(uint64_t rsp, long nr, long a0, long a1)
{
	long r;
	uint64_t after;

	__asm__ volatile("mov %%rsp, %%rbx; mov %[bad], %%rsp; syscall; mov %%rsp, %%r12; mov %%rbx, %%rsp; "
			 "mov %%r12, %[after]"
			 : "=a"(r), [after] "=&r"(after)
			 : "a"(nr), "D"(a0), "S"(a1), [bad] "r"(rsp)
			 : "rbx", "rcx", "r11", "r12", "memory", "cc");
	CHECK_EQ(after, rsp);
	return r;
}

static void calls_with_rsp(uint64_t rsp)
{
	char *map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(map != MAP_FAILED);
	CHECK_EQ(call_with_rsp(rsp, SYS_getpid, 0, 0), getpid());
	CHECK_EQ(call_with_rsp(rsp, SYS_sched_yield, 0, 0), 0);
	/* A call that is done in the process itself, on some platforms with a signal's help. */
	CHECK_EQ(call_with_rsp(rsp, SYS_munmap, (long)map, 4096), 0);
}

static void at_a_call(void)
{
	for (size_t i = 0; i < N_BAD; i++) {
		int st;

		if (is_address(bad_rsp[i])) {
			calls_with_rsp(bad_rsp[i]);
			continue;
		}
		/* There are hypervisors that cannot do it: SIGSEGV. */
		st = gt_status(CHILD(calls_with_rsp(bad_rsp[i])));
		CHECK(st == 0 || WTERMSIG(st) == SIGSEGV);
	}
}

static int wait_any(void)
{
	int st = 0;

	CHECK(waitpid(-1, &st, 0) > 0);
	return st;
}

static void fork_on_a_bad_stack(void)
{
	for (size_t i = 0; i < N_BAD; i++) {
		if (!is_address(bad_rsp[i]))
			continue;
		/* Both sides come back with it. */
		if (call_with_rsp(bad_rsp[i], SYS_fork, 0, 0) == 0)
			_exit(7);
		CHECK_EQ(wait_any(), 7 << 8);
	}
}

/* Faults with it. */
static void ud2_with_rsp(uint64_t rsp)
{
	__asm__ volatile("mov %0, %%rsp; ud2" : : "r"(rsp) : "memory");
}

static void load_with_rsp(uint64_t rsp)
{
	__asm__ volatile("mov %0, %%rsp; movb $1, (%1)" : : "r"(rsp), "r"(BAD_PTR) : "memory");
}

static void push_with_rsp(uint64_t rsp)
{
	__asm__ volatile("mov %0, %%rsp; push %%rax" : : "r"(rsp) : "memory");
}

static void at_a_fault(void)
{
	gt_fault_init();
	for (size_t i = 0; i < N_BAD; i++) {
		CHECK_EQ(CATCH(ud2_with_rsp(bad_rsp[i])), SIGILL);
		CHECK_EQ(gt_fault.rsp, bad_rsp[i]);
		CHECK_EQ(CATCH(load_with_rsp(bad_rsp[i])), SIGSEGV);
		CHECK_EQ(gt_fault.rsp, bad_rsp[i]);
		CHECK_EQ(gt_fault.addr, 0xdead0000);
		CHECK_EQ(gt_fault.code, SEGV_MAPERR);
		/* The stack itself is what cannot be reached: by its page, or because it is no address (a stack
		 * fault; SIGSEGV where a hypervisor does not tell the two apart). */
		CHECK(CATCH(push_with_rsp(bad_rsp[i])) != 0);
		CHECK(gt_fault.sig == SIGSEGV || gt_fault.sig == SIGBUS);
		CHECK_EQ(gt_fault.rsp, bad_rsp[i]);
	}
}

static void without_alternate_stack(void)
{
	static void (*const ways[])(uint64_t) = { ud2_with_rsp, load_with_rsp, push_with_rsp };

	for (size_t i = 0; i < N_BAD; i++)
		for (size_t w = 0; w < sizeof(ways) / sizeof(*ways); w++)
			CHECK_KILLED(CHILD({
				gt_fault_init();
				CHECK_OK(sigaltstack(&(stack_t){ .ss_flags = SS_DISABLE }, NULL));
				ways[w](bad_rsp[i]);
			}), SIGSEGV);
	/* A default action needs no stack. */
	CHECK_KILLED(CHILD(ud2_with_rsp(0)), SIGILL);
}

static volatile int hits;

static void count(int sig)
{
	hits++;
}

static void at_a_signal(void)
{
	gt_fault_stack();
	gt_handle(SIGUSR1, count, SA_ONSTACK);
	for (size_t i = 0; i < N_BAD; i++) {
		if (!is_address(bad_rsp[i]))
			continue;
		hits = 0;
		CHECK_EQ(call_with_rsp(bad_rsp[i], SYS_kill, getpid(), SIGUSR1), 0);
		CHECK_EQ(hits, 1);
		CHECK_KILLED(CHILD({
			gt_handle(SIGUSR1, count, 0);
			call_with_rsp(bad_rsp[i], SYS_kill, getpid(), SIGUSR1);
		}), SIGSEGV);
		/* sigreturn from there. */
		CHECK_KILLED(CHILD(call_with_rsp(bad_rsp[i], SYS_rt_sigreturn, 0, 0)), SIGSEGV);
	}
}

/* Addresses: read, written, executed. */
static void addresses(void)
{
	static const uint64_t user[] = { 0, 1, 0xfff, 0xdead0000, 0x7ffffffff000, 0x7ffffffffff8 };
	static const uint64_t kernel[] = { 0xffff800000000000, 0xffff888000000000, 0xffffffff81000000,
					   0xffffff8000000000, 0xffffff8000100000, 0xfffffffffffff000 };
	static const uint64_t none[] = { 0x800000000000, 0x8000000000000000, 0xdeadbeefdeadbeef, 0xffff7ffffffffff0 };

	if (gt_five_levels())
		_exit(GT_SKIP);
	gt_fault_init();
	for (volatile size_t i = 0; i < sizeof(user) / sizeof(*user); i++) {
		/* As if there were something from the end of the user's half on. */
		unsigned present = user[i] >= 0x7ffffffff000;

		CHECK_PF(user[i], SEGV_MAPERR, (void)*(volatile char *)user[i]);
		CHECK_EQ(gt_fault.err, 4 | present);
		CHECK_PF(user[i], SEGV_MAPERR, *(volatile char *)user[i] = 1);
		CHECK_EQ(gt_fault.err, 6 | present);
		CHECK_PF(user[i], SEGV_MAPERR, ((void (*)(void))user[i])());
		CHECK_EQ(gt_fault.err, 0x14 | present);
		CHECK_EQ(gt_fault.rip, user[i]);
	}
	/* Of the kernel's half nothing is told: as if it were there, and as if there were nothing. */
	for (volatile size_t i = 0; i < sizeof(kernel) / sizeof(*kernel); i++) {
		CHECK_PF(kernel[i], SEGV_MAPERR, (void)*(volatile char *)kernel[i]);
		CHECK_EQ(gt_fault.err, 5);
		CHECK_PF(kernel[i], SEGV_MAPERR, *(volatile char *)kernel[i] = 1);
		CHECK_EQ(gt_fault.err, 7);
		CHECK_PF(kernel[i], SEGV_MAPERR, ((void (*)(void))kernel[i])());
		CHECK_EQ(gt_fault.err, 0x15);
		CHECK_EQ(gt_fault.rip, kernel[i]);
	}
	for (volatile size_t i = 0; i < sizeof(none) / sizeof(*none); i++) {
		CHECK_GP((void)*(volatile char *)none[i]);
		CHECK_GP(*(volatile char *)none[i] = 1);
		CHECK_GP(((void (*)(void))none[i])());
		/* By the stack's segment. */
		CHECK_EQ(CATCH(__asm__ volatile("xchg %%rbp, %0; mov (%%rbp), %%al; xchg %%rbp, %0"
						: : "r"(none[i]) : "rax")) != 0, 1);
		CHECK(gt_fault.sig == SIGBUS || gt_fault.sig == SIGSEGV);
		CHECK_GP(__asm__ volatile("push %0; ret" : : "r"(none[i]) : "memory"));
	}
	/* Over the end of the user's half. */
	CHECK(CATCH((void)*(volatile uint64_t *)0x7ffffffffffcul) != 0);
	CHECK(gt_fault.sig == SIGSEGV || gt_fault.sig == SIGBUS);
	/* A page that may not be read, written, executed. */
	char *p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(p != MAP_FAILED && *(volatile char *)p == 0);
	CHECK_PF(p + 7, SEGV_ACCERR, *(volatile char *)(p + 7) = 1);
	CHECK_EQ(gt_fault.err, 7);
	CHECK_PF(p, SEGV_ACCERR, ((void (*)(void))p)());
	CHECK_EQ(gt_fault.err, 0x15);
}

/* The last page that a program can have: the address behind its call is nobody's. */
static void last_page(void)
{
	uint8_t *p = mmap((void *)0x7fffffffe000, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (p == MAP_FAILED || gt_five_levels())
		_exit(GT_SKIP); /* the stack is there */
	gt_fault_init();
	p[4094] = 0x0f;
	p[4095] = 0x05;
	CHECK_PF(0x7ffffffff000, SEGV_MAPERR,
		 __asm__ volatile("jmp *%1" : : "a"(SYS_getpid), "r"(p + 4094) : "rcx", "r11", "memory"));
	CHECK_EQ(gt_fault.rip, 0x7ffffffff000);
	CHECK_ERR(munmap((void *)0x7fffffffe000, 8192), EINVAL);
	CHECK(mmap((void *)0x7ffffffff000, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
	      MAP_FAILED);
}

/* What was in rcx and r11 does not matter; all flags of a program are kept. */
static void flags_over_a_call(void)
{
	/* Not the nested-task flag, which some hypervisors drop. */
	static const uint64_t flags[] = { 0x400, 0x40000, 0x8d5, 0x440cd5, 0x200000 };
	static const long calls[] = { SYS_getpid, SYS_sched_yield, 1000, SYS_munmap, SYS_mmap, SYS_rt_sigprocmask };

	for (size_t c = 0; c < sizeof(calls) / sizeof(*calls); c++)
		for (volatile size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
			uint64_t before, after, nr = (uint64_t)calls[c];

			__asm__ volatile("pushf; pop %[b]; or %[f], %[b]; mov $-1, %%rcx; "
					 "movabs $0x8000000000000000, %%r11\n\t"
					 "xor %%edi, %%edi; xor %%esi, %%esi; xor %%edx, %%edx\n\t"
					 "push %[b]; popf; pushf; pop %[b]; syscall; pushf; pop %[a]\n\t"
					 "push $0x202; popf"
					 : [b] "=&r"(before), [a] "=&r"(after), "+a"(nr)
					 : [f] "r"(flags[i])
					 : "rcx", "rdi", "rsi", "rdx", "r8", "r9", "r10", "r11", "memory", "cc");
			CHECK_EQ(after, before);
		}
	__asm__ volatile("push $0x4202; popf; syscall; push $0x202; popf" : : "a"(SYS_getpid) : "rcx", "r11", "memory",
			 "cc");
	/* rcx and r11 are the address behind the call and the flags. */
	uint64_t rcx, r11, rip, fl;
	__asm__ volatile("lea 1f(%%rip), %[rip]; std; stc; pushf; pop %[fl]; mov $39, %%eax; mov $-1, %%rcx; "
			 "mov $-1, %%r11; syscall\n"
			 "1: cld; mov %%rcx, %[rcx]; mov %%r11, %[r11]"
			 : [rip] "=&r"(rip), [fl] "=&r"(fl), [rcx] "=&r"(rcx), [r11] "=&r"(r11)
			 :
			 : "rax", "rcx", "r11", "memory", "cc");
	CHECK_EQ(rcx, rip);
	CHECK_EQ(r11, fl);
}

static void flags_over_a_fault(void)
{
	uint64_t f;

	gt_fault_init();
	/* A nested-task flag that the kernel's own return would choke on; a direction that its copies must not
	 * take. */
	CHECK_EQ(CATCH(__asm__ volatile("push $0x4602; popf; ud2" : : : "memory", "cc")), SIGILL);
	CHECK_EQ(CATCH(__asm__ volatile("push $0x4602; popf; movb $1, (%0)" : : "r"(BAD_PTR) : "memory", "cc")), SIGSEGV);
	CHECK_EQ(gt_fault.addr, 0xdead0000);
	/* In a handler the direction is forwards. */
	__asm__ volatile("pushf; pop %0" : "=r"(f));
	CHECK_EQ(f & 0x400, 0);
	__asm__ volatile("push $0x202; popf" : : : "memory", "cc");
}

static uint16_t seg_get(int which)
{
	volatile uint16_t v = 0;

	switch (which) {
	case 0: __asm__ volatile("mov %%ds, %0" : "=r"(v)); break;
	case 1: __asm__ volatile("mov %%es, %0" : "=r"(v)); break;
	case 2: __asm__ volatile("mov %%gs, %0" : "=r"(v)); break;
	case 3: __asm__ volatile("mov %%ss, %0" : "=r"(v)); break;
	}
	return v;
}

static void seg_set(int which, uint16_t v)
{
	switch (which) {
	case 0: __asm__ volatile("mov %0, %%ds" : : "r"(v)); break;
	case 1: __asm__ volatile("mov %0, %%es" : : "r"(v)); break;
	case 2: __asm__ volatile("mov %0, %%gs" : : "r"(v)); break;
	case 3: __asm__ volatile("mov %0, %%ss" : : "r"(v)); break;
	}
}

static void selectors(void)
{
	/* The kernel's, ones behind the tables, ones of a local table that is not there. */
	static const uint16_t bad[] = { 0x8, 0x10, 0x18, 0x1b, 0x40, 0x43, 0xfff8, 0xffff, 0x7, 0xc };
	uint16_t cs, ss;

	__asm__ volatile("mov %%cs, %0; mov %%ss, %1" : "=r"(cs), "=r"(ss));
	CHECK_EQ(cs, 0x33);
	CHECK_EQ(ss, 0x2b);
	gt_fault_init();
	for (volatile int w = 0; w < 4; w++) {
		volatile uint16_t old = seg_get(w);

		for (volatile size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
			CHECK_EQ(CATCH(seg_set(w, bad[i])) != 0, 1);
			CHECK(gt_fault.sig == SIGSEGV || gt_fault.sig == SIGBUS);
			CHECK_EQ(seg_get(w), old);
		}
		CHECK_EQ(CATCH(seg_set(w, 0x2b)), 0);
		CHECK_EQ(seg_get(w), 0x2b);
		if (w < 3)
			CHECK_EQ(CATCH(seg_set(w, 0)), 0);
		else
			CHECK_GP(seg_set(w, 0)); /* a stack needs one */
	}
	/* Far returns and interrupt returns to where the program is anyway. */
	CHECK_EQ(CATCH(__asm__ volatile("lea 1f(%%rip), %%rax; push $0x33; push %%rax; lretq; 1:" : : : "rax", "memory")),
		 0);
	CHECK_EQ(CATCH(__asm__ volatile("mov %%rsp, %%rcx; lea 1f(%%rip), %%rax; push $0x2b; push %%rcx; pushf; "
					"push $0x33; push %%rax; iretq; 1:" : : : "rax", "rcx", "memory")), 0);
	/* To the kernel's segments, to none, and with a stack that cannot be. */
	CHECK_GP(__asm__ volatile("lea 1f(%%rip), %%rax; push $0x10; push %%rax; lretq; 1:" : : : "rax", "memory"));
	CHECK_GP(__asm__ volatile("lea 1f(%%rip), %%rax; push $0; push %%rax; lretq; 1:" : : : "rax", "memory"));
	CHECK_GP(__asm__ volatile("mov %%rsp, %%rcx; lea 1f(%%rip), %%rax; push $0x18; push %%rcx; pushf; push $0x10; "
				  "push %%rax; iretq; 1:" : : : "rax", "rcx", "memory"));
	CHECK_GP(__asm__ volatile("mov %%rsp, %%rcx; push $0x2b; push %%rcx; pushf; push $0x33; "
				  "movabs $0x800000000000, %%rax; push %%rax; iretq" : : : "rax", "rcx", "memory"));
	CHECK_EQ(sched_yield(), 0);
	CHECK_EQ(CATCH(__asm__ volatile("ud2")), SIGILL);
}

/* lretq and iretq to 32-bit code, which then calls by int 0x80: natively exit(5) where there are such calls. */
static void to_32_bits(void)
{
	static const unsigned char code[] = { 0xb8, 1, 0, 0, 0, 0xbb, 5, 0, 0, 0, 0xcd, 0x80, 0x0f, 0x0b };
	unsigned char *p =
		mmap(NULL, 8192, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	int st;

	CHECK(p != MAP_FAILED);
	memcpy(p, code, sizeof(code));
	st = gt_status(CHILD(__asm__ volatile("push $0x23; push %0; lretq" : : "r"(p) : "memory")));
	CHECK(WIFSIGNALED(st) || WEXITSTATUS(st) == 5);
	st = gt_status(CHILD(__asm__ volatile("push $0x2b; push %0; push $0x202; push $0x23; push %1; iretq"
					      : : "r"(p + 8000), "r"(p) : "memory")));
	CHECK(WIFSIGNALED(st) || WEXITSTATUS(st) == 5);
	/* It faults there: the kernel sees registers of another mode. */
	p[0] = 0x0f;
	p[1] = 0x0b;
	CHECK(WIFSIGNALED(gt_status(CHILD(__asm__ volatile("push $0x23; push %0; lretq" : : "r"(p) : "memory")))));
	CHECK_EQ(getpid(), gettid());
}

static const struct gt_case cases[] = {
	{ "at_a_call", at_a_call },
	{ "fork_on_a_bad_stack", fork_on_a_bad_stack },
	{ "at_a_fault", at_a_fault },
	{ "without_alternate_stack", without_alternate_stack },
	{ "at_a_signal", at_a_signal },
	{ "addresses", addresses },
	{ "last_page", last_page },
	{ "flags_over_a_call", flags_over_a_call },
	{ "flags_over_a_fault", flags_over_a_fault },
	{ "selectors", selectors },
	{ "to_32_bits", to_32_bits },
	{ NULL, NULL },
};
GT_MAIN(cases)
