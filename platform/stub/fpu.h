/* SPDX-License-Identifier: Apache-2.0 */
/* FPU state in the form of the host's signal frames: a standard XSAVE area with Linux's software bytes. */
#ifndef SBX_PLATFORM_STUB_FPU_H
#define SBX_PLATFORM_STUB_FPU_H

#include <stddef.h>
#include <stdint.h>

#define FPU_LEGACY 512u
#define FPU_HEADER 576u /* legacy area and XSAVE header */
#define FPU_MAGIC2_SIZE 4u /* Linux's mark behind the area */

/* FPU state as this host's kernel writes it into frames. */
struct fpu_layout {
	uint32_t size;          /* XSAVE area */
	uint32_t ext_size;      /* with the trailing magic */
	uint64_t xfeatures;
	uint32_t mxcsr_mask;    /* 0: none is told, the first processors' counts */
	uint8_t sw_reserved[48];
};

/* Fills in @l from the FPU state of a signal frame; l->size stays 0 when it is of another form. */
void fpu_probe_sigsafe(struct fpu_layout *l, const uint8_t *fp);
/* The layout where a standard area of @xfeatures has @size bytes. */
void fpu_layout_init(struct fpu_layout *l, uint32_t size, uint64_t xfeatures, uint32_t mxcsr_mask);
/* The initial state, without software bytes: l->ext_size bytes. */
void fpu_initial(const struct fpu_layout *l, uint8_t *fp);
void fpu_put_software_bytes(const struct fpu_layout *l, uint8_t *fp);
/* Makes of the guest's @in, which may be anything, an @out of l->ext_size bytes that XRSTOR takes without a fault:
 * 0, or -EINVAL when it cannot be, and what is in @out is of no use. Parts of the legacy area that the header says are
 * not there are written out as initial. */
int fpu_check(const struct fpu_layout *l, const uint8_t *in, size_t len, uint8_t *out);

#endif
