/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual memory areas and the tree of an address space. This file knows neither platform nor task:
 * it keeps the books. All addresses are page aligned, all ranges are half open and checked by the
 * caller.
 */
#ifndef SBX_SENTRY_MM_VMA_H
#define SBX_SENTRY_MM_VMA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rbtree.h"
#include "base/ref.h"
#include "platform/platform.h"

struct file;

/* Memory that mappings of several address spaces share and that has no file: the identity for
 * futexes. */
struct shm_object {
	struct ref ref;
};

struct shm_object *shm_object_create(void);              /* NULL: no memory */
struct shm_object *shm_object_get(struct shm_object *o); /* NULL is allowed */
void shm_object_put(struct shm_object *o);               /* NULL is allowed */

#define VMA_SHARED 1u
#define VMA_GROWSDOWN 2u
#define VMA_NORESERVE 4u
#define VMA_LOCKED 8u
#define VMA_DONTFORK 16u
#define VMA_WIPEONFORK 32u
#define VMA_HUGE 64u
#define VMA_NOHUGE 128u
#define VMA_DONTDUMP 256u
#define VMA_RESERVED                                                                               \
	512u /* the platform's range: never the guest's, seen only by the gap search               \
	      */

/* Linux's stack_guard_gap. */
#define STACK_GUARD_GAP (256 * PAGE_SIZE)

struct vma {
	struct rb_node node;
	uaddr_t start, end;
	uaddr_t prev_end;      /* end of the VMA before, 0 for the first */
	uint64_t max_gap;      /* aggregate: the largest free range before a VMA of this subtree */
	uint8_t prot, maxprot; /* PROT_* */
	uint32_t flags;        /* VMA_* */
	struct file *file;     /* counted; NULL: anonymous */
	struct shm_object
		*shm;    /* counted; shared memory without a file of its own (/dev/zero has both) */
	uint64_t offset; /* of start, in the file or shared object */
};

struct vma_tree {
	struct rb_root root;
	unsigned count; /* the reserved one not included */
};

/* Of all address spaces together; each costs us about 112 bytes. */
#define VMA_TOTAL_MAX (1u << 20)

/* VMAs made ahead, so that the books can be changed without failing once the platform has done its
 * part. */
#define VMA_SPARES 6
struct vma_spares {
	struct vma *v[VMA_SPARES];
	unsigned n;
};

MUST_CHECK int vma_spares_fill(struct vma_spares *s, unsigned n); /* 0 or -ENOMEM */
void vma_spares_fini(struct vma_spares *s);

/* An empty tree with the reserved VMA in it; 0 or -ENOMEM. */
MUST_CHECK int vma_tree_init(struct vma_tree *t);
void vma_tree_fini(struct vma_tree *t);

/* The first VMA that ends above @addr, or NULL; it may start above @addr, and may be the reserved
 * one. */
struct vma *vma_find(const struct vma_tree *t, uaddr_t addr);
/* The guest's VMA that holds @addr, or NULL. */
struct vma *vma_at(const struct vma_tree *t, uaddr_t addr);
/* The first VMA that meets the range, or NULL. */
struct vma *vma_first_in(const struct vma_tree *t, uaddr_t start, uaddr_t end);
struct vma *vma_first(const struct vma_tree *t);
struct vma *vma_next(struct vma *v); /* NULL at the end */
struct vma *vma_prev(struct vma *v);

/* A copy with references of its own, from the spares. */
struct vma *vma_dup(struct vma_spares *s, const struct vma *v);
void vma_free(struct vma *v); /* not in a tree */

/* The range of @v must be free. */
void vma_insert(struct vma_tree *t, struct vma *v);
/* Takes @v out; the caller frees it. */
void vma_remove(struct vma_tree *t, struct vma *v);
/* Moves the borders of @v in place, the offset with the start; must not meet a neighbour. */
void vma_resize(struct vma_tree *t, struct vma *v, uaddr_t start, uaddr_t end);
/* Makes @start and @end borders: splits at most two VMAs. Needs two spares. */
void vma_cut(struct vma_tree *t, uaddr_t start, uaddr_t end, struct vma_spares *s);
/* How many VMAs vma_cut() would add. */
unsigned vma_cut_cost(const struct vma_tree *t, uaddr_t start, uaddr_t end);
/* Joins what is alike from the VMA before @start to the one after @end. */
void vma_merge(struct vma_tree *t, uaddr_t start, uaddr_t end);

/* The highest, or the lowest, free range of @len bytes in [low, high), guard gaps left free. False:
 * there is none. */
bool vma_gap_topdown(const struct vma_tree *t, uint64_t len, uaddr_t low, uaddr_t high,
                     uaddr_t *ret);
bool vma_gap_bottomup(const struct vma_tree *t, uint64_t len, uaddr_t low, uaddr_t high,
                      uaddr_t *ret);

static inline uint64_t vma_len(const struct vma *v)
{
	return v->end - v->start;
}

#endif
