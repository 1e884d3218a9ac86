/* SPDX-License-Identifier: Apache-2.0 */
#include "platform/stub/fpu.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/macros.h"
#include "platform/platform.h"

#define FP_MAGIC1 0x46505853u
#define FP_MAGIC2 0x46505845u
#define FP_SW     464 /* sw_reserved */
#define FP_MXCSR  24
#define FP_MXCSR_MASK 28
#define FP_HEADER 512
#define XFEATURES_LEGACY 3ull

/* The bytes that the host kernel leaves for software at the end of the legacy area. */
struct fpu_sw {
	uint32_t magic1, ext_size;
	uint64_t xfeatures;
	uint32_t size;
};

void fpu_probe_sigsafe(struct fpu_layout *l, const uint8_t *fp)
{
	struct fpu_sw sw;

	if (!fp)
		return;
	memcpy(&sw, fp + FP_SW, sizeof(sw));
	memcpy(l->sw_reserved, fp + FP_SW, sizeof(l->sw_reserved));
	memcpy(&l->mxcsr_mask, fp + FP_MXCSR_MASK, 4);
	if (sw.magic1 != FP_MAGIC1 || sw.size > sw.ext_size || sw.ext_size > FPU_STATE_MAX)
		return;
	l->size = sw.size;
	l->ext_size = sw.ext_size;
	l->xfeatures = sw.xfeatures;
}

void fpu_put_software_bytes(const struct fpu_layout *l, uint8_t *fp)
{
	uint32_t magic2 = FP_MAGIC2;

	memcpy(fp + FP_SW, l->sw_reserved, sizeof(l->sw_reserved));
	memcpy(fp + l->size, &magic2, sizeof(magic2));
}

void fpu_initial(const struct fpu_layout *l, uint8_t *fp)
{
	const uint16_t fcw = 0x37f;
	const uint32_t mxcsr[2] = { 0x1f80, l->mxcsr_mask };

	memset(fp, 0, l->ext_size);
	memcpy(fp, &fcw, sizeof(fcw));
	memcpy(fp + FP_MXCSR, mxcsr, sizeof(mxcsr));
}

/* Whether the bytes describe a whole XSAVE area; else only the legacy part counts, as in Linux. */
static bool fpu_is_full(const uint8_t *fp, size_t len, uint64_t *xfeatures, size_t *size)
{
	struct { uint32_t magic1, ext_size; uint64_t xfeatures; uint32_t size; } sw;
	uint32_t magic2;

	memcpy(&sw, fp + FP_SW, sizeof(sw));
	if (sw.magic1 != FP_MAGIC1 || sw.size < FPU_HEADER || sw.size > sw.ext_size ||
	    len < sizeof(magic2) || sw.size > len - sizeof(magic2))
		return false;
	memcpy(&magic2, fp + sw.size, sizeof(magic2));
	*xfeatures = sw.xfeatures;
	*size = sw.size;
	return magic2 == FP_MAGIC2;
}

int fpu_check(const struct fpu_layout *l, const uint8_t *in, size_t len, uint8_t *out)
{
	uint64_t xfeatures = XFEATURES_LEGACY, header[8];
	uint32_t mxcsr, mask = l->mxcsr_mask ? l->mxcsr_mask : 0xffbf;
	size_t size;

	if (len < FPU_LEGACY)
		return -EINVAL;
	fpu_initial(l, out);
	memcpy(&mxcsr, in + FP_MXCSR, sizeof(mxcsr));
	if (mxcsr & ~mask)
		return -EINVAL;
	memset(header, 0, sizeof(header));
	if (fpu_is_full(in, len, &xfeatures, &size)) {
		memcpy(out, in, MIN(size, (size_t)l->size));
		memcpy(header, in + FP_HEADER, sizeof(header));
		if (header[0] & ~l->xfeatures)
			return -EINVAL;
		for (unsigned i = 1; i < 8; i++)
			if (header[i])
				return -EINVAL; /* compacted, or reserved bits */
		header[0] &= xfeatures;
	} else {
		memcpy(out, in, FPU_LEGACY);
		header[0] = XFEATURES_LEGACY;
	}
	memcpy(out + FP_HEADER, header, sizeof(header));
	fpu_put_software_bytes(l, out);
	return 0;
}
