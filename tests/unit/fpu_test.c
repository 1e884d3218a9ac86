/* SPDX-License-Identifier: Apache-2.0 */
/* platform/stub/fpu.c: FPU state that a guest gives; what comes out must be one that this processor takes. */
#include <cpuid.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "platform/platform.h"
#include "platform/stub/fpu.h"
#include "tests/lib/tap.h"

#define MXCSR  24
#define ST     32
#define XMM    160
#define SW     464
#define HEADER 512
#define KNOWN_FEATURES 0xe7u /* x87, SSE, AVX, AVX-512 */

static struct fpu_layout l;
static uint8_t in[FPU_STATE_MAX], out[FPU_STATE_MAX] __attribute__((aligned(64)));

static bool layout_of_host(void)
{
	uint8_t fx[FPU_LEGACY] __attribute__((aligned(16))) = { 0 };
	uint32_t a, b, c, d, xcr0, mask;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE) || !__get_cpuid_count(0xd, 0, &a, &b, &c, &d))
		return false;
	__asm__ volatile("xgetbv" : "=a"(xcr0), "=d"(d) : "c"(0));
	__asm__ volatile("fxsave64 %0" : "=m"(fx));
	memcpy(&mask, fx + 28, sizeof(mask));
	if (b > sizeof(in) - FPU_MAGIC2_SIZE)
		return false;
	fpu_layout_init(&l, b, xcr0 & KNOWN_FEATURES, mask);
	return true;
}

/* Dies by SIGSEGV when the processor does not take @out. */
static void load(void)
{
	static uint8_t mine[FPU_STATE_MAX] __attribute__((aligned(64)));

	__asm__ volatile("xsave64 (%[mine])\n\txrstor64 (%[out])\n\txrstor64 (%[mine])"
			 : : [mine] "r"(mine), [out] "r"(out), "a"((uint32_t)l.xfeatures), "d"(0) : "memory");
}

static uint32_t get32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static uint64_t get64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static void put64(uint8_t *p, uint64_t v)
{
	memcpy(p, &v, sizeof(v));
}

/* A whole area with @features in the header, the registers full of 0x5a. */
static void make(uint64_t features)
{
	fpu_initial(&l, in);
	memset(in + ST, 0x5a, SW - ST);
	memset(in + FPU_HEADER, 0x5a, l.size - FPU_HEADER);
	put64(in + HEADER, features);
	fpu_put_software_bytes(&l, in);
}

static int check(size_t len)
{
	memset(out, 0xcc, sizeof(out));
	return fpu_check(&l, in, len, out);
}

static void test_layout(void)
{
	struct fpu_layout again = { .size = 0 };

	make(3);
	fpu_probe_sigsafe(&again, in);
	tap_eq(again.size, l.size, "the software bytes tell the size");
	tap_eq(again.ext_size, l.size + 4, "and that with the mark behind it");
	tap_eq(again.xfeatures, l.xfeatures, "and what is in it");
	fpu_initial(&l, in);
	tap_eq(get64(in + HEADER), 3, "the legacy parts of the initial state are said to be there");
	tap_eq(get32(in + MXCSR), 0x1f80, "mxcsr of the initial state");
}

static void test_taken(void)
{
	make(l.xfeatures);
	tap_eq(check(l.ext_size), 0, "a whole state");
	tap_ok(!memcmp(in, out, l.ext_size), "comes out as it is");
	tap_eq(out[l.ext_size], 0xcc, "and nothing behind it");
	load();
	make(2);
	in[0] = 0x11; /* fcw */
	tap_eq(check(l.ext_size), 0, "one without x87");
	tap_ok(out[0] == 0x7f && out[ST] == 0 && out[XMM] == 0x5a, "which is initial then");
	tap_eq(get64(out + HEADER), 3, "and there");
	make(1);
	in[MXCSR + 1] = 0x3f; /* rounds down */
	tap_eq(check(l.ext_size), 0, "one without SSE");
	tap_ok(out[ST] == 0x5a && out[XMM] == 0 && get32(out + MXCSR) == 0x3f80, "whose registers are initial, not mxcsr");
	make(l.xfeatures);
	put64(in + SW + 8, 1);
	tap_eq(check(l.ext_size), 0, "software bytes that name x87 alone");
	tap_ok(out[ST] == 0x5a && out[XMM] == 0 && get64(out + HEADER) == 3, "hold for the header");
	make(l.xfeatures);
	tap_eq(check(FPU_LEGACY), 0, "the legacy part of a whole state");
	tap_ok(get64(out + HEADER) == 3 && out[XMM] == 0x5a && out[FPU_HEADER] == 0, "is all that counts");
	make(l.xfeatures);
	in[l.size] ^= 1;
	tap_ok(check(l.ext_size) == 0 && get64(out + HEADER) == 3, "so it is without the mark at the end");
	make(l.xfeatures);
	put64(in + SW + 16, UINT32_MAX);
	tap_ok(check(l.ext_size) == 0 && get64(out + HEADER) == 3, "and with a size beyond the end");
	tap_eq(get32(out + SW + 16), l.size, "the software bytes are ours");
}

static void test_refused(void)
{
	make(l.xfeatures);
	tap_eq(check(FPU_LEGACY - 1), -EINVAL, "too short");
	in[MXCSR + 2] = 1;
	tap_eq(check(l.ext_size), -EINVAL, "bad mxcsr");
	tap_eq(check(FPU_LEGACY), -EINVAL, "bad mxcsr in the legacy part");
	for (unsigned i = 0; i < 7; i++) {
		make(l.xfeatures);
		put64(in + HEADER + 8 + 8ul * i, i ? 1 : 1ull << 63);
		tap_eq(check(l.ext_size), -EINVAL, "word %u of the header", i + 1);
	}
	make(l.xfeatures | 1ull << 62);
	tap_eq(check(l.ext_size), -EINVAL, "a part that the processor does not have");
}

/* Whatever is taken the processor takes too; nothing is read behind the end of the input. */
static void test_noise(void)
{
	unsigned taken = 0;

	srandom(7);
	for (unsigned i = 0; i < 20000; i++) {
		size_t len = random() & 3 ? l.ext_size : (size_t)random() % (l.ext_size + 1u);
		uint8_t *exact;

		make((uint64_t)random() & l.xfeatures);
		for (unsigned k = (unsigned)random() % 4; k; k--)
			in[random() & 1 ? SW + random() % 112 : random() % l.ext_size] ^= (uint8_t)random();
		exact = malloc(len + !len);
		memcpy(exact, in, len);
		if (fpu_check(&l, exact, len, out) == 0) {
			load();
			taken++;
		}
		free(exact);
	}
	tap_ok(taken > 5000 && taken < 19000, "noise: %u of 20000 taken", taken);
}

int main(void)
{
	if (!layout_of_host()) {
		tap_ok(true, "fpu # SKIP no XSAVE here");
		return tap_done();
	}
	test_layout();
	test_taken();
	test_refused();
	test_noise();
	return tap_done();
}
