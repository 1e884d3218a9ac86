/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ELF64 x86_64 headers of a hostile file, elf(5). Pure functions: bytes in, a checked and bounded
 * description out. What they accept can be mapped without further arithmetic checks.
 */
#ifndef SBX_SENTRY_LOADER_ELF_H
#define SBX_SENTRY_LOADER_ELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macros.h"

#define ELF_HEADER_SIZE 64
#define ELF_PHDR_SIZE 56
#define ELF_PHDRS_MAX 128 /* Linux: 1170; what tool chains write has about 15 */
#define ELF_LOADS_MAX 32
#define ELF_ALIGN_MAX (1ull << 30)
#define ELF_INTERP_MAX 4096 /* with the NUL */

struct elf_header {
	bool dyn; /* ET_DYN: may be placed anywhere */
	uint64_t entry;
	uint64_t phoff;
	unsigned phnum;
};

struct elf_load {
	uint64_t vaddr, memsz;   /* memsz > 0; the end is below GUEST_TASK_SIZE */
	uint64_t offset, filesz; /* filesz <= memsz; vaddr and offset are equal within a page unless
	                            filesz is 0 */
	int prot;                /* PROT_* */
};

struct elf_image {
	bool dyn;
	uint64_t entry;
	unsigned phnum;
	uint64_t phdr_vaddr;             /* where the program headers get mapped; 0: nowhere */
	uint64_t low, high;              /* page-aligned bounds of all loads */
	uint64_t align;                  /* of the image, a power of two, at least a page */
	bool exec_stack;                 /* PT_GNU_STACK with PF_X */
	uint64_t interp_off, interp_len; /* PT_INTERP; length 0: none */
	unsigned n_loads;                /* > 0 */
	struct elf_load loads[ELF_LOADS_MAX];
};

/* Reads the file header from the first @n bytes of a file. -ENOEXEC when it is no program for us.
 */
MUST_CHECK int elf_parse_header(const uint8_t *buf, size_t n, struct elf_header *ret);
/* Reads h->phnum program headers from @buf (n bytes; too few is -ENOEXEC). -ENOEXEC, -EINVAL,
 * -ENOMEM as execve(2). */
MUST_CHECK int elf_parse_phdrs(const struct elf_header *h, const uint8_t *buf, size_t n,
                               struct elf_image *ret);
/* Checks the bytes of a PT_INTERP segment: 0, or -ENOEXEC unless they are one NUL-terminated
 * string, not empty. */
MUST_CHECK int elf_check_interp(const uint8_t *buf, size_t n);

#endif
