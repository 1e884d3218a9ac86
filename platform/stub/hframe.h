/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SBX_PLATFORM_STUB_HFRAME_H
#define SBX_PLATFORM_STUB_HFRAME_H

#include <assert.h>
#include <stdint.h>

/* The signal frame of the host kernel, as far as we need it. */
struct hframe {
	uint64_t pretcode;
	uint64_t flags, link, ss_sp;
	uint32_t ss_flags, pad;
	uint64_t ss_size;
	uint64_t r8, r9, r10, r11, r12, r13, r14, r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip, eflags;
	uint16_t cs, gs, fs, ss;
	uint64_t err, trapno, oldmask, cr2, fpstate, reserved[8];
	uint64_t sigmask;
};
static_assert(sizeof(struct hframe) == 312, "layout of the x86_64 signal frame");

#define HFRAME_FP_XSTATE 1u
#define HFRAME_FLAGS     6u   /* UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS */
#define HFRAME_SIGINFO   128u /* between the frame and the FPU state */

#endif
