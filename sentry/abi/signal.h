/* SPDX-License-Identifier: Apache-2.0 */
/* Signal structures of the x86_64 Linux ABI: <asm/sigcontext.h>, <asm/ucontext.h>,
 * <linux/signalfd.h>. */
#ifndef SBX_SENTRY_ABI_SIGNAL_H
#define SBX_SENTRY_ABI_SIGNAL_H

#include <stddef.h>
#include <stdint.h>

#include "base/macros.h"

#define LINUX_SIG_DFL 0ull
#define LINUX_SIG_IGN 1ull

#define LINUX_SA_NOCLDSTOP 0x00000001ull
#define LINUX_SA_NOCLDWAIT 0x00000002ull
#define LINUX_SA_SIGINFO   0x00000004ull
#define LINUX_SA_EXPOSE_TAGBITS 0x00000800ull
#define LINUX_SA_RESTORER  0x04000000ull
#define LINUX_SA_ONSTACK   0x08000000ull
#define LINUX_SA_RESTART   0x10000000ull
#define LINUX_SA_NODEFER   0x40000000ull
#define LINUX_SA_RESETHAND 0x80000000ull
/* What the kernel keeps: the rest is cleared, so that a program can find out (sigaction(2),
 * SA_UNSUPPORTED). */
#define LINUX_SA_KNOWN                                                                             \
	(LINUX_SA_NOCLDSTOP | LINUX_SA_NOCLDWAIT | LINUX_SA_SIGINFO | LINUX_SA_RESTORER |          \
	 LINUX_SA_ONSTACK | LINUX_SA_RESTART | LINUX_SA_NODEFER | LINUX_SA_RESETHAND |             \
	 LINUX_SA_EXPOSE_TAGBITS)

#define LINUX_SI_USER   0
#define LINUX_SI_KERNEL 0x80
#define LINUX_SI_QUEUE  (-1)
#define LINUX_SI_TIMER  (-2)
#define LINUX_SI_TKILL  (-6)

#define LINUX_SS_ONSTACK     1
#define LINUX_SS_DISABLE     2
#define LINUX_SS_AUTODISARM  (1u << 31)
#define LINUX_MINSIGSTKSZ    2048

struct linux_stack {
	uint64_t ss_sp;
	int32_t ss_flags;
	uint32_t pad;
	uint64_t ss_size;
};
static_assert(sizeof(struct linux_stack) == 24, "stack_t");

struct linux_sigcontext {
	uint64_t r8, r9, r10, r11, r12, r13, r14, r15;
	uint64_t di, si, bp, bx, dx, ax, cx, sp, ip, flags;
	uint16_t cs, gs, fs, ss;
	uint64_t err, trapno, oldmask, cr2;
	uint64_t fpstate; /* a guest address, 0: none */
	uint64_t reserved[8];
};
static_assert(sizeof(struct linux_sigcontext) == 256, "struct sigcontext_64");

#define LINUX_UC_FP_XSTATE         1u
#define LINUX_UC_SIGCONTEXT_SS     2u
#define LINUX_UC_STRICT_RESTORE_SS 4u

struct linux_ucontext {
	uint64_t uc_flags, uc_link;
	struct linux_stack uc_stack;
	struct linux_sigcontext uc_mcontext;
	uint64_t uc_sigmask;
};
static_assert(sizeof(struct linux_ucontext) == 304, "struct ucontext of the kernel");

#define LINUX_FP_XSTATE_MAGIC1 0x46505853u
#define LINUX_FP_XSTATE_MAGIC2 0x46505845u

/* Bytes 464..511 of the FXSAVE area in a signal frame. */
struct linux_fpx_sw_bytes {
	uint32_t magic1, extended_size;
	uint64_t xfeatures;
	uint32_t xstate_size;
	uint32_t pad[7];
};
static_assert(sizeof(struct linux_fpx_sw_bytes) == 48, "struct _fpx_sw_bytes");

#define LINUX_FXSAVE_SIZE     512u
#define LINUX_FXSAVE_SW_BYTES 464u
#define LINUX_XSAVE_HDR_SIZE  64u

#define LINUX_SIGEV_SIGNAL    0
#define LINUX_SIGEV_NONE      1
#define LINUX_SIGEV_THREAD    2
#define LINUX_SIGEV_THREAD_ID 4

struct linux_sigevent {
	uint64_t sigev_value;
	int32_t sigev_signo, sigev_notify;
	int32_t sigev_tid;
	uint8_t pad[44];
};
static_assert(sizeof(struct linux_sigevent) == 64, "struct sigevent");

struct linux_signalfd_siginfo {
	uint32_t signo;
	int32_t err, code;
	uint32_t pid, uid;
	int32_t fd;
	uint32_t tid, band, overrun, trapno;
	int32_t status, int_value;
	uint64_t ptr, utime, stime, addr;
	uint16_t addr_lsb, pad2;
	int32_t syscall;
	uint64_t call_addr;
	uint32_t arch;
	uint8_t pad[28];
};
static_assert(sizeof(struct linux_signalfd_siginfo) == 128, "struct signalfd_siginfo");

#endif
