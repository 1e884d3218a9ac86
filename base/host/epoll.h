/* SPDX-License-Identifier: Apache-2.0 */
/* Host epoll, timerfd and eventfd; all descriptors close-on-exec and non-blocking. -errno on failure. */
#ifndef SBX_BASE_HOST_EPOLL_H
#define SBX_BASE_HOST_EPOLL_H

#include <stdint.h>
#include <sys/epoll.h>

#include "base/macros.h"

MUST_CHECK int host_epoll_create(void);
MUST_CHECK int host_epoll_ctl(int epfd, int op, int fd, struct epoll_event *e);
/* Retried on EINTR. */
MUST_CHECK int host_epoll_wait(int epfd, struct epoll_event *evs, int n, int timeout_ms);
/* On CLOCK_MONOTONIC. */
MUST_CHECK int host_timerfd_create(void);
/* Fires once at @abs_ns (0: as soon as possible). */
MUST_CHECK int host_timerfd_set(int fd, uint64_t abs_ns);
MUST_CHECK int host_eventfd(void);

#endif
