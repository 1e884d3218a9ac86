/* SPDX-License-Identifier: Apache-2.0 */
/* The kvm platform without a kernel above it: what its parts cost by themselves. */
#ifndef SBX_BENCH_KVM_BARE_H
#define SBX_BENCH_KVM_BARE_H

#include <stdint.h>

#include "base/err.h"

struct bare_costs { /* ns */
	uint64_t start;   /* from nothing to a machine that can run */
	uint64_t syscall; /* the guest's syscall, the way out of the VM and in again */
	uint64_t fault;   /* the same for a page fault, and back to the instruction */
	uint64_t filtered; /* as syscall, under the sentry's filter of host calls */
	uint64_t call;    /* a call that the platform's own run loop takes and the least kernel answers */
};

/* Starts and ends a platform, and leaves the caller under that filter: for a child. 0 or -errno. */
int bare_measure(struct bare_costs *costs, struct sbx_err *err);

#endif
