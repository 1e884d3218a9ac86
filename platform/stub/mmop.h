/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of an address space: the check that all platforms make, and the host calls that a stub is ordered to make. */
#ifndef SBX_PLATFORM_STUB_MMOP_H
#define SBX_PLATFORM_STUB_MMOP_H

#include <stdbool.h>
#include <stdint.h>

#include "platform/platform.h"

struct order {
	uint64_t nr, a[6];
};

/* Whole pages of the guest's, clear of the reserved range. */
bool mmop_range_ok(uaddr_t addr, uint64_t len);
/* Whether addresses and lengths are sound and clear of the reserved range. */
bool mmop_ok(const struct aspace_op *op);
/* @fd: the number in the stub, -1 for anonymous memory. */
struct order mmop_order(const struct aspace_op *op, int fd);

#endif
