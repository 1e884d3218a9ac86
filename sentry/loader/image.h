/* SPDX-License-Identifier: Apache-2.0 */
/* A parsed ELF file and where its pieces go. */
#ifndef SBX_SENTRY_LOADER_IMAGE_H
#define SBX_SENTRY_LOADER_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#include "base/macros.h"
#include "platform/platform.h"
#include "sentry/loader/elf.h"

struct file;
struct mm_batch;
struct task;

/* The first page of a file: it covers the headers of all but odd programs, so that one read
 * suffices. */
#define IMAGE_HEAD 4096u

struct image {
	struct file *file; /* borrowed */
	size_t n_head;
	struct elf_image elf;
	uint64_t bias; /* added to the file's addresses, wraps */
	unsigned n_zeros;
	struct {
		uaddr_t addr;
		uint32_t len;
	} zeros[ELF_LOADS_MAX]; /* the rest of the last page of a writable load: to be zeroed */
	uint8_t head[IMAGE_HEAD];
};

/* Reads the head of @f; 0 or -errno. */
MUST_CHECK int image_read_head(struct image *img, struct file *f);
/* Parses the head as ELF, reading further headers where needed. -ENOEXEC, ... */
MUST_CHECK int image_parse(struct image *img);
/* The interpreter's path into @buf (ELF_INTERP_MAX bytes); only when elf.interp_len is not 0. */
MUST_CHECK int image_interp(struct image *img, char *buf);

/* Adds the image's mappings to the batch. @interp: goes where mmap(2) would put it, else where
 * programs go. */
MUST_CHECK int image_plan(struct image *img, struct mm_batch *b, struct task *t, bool interp);
/* Once the mappings are there: zeroes the rests of pages. 0 or -EFAULT. */
MUST_CHECK int image_zero(const struct image *img, struct aspace *as);

#endif
