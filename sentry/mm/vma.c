/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree is ordered by address. Each node carries the largest gap in front of any VMA of its
 * subtree, which makes the search for a free range O(log n). The gap in front of a VMA depends on
 * its predecessor, whose end it therefore holds (prev_end): link(), unlink() and vma_resize() keep
 * it true, nobody else moves a border.
 *
 * The platform's range is a VMA of its own (VMA_RESERVED): so the gap search avoids it without
 * knowing it.
 */
#include "sentry/mm/vma.h"

#include <errno.h>
#include <stdlib.h>

#include "base/bug.h"
#include "sentry/kernel/kernel.h"
#include "sentry/vfs/file.h"

struct shm_object *shm_object_create(void)
{
	struct shm_object *o = malloc(sizeof(*o));

	if (o)
		ref_init(&o->ref);
	return o;
}

struct shm_object *shm_object_get(struct shm_object *o)
{
	if (o)
		ref_get(&o->ref);
	return o;
}

void shm_object_put(struct shm_object *o)
{
	if (o && ref_put(&o->ref))
		free(o);
}

int vma_spares_fill(struct vma_spares *s, unsigned n)
{
	BUG_ON(n > VMA_SPARES);
	if (n && kernel.counters.vmas >= VMA_TOTAL_MAX)
		return -ENOMEM;
	while (s->n < n) {
		struct vma *v = calloc(1, sizeof(*v));

		if (!v)
			return -ENOMEM;
		s->v[s->n++] = v;
	}
	return 0;
}

void vma_spares_fini(struct vma_spares *s)
{
	while (s->n)
		free(s->v[--s->n]);
}

static struct vma *of_node(struct rb_node *n)
{
	return n ? rb_entry(n, struct vma, node) : NULL;
}

struct vma *vma_first(const struct vma_tree *t)
{
	return of_node(rb_first(&t->root));
}

struct vma *vma_next(struct vma *v)
{
	return of_node(rb_next(&v->node));
}

struct vma *vma_prev(struct vma *v)
{
	return of_node(rb_prev(&v->node));
}

/* Where the free space before @v ends: a stack keeps its guard gap. */
static uaddr_t guarded_start(const struct vma *v)
{
	if (!(v->flags & VMA_GROWSDOWN))
		return v->start;
	return v->start > STACK_GUARD_GAP ? v->start - STACK_GUARD_GAP : 0;
}

static void update_gap(struct rb_node *n)
{
	struct vma *v = of_node(n);
	uaddr_t to = guarded_start(v);
	uint64_t gap = to > v->prev_end ? to - v->prev_end : 0;

	for (int i = 0; i < 2; i++) {
		if (n->child[i])
			gap = MAX(gap, of_node(n->child[i])->max_gap);
	}
	v->max_gap = gap;
}

/* The VMA before @next ends at @end now. */
static void set_prev_end(struct vma_tree *t, struct vma *next, uaddr_t end)
{
	if (!next)
		return;
	next->prev_end = end;
	rb_update_path(&t->root, &next->node);
}

int vma_tree_init(struct vma_tree *t)
{
	struct vma *v = calloc(1, sizeof(*v));

	if (!v)
		return -ENOMEM;
	*t = (struct vma_tree){ .root.update = update_gap };
	v->start = PLATFORM_RESERVED_START;
	v->end = PLATFORM_RESERVED_END;
	v->flags = VMA_RESERVED;
	vma_insert(t, v);
	return 0;
}

void vma_tree_fini(struct vma_tree *t)
{
	struct vma *v;

	while ((v = of_node(t->root.node))) {
		vma_remove(t, v);
		vma_free(v);
	}
}

struct vma *vma_find(const struct vma_tree *t, uaddr_t addr)
{
	struct rb_node *n = t->root.node;
	struct vma *best = NULL;

	while (n) {
		struct vma *v = of_node(n);

		if (v->end > addr) {
			best = v;
			n = n->child[RB_LEFT];
		} else {
			n = n->child[RB_RIGHT];
		}
	}
	return best;
}

struct vma *vma_at(const struct vma_tree *t, uaddr_t addr)
{
	struct vma *v = vma_find(t, addr);

	return v && v->start <= addr && !(v->flags & VMA_RESERVED) ? v : NULL;
}

struct vma *vma_first_in(const struct vma_tree *t, uaddr_t start, uaddr_t end)
{
	struct vma *v = vma_find(t, start);

	return v && v->start < end ? v : NULL;
}

struct vma *vma_dup(struct vma_spares *s, const struct vma *v)
{
	struct vma *copy;

	BUG_ON(!s->n);
	copy = s->v[--s->n];
	*copy = *v;
	if (copy->file)
		file_get(copy->file);
	shm_object_get(copy->shm);
	return copy;
}

void vma_free(struct vma *v)
{
	file_put(v->file);
	shm_object_put(v->shm);
	free(v);
}

void vma_insert(struct vma_tree *t, struct vma *v)
{
	struct rb_node *parent = NULL, *n = t->root.node;
	struct vma *prev = NULL, *next = NULL;
	int side = RB_LEFT;

	while (n) {
		parent = n;
		side = of_node(n)->start < v->start ? RB_RIGHT : RB_LEFT;
		if (side == RB_RIGHT)
			prev = of_node(n);
		else
			next = of_node(n);
		n = n->child[side];
	}
	BUG_ON((prev && prev->end > v->start) || (next && next->start < v->end) ||
	       v->start >= v->end);
	v->prev_end = prev ? prev->end : 0;
	rb_insert(&t->root, &v->node, parent, side);
	set_prev_end(t, next, v->end);
	if (v->flags & VMA_RESERVED)
		return;
	t->count++;
	kernel.counters.vmas++;
}

