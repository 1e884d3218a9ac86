/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reserved range of every stub, and the words that the shim and the sentry exchange. Included by assembly.
 *
 *   SHIM_BASE   the shim: one page, r-x, register-only code (shim.S); its last bytes are a table of call sites
 *   BOOT_BASE   code and data of init and zygote (boot.c); gone before guest code runs
 *   VDSO_BASE   vvar and vdso, moved here
 *   SLOT_BASE   one slot for each thread: order block, scratch words, alternate signal stack
 */
#ifndef SBX_PLATFORM_STUB_LAYOUT_H
#define SBX_PLATFORM_STUB_LAYOUT_H

#define SHIM_BASE  0x7ff000000000
#define SHIM_SIZE  0x1000
#define SHIM_TABLE 0xfc0 /* offset of struct shim_sites in the page */
#define BOOT_BASE  0x7ff000100000
#define VDSO_BASE  0x7ff000200000
#define SLOT_BASE  0x7ff001000000
#define SLOT_SIZE  0x4000
#define SLOT_MAX   0x10000
#define SHIM_END   0x7ff080000000
#define STUB_TASK_SIZE 0x7ffffffff000

/* Offsets in a slot. The host kernel puts its frames at the top of the alternate stack; SLOT_FRAME is where the sentry
 * builds the frame of a fresh stub. */
#define SLOT_ORDERS   0
#define SLOT_SCRATCH  0x780
#define SLOT_STACK    0x800
#define SLOT_FRAME    0x2000
#define ORDER_SIZE    56 /* nr, a0 .. a5 */
#define ORDERS_MAX    34

/* The system call numbers by which the shim speaks; the host kernel has none of them. */
#define SHIM_MAGIC    0x5b0
#define SHIM_TRAP     0x10000000 /* | frame offset << 12 | nr: SIGSYS, the arguments are the guest's own */
#define SHIM_TRAP32   0x08000000 /* with SHIM_TRAP: not an x86_64 call */

/* First argument of a SHIM_MAGIC call, low byte. */
#define SHIM_OP_SIGNAL 1 /* signal << 8; si_code, si_addr, trapno, err, frame */
#define SHIM_OP_DONE   2 /* result, orders not done, rsp, -, token */

/* Answers: the command in the low byte, its operand above. */
#define SHIM_RESUME      1
#define SHIM_ORDER       2 /* count */
#define SHIM_RESUME_RAX  3 /* rax, signed 56 bits */
#define SHIM_ORDER_RES   4 /* count; when all succeed the guest goes on with the last result in rax */
#define SHIM_ORDER_KEEP  5 /* count; when all succeed the guest goes on with rax as in the frame */
#define SHIM_ORDER_CLONE 6 /* count; as SHIM_ORDER_KEEP, but who gets 0 of the last one, its child, reports */

/* Between the sentry and boot.c. */
#define BOOT_SOCK      3
#define BOOT_PROC      4 /* an O_PATH fd of its /proc/self, when there is a /proc */
#define BOOT_LISTENER  0 /* the number the listener gets: the lowest free one */
#define BOOT_MAGIC     0x73627831
#define BOOT_NODUMP    1
#define BOOT_NO_VDSO   2
#define BOOT_PTRACE    4 /* the zygote is traced: no filter, no signal stack */

#define SHIM_KICK      12 /* SIGUSR2 */

/* Exit codes of init and zygote. */
#define BOOT_E_HANDSHAKE 10
#define BOOT_E_FORK      11
#define BOOT_E_SLOT      12
#define BOOT_E_ALTSTACK  13
#define BOOT_E_NNP       14

#ifndef __ASSEMBLER__
#include <stdint.h>

struct shim_sites {
	uint64_t trap, sig, order, done, sigret; /* the addresses behind the syscall instructions */
	uint64_t kickset;                        /* a sigset_t of SHIM_KICK */
	uint64_t once;                           /* behind a syscall instruction that a breakpoint follows */
};

struct boot_config {
	uint32_t magic, flags;
};

struct boot_report {
	uint32_t magic;
	int32_t listener_err;       /* 0 in the first report; a second one tells why there is no listener */
	uint64_t vdso;              /* where it is now; 0: none */
	uint64_t keep_lo, keep_hi;  /* vvar and vdso where they could not be moved; 0: moved */
};
#endif
#endif
