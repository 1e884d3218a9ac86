/* SPDX-License-Identifier: Apache-2.0 */
#include "base/host/clock.h"

#include <errno.h>
#include <time.h>

int host_clock_ns(int id, uint64_t *ns)
{
	struct timespec ts;

	if (clock_gettime(id, &ts) < 0)
		return -errno;
	*ns = (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
	return 0;
}
