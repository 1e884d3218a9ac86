/* SPDX-License-Identifier: Apache-2.0 */
/* The first line of a script, execve(2) "Interpreter scripts". Pure functions. */
#ifndef SBX_SENTRY_LOADER_SCRIPT_H
#define SBX_SENTRY_LOADER_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macros.h"

#define SCRIPT_LINE_MAX 256 /* BINPRM_BUF_SIZE */

struct script_line {
	char interp[SCRIPT_LINE_MAX];
	char arg[SCRIPT_LINE_MAX]; /* all that follows, blanks inside kept */
	bool has_arg;
};

/* @buf: the first @n bytes of the file (more than SCRIPT_LINE_MAX are not looked at). 0; -ENOEXEC
 * when it is no script, names no interpreter, or the interpreter's name is cut off by the limit. */
MUST_CHECK int script_parse(const uint8_t *buf, size_t n, struct script_line *ret);

#endif
