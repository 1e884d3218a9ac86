/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first instructions of our statically linked programs, before libc's _start. Relocation writes to nearly every
 * page of initialised data, each a page fault and a copy: a good part of what such a program costs before main(). One
 * madvise(2) has the host do them all at once. Nothing is relocated yet and there is no libc: no calls, no globals but
 * by their distance. Where the host does not know the advice (before Linux 5.14) nothing is lost.
 */
#include <elf.h>
#include <stdint.h>
#include <sys/syscall.h>

#include "base/macros.h"

#define ADV_POPULATE_WRITE 23

/* Where the linker puts the ELF header: what is mapped first. */
extern const Elf64_Ehdr __ehdr_start __attribute__((visibility("hidden")));

void entry_populate(void);

__attribute__((used, visibility("hidden"), no_stack_protector)) void entry_populate(void)
{
	uintptr_t base = (uintptr_t)&__ehdr_start;
	const Elf64_Phdr *ph = (const Elf64_Phdr *)(base + __ehdr_start.e_phoff);

	for (unsigned i = 0; i < __ehdr_start.e_phnum; i++) {
		uintptr_t start = ROUND_DOWN(base + ph[i].p_vaddr, PAGE_SIZE);
		uintptr_t end = ROUND_UP(base + ph[i].p_vaddr + ph[i].p_filesz, PAGE_SIZE);
		long r;

		if (ph[i].p_type == PT_LOAD && (ph[i].p_flags & PF_W))
			__asm__ volatile("syscall"
					 : "=a"(r)
					 : "0"((long)SYS_madvise), "D"(start), "S"(end - start), "d"(ADV_POPULATE_WRITE)
					 : "rcx", "r11", "memory");
	}
}

/* rdx and the stack are for _start. */
__asm__(".text\n"
	".globl sbx_entry\n"
	".type sbx_entry, @function\n"
	"sbx_entry:\n"
	"	xor %ebp, %ebp\n"
	"	mov %rsp, %rbx\n"
	"	mov %rdx, %r12\n"
	"	and $-16, %rsp\n"
	"	call entry_populate\n"
	"	mov %r12, %rdx\n"
	"	mov %rbx, %rsp\n"
	"	jmp _start\n"
	".size sbx_entry, . - sbx_entry\n");
