/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host events. One event thread sleeps in epoll for the host timer, donated fds, and the control socket. It touches no
 * sentry state: it notes what is ready and wakes the leader, which calls the callbacks from up->idle with the kernel
 * lock held. So all kernel state is changed by the leader alone.
 */
#ifndef SBX_SENTRY_KERNEL_EVENT_H
#define SBX_SENTRY_KERNEL_EVENT_H

#include <stdint.h>

#include "base/err.h"
#include "base/macros.h"

struct hostfd_watch {
	int fd;
	uint32_t events; /* EPOLL* asked for; one-shot: after a callback it must be armed again */
	void (*ready)(struct hostfd_watch *w, uint32_t events);
	uint32_t slot;   /* private */
};

/* Starts the thread; before confinement. */
MUST_CHECK int event_init(struct sbx_err *err);
/* Callable from any thread: host files that cannot be polled (regular files) report ready at once. 0 or -errno. */
MUST_CHECK int hostfd_watch_arm(struct hostfd_watch *w);
void hostfd_watch_cancel(struct hostfd_watch *w); /* after this no callback comes */

/* From the leader (up->idle): runs callbacks of ready fds and due timers, and arms the host timer anew. */
void event_run(void);

#endif
