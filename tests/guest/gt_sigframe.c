/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers: nesting, the alternate stack, faults, and the machine state kept over one. */
#include <setjmp.h>
#include <sys/time.h>
#include <ucontext.h>

#include "gt_child.h"

static volatile sig_atomic_t hits;
static volatile sig_atomic_t order[64];

static void count(int sig)
{
	if (hits < 64)
		order[hits] = sig;
	hits++;
}

/* Handlers: masks, nesting, the alternate stack. */
static volatile int nested_mask_ok, nested_first;

static void on_nested(int sig)
{
	sigset_t now;

	sigprocmask(0, NULL, &now);
	order[hits++] = sig;
	if (sig == SIGUSR1 && !nested_first++) {
		nested_mask_ok = sigismember(&now, SIGUSR1) && sigismember(&now, SIGHUP) && !sigismember(&now, SIGUSR2);
		raise(SIGUSR1); /* blocked: comes after */
		raise(SIGHUP);  /* in sa_mask */
		raise(SIGUSR2); /* now */
		order[hits++] = -1;
	}
}

static void nesting(void)
{
	struct sigaction sa = { .sa_handler = on_nested, .sa_mask = *SET(SIGHUP) };
	/* At the first one's end frames for SIGHUP and then SIGUSR1 are made: the last made runs first. */
	static const int want[] = { SIGUSR1, SIGUSR2, -1, SIGUSR1, SIGHUP };
	sigset_t now;

	CHECK_OK(sigaction(SIGUSR1, &sa, NULL));
	gt_handle(SIGUSR2, on_nested, 0);
	gt_handle(SIGHUP, on_nested, 0);
	raise(SIGUSR1);
	CHECK_EQ(hits, 5);
	for (int i = 0; i < 5; i++)
		CHECK_EQ(order[i], want[i]);
	CHECK(nested_mask_ok);
	sigprocmask(0, NULL, &now);
	CHECK(!sigismember(&now, SIGUSR1) && !sigismember(&now, SIGHUP));
}

static void reset_and_drop(void)
{
	gt_handle(SIGUSR1, count, SA_RESETHAND);
	CHECK_KILLED(CHILD(raise(SIGUSR1); CHECK_EQ(hits, 1); raise(SIGUSR1)), SIGUSR1);
	/* Ignoring drops what is pending; blocked signals that are ignored are kept when blocked first. */
	sigprocmask(SIG_BLOCK, SET(SIGUSR1), NULL);
	raise(SIGUSR1);
	signal(SIGUSR1, SIG_IGN);
	gt_handle(SIGUSR1, count, 0);
	sigprocmask(SIG_UNBLOCK, SET(SIGUSR1), NULL);
	CHECK_EQ(hits, 0);
	sigprocmask(SIG_BLOCK, SET(SIGUSR1), NULL);
	signal(SIGUSR1, SIG_IGN);
	raise(SIGUSR1);
	gt_handle(SIGUSR1, count, 0);
	sigprocmask(SIG_UNBLOCK, SET(SIGUSR1), NULL);
	CHECK_EQ(hits, 1);
}

static volatile int nodefer_depth;

static void on_nodefer(int sig)
{
	if (++nodefer_depth < 5)
		raise(sig);
}

static void nodefer(void)
{
	gt_handle(SIGUSR1, on_nodefer, SA_NODEFER);
	raise(SIGUSR1);
	CHECK_EQ(nodefer_depth, 5);
}

static char alt[65536];
static volatile bool was_on_alt;
static stack_t seen_alt;

static void on_alt(int sig, siginfo_t *si, void *uc)
{
	char here;

	was_on_alt = &here >= alt && &here < alt + sizeof(alt);
	sigaltstack(NULL, &seen_alt);
	hits++;
}

