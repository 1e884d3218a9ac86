/* SPDX-License-Identifier: Apache-2.0 */
/* The red-black tree against a sorted array, with a sum as the aggregate. */
#include <stdlib.h>
#include <string.h>

#include "base/rbtree.h"
#include "tests/lib/tap.h"

#define N 300

struct item {
	struct rb_node node;
	unsigned key;
	unsigned count; /* aggregate: nodes below */
	bool in;
};

static struct item items[N];

static unsigned count_of(const struct rb_node *n)
{
	return n ? rb_entry(n, struct item, node)->count : 0;
}

static void update(struct rb_node *n)
{
	rb_entry(n, struct item, node)->count = 1 + count_of(n->child[0]) + count_of(n->child[1]);
}

static void insert(struct rb_root *root, struct item *it)
{
	struct rb_node *parent = NULL, *n = root->node;
	int side = 0;

	while (n) {
		parent = n;
		side = rb_entry(n, struct item, node)->key < it->key;
		n = n->child[side];
	}
	rb_insert(root, &it->node, parent, side);
}

/* Black height, or -1 when an invariant is broken. */
static int check(const struct rb_node *n, const struct rb_node *parent)
{
	int l, r;

	if (!n)
		return 1;
	if (n->parent != parent || (n->red && (!parent || parent->red)))
		return -1;
	if (count_of(n) != 1 + count_of(n->child[0]) + count_of(n->child[1]))
		return -1;
	l = check(n->child[0], n);
	r = check(n->child[1], n);
	return l < 0 || l != r ? -1 : l + !n->red;
}

static bool same_order(struct rb_root *root)
{
	struct rb_node *n = rb_first(root), *last = NULL;

	for (unsigned i = 0; i < N; i++) {
		if (!items[i].in)
			continue;
		if (n != &items[i].node || rb_prev(n) != last)
			return false;
		last = n;
		n = rb_next(n);
	}
	return !n;
}

int main(void)
{
	struct rb_root root = { .update = update };
	unsigned present = 0;
	bool ok = true;

	srandom(1);
	for (unsigned i = 0; i < N; i++)
		items[i].key = i;
	for (unsigned step = 0; ok && step < 20000; step++) {
		struct item *it = &items[(unsigned)random() % N];

		/* Phases that grow and that shrink. */
		if (!it->in && (step / 2000 % 2 == 0 || random() % 4 == 0)) {
			insert(&root, it);
			it->in = true;
			present++;
		} else if (it->in && (step / 2000 % 2 == 1 || random() % 4 == 0)) {
			rb_erase(&root, &it->node);
			it->in = false;
			present--;
		}
		ok = check(root.node, NULL) > 0 && count_of(root.node) == present;
		if (ok && step % 16 == 0)
			ok = same_order(&root);
	}
	tap_ok(ok, "random inserts and erases keep order, colours and aggregates");
	for (unsigned i = 0; i < N; i++) {
		if (items[i].in)
			rb_erase(&root, &items[i].node);
	}
	tap_ok(!root.node, "the tree empties");
	return tap_done();
}
