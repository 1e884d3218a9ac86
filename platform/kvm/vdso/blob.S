/* SPDX-License-Identifier: Apache-2.0 */
/* The vDSO's image as data of the sentry. */
	.section .rodata
	.globl	kvdso_image, kvdso_image_end
	.balign	64
kvdso_image:
	.incbin	"platform/kvm/vdso/vdso.so"
kvdso_image_end:

	.section .note.GNU-stack, "", @progbits
