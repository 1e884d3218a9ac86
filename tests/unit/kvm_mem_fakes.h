/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machine half of the kvm platform as far as its memory half needs it: memslots that are only counted, and
 * processors that walk the page tables as real ones do and remember what they saw until they are told to forget. What
 * they still remember after a change must agree with the tables, and may never lead to a page that is free:
 * fake_check() looks.
 */
#ifndef SBX_TESTS_UNIT_KVM_MEM_FAKES_H
#define SBX_TESTS_UNIT_KVM_MEM_FAKES_H

#include "platform/kvm/fault.h"
#include "platform/kvm/machine.h"

#define FAKE_CPUS 2u

struct fake_ctx {
	struct vcpu_ctx base;
	struct aspace *as;
};

struct fake_counts {
	unsigned slots, shootdowns, zaps, leaves, holds, broken; /* broken: rules that were not kept */
	uint64_t slot_bytes;
	unsigned refuse_slots; /* memslots from this number on are refused; 0: none */
};

extern struct platform fake_platform;
extern struct fake_counts fake;

/* A platform with @limit bytes of memory. */
void fake_start(bool shadow, uint64_t limit);
/* Also checks that nothing is left in use but what fake_start() made. */
void fake_end(void);

/* One byte by processor @cpu: read, written or fetched. 0, or the signal in *trap. */
int fake_access(unsigned cpu, struct aspace *as, uaddr_t addr, unsigned access, uint8_t *byte, struct trap *trap);
/* Applies one op in @as. */
int fake_apply(struct aspace *as, const struct aspace_op *op);
/* What the processors remember agrees with the tables, and the tables with the regions. */
void fake_check(void);
/* Counts a broken rule. */
void fake_broken(const char *what, uint64_t where);

#endif
