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
#define FP_ST     32
#define FP_XMM    160
#define FP_HEADER 512
#define XFEATURE_FP      1ull
#define XFEATURE_SSE     2ull
#define XFEATURES_LEGACY (XFEATURE_FP | XFEATURE_SSE)
#define MXCSR_MASK_DEFAULT 0xffbfu

/* The bytes that Linux writes where the legacy area leaves room for software. */
struct fpu_sw {
	uint32_t magic1, ext_size;
	uint64_t xfeatures;
	uint32_t size, pad[7];
};
static_assert(sizeof(struct fpu_sw) == FPU_LEGACY - FP_SW, "the software bytes of the FPU area");

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

void fpu_layout_init(struct fpu_layout *l, uint32_t size, uint64_t xfeatures, uint32_t mxcsr_mask)
{
	const struct fpu_sw sw = {
		.magic1 = FP_MAGIC1,
		.ext_size = size + FPU_MAGIC2_SIZE,
		.xfeatures = xfeatures,
		.size = size,
	};

	l->size = size;
	l->ext_size = sw.ext_size;
	l->xfeatures = xfeatures;
	l->mxcsr_mask = mxcsr_mask;
	memcpy(l->sw_reserved, &sw, sizeof(sw));
}

void fpu_put_software_bytes(const struct fpu_layout *l, uint8_t *fp)
{
	uint32_t magic2 = FP_MAGIC2;

	memcpy(fp + FP_SW, l->sw_reserved, sizeof(l->sw_reserved));
	memcpy(fp + l->size, &magic2, sizeof(magic2));
}

/* As in the frames of Linux, the header always says that the legacy parts are there. */
void fpu_initial(const struct fpu_layout *l, uint8_t *fp)
{
	const uint16_t fcw = 0x37f;
	const uint32_t mxcsr[2] = { 0x1f80, l->mxcsr_mask };
	const uint64_t xfeatures = XFEATURES_LEGACY;

	memset(fp, 0, l->ext_size);
	memcpy(fp, &fcw, sizeof(fcw));
	memcpy(fp + FP_MXCSR, mxcsr, sizeof(mxcsr));
	memcpy(fp + FP_HEADER, &xfeatures, sizeof(xfeatures));
}

/* Whether the bytes describe a whole XSAVE area; else only the legacy part counts, as in Linux. */
static bool fpu_is_full(const uint8_t *fp, size_t len, struct fpu_sw *sw)
{
	uint32_t magic2;

	memcpy(sw, fp + FP_SW, sizeof(*sw));
	if (sw->magic1 != FP_MAGIC1 || sw->size < FPU_HEADER || sw->size > sw->ext_size || len < sizeof(magic2) ||
	    sw->size > len - sizeof(magic2))
		return false;
	memcpy(&magic2, fp + sw->size, sizeof(magic2));
	return magic2 == FP_MAGIC2;
}

/* The parts of the legacy area that are there; @out is initial. */
static void take_legacy(const uint8_t *in, uint64_t xfeatures, uint8_t *out)
{
	if (xfeatures & XFEATURE_FP) {
		memcpy(out, in, FP_MXCSR);
		memcpy(out + FP_ST, in + FP_ST, FP_XMM - FP_ST);
	}
	memcpy(out + FP_MXCSR, in + FP_MXCSR, sizeof(uint32_t)); /* XRSTOR loads it in any case */
	if (xfeatures & XFEATURE_SSE)
		memcpy(out + FP_XMM, in + FP_XMM, FP_SW - FP_XMM);
}

int fpu_check(const struct fpu_layout *l, const uint8_t *in, size_t len, uint8_t *out)
{
	uint64_t header[(FPU_HEADER - FP_HEADER) / sizeof(uint64_t)];
	struct fpu_sw sw;
	uint32_t mxcsr;

	if (len < FPU_LEGACY)
		return -EINVAL;
	memcpy(&mxcsr, in + FP_MXCSR, sizeof(mxcsr));
	if (mxcsr & ~(l->mxcsr_mask ? l->mxcsr_mask : MXCSR_MASK_DEFAULT))
		return -EINVAL;
	fpu_initial(l, out);
	fpu_put_software_bytes(l, out);
	if (!fpu_is_full(in, len, &sw)) {
		take_legacy(in, XFEATURES_LEGACY, out);
		return 0;
	}
	memcpy(header, in + FP_HEADER, sizeof(header));
	if (header[0] & ~l->xfeatures)
		return -EINVAL;
	for (unsigned i = 1; i < ARRAY_SIZE(header); i++)
		if (header[i])
			return -EINVAL; /* compacted, or reserved bits */
	header[0] &= sw.xfeatures;
	take_legacy(in, header[0], out);
	memcpy(out + FPU_HEADER, in + FPU_HEADER, MIN(sw.size, l->size) - FPU_HEADER);
	header[0] |= XFEATURES_LEGACY;
	memcpy(out + FP_HEADER, header, sizeof(header));
	return 0;
}
