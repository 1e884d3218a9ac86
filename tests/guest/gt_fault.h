/* SPDX-License-Identifier: Apache-2.0 */
/* Faults of a case: caught on an alternate stack, because the case may have broken its own, and described. */
#ifndef SBX_TESTS_GUEST_GT_FAULT_H
#define SBX_TESTS_GUEST_GT_FAULT_H

#include <setjmp.h>
#include <ucontext.h>

#include "gt_child.h"

struct gt_fault {
	volatile int sig, code;
	volatile uintptr_t addr, rip, rsp, trapno, err, cr2;
};

static __thread struct gt_fault gt_fault;
static __thread sigjmp_buf gt_fault_back;

__attribute__((unused)) static void gt_on_fault(int sig, siginfo_t *si, void *ucp)
{
	const greg_t *r = ((ucontext_t *)ucp)->uc_mcontext.gregs;

	/* The kernel leaves AC set; what follows may access memory in any way. */
	__asm__ volatile("pushf; andl $~0x40000, (%%rsp); popf" : : : "cc", "memory");
	gt_fault.sig = sig;
	gt_fault.code = si->si_code;
	gt_fault.addr = (uintptr_t)si->si_addr;
	gt_fault.rip = (uintptr_t)r[REG_RIP];
	gt_fault.rsp = (uintptr_t)r[REG_RSP];
	gt_fault.trapno = (uintptr_t)r[REG_TRAPNO];
	gt_fault.err = (uintptr_t)r[REG_ERR];
	gt_fault.cr2 = (uintptr_t)r[REG_CR2];
	siglongjmp(gt_fault_back, 1);
}

/* Each thread that catches faults needs its own. */
__attribute__((unused)) static void gt_fault_stack(void)
{
	char *p = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	CHECK_OK(sigaltstack(&(stack_t){ .ss_sp = p, .ss_size = 65536 }, NULL));
}

__attribute__((unused)) static void gt_fault_init(void)
{
	static const int sigs[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP };

	gt_fault_stack();
	for (size_t i = 0; i < sizeof(sigs) / sizeof(*sigs); i++)
		gt_handle_info(sigs[i], gt_on_fault, SA_ONSTACK);
}

/* The signal that the statements raised, described in gt_fault; 0: none. */
#define CATCH(...) \
	({ \
		gt_fault.sig = 0; \
		if (!sigsetjmp(gt_fault_back, 1)) { \
			__VA_ARGS__; \
		} \
		gt_fault.sig; \
	})

/* A kernel with five levels of page tables, which has other limits. */
__attribute__((unused)) static bool gt_five_levels(void)
{
	void *p = mmap((void *)(1ul << 50), 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	munmap(p, 4096);
	return p == (void *)(1ul << 50);
}

/* SIGSEGV without an address, as for a general protection fault. */
#define CHECK_GP(...) \
	do { \
		CHECK_EQ(CATCH(__VA_ARGS__), SIGSEGV); \
		CHECK_EQ(gt_fault.code, SI_KERNEL); \
		CHECK_EQ(gt_fault.addr, 0); \
	} while (0)

/* A page fault at @at. */
#define CHECK_PF(at, want_code, ...) \
	do { \
		CHECK_EQ(CATCH(__VA_ARGS__), SIGSEGV); \
		CHECK_EQ(gt_fault.code, want_code); \
		CHECK_EQ(gt_fault.addr, (uintptr_t)(at)); \
		CHECK_EQ(gt_fault.cr2, (uintptr_t)(at)); \
		CHECK_EQ(gt_fault.trapno, 14); \
	} while (0)

#endif
