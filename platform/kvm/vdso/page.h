/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page in front of the vDSO, by which we tell it the time. We write it (platform/kvm/vdso.c), the guest can only
 * read. Shared with freestanding code: no includes but these.
 *
 * A clock of @clocks shows base_ns + ((tsc - base_tsc) * mult >> shift) + offset[clock], as long as tsc is less than
 * valid ticks behind base_tsc. @seq is odd while the rest changes; valid 0: the vDSO has to do the system call.
 */
#ifndef SBX_PLATFORM_KVM_VDSO_PAGE_H
#define SBX_PLATFORM_KVM_VDSO_PAGE_H

#include <stdint.h>

#define KVDSO_CLOCKS     12
/* CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_TAI: those that run at the rate of CLOCK_MONOTONIC. */
#define KVDSO_CLOCK_MASK (1u << 0 | 1u << 1 | 1u << 7 | 1u << 11)
#define KVDSO_CPU        1u /* flags: rdtscp tells the processor, in Linux's form: node << 12 | cpu */

struct kvdso_data {
	uint32_t seq;
	uint32_t flags;    /* KVDSO_*; constant */
	uint32_t clocks;   /* a bit for each clock that has an offset; constant */
	uint32_t res_ns;   /* clock_getres of these clocks; constant */
	uint32_t tick_ns;  /* of the coarse clocks; constant */
	uint32_t mult, shift;
	uint64_t valid;
	uint64_t base_tsc, base_ns;
	int64_t offset[KVDSO_CLOCKS];
};

#endif
