/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is given back as a whole: everything a policy points to lives in its pool. */
#ifndef SBX_POLICY_POOL_H
#define SBX_POLICY_POOL_H

#include <stddef.h>

#include "base/macros.h"

struct pool_chunk;

struct pool {
	struct pool_chunk *head;
};

/* Zeroed, aligned for any type. NULL: out of memory. */
MUST_CHECK void *pool_alloc(struct pool *p, size_t size);
MUST_CHECK char *pool_strndup(struct pool *p, const char *s, size_t len);
MUST_CHECK char *pool_strdup(struct pool *p, const char *s);
void pool_fini(struct pool *p);

struct str_list {
	char **v; /* v[n] is NULL once something was added */
	size_t n, cap;
};

/* Adds a copy of @s. Returns 0 or -ENOMEM. */
MUST_CHECK int str_list_add(struct pool *p, struct str_list *l, const char *s);

#endif
