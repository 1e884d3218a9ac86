/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is mapped where in an address space (region.c): the platform's own copy of what the sentry's VMAs say, made from
 * the aspace_ops alone. Regions do not overlap and are never empty. The tree knows nothing of page tables.
 *
 * A change reserves the structs that it needs first (kregions_reserve()), so that nothing can fail in its middle.
 */
#ifndef SBX_PLATFORM_KVM_REGION_H
#define SBX_PLATFORM_KVM_REGION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rbtree.h"
#include "platform/kvm/kobj.h"
#include "platform/platform.h"

#define KREG_SHARED 1u
#define KREG_DONTFORK 2u
#define KREG_WIPEONFORK 4u

struct kregion {
	struct rb_node rb;
	uaddr_t start, end;
	struct kobj *obj;     /* counted; NULL: anonymous private memory */
	uint64_t page;        /* of obj, at start */
	uint8_t prot, flags;  /* PROT_*, KREG_* */
	struct kregion *next; /* of the spares, or of those that go away */
};

struct kregions {
	struct rb_root root;
	struct kmem *m;
	struct kregion *hint; /* found last, or NULL */
	struct kregion *spares;
	unsigned n_spares;
	unsigned n;
};

void kregions_init(struct kregions *t, struct kmem *m);
void kregions_fini(struct kregions *t); /* puts the objects: no page-table entry may be left */

/* Has @n structs ready. 0 or -ENOMEM. */
int kregions_reserve(struct kregions *t, unsigned n);
/* A copy of *@like, from the spares, with a reference to its object; not in the tree yet. */
struct kregion *kregion_new(struct kregions *t, const struct kregion *like);
void kregion_insert(struct kregions *t, struct kregion *r);
/* Takes it out of the tree; kregion_free() puts its object. */
void kregion_remove(struct kregions *t, struct kregion *r);
void kregion_free(struct kregions *t, struct kregion *r);

struct kregion *kregion_at(struct kregions *t, uaddr_t addr);
/* The first one that ends above @addr, or NULL. */
struct kregion *kregion_find(struct kregions *t, uaddr_t addr);
struct kregion *kregion_first(const struct kregions *t);
struct kregion *kregion_last(const struct kregions *t);
struct kregion *kregion_next(struct kregion *r);
struct kregion *kregion_prev(struct kregion *r);
/* Is all of it mapped? */
bool kregions_cover(struct kregions *t, uaddr_t start, uaddr_t end);

/* No region crosses @start or @end afterwards: at most two spares. */
void kregions_cut(struct kregions *t, uaddr_t start, uaddr_t end);
/* Joins what can be joined from the region before @start to the one behind @end. */
void kregions_merge(struct kregions *t, uaddr_t start, uaddr_t end);

#endif
