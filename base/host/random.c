/* SPDX-License-Identifier: Apache-2.0 */
#include "base/host/random.h"

#include <errno.h>
#include <sys/random.h>

#include "base/bug.h"

void host_random(void *buf, size_t n)
{
	char *p = buf;

	while (n) {
		ssize_t r = getrandom(p, n, 0);

		BUG_ON(r < 0 && errno != EINTR);
		if (r > 0) {
			p += r;
			n -= (size_t)r;
		}
	}
}