static void altstack(void)
{
	struct sigaction sa = { .sa_sigaction = on_alt, .sa_flags = SA_SIGINFO | SA_ONSTACK };
	stack_t ss = { .ss_sp = alt, .ss_size = sizeof(alt) }, old;

	CHECK_ERR(syscall(SYS_sigaltstack, BAD_PTR, NULL), EFAULT);
	CHECK_OK(sigaltstack(NULL, &old));
	CHECK_EQ(old.ss_flags, SS_DISABLE);
	CHECK_ERR(sigaltstack(&(stack_t){ .ss_sp = alt, .ss_size = 100 }, NULL), ENOMEM);
	CHECK_ERR(sigaltstack(&(stack_t){ .ss_sp = alt, .ss_size = 65536, .ss_flags = 8 }, NULL), EINVAL);
	CHECK_OK(sigaction(SIGUSR1, &sa, NULL));
	CHECK_OK(sigaltstack(&ss, NULL));
	raise(SIGUSR1);
	CHECK(was_on_alt);
	CHECK_EQ(seen_alt.ss_flags, SS_ONSTACK);
	CHECK(seen_alt.ss_sp == alt && seen_alt.ss_size == sizeof(alt));
	CHECK_OK(sigaltstack(NULL, &old));
	CHECK_EQ(old.ss_flags, 0);
	/* A child keeps it, a vfork-like one too. */
	CHECK_EXIT(CHILD(was_on_alt = false; raise(SIGUSR1); CHECK(was_on_alt)), 0);
	ss.ss_flags = 1u << 31; /* SS_AUTODISARM */
	CHECK_OK(sigaltstack(&ss, NULL));
	raise(SIGUSR1);
	CHECK(was_on_alt);
	CHECK_EQ(seen_alt.ss_flags, SS_DISABLE);
	CHECK_OK(sigaltstack(NULL, &old));
	CHECK_EQ(old.ss_flags, (int)(1u << 31));
	ss.ss_flags = SS_DISABLE;
	CHECK_OK(sigaltstack(&ss, NULL));
	raise(SIGUSR1);
	CHECK(!was_on_alt);
}

/* Faults. */
static sigjmp_buf back;
static volatile siginfo_t fault;
static volatile unsigned long fault_rip, fault_trapno, fault_cr2;

static void on_fault(int sig, siginfo_t *si, void *ucp)
{
	ucontext_t *uc = ucp;

	*(siginfo_t *)&fault = *si;
	fault_rip = uc->uc_mcontext.gregs[REG_RIP];
	fault_trapno = uc->uc_mcontext.gregs[REG_TRAPNO];
	fault_cr2 = uc->uc_mcontext.gregs[REG_CR2];
	siglongjmp(back, sig);
}

#define FAULT(...) \
	({ \
		int s_ = sigsetjmp(back, 1); \
		if (!s_) { \
			__VA_ARGS__; \
		} \
		s_; \
	})

static void faults(void)
{
	struct sigaction sa = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };
	char *ro = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *none = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = open("f", O_RDWR | O_CREAT, 0600);
	char *beyond = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	volatile int zero = 0, one = 1;

	CHECK_OK(sigaction(SIGSEGV, &sa, NULL));
	CHECK_OK(sigaction(SIGBUS, &sa, NULL));
	CHECK_OK(sigaction(SIGFPE, &sa, NULL));
	CHECK_OK(sigaction(SIGILL, &sa, NULL));
	CHECK_OK(sigaction(SIGTRAP, &sa, NULL));
	CHECK_EQ(FAULT(*(volatile char *)BAD_PTR = 1), SIGSEGV);
	CHECK_EQ(fault.si_code, SEGV_MAPERR);
	CHECK(fault.si_addr == BAD_PTR);
	CHECK_EQ(fault_trapno, 14);
	CHECK_EQ(fault_cr2, (unsigned long)BAD_PTR);
	CHECK_EQ(FAULT(*(volatile char *)(ro + 5) = 1), SIGSEGV);
	CHECK_EQ(fault.si_code, SEGV_ACCERR);
	CHECK(fault.si_addr == ro + 5);
	CHECK_EQ(FAULT((void)*(volatile char *)none), SIGSEGV);
	CHECK_EQ(fault.si_code, SEGV_ACCERR);
	CHECK_EQ(FAULT(((void (*)(void))ro)()), SIGSEGV);
	CHECK_EQ(fault.si_code, SEGV_ACCERR);
	CHECK_EQ(fault_rip, (unsigned long)ro);
	CHECK_EQ(FAULT((void)*(volatile char *)0x8000000000001234ul), SIGSEGV); /* not canonical */
	CHECK_EQ(fault.si_code, SI_KERNEL);
	CHECK(fault.si_addr == NULL);
	CHECK_EQ(FAULT((void)*(volatile char *)0xffff800000000000ul), SIGSEGV);
	CHECK_EQ(fault.si_code, SEGV_MAPERR);
	CHECK_EQ(FAULT(__asm__ volatile("hlt")), SIGSEGV);
	CHECK_EQ(fault.si_code, SI_KERNEL);
	CHECK_EQ(FAULT(__asm__ volatile("ud2")), SIGILL);
	CHECK_EQ(fault.si_code, ILL_ILLOPN);
	CHECK(fault.si_addr == (void *)fault_rip);
	CHECK_EQ(FAULT(one / zero ? hits++ : 0), SIGFPE);
	CHECK_EQ(fault.si_code, FPE_INTDIV);
	CHECK(fault.si_addr == (void *)fault_rip);
	CHECK_EQ(FAULT(__asm__ volatile("int3")), SIGTRAP);
	CHECK_EQ(fault.si_code, SI_KERNEL);
	CHECK_EQ(FAULT(beyond[100] = 1), SIGBUS);
	CHECK_EQ(fault.si_code, BUS_ADRERR);
	CHECK(fault.si_addr == beyond + 100);
	/* The mask came back each time. */
	CHECK_EQ(FAULT(raise(SIGSEGV)), SIGSEGV);
	CHECK_EQ(fault.si_code, SI_TKILL);
}

