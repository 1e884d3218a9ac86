/* SPDX-License-Identifier: Apache-2.0 */
/* A file that is to be executed: the first line of a script. */
#include <stdlib.h>
#include <string.h>

#include "sentry/loader/script.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct script_line l;

	if (script_parse(data, size, &l) < 0)
		return 0;
	if (!l.interp[0] || strlen(l.interp) >= sizeof(l.interp) || strlen(l.arg) >= sizeof(l.arg) ||
	    strpbrk(l.interp, " \t\n") || l.has_arg != !!l.arg[0])
		abort();
	return 0;
}
