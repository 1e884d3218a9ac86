/* SPDX-License-Identifier: Apache-2.0 */
/* timerfd_create(2). */
#ifndef SBX_SENTRY_VFS_TIMERFD_H
#define SBX_SENTRY_VFS_TIMERFD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/macros.h"

struct file;

/* In ns. value: until the next expiry (absolute when asked for in set), 0: off. */
struct timerfd_value {
	uint64_t value, interval;
};

/* One reference in *ret. -EINVAL for a clock that timers do not run on, -ENOMEM, -ENFILE. */
MUST_CHECK int timerfd_create_file(int clock, uint32_t flags, struct file **ret);
/* -EINVAL when @f is no timerfd. */
MUST_CHECK int timerfd_set(struct file *f, bool absolute, const struct timerfd_value *v,
			   struct timerfd_value *old);
MUST_CHECK int timerfd_get(struct file *f, struct timerfd_value *v);

#endif