static void sse_fault(void)
{
	struct sigaction sa = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };
	unsigned csr = 0x1f80 & ~0x200; /* divide by zero not masked */
	volatile double z = 0, x = 1;

	CHECK_OK(sigaction(SIGFPE, &sa, NULL));
	CHECK_EQ(FAULT(__asm__ volatile("ldmxcsr %0" : : "m"(csr)); x = x / z), SIGFPE);
	CHECK_EQ(fault.si_code, FPE_FLTDIV);
}

static void blocked_fault_kills(void)
{
	gt_handle(SIGSEGV, count, 0);
	CHECK_KILLED(CHILD(sigprocmask(SIG_BLOCK, SET(SIGSEGV), NULL); *(volatile char *)BAD_PTR = 1), SIGSEGV);
	CHECK_KILLED(CHILD(signal(SIGSEGV, SIG_IGN); *(volatile char *)BAD_PTR = 1), SIGSEGV);
	/* No room for a frame. */
	CHECK_KILLED(CHILD({
		gt_handle(SIGUSR1, count, 0);
		pid_t self = getpid();
		__asm__ volatile("mov %0, %%edi; mov $10, %%esi; mov $62, %%eax; mov $0x1000, %%rsp; syscall; hlt"
				 : : "r"(self) : "rdi", "rsi", "rax", "memory");
	}), SIGSEGV);
	/* A stack that overflows on the alternate stack is caught. */
	CHECK_EXIT(CHILD({
		struct sigaction sa = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK };
		CHECK_OK(sigaltstack(&(stack_t){ .ss_sp = alt, .ss_size = sizeof(alt) }, NULL));
		CHECK_OK(sigaction(SIGSEGV, &sa, NULL));
		CHECK_EQ(FAULT(__asm__ volatile("1: push $0; jmp 1b")), SIGSEGV);
	}), 0);
}

/* A handler that repairs and returns: the instruction runs again. */
static char *repair_page;

static void on_repair(int sig, siginfo_t *si, void *uc)
{
	hits++;
	mprotect(repair_page, 4096, PROT_READ | PROT_WRITE);
}

static void fault_repaired(void)
{
	struct sigaction sa = { .sa_sigaction = on_repair, .sa_flags = SA_SIGINFO };

	repair_page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK_OK(sigaction(SIGSEGV, &sa, NULL));
	for (int i = 0; i < 10; i++) {
		CHECK_OK(mprotect(repair_page, 4096, i & 1 ? PROT_READ : PROT_NONE));
		*(volatile int *)repair_page = i;
		CHECK_EQ(*(volatile int *)repair_page, i);
		CHECK_EQ(hits, i + 1);
	}
}

static void on_skip(int sig, siginfo_t *si, void *ucp)
{
	ucontext_t *uc = ucp;

	uc->uc_mcontext.gregs[REG_RIP] += 2;
	uc->uc_mcontext.gregs[REG_RAX] = 0x1234;
	sigaddset(&uc->uc_sigmask, SIGHUP);
	hits++;
}

