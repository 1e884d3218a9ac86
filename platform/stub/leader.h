/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The leader, the one thread in run(), and waking it without a race. A waker sets a bit and, when it is the first,
 * sends a signal to the leader. The leader tests the bits and makes its waiting host call in one short piece of
 * assembly, the window. A signal that arrives inside the window, or that interrupts the sleeping call (SA_RESTART
 * has then moved rip back onto the system call), makes the handler move rip to the window's abort label. So
 * between the test and the sleep no wake-up is lost, and waiting costs one system call.
 */
#ifndef SBX_PLATFORM_STUB_LEADER_H
#define SBX_PLATFORM_STUB_LEADER_H

#include <stdint.h>
#include <sys/types.h>

#include "base/macros.h"
#include "platform/stub/fpu.h"

struct leader {
	uint32_t wake_bits; /* atomic */
	pid_t pid, tid;
};

/* Makes the calling thread the leader. @fpu: filled in with the host's layout when not NULL. 0 or -errno. */
int leader_init(struct leader *l, struct fpu_layout *fpu);
/* Sets @bit and interrupts the leader's leader_wait(). From any thread, async-signal-safe. */
void leader_wake(struct leader *l, uint32_t bit);
/* The host call @nr, one that takes what it waits for only when it does not fail; -EINTR when bits are set or get set
 * while it sleeps. */
long leader_wait(const uint32_t *wake_bits, long nr, long a, long b, long c, long d);

static inline uint32_t leader_take_bits(struct leader *l)
{
	return __atomic_exchange_n(&l->wake_bits, 0, __ATOMIC_SEQ_CST);
}

#endif
