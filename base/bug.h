/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of our own invariants, never of guest input. A failure ends the process: the sandbox fails closed. */
#ifndef SBX_BASE_BUG_H
#define SBX_BASE_BUG_H

#include "base/macros.h"

NORETURN void bug_die(const char *file, int line, const char *cond);

#define BUG_ON(cond) \
	do { \
		if (unlikely(cond)) \
			bug_die(__FILE__, __LINE__, #cond); \
	} while (0)

#endif