static void context_changed(void)
{
	struct sigaction sa = { .sa_sigaction = on_skip, .sa_flags = SA_SIGINFO };
	unsigned long rax = 1;
	sigset_t now;

	CHECK_OK(sigaction(SIGILL, &sa, NULL));
	__asm__ volatile("ud2" : "+a"(rax));
	CHECK_EQ(rax, 0x1234);
	sigprocmask(0, NULL, &now);
	CHECK(sigismember(&now, SIGHUP));
}

static void longjmp_out(void)
{
	for (int i = 0; i < 200; i++) {
		gt_handle_info(SIGUSR1, on_fault, 0);
		CHECK_EQ(FAULT(raise(SIGUSR1)), SIGUSR1);
	}
}

/* The machine state over a handler. */
static void on_clobber(int sig)
{
	__asm__ volatile(
		"vpcmpeqd %%xmm0, %%xmm0, %%xmm0; vmovdqa %%xmm0, %%xmm7; vmovdqa %%xmm0, %%xmm15; fninit; std; cld"
		:
		:
		: "xmm0", "xmm7", "xmm15");
	hits++;
}

static void registers_kept(void)
{
	unsigned long in[16], out[16], ymm_in[4] = { 1, 2, 3, 4 }, ymm_out[4];
	double st = 3.25, st_out = 0;

	if (!__builtin_cpu_supports("avx"))
		_exit(GT_SKIP);
	gt_handle(SIGALRM, on_clobber, 0);
	setitimer(ITIMER_REAL, &(struct itimerval){ { 0, 3000 }, { 0, 3000 } }, NULL);
	for (int i = 0; i < 16; i++)
		in[i] = 0x1111111111111111ul * i;
	/* A loop without calls, hit by the timer: nothing may change, the red zone neither. */
	for (int round = 0; round < 20; round++) {
		unsigned long loops = 3000000, red = 0;

		__asm__ volatile(
			"vmovdqu %[yi], %%ymm7\n\t"
			"fldl %[st]\n\t"
			"mov %[in], %%rbx\n\t"
			"mov 8(%%rbx), %%r8\n\tmov 16(%%rbx), %%r9\n\tmov 24(%%rbx), %%r10\n\tmov 32(%%rbx), %%r11\n\t"
			"mov 40(%%rbx), %%r12\n\tmov 48(%%rbx), %%r13\n\tmov 56(%%rbx), %%r14\n\tmov 64(%%rbx), "
		        "%%r15\n\t"
			"mov 72(%%rbx), %%rdx\n\tmov 80(%%rbx), %%rdi\n\tmov 88(%%rbx), %%rsi\n\t"
			"movq $0x5a5a, -128(%%rsp)\n\tmovq $0x5a, -8(%%rsp)\n\t"
			"stc\n\t"
			"1: lea -1(%%rcx), %%rcx\n\t"
			"pushf\n\tpop %%rax\n\t"
			"2: jrcxz 3f\n\tjmp 1b\n\t"
			"3: mov %[out], %%rbx\n\t"
			"mov %%r8, 8(%%rbx)\n\tmov %%r9, 16(%%rbx)\n\tmov %%r10, 24(%%rbx)\n\tmov %%r11, 32(%%rbx)\n\t"
			"mov %%r12, 40(%%rbx)\n\tmov %%r13, 48(%%rbx)\n\tmov %%r14, 56(%%rbx)\n\tmov %%r15, "
		        "64(%%rbx)\n\t"
			"mov %%rdx, 72(%%rbx)\n\tmov %%rdi, 80(%%rbx)\n\tmov %%rsi, 88(%%rbx)\n\t"
			"mov %%rax, 96(%%rbx)\n\t"
			"mov -128(%%rsp), %%rax\n\t"
			"vmovdqu %%ymm7, %[yo]\n\tfstpl %[so]\n\t"
			: "+c"(loops), "=&a"(red), [yo] "=m"(ymm_out), [so] "=m"(st_out)
			: [yi] "m"(ymm_in), [st] "m"(st), [in] "m"(*(unsigned long *[]){ in }),
			  [out] "m"(*(unsigned long *[]){ out })
			: "rbx", "rdx", "rdi", "rsi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm7",
			  "memory", "cc");
		for (int i = 1; i <= 11; i++)
			CHECK_EQ(out[i], in[i]);
		CHECK(out[12] & 1); /* the carry */
		CHECK_EQ(red, 0x5a5a);
		CHECK(!memcmp(ymm_in, ymm_out, sizeof(ymm_in)));
		CHECK(st_out == st);
	}
	CHECK(hits > 0);
}

