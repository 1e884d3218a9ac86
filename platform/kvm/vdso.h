/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The vDSO that the kvm platform gives its guests, and the page by which it is told the time. The guest's time-stamp
 * counter must be the host's (KVM_VCPU_TSC_OFFSET 0). No locks: the caller sees to it that one thread at a time is in
 * here.
 *
 * In every address space: the page of struct kvdso_data, read-only and the same for all, and behind it
 * KVDSO_IMAGE_PAGES pages that begin with the image (the rest zeroes), read and execute. AT_SYSINFO_EHDR is the
 * image's address.
 */
#ifndef SBX_PLATFORM_KVM_VDSO_H
#define SBX_PLATFORM_KVM_VDSO_H

#include <stdbool.h>
#include <stdint.h>
#include <x86intrin.h>

#include "platform/kvm/vdso/page.h"

#define KVDSO_IMAGE_PAGES 2

extern const uint8_t kvdso_image[], kvdso_image_end[];

/* The counter and the host's CLOCK_MONOTONIC at one instant, as near as could be told. */
struct kvdso_sample {
	uint64_t tsc, ns;
};

struct kvdso {
	struct kvdso_data *page;
	/* Where the time comes from; tests put their own. ns by clock_gettime(2), 0 when there is no such clock. */
	uint64_t (*tsc)(void *arg);
	uint64_t (*clock)(void *arg, int id);
	void *arg;

	bool off;                      /* the counter is of no use: the page says so for good */
	unsigned disagreed;            /* times in a row that counter and clock did not go together */
	uint32_t known;                /* clocks whose offset has been measured */
	struct kvdso_sample anchor[2]; /* the rate is measured from the first; the second takes its place in time */
	struct kvdso_sample last;      /* tsc 0: none yet */
	double rate;                   /* ns a tick; 0: not known yet */
	uint64_t floor;                /* no earlier time may be shown: while no line is valid */
	uint64_t renew_ticks;
};

/* Asks /sys whether the kernel trusts its counter: for who has no /sys any more at kvdso_init(). */
void kvdso_prepare(void);
/*
 * Prepares @v and @page, which until kvdso_update() has measured enough tells the guest to do system calls. @cpu_ok:
 * rdtscp gives the guest the number that getcpu(2) would. Without kvdso_prepare()
 * it reads /sys.
 */
void kvdso_init(struct kvdso *v, struct kvdso_data *page, bool cpu_ok);
/* Takes the time and tells the guests. No host call where clock_gettime(2) is none. */
void kvdso_update(struct kvdso *v);

/* Is it time for an update? Ask before guest code is entered: it costs one read of the counter. */
static inline bool kvdso_due(const struct kvdso *v)
{
	return !v->off && __rdtsc() - v->last.tsc >= v->renew_ticks;
}

#endif
