/* SPDX-License-Identifier: Apache-2.0 */
/* Time structures of the x86_64 Linux ABI. */
#ifndef SBX_SENTRY_ABI_TIME_H
#define SBX_SENTRY_ABI_TIME_H

#include <stdint.h>

#include "base/macros.h"

struct linux_timespec {
	int64_t tv_sec, tv_nsec;
};
static_assert(sizeof(struct linux_timespec) == 16, "struct timespec");

struct linux_timeval {
	int64_t tv_sec, tv_usec;
};
static_assert(sizeof(struct linux_timeval) == 16, "struct timeval");

struct linux_timezone {
	int32_t tz_minuteswest, tz_dsttime;
};

struct linux_itimerspec {
	struct linux_timespec it_interval, it_value;
};
static_assert(sizeof(struct linux_itimerspec) == 32, "struct itimerspec");

struct linux_itimerval {
	struct linux_timeval it_interval, it_value;
};
static_assert(sizeof(struct linux_itimerval) == 32, "struct itimerval");

#endif
