/* SPDX-License-Identifier: Apache-2.0 */
/* The stub's ELF file as data of the sentry. */
	.section .rodata
	.globl	stub_elf, stub_elf_end
	.balign	64
stub_elf:
	.incbin	"platform/stub/stub.elf"
stub_elf_end:

	.section .note.GNU-stack, "", @progbits
