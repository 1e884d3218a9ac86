/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Glob patterns of policies. The time is bounded by pattern length times string length, whatever
 * the pattern.
 *   *      any characters; with GLOB_PATH none of them '/'
 *   **     any characters; in front of a slash also nothing at all, so that a leading "**" + "/x"
 * matches "x" at the top ?      one character (GLOB_PATH: not '/') [a-z]  one of a set, [!a-z] one
 * that is not in it (GLOB_PATH: never '/') \c     the character c
 */
#ifndef SBX_BASE_GLOB_H
#define SBX_BASE_GLOB_H

#include <stdbool.h>

#define GLOB_PATH 1u
#define GLOB_PAT_MAX 1024 /* longer patterns match nothing; glob_valid refuses them */

bool glob_match(const char *pattern, const char *s, unsigned flags);

/* False for an empty or too long pattern, an unclosed set, or a backslash at the end. */
bool glob_valid(const char *pattern);

#endif
