/* SPDX-License-Identifier: Apache-2.0 */
/* Guest programs of unotify_test: position-independent, copied to GUEST_CODE. rbx is theirs to use. */
#define SYS(n) mov $n, %eax; syscall
#define REPORT(slot, reg) mov reg, %rsi; mov $slot, %edi; SYS(1000)
#define EXIT(code) mov $code, %edi; SYS(231)

	.section .rodata
	.globl	guest_start, guest_end
	.globl	g_hello, g_nop_loop

	.balign	4096
guest_start:
g_hello:
	SYS(110)
	REPORT(0, %rax)
	EXIT(7)

/* rdi: count of getppid calls */
g_nop_loop:
	mov	%rdi, %rbx
1:	SYS(110)
	dec	%rbx
	jnz	1b
	EXIT(0)
guest_end:

	.section .note.GNU-stack, "", @progbits
