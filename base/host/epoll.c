/* SPDX-License-Identifier: Apache-2.0 */
#include "base/host/epoll.h"

#include <errno.h>
#include <stddef.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>

int host_epoll_create(void)
{
	int fd = epoll_create1(EPOLL_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int host_epoll_ctl(int epfd, int op, int fd, struct epoll_event *e)
{
	return epoll_ctl(epfd, op, fd, e) < 0 ? -errno : 0;
}

int host_epoll_wait(int epfd, struct epoll_event *evs, int n, int timeout_ms)
{
	int r;

	do
		r = epoll_wait(epfd, evs, n, timeout_ms);
	while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : r;
}

int host_timerfd_create(void)
{
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);

	return fd < 0 ? -errno : fd;
}

int host_timerfd_set(int fd, uint64_t abs_ns)
{
	struct itimerspec its = { 0 };

	/* All zero would disarm; a second count above the kernel's KTIME_SEC_MAX is cut there. */
	if (abs_ns == 0)
		abs_ns = 1;
	its.it_value.tv_sec = (time_t)(abs_ns / NSEC_PER_SEC);
	its.it_value.tv_nsec = (long)(abs_ns % NSEC_PER_SEC);
	return timerfd_settime(fd, TFD_TIMER_ABSTIME, &its, NULL) < 0 ? -errno : 0;
}

int host_eventfd(void)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	return fd < 0 ? -errno : fd;
}
