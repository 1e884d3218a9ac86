/* SPDX-License-Identifier: Apache-2.0 */
	.section .rodata
	.globl	guest_image, guest_image_end
guest_image:
	.incbin	"tests/unit/stub_guest.bin"
guest_image_end:

	.section .note.GNU-stack, "", @progbits
