/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/pool.h"

#include <errno.h>
#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_MIN 4096

struct pool_chunk {
	struct pool_chunk *next;
	size_t used, cap;
	alignas(max_align_t) uint8_t data[];
};

void *pool_alloc(struct pool *p, size_t size)
{
	struct pool_chunk *c = p->head;
	void *r;

	if (size > SIZE_MAX / 2)
		return NULL;
	size = ROUND_UP(size, alignof(max_align_t));
	if (!c || c->cap - c->used < size) {
		size_t cap = MAX(size, (size_t)CHUNK_MIN - sizeof(*c));

		c = malloc(sizeof(*c) + cap);
		if (!c)
			return NULL;
		c->next = p->head;
		c->used = 0;
		c->cap = cap;
		p->head = c;
	}
	r = c->data + c->used;
	c->used += size;
	return memset(r, 0, size);
}

char *pool_strndup(struct pool *p, const char *s, size_t len)
{
	char *r = pool_alloc(p, len + 1);

	if (r)
		memcpy(r, s, len);
	return r;
}

char *pool_strdup(struct pool *p, const char *s)
{
	return pool_strndup(p, s, strlen(s));
}

void pool_fini(struct pool *p)
{
	while (p->head) {
		struct pool_chunk *c = p->head;

		p->head = c->next;
		free(c);
	}
}

int str_list_add(struct pool *p, struct str_list *l, const char *s)
{
	if (l->n + 1 >= l->cap) {
		size_t cap = l->cap ? 2 * l->cap : 8;
		char **v = pool_alloc(p, cap * sizeof(*v));

		if (!v)
			return -ENOMEM;
		if (l->n)
			memcpy(v, l->v, l->n * sizeof(*v));
		l->v = v;
		l->cap = cap;
	}
	l->v[l->n] = pool_strdup(p, s);
	if (!l->v[l->n])
		return -ENOMEM;
	l->v[++l->n] = NULL;
	return 0;
}
