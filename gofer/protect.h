/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Patterns of files that cannot be changed although their grant is rw. "**" stands for any number of components, "*",
 * "?" and
 * "[...]" are within one; letters compare without case, as the host's file system may. A pattern without a slash
 * matches at any depth; one that starts with a slash is compared with the host path, others with the path below the
 * grant. What lies below a match is protected too.
 */
#ifndef SBX_GOFER_PROTECT_H
#define SBX_GOFER_PROTECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macros.h"

#define PROTECT_PATTERNS_MAX   128
#define PROTECT_COMPONENTS_MAX 62

struct protect;

MUST_CHECK int protect_create(struct protect **ret);
void protect_destroy(struct protect *p);
/* -EINVAL: empty, or with "." or ".." or too many components. -E2BIG: too many patterns. */
MUST_CHECK int protect_add(struct protect *p, const char *pattern);
unsigned protect_count(const struct protect *p);
const char *protect_pattern(const struct protect *p, unsigned i);

/* How far each pattern has matched a path; fed a component at a time. */
struct protect_state {
	uint64_t at[PROTECT_PATTERNS_MAX]; /* bit i: i components of the pattern are matched */
	bool absolute;                     /* the path is fed from the host's "/" on */
	int matched;                       /* index of the first pattern that matches wholly, or -1 */
};

/* @absolute: patterns with a slash in front are meant, else the others: a path needs one state for each. */
void protect_start(const struct protect *p, struct protect_state *st, bool absolute);
void protect_feed(const struct protect *p, struct protect_state *st, const char *name, size_t len);
/* Some pattern could match below this path in a way that depends on its last names: what is here must not be made a
 * link to elsewhere. */
bool protect_on_the_way(const struct protect *p, const struct protect_state *st);
bool protect_equal(const struct protect *p, const struct protect_state *a, const struct protect_state *b);

/* One component against one pattern component. */
bool protect_glob(const char *pat, size_t pat_len, const char *s, size_t len);

#endif
