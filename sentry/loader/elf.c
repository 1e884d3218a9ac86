/* SPDX-License-Identifier: Apache-2.0 */
#include "sentry/loader/elf.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "platform/platform.h"

static_assert(sizeof(Elf64_Ehdr) == ELF_HEADER_SIZE, "ELF header");
static_assert(sizeof(Elf64_Phdr) == ELF_PHDR_SIZE, "ELF program header");

int elf_parse_header(const uint8_t *buf, size_t n, struct elf_header *ret)
{
	Elf64_Ehdr e;

	if (n < sizeof(e))
		return -ENOEXEC;
	memcpy(&e, buf, sizeof(e));
	if (memcmp(e.e_ident, ELFMAG, SELFMAG) != 0 || e.e_ident[EI_CLASS] != ELFCLASS64 ||
	    e.e_ident[EI_DATA] != ELFDATA2LSB)
		return -ENOEXEC;
	if ((e.e_type != ET_EXEC && e.e_type != ET_DYN) || e.e_machine != EM_X86_64)
		return -ENOEXEC;
	if (e.e_phentsize != sizeof(Elf64_Phdr) || e.e_phnum < 1 || e.e_phnum > ELF_PHDRS_MAX)
		return -ENOEXEC;
	if (e.e_phoff > INT64_MAX - ELF_PHDRS_MAX * sizeof(Elf64_Phdr))
		return -ENOEXEC;
	*ret = (struct elf_header){
		.dyn = e.e_type == ET_DYN,
		.entry = e.e_entry,
		.phoff = e.e_phoff,
		.phnum = e.e_phnum,
	};
	return 0;
}

static int parse_load(const Elf64_Phdr *ph, struct elf_image *img)
{
	struct elf_load *l = &img->loads[img->n_loads];
	uint64_t end, file_end;

	if (ph->p_filesz > ph->p_memsz)
		return -EINVAL;
	if (__builtin_add_overflow(ph->p_vaddr, ph->p_memsz, &end) ||
	    end > GUEST_TASK_SIZE - PAGE_SIZE)
		return -ENOMEM;
	if (ph->p_memsz == 0)
		return 0;
	if (__builtin_add_overflow(ph->p_offset, ph->p_filesz, &file_end) ||
	    file_end > INT64_MAX - PAGE_SIZE)
		return -EINVAL;
	if (ph->p_filesz && (ph->p_vaddr - ph->p_offset) % PAGE_SIZE)
		return -EINVAL;
	if (ph->p_filesz && ph->p_offset < ph->p_vaddr % PAGE_SIZE)
		return -EINVAL;
	if (img->n_loads == ELF_LOADS_MAX)
		return -ENOEXEC;
	*l = (struct elf_load){
		.vaddr = ph->p_vaddr,
		.memsz = ph->p_memsz,
		.offset = ph->p_offset,
		.filesz = ph->p_filesz,
		.prot = (ph->p_flags & PF_R ? PROT_READ : 0) |
		        (ph->p_flags & PF_W ? PROT_WRITE : 0) |
		        (ph->p_flags & PF_X ? PROT_EXEC : 0),
	};
	img->low = MIN(img->low, ROUND_DOWN(l->vaddr, PAGE_SIZE));
	img->high = MAX(img->high, ROUND_UP(end, PAGE_SIZE));
	/* What is no power of two means nothing, as for Linux. */
	if (ph->p_align <= ELF_ALIGN_MAX && (ph->p_align & (ph->p_align - 1)) == 0)
		img->align = MAX(img->align, ph->p_align);
	img->n_loads++;
	return 0;
}

/* The address of file offset @off, 0 when no load has it. */
static uint64_t vaddr_of_offset(const struct elf_image *img, uint64_t off)
{
	for (unsigned i = 0; i < img->n_loads; i++) {
		const struct elf_load *l = &img->loads[i];

		if (off >= l->offset && off - l->offset < l->filesz)
			return l->vaddr + (off - l->offset);
	}
	return 0;
}

static int parse_interp(const Elf64_Phdr *ph, struct elf_image *img)
{
	if (img->interp_len)
		return 0; /* the first one counts */
	if (ph->p_filesz < 2 || ph->p_filesz > ELF_INTERP_MAX ||
	    ph->p_offset > INT64_MAX - ELF_INTERP_MAX)
		return -ENOEXEC;
	img->interp_off = ph->p_offset;
	img->interp_len = ph->p_filesz;
	return 0;
}

int elf_parse_phdrs(const struct elf_header *h, const uint8_t *buf, size_t n, struct elf_image *ret)
{
	if (h->phnum > ELF_PHDRS_MAX || n < h->phnum * sizeof(Elf64_Phdr))
		return -ENOEXEC;
	*ret = (struct elf_image){
		.dyn = h->dyn,
		.entry = h->entry,
		.phnum = h->phnum,
		.low = UINT64_MAX,
		.align = PAGE_SIZE,
	};
	for (unsigned i = 0; i < h->phnum; i++) {
		Elf64_Phdr ph;
		int rc = 0;

		memcpy(&ph, buf + i * sizeof(ph), sizeof(ph));
		if (ph.p_type == PT_LOAD)
			rc = parse_load(&ph, ret);
		else if (ph.p_type == PT_INTERP)
			rc = parse_interp(&ph, ret);
		else if (ph.p_type == PT_GNU_STACK)
			ret->exec_stack = ph.p_flags & PF_X;
		if (rc < 0)
			return rc;
	}
	if (!ret->n_loads)
		return -ENOEXEC;
	if (ret->entry >= GUEST_TASK_SIZE)
		return -EINVAL;
	/* A fixed image may not lie where nothing of the guest's can be. */
	if (!ret->dyn && ret->low < PLATFORM_RESERVED_END && ret->high > PLATFORM_RESERVED_START)
		return -ENOMEM;
	ret->phdr_vaddr = vaddr_of_offset(ret, h->phoff);
	return 0;
}

int elf_check_interp(const uint8_t *buf, size_t n)
{
	return n >= 2 && n <= ELF_INTERP_MAX && strnlen((const char *)buf, n) == n - 1 ? 0
	                                                                               : -ENOEXEC;
}
