/* SPDX-License-Identifier: Apache-2.0 */
#include "base/slab.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/bug.h"
#include "base/host/map.h"

#define CHUNK (64u * 1024) /* and aligned to that: an object knows its chunk by its address */
#define STEP  (16u * 1024)
#define ALIGN 16u

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

struct free_object {
	struct free_object *next;
};

struct chunk {
	struct list node; /* in slab.partial, unless it is full */
	const struct slab *slab;
	struct free_object *free;
	uint32_t used;    /* objects */
	uint32_t fresh;   /* offset of what was never handed out */
	uint32_t present; /* offset up to which the memory was made present */
};

#ifdef SBX_SANITIZED /* so that each object is watched on its own */

void *slab_alloc(struct slab *p)
{
	return malloc(p->size);
}

void slab_free(struct slab *p, void *object)
{
	(void)p;
	free(object);
}

#else

static uint32_t stride(const struct slab *p)
{
	return (uint32_t)ROUND_UP(p->size, (size_t)ALIGN);
}

static struct chunk *chunk_create(struct slab *p)
{
	uint8_t *base;
	struct chunk *c;

	if (host_reserve(CHUNK, CHUNK, &base) < 0)
		return NULL;
	if (host_map_memory_at(base, CHUNK) < 0) {
		host_unmap(base, CHUNK);
		return NULL;
	}
	c = (struct chunk *)base;
	c->slab = p;
	c->fresh = (uint32_t)ROUND_UP(sizeof(*c), (size_t)ALIGN);
	list_init(&c->node);
	list_add(&p->partial, &c->node);
	return c;
}

static bool has_fresh(const struct chunk *c, uint32_t size)
{
	return c->fresh + size <= CHUNK;
}

static void *take_fresh(struct slab *p, struct chunk *c, uint32_t size)
{
	void *object = (uint8_t *)c + c->fresh;

	c->fresh += size;
	if (c->fresh > c->present && !p->on_demand) {
		p->on_demand = host_madvise((uint8_t *)c + c->present, STEP, MADV_POPULATE_WRITE) < 0;
		c->present += STEP;
	}
	return object;
}

void *slab_alloc(struct slab *p)
{
	uint32_t size = stride(p);
	struct chunk *c = list_empty(&p->partial) ? chunk_create(p) : list_first_entry(&p->partial, struct chunk, node);
	struct free_object *f;

	BUG_ON(p->size > SLAB_OBJECT_MAX);
	if (!c)
		return NULL;
	c->used++;
	f = c->free;
	if (f)
		c->free = f->next;
	else
		f = take_fresh(p, c, size);
	if (!c->free && !has_fresh(c, size))
		list_del(&c->node);
	return f;
}

void slab_free(struct slab *p, void *object)
{
	struct chunk *c = (struct chunk *)((uintptr_t)object & ~(uintptr_t)(CHUNK - 1));
	struct free_object *f = object;

	if (!object)
		return;
	BUG_ON(c->slab != p || !c->used);
	if (list_empty(&c->node))
		list_add(&p->partial, &c->node);
	f->next = c->free;
	c->free = f;
	if (--c->used || (p->partial.next == &c->node && p->partial.prev == &c->node))
		return;
	list_del(&c->node);
	host_unmap(c, CHUNK);
}

#endif
