/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shim: signal handler and order interpreter of every stub thread. It works in registers alone and trusts no
 * memory; the sentry checks each of its system calls by the address behind the syscall instruction (a "site"), the thread's
 * state and all arguments. rsp never moves: it points at the host kernel's signal frame, [rsp] = restorer,
 * rsp + 8 = struct ucontext. The guest's registers lie there, so all others are free here.
 */
#include "platform/stub/layout.h"

#define UC      8
#define UC_R8   (UC + 40)
#define UC_R9   (UC + 48)
#define UC_R10  (UC + 56)
#define UC_RDI  (UC + 104)
#define UC_RSI  (UC + 112)
#define UC_RDX  (UC + 136)
#define UC_RAX  (UC + 144)
#define UC_ERR  (UC + 192)
#define UC_TRAPNO (UC + 200)

#define SI_CODE    8
#define SI_ADDR    16
#define SI_SYSCALL 24
#define SI_ARCH    28

#define SIGSYS_NR       31
#define ARCH_X86_64     0xC000003E
#define SYS_RT_SIGRETURN 15

	.section .shim, "ax", @progbits
	.globl	shim_handler, shim_restorer, shim_enter, site_sigret

/* void shim_handler(int sig, siginfo_t *info, ucontext_t *uc) */
	.balign	64
shim_handler:
	cmp	$SIGSYS_NR, %edi
	jne	signal
	/* A trapped system call: make it again, so that the sentry sees the guest's own six arguments. */
	mov	SI_SYSCALL(%rsi), %eax
	and	$0xfff, %eax
	mov	%esp, %ecx
	and	$(SLOT_SIZE - 1), %ecx
	shl	$12, %ecx
	lea	SHIM_TRAP(%rax, %rcx), %eax
	cmpl	$ARCH_X86_64, SI_ARCH(%rsi)
	je	1f
	or	$SHIM_TRAP32, %eax
1:	mov	UC_RDI(%rsp), %rdi
	mov	UC_RSI(%rsp), %rsi
	mov	UC_RDX(%rsp), %rdx
	mov	UC_R10(%rsp), %r10
	mov	UC_R8(%rsp), %r8
	mov	UC_R9(%rsp), %r9
	syscall
site_trap:
	jmp	command

signal:
	shl	$8, %edi
	or	$SHIM_OP_SIGNAL, %edi
	mov	SI_ADDR(%rsi), %rdx
	movslq	SI_CODE(%rsi), %rsi
	mov	UC_TRAPNO(%rsp), %r10
	mov	UC_ERR(%rsp), %r8
	mov	%rsp, %r9
	mov	$SHIM_MAGIC, %eax
	syscall
site_sig:
command:
	movzbl	%al, %ecx
	cmp	$SHIM_RESUME_RAX, %ecx
	je	resume_rax
	cmp	$SHIM_RESUME, %ecx
	je	resume
	cmp	$SHIM_ORDER, %ecx
	je	orders
	cmp	$SHIM_ORDER_RES, %ecx
	je	orders
	cmp	$SHIM_ORDER_KEEP, %ecx
	je	orders
	cmp	$SHIM_ORDER_CLONE, %ecx
	je	orders
	ud2				/* no sentry any more: dies, for all signals are blocked */

resume_rax:
	sar	$8, %rax
	mov	%rax, UC_RAX(%rsp)
resume:
	add	$8, %rsp
	mov	$SYS_RT_SIGRETURN, %eax
	syscall				/* the one call that is not notified */
site_sigret:
	ud2

orders:
	mov	%ecx, %r14d
	mov	%rax, %r13
	shr	$8, %r13
	mov	%rsp, %r12
	and	$-SLOT_SIZE, %r12	/* the order block lies at the start of the slot */
2:	mov	(%r12), %rax
	mov	8(%r12), %rdi
	mov	16(%r12), %rsi
	mov	24(%r12), %rdx
	mov	32(%r12), %r10
	mov	40(%r12), %r8
	mov	48(%r12), %r9
	syscall
site_order:
	add	$ORDER_SIZE, %r12
	dec	%r13
	jz	last
	cmp	$-4095, %rax
	jb	2b
	jmp	done
last:
	cmp	$-4095, %rax
	jae	done
	cmp	$SHIM_ORDER_KEEP, %r14d
	je	resume
	cmp	$SHIM_ORDER_CLONE, %r14d
	je	cloned
	cmp	$SHIM_ORDER_RES, %r14d
	jne	done
	mov	%rax, UC_RAX(%rsp)
	jmp	resume
cloned:
	test	%rax, %rax
	jnz	resume

done:					/* r9 still holds the last order's sixth argument: a child's token */
	mov	%rax, %rsi
	mov	%r13, %rdx
	mov	%rsp, %r10
	mov	$SHIM_OP_DONE, %edi
	mov	$SHIM_MAGIC, %eax
	syscall
site_done:
	jmp	command

/* The zygote's way in: rdi = the new rsp, a prepared frame. */
shim_enter:
	mov	%rdi, %rsp
	xor	%eax, %eax
	xor	%r9d, %r9d
	xor	%r13d, %r13d
	jmp	done

	syscall				/* a traced stub's orders: the tracer sees the breakpoint behind it */
site_once:
	int3
	ud2

shim_restorer:				/* never used: the shim returns by itself */
	ud2

	.balign	8
kickset:
	.quad	1 << (SHIM_KICK - 1)

	.org	SHIM_TABLE
	.quad	site_trap, site_sig, site_order, site_done, site_sigret, kickset, site_once
	.org	SHIM_SIZE

	.section .note.GNU-stack, "", @progbits
