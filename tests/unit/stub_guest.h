/* SPDX-License-Identifier: Apache-2.0 */
/* What stub_suite.c and its guest programs agree upon. */
#ifndef SBX_TESTS_UNIT_STUB_GUEST_H
#define SBX_TESTS_UNIT_STUB_GUEST_H

#define GUEST_CODE  0x400000 /* the image, see stub_guest.ld */
#define GUEST_IMAGE 0x80000
#define GUEST_STACK 0x800000
#define GUEST_STACK_SIZE 0x20000
#define GUEST_FREE  0x10000000 /* from here on: for tests that map */

/* System calls of the tiny kernel. */
enum {
	H_CHECK = 1000, /* cond, name: a line of TAP */
	H_RESULT,       /* slot, value */
	H_PARK,         /* sleeps until H_WAKE; then 77 */
	H_WAKE,         /* wakes all sleepers: how many */
	H_ALONE,        /* sleeps until no other context is left */
	H_RET,          /* value: returns it */
	H_REGS,         /* the kernel reads and changes registers */
	H_FPU,          /* what: the kernel reads and changes the FPU state */
	H_INTR,         /* the caller is to be interrupted from now on */
	H_MM,           /* op, addr, len, prot or new address: aspace_apply without may_resume, from class A */
	H_KILL,         /* the host kills this stub */
	H_SLEEPERS,     /* how many sleep */
};

enum { CLONE_KIND_FORK, CLONE_KIND_THREAD, CLONE_KIND_VM };

enum guest_program {
	G_HELLO,
	G_NOP,
	G_VALUES,
	G_FORK,
	G_THREAD,
	G_VM,
	G_REGS,
	G_FPU,
	G_FPU_TWO,
	G_FAULT,
	G_SPIN,
	G_EXEC,
	G_EXECED,
	G_PARK,
	G_MM,
	G_EXIT_GROUP,
	G_DIE,
	G_HOSTILE,
	G_RACE_ORDER,
	G_RACE_CONTINUE,
	G_NOTHING,
	G_BENCH,
	G_BENCH_PARKED,
	G_STRESS,
	G_SLEEP,
	G_ORPHANS,
	G_LEADER,
	G_BAD_REGS,
	G_FAIR,
	G_KEEP,
};

#endif
