/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "sentry/vfs/walk.h"

unsigned walk_ahead(const struct walk *w, struct name_ref *v, unsigned max)
{
	const char *p = w->p;
	unsigned n = 0, depth = w->depth;

	while (n < max) {
		size_t len;

		p += strspn(p, "/");
		if (!*p) {
			if (!depth)
				break;
			p = w->rest[--depth];
			continue;
		}
		len = (size_t)(strchrnul(p, '/') - p);
		if (len > NAME_MAX_LINUX || (p[0] == '.' && (len == 1 || (len == 2 && p[1] == '.'))))
			break;
		v[n++] = (struct name_ref){ p, (uint32_t)len };
		p += len;
	}
	return n;
}
