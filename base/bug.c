/* SPDX-License-Identifier: Apache-2.0 */
#include "base/bug.h"

#include <stdlib.h>

#include "base/log.h"

void bug_die(const char *file, int line, const char *cond)
{
	log_err(CH_CORE, "BUG at %s:%d: %s", file, line, cond);
	abort();
}
