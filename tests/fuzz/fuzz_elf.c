/* SPDX-License-Identifier: Apache-2.0 */
/* A file that is to be executed: the ELF parser. What it accepts must keep what elf.h promises to the mapper. */
#include <stdlib.h>

#include "platform/platform.h"
#include "sentry/loader/elf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool cond)
{
	if (!cond)
		abort();
}

static void check_load(const struct elf_image *img, const struct elf_load *l)
{
	uint64_t end = l->vaddr + l->memsz;

	require(l->memsz > 0 && l->filesz <= l->memsz && end > l->vaddr && end < GUEST_TASK_SIZE);
	require(l->offset + l->filesz >= l->offset);
	require(!l->filesz || ((l->vaddr ^ l->offset) % PAGE_SIZE == 0 && l->offset >= l->vaddr % PAGE_SIZE));
	require(img->low <= l->vaddr && img->high >= end && !(l->prot & ~7));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct elf_header h;
	struct elf_image img;

	if (elf_parse_header(data, size, &h) < 0 || h.phoff > size)
		return 0;
	require(h.phnum >= 1 && h.phnum <= ELF_PHDRS_MAX);
	if (elf_parse_phdrs(&h, data + h.phoff, size - h.phoff, &img) < 0)
		return 0;
	require(img.n_loads >= 1 && img.n_loads <= ELF_LOADS_MAX && img.low % PAGE_SIZE == 0 &&
	        img.high % PAGE_SIZE == 0);
	require(img.low < img.high && img.high <= GUEST_TASK_SIZE && img.entry < GUEST_TASK_SIZE);
	require(img.align >= PAGE_SIZE && img.align <= ELF_ALIGN_MAX && !(img.align & (img.align - 1)));
	for (unsigned i = 0; i < img.n_loads; i++)
		check_load(&img, &img.loads[i]);
	if (img.interp_len) {
		require(img.interp_len >= 2 && img.interp_len <= ELF_INTERP_MAX);
		if (img.interp_off <= size && img.interp_len <= size - img.interp_off)
			(void)!elf_check_interp(data + img.interp_off, img.interp_len);
	}
	return 0;
}