static void fpu_in_frame(void)
{
	/* A call that a signal interrupts keeps them as well. */
	unsigned long ymm_in[4] = { 5, 6, 7, 8 }, ymm_out[4];
	long r, pid = getpid();

	if (!__builtin_cpu_supports("avx"))
		_exit(GT_SKIP);
	gt_handle(SIGUSR1, on_clobber, 0);
	for (int i = 0; i < 50; i++) {
		__asm__ volatile("vmovdqu %[yi], %%ymm7\n\tsyscall\n\tvmovdqu %%ymm7, %[yo]"
				 : "=a"(r), [yo] "=m"(ymm_out)
				 : "a"(SYS_kill), "D"(pid), "S"(SIGUSR1), [yi] "m"(ymm_in)
				 : "rcx", "r11", "xmm7", "memory");
		CHECK_EQ(r, 0);
		CHECK(!memcmp(ymm_in, ymm_out, sizeof(ymm_in)));
	}
	CHECK_EQ(hits, 50);
}

static void bad_sigreturn(void)
{
	/* A frame that is not one. */
	CHECK_KILLED(CHILD({
		__asm__ volatile("mov $15, %%eax; mov $0x1000, %%rsp; syscall" : : : "rax", "memory");
	}), SIGSEGV);
	CHECK_KILLED(CHILD({
		char *p = gt_edge_page();
		__asm__ volatile("mov $15, %%eax; mov %0, %%rsp; syscall" : : "r"(p + 4096 - 64) : "rax", "memory");
	}), SIGSEGV);
	/* Zeroes: jumps to 0 with an invalid code segment, or at least dies. */
	CHECK_KILLED(CHILD({
		char *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		__asm__ volatile("mov $15, %%eax; mov %0, %%rsp; syscall" : : "r"(p + 2048) : "rax", "memory");
	}), SIGSEGV);
}

static void on_hostile(int sig, siginfo_t *si, void *ucp)
{
	ucontext_t *uc = ucp;

	/* System flags are not taken from the frame; a wild fp pointer kills. */
	uc->uc_mcontext.gregs[REG_EFL] |= 0x3000 | 0x20000 | (1 << 14);
	hits++;
}

static void on_bad_rip(int sig, siginfo_t *si, void *ucp)
{
	ucontext_t *uc = ucp;

	uc->uc_mcontext.gregs[REG_RIP] = 0x8000000000000000ul;
}

static void on_bad_fp(int sig, siginfo_t *si, void *ucp)
{
	ucontext_t *uc = ucp;

	uc->uc_mcontext.fpregs = (void *)0x1000;
}

static void hostile_frame(void)
{
	unsigned long fl;

	gt_handle_info(SIGUSR1, on_hostile, 0);
	raise(SIGUSR1);
	__asm__ volatile("pushf; pop %0" : "=r"(fl));
	CHECK_EQ(fl & (0x3000 | 0x20000), 0);
	gt_handle_info(SIGUSR1, on_bad_rip, 0);
	CHECK_KILLED(CHILD(raise(SIGUSR1)), SIGSEGV);
	gt_handle_info(SIGUSR1, on_bad_fp, 0);
	CHECK_KILLED(CHILD(raise(SIGUSR1)), SIGSEGV);
}

static const struct gt_case cases[] = {
	{ "nesting", nesting },
	{ "reset_and_drop", reset_and_drop },
	{ "nodefer", nodefer },
	{ "altstack", altstack },
	{ "faults", faults },
	{ "sse_fault", sse_fault },
	{ "blocked_fault_kills", blocked_fault_kills },
	{ "fault_repaired", fault_repaired },
	{ "context_changed", context_changed },
	{ "longjmp_out", longjmp_out },
	{ "registers_kept", registers_kept },
	{ "fpu_in_frame", fpu_in_frame },
	{ "bad_sigreturn", bad_sigreturn },
	{ "hostile_frame", hostile_frame },
	{ NULL, NULL },
};
GT_MAIN(cases)
