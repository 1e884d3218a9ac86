/* SPDX-License-Identifier: Apache-2.0 */
#include "sentry/loader/image.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>

#include "sentry/kernel/kernel.h"
#include "sentry/kernel/task.h"
#include "sentry/mm/mm.h"
#include "sentry/vfs/vfs.h"

/* ELF_ET_DYN_BASE: two thirds up. Randomised by as many bits as mmap(2). */
#define DYN_BASE (GUEST_TASK_SIZE / 3 * 2)
#define DYN_RND_BITS 28

int image_read_head(struct image *img, struct file *f)
{
	ssize_t n = vfs_read_kernel(f, img->head, sizeof(img->head), 0);

	if (n < 0)
		return (int)n;
	img->file = f;
	img->n_head = (size_t)n;
	img->n_zeros = 0;
	return 0;
}

/* Bytes [off, off + n) of the file: from the head where it has them, else read into @buf. */
static const uint8_t *head_or_read(struct image *img, uint64_t off, size_t n, uint8_t *buf)
{
	if (off <= img->n_head && n <= img->n_head - off)
		return img->head + off;
	return vfs_read_kernel(img->file, buf, n, off) == (ssize_t)n ? buf : NULL;
}

int image_parse(struct image *img)
{
	uint8_t buf[ELF_PHDRS_MAX * ELF_PHDR_SIZE];
	struct elf_header h;
	const uint8_t *ph;
	int rc = elf_parse_header(img->head, img->n_head, &h);

	if (rc < 0)
		return rc;
	ph = head_or_read(img, h.phoff, h.phnum * ELF_PHDR_SIZE, buf);
	return ph ? elf_parse_phdrs(&h, ph, h.phnum * ELF_PHDR_SIZE, &img->elf) : -ENOEXEC;
}

int image_interp(struct image *img, char *buf)
{
	uint8_t tmp[ELF_INTERP_MAX];
	size_t n = img->elf.interp_len;
	const uint8_t *p = head_or_read(img, img->elf.interp_off, n, tmp);
	int rc;

	if (!p)
		return -EIO;
	rc = elf_check_interp(p, n);
	if (rc == 0)
		memcpy(buf, p, n);
	return rc;
}

/* The bias is a multiple of the alignment; it may be "negative" and wrap. */
static int choose_bias(struct image *img, struct mm_batch *b, const struct task *t, bool interp)
{
	const struct elf_image *elf = &img->elf;
	uint64_t size = elf->high - elf->low, slack = elf->align - PAGE_SIZE, base;

	img->bias = 0;
	if (!elf->dyn)
		return 0;
	if (interp) {
		base = mm_find_free(b->mm, size + slack);
		if (!base)
			return -ENOMEM;
		base += slack; /* room for the rounding */
	} else {
		base = DYN_BASE +
		       (t->personality & ADDR_NO_RANDOMIZE ? 0 : mm_random_pages(DYN_RND_BITS));
	}
	img->bias = ROUND_DOWN(base - elf->low, elf->align);
	return 0;
}

static int plan_piece(struct mm_batch *b, struct task *t, uaddr_t start, uaddr_t end, int prot,
                      struct file *f, uint64_t offset)
{
	struct mm_map_args args = {
		.addr = start,
		.len = end - start,
		.prot = prot,
		.flags = MM_MAP_FIXED,
		.file = f,
		.offset = offset,
	};
	int64_t rc;

	if (end <= start)
		return 0;
	rc = mm_batch_map(b, t, &args);
	return rc < 0 ? (int)rc : 0;
}

static int plan_load(struct image *img, struct mm_batch *b, struct task *t,
                     const struct elf_load *l)
{
	uaddr_t start = l->vaddr + img->bias, first = ROUND_DOWN(start, PAGE_SIZE);
	uaddr_t data_end = start + l->filesz,
		file_end = l->filesz ? ROUND_UP(data_end, PAGE_SIZE) : first;
	uaddr_t mem_end = ROUND_UP(start + l->memsz, PAGE_SIZE);
	int rc;

	rc = plan_piece(b, t, first, file_end, l->prot, img->file,
	                l->filesz ? l->offset - (start - first) : 0);
	if (rc == 0)
		rc = plan_piece(b, t, file_end, mem_end, l->prot, NULL, 0);
	/* Linux zeroes the rest of the page when there is a bss; a load that cannot be written to
	 * keeps the file's bytes. */
	if (rc == 0 && l->filesz && l->memsz > l->filesz && (l->prot & PROT_WRITE) &&
	    data_end < file_end) {
		img->zeros[img->n_zeros].addr = data_end;
		img->zeros[img->n_zeros++].len = (uint32_t)(file_end - data_end);
	}
	return rc;
}

int image_plan(struct image *img, struct mm_batch *b, struct task *t, bool interp)
{
	int rc = choose_bias(img, b, t, interp);

	for (unsigned i = 0; rc == 0 && i < img->elf.n_loads; i++)
		rc = plan_load(img, b, t, &img->elf.loads[i]);
	return rc;
}

int image_zero(const struct image *img, struct aspace *as)
{
	static const uint8_t zeros[PAGE_SIZE];

	for (unsigned i = 0; i < img->n_zeros; i++) {
		size_t n = img->zeros[i].len;

		if (kernel.plat->write(as, img->zeros[i].addr, zeros, n) != (ssize_t)n)
			return -EFAULT;
	}
	return 0;
}