void vma_remove(struct vma_tree *t, struct vma *v)
{
	struct vma *next = vma_next(v);

	rb_erase(&t->root, &v->node);
	set_prev_end(t, next, v->prev_end);
	if (v->flags & VMA_RESERVED)
		return;
	t->count--;
	kernel.counters.vmas--;
}

void vma_resize(struct vma_tree *t, struct vma *v, uaddr_t start, uaddr_t end)
{
	struct vma *next = vma_next(v);

	BUG_ON(start >= end || v->prev_end > start || (next && next->start < end));
	v->offset +=
		start - v->start; /* wraps for a stack that grows; only files and shm look at it */
	v->start = start;
	v->end = end;
	rb_update_path(&t->root, &v->node);
	set_prev_end(t, next, end);
}

/* Makes @at a border. */
static void split_at(struct vma_tree *t, uaddr_t at, struct vma_spares *s)
{
	struct vma *v = vma_find(t, at), *upper;

	if (!v || v->start >= at)
		return;
	upper = vma_dup(s, v);
	upper->start = at;
	upper->offset += at - v->start;
	vma_resize(t, v, v->start, at);
	vma_insert(t, upper);
}

void vma_cut(struct vma_tree *t, uaddr_t start, uaddr_t end, struct vma_spares *s)
{
	split_at(t, start, s);
	split_at(t, end, s);
}

unsigned vma_cut_cost(const struct vma_tree *t, uaddr_t start, uaddr_t end)
{
	const struct vma *a = vma_find(t, start), *b = vma_find(t, end);

	return (a && a->start < start) + (b && b->start < end && end < b->end);
}

static bool alike(const struct vma *a, const struct vma *b)
{
	if (a->end != b->start || a->prot != b->prot || a->maxprot != b->maxprot ||
	    a->flags != b->flags || a->file != b->file || a->shm != b->shm ||
	    (a->flags & VMA_RESERVED))
		return false;
	return (!a->file && !a->shm) || a->offset + vma_len(a) == b->offset;
}

void vma_merge(struct vma_tree *t, uaddr_t start, uaddr_t end)
{
	struct vma *v = vma_find(t, start ? start - 1 : 0), *next;

	for (; v && v->start <= end; v = next) {
		next = vma_next(v);
		while (next && alike(v, next)) {
			uaddr_t to = next->end;

			vma_remove(t, next);
			vma_free(next);
			vma_resize(t, v, v->start, to);
			next = vma_next(v);
		}
	}
}

/* The place for @len bytes at the top of the gap [from, to), cut to [low, high). */
static bool place_top(uaddr_t from, uaddr_t to, uint64_t len, uaddr_t low, uaddr_t high,
                      uaddr_t *ret)
{
	from = MAX(from, low);
	to = MIN(to, high);
	if (from >= to || to - from < len)
		return false;
	*ret = to - len;
	return true;
}

static bool place_bottom(uaddr_t from, uaddr_t to, uint64_t len, uaddr_t low, uaddr_t high,
                         uaddr_t *ret)
{
	from = MAX(from, low);
	to = MIN(to, high);
	if (from >= to || to - from < len)
		return false;
	*ret = from;
	return true;
}

/* Recursion as deep as the tree: at most 2 log2(65536). Subtrees that lie outside [low, high) are
 * passed over, so that at most one path down each border is walked in vain. */
static bool search_top(struct rb_node *n, uint64_t len, uaddr_t low, uaddr_t high, uaddr_t *ret)
{
	struct vma *v = of_node(n);

	if (!v || v->max_gap < len)
		return false;
	if (v->end < high && search_top(n->child[RB_RIGHT], len, low, high, ret))
		return true;
	if (place_top(v->prev_end, guarded_start(v), len, low, high, ret))
		return true;
	return v->prev_end > low && search_top(n->child[RB_LEFT], len, low, high, ret);
}

static bool search_bottom(struct rb_node *n, uint64_t len, uaddr_t low, uaddr_t high, uaddr_t *ret)
{
	struct vma *v = of_node(n);

	if (!v || v->max_gap < len)
		return false;
	if (v->prev_end > low && search_bottom(n->child[RB_LEFT], len, low, high, ret))
		return true;
	if (place_bottom(v->prev_end, guarded_start(v), len, low, high, ret))
		return true;
	return v->end < high && search_bottom(n->child[RB_RIGHT], len, low, high, ret);
}

/* The end of the last VMA: what lies above it is in no gap of the tree. */
static uaddr_t last_end(const struct vma_tree *t)
{
	struct rb_node *n = t->root.node;

	while (n && n->child[RB_RIGHT])
		n = n->child[RB_RIGHT];
	return n ? of_node(n)->end : 0;
}

bool vma_gap_topdown(const struct vma_tree *t, uint64_t len, uaddr_t low, uaddr_t high,
                     uaddr_t *ret)
{
	return place_top(last_end(t), UINT64_MAX, len, low, high, ret) ||
	       search_top(t->root.node, len, low, high, ret);
}

bool vma_gap_bottomup(const struct vma_tree *t, uint64_t len, uaddr_t low, uaddr_t high,
                      uaddr_t *ret)
{
	return search_bottom(t->root.node, len, low, high, ret) ||
	       place_bottom(last_end(t), UINT64_MAX, len, low, high, ret);
}
