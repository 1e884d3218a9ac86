/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects of one size, packed into chunks: for what there are many thousands of. Memory that is touched for the first
 * time costs a page fault, which under some hypervisors takes longer than all else that is done for a cached file; so
 * a chunk is made present in steps, ahead of its use. A chunk that is empty goes back to the host, except for one.
 * Callers lock.
 */
#ifndef SBX_BASE_SLAB_H
#define SBX_BASE_SLAB_H

#include <stdbool.h>
#include <stddef.h>

#include "base/list.h"
#include "base/macros.h"

struct slab {
	size_t size;         /* of an object; at most SLAB_OBJECT_MAX */
	struct list partial; /* chunks with room */
	bool on_demand;      /* the host cannot make memory present ahead */
};

#define SLAB_OBJECT_MAX 4096
#define SLAB_INIT(slab, type) { .size = sizeof(type), .partial = LIST_INIT((slab).partial) }

/* Not cleared. NULL: no memory. */
void *slab_alloc(struct slab *p);
void slab_free(struct slab *p, void *object); /* NULL is allowed */

#endif
