/* SPDX-License-Identifier: Apache-2.0 */
#include "platform/kvm/region.h"

#include <errno.h>
#include <stdlib.h>

#include "base/bug.h"
#include "platform/kvm/mem.h"

#define REGIONS_MAX (1u << 17) /* of one address space; the sentry allows half as many VMAs */

static struct kregion *to_region(struct rb_node *n)
{
	return n ? rb_entry(n, struct kregion, rb) : NULL;
}

void kregions_init(struct kregions *t, struct kmem *m)
{
	*t = (struct kregions){ .m = m };
}

void kregions_fini(struct kregions *t)
{
	struct kregion *r;

	while ((r = to_region(t->root.node))) {
		kregion_remove(t, r);
		kregion_free(t, r);
	}
	while ((r = t->spares)) {
		t->spares = r->next;
		free(r);
		t->m->n_regions--;
	}
	t->n_spares = 0;
}

int kregions_reserve(struct kregions *t, unsigned n)
{
	if (t->n + n > REGIONS_MAX)
		return -ENOMEM;
	while (t->n_spares < n) {
		struct kregion *r = t->m->n_regions < KMEM_REGIONS_MAX ? malloc(sizeof(*r)) : NULL;

		if (!r)
			return -ENOMEM;
		r->next = t->spares;
		t->spares = r;
		t->n_spares++;
		t->m->n_regions++;
	}
	return 0;
}

struct kregion *kregion_new(struct kregions *t, const struct kregion *like)
{
	struct kregion *r = t->spares;

	BUG_ON(!r);
	t->spares = r->next;
	t->n_spares--;
	*r = *like;
	r->next = NULL;
	if (r->obj)
		kobj_get(r->obj);
	return r;
}

void kregion_free(struct kregions *t, struct kregion *r)
{
	kobj_put(r->obj);
	if (t->n_spares < 4) {
		r->next = t->spares;
		t->spares = r;
		t->n_spares++;
		return;
	}
	free(r);
	t->m->n_regions--;
}

void kregion_insert(struct kregions *t, struct kregion *r)
{
	struct rb_node *n = t->root.node, *parent = NULL;
	int side = 0;

	while (n) {
		struct kregion *o = to_region(n);

		BUG_ON(r->start < o->end && o->start < r->end);
		parent = n;
		side = r->start > o->start;
		n = n->child[side];
	}
	rb_insert(&t->root, &r->rb, parent, side);
	t->n++;
}

void kregion_remove(struct kregions *t, struct kregion *r)
{
	if (t->hint == r)
		t->hint = NULL;
	rb_erase(&t->root, &r->rb);
	t->n--;
}

struct kregion *kregion_find(struct kregions *t, uaddr_t addr)
{
	struct rb_node *n = t->root.node;
	struct kregion *best = NULL;

	if (t->hint && t->hint->start <= addr && addr < t->hint->end)
		return t->hint;
	while (n) {
		struct kregion *r = to_region(n);

		if (addr < r->end) {
			best = r;
			if (r->start <= addr)
				break;
		}
		n = n->child[addr >= r->end];
	}
	if (best)
		t->hint = best;
	return best;
}

struct kregion *kregion_at(struct kregions *t, uaddr_t addr)
{
	struct kregion *r = kregion_find(t, addr);

	return r && r->start <= addr ? r : NULL;
}

struct kregion *kregion_first(const struct kregions *t)
{
	return to_region(rb_first(&t->root));
}

struct kregion *kregion_last(const struct kregions *t)
{
	struct rb_node *n = t->root.node;

	while (n && n->child[RB_RIGHT])
		n = n->child[RB_RIGHT];
	return to_region(n);
}

struct kregion *kregion_next(struct kregion *r)
{
	return to_region(rb_next(&r->rb));
}

struct kregion *kregion_prev(struct kregion *r)
{
	return to_region(rb_prev(&r->rb));
}

bool kregions_cover(struct kregions *t, uaddr_t start, uaddr_t end)
{
	struct kregion *r = kregion_at(t, start);

	while (r && r->start <= start && r->end < end) {
		start = r->end;
		r = kregion_next(r);
	}
	return r && r->start <= start;
}

static void cut_at(struct kregions *t, uaddr_t at)
{
	struct kregion *r = kregion_at(t, at), *tail;

	if (!r || r->start == at)
		return;
	tail = kregion_new(t, r);
	tail->start = at;
	tail->page += (at - r->start) >> PAGE_SHIFT;
	r->end = at;
	kregion_insert(t, tail);
}

void kregions_cut(struct kregions *t, uaddr_t start, uaddr_t end)
{
	cut_at(t, start);
	cut_at(t, end);
}

static bool joins(const struct kregion *a, const struct kregion *b)
{
	return a->end == b->start && a->obj == b->obj && a->prot == b->prot && a->flags == b->flags &&
	       (!a->obj || a->page + ((a->end - a->start) >> PAGE_SHIFT) == b->page);
}

void kregions_merge(struct kregions *t, uaddr_t start, uaddr_t end)
{
	struct kregion *r = kregion_find(t, start ? start - 1 : 0), *next;

	for (; r && r->start <= end; r = next) {
		next = kregion_next(r);
		if (!next || !joins(r, next))
			continue;
		r->end = next->end;
		kregion_remove(t, next);
		kregion_free(t, next);
		next = r;
	}
}
