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

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/macros.h"
#include "platform/stub/fpu.h"

#define LEADER_WAKE_IDLE 1u /* leader_request_idle(); the other bits are the platform's */

struct leader {
	uint32_t wake_bits; /* atomic */
	pid_t pid, tid;
	bool stopping; /* leader_run() is to return after the current callback */
	bool idle_pending;
};

/* What leader_run() does in turn; @arg is its. */
struct leader_ops {
	void (*deliver)(void *arg); /* hands over what is queued, until leader.stopping */
	void (*idle)(void *arg);    /* somebody asked for it */
	bool (*busy)(void *arg);    /* there is more to deliver: no waiting */
	int (*pump)(void *arg);     /* waits for one event and queues what comes of it; 0 or -errno */
};

/* Makes the calling thread the leader. @fpu: filled in with the host's layout when not NULL. 0 or -errno. */
int leader_init(struct leader *l, struct fpu_layout *fpu);
/* Sets @bit and interrupts the leader's leader_wait(). From any thread, async-signal-safe. */
void leader_wake(struct leader *l, uint32_t bit);
/* The host call @nr, one that takes what it waits for only when it does not fail; -EINTR when bits are set or get set
 * while it sleeps. */
long leader_wait(const uint32_t *wake_bits, long nr, long a, long b, long c, long d);

/* The loop of platform_ops.run, by the calling thread: 0 once leader.stopping is set, -errno of the pump. */
int leader_run(struct leader *l, const struct leader_ops *ops, void *arg);
/* Makes leader_run() call ops->idle soon: as leader_wake(), but without a signal from one of its callbacks. */
void leader_request_idle(struct leader *l);

/* For the pump: what wakers have asked for since. */
static inline uint32_t leader_take_bits(struct leader *l)
{
	uint32_t bits = __atomic_exchange_n(&l->wake_bits, 0, __ATOMIC_SEQ_CST);

	l->idle_pending |= (bits & LEADER_WAKE_IDLE) != 0;
	return bits;
}

#endif
