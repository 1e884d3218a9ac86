/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The monitor: all code that ever runs in ring 0 of the guest. One page, position independent, mapped read-only in
 * the upper half of every address space. It decides nothing: each way in ends at a hlt, which takes the vCPU out to
 * the worker, and each way out is one instruction that the worker has chosen by setting rip (vcpu.c).
 */
	.section .rodata, "a", @progbits
	.balign 4096
	.globl kmon_start, kmon_sysret, kmon_iret, kmon_cr3, kmon_cr3_end, kmon_root, kmon_zap, kmon_pf, kmon_pf_end
	.globl kmon_idt, kmon_end
	.hidden kmon_start, kmon_sysret, kmon_iret, kmon_cr3, kmon_cr3_end, kmon_root, kmon_zap, kmon_pf, kmon_pf_end
	.hidden kmon_idt, kmon_end

/* LSTAR. rsp is the user's: nothing may be pushed. rcx, r11 have rip and flags. */
kmon_start:
	hlt
kmon_sysret:
	sysretq

	.balign 16
/* rsp -> rip cs rflags rsp ss */
kmon_iret:
	iretq

	.balign 16
/* rax = the root; rsp -> the user's rax, rip cs rflags rsp ss */
kmon_cr3:
	mov %rax, %cr3
	pop %rax
	iretq
kmon_cr3_end:

	.balign 16
/* rax = the root */
kmon_root:
	mov %rax, %cr3
	hlt

	.balign 16
/*
 * Hosts with shadow paging only. rsp -> addresses, 0; rax = the root that they hang below. A write of one byte into a
 * page-table page, at an odd place, makes the host drop what it had derived from the page; a leaf it may only mark,
 * until a root above it is loaded.
 */
kmon_zap:
	pop %rcx
	jrcxz 1f
	orb $0, (%rcx)
	jmp kmon_zap
1:	mov %rax, %cr3
	hlt

	.balign 16
/* Page faults hand over cr2 in rax, so that nobody need ask for it; the user's rax is on the exception stack. */
kmon_pf:
	push %rax
	mov %cr2, %rax
	hlt
kmon_pf_end:

	.balign 256
/* One byte a vector: rip - 1 - kmon_idt tells which. */
kmon_idt:
	.fill 256, 1, 0xf4
	.balign 4096
kmon_end:
	.section .note.GNU-stack, "", @progbits
