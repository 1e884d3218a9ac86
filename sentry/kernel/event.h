/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host events. One event thread sleeps in epoll for the host timer, donated fds, and the control socket. It touches no
 * sentry state: it notes what is ready and wakes the leader, which calls the callbacks from up->idle with the kernel
 * lock held. So all kernel state is changed by the leader alone.
 */
#ifndef SBX_SENTRY_KERNEL_EVENT_H
#define SBX_SENTRY_KERNEL_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/macros.h"

struct hostfd_watch {
	int fd;
	uint32_t events; /* EPOLL* asked for; one-shot: after a callback it must be armed again */
	void (*ready)(struct hostfd_watch *w, uint32_t events);
	uint32_t slot;   /* private: 0, or 1 + the place in the table of armed watches. Zero it before the first arm. */
};

/* Set by the event thread with each note; private otherwise. */
extern uint32_t event_noted;

/* Starts the thread; before confinement. */
MUST_CHECK int event_init(struct sbx_err *err);
/* From the leader. Host files that cannot be polled (regular files) report ready at once. 0, -ENOSPC when
 * EVENT_MAX_WATCHES are armed, or -errno. Arming an armed watch changes its events. */
#define EVENT_MAX_WATCHES 16384
MUST_CHECK int hostfd_watch_arm(struct hostfd_watch *w);
/* After this no callback comes. Must be called before the fd is closed. */
void hostfd_watch_cancel(struct hostfd_watch *w);

/* From the leader (up->idle): runs callbacks of ready fds and due timers, and arms the host timer anew. */
void event_run(void);
/* Is there anything for it to do? */
static inline bool event_pending(void)
{
	return __atomic_load_n(&event_noted, __ATOMIC_ACQUIRE);
}
/* Arms the host timer when @deadline is before what it is armed for; cheap otherwise. */
void event_timer_want(uint64_t deadline);
/* Ends the thread and closes its fds (tests). */
void event_fini(void);

#endif
