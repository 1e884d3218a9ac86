/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Invariants: the root is black, a red node has no red child, and each path from a node down to a
 * missing child has the same number of black nodes. Missing children are NULL and count as black.
 *
 * A rotation keeps the set of nodes below its upper place, so that only the two turned nodes need a
 * new aggregate: the path to the root is brought up to date once, before the rebalancing.
 */
#include "base/rbtree.h"

static bool is_red(const struct rb_node *n)
{
	return n && n->red;
}

static int side_of(const struct rb_node *n)
{
	return n->parent->child[RB_RIGHT] == n;
}

/* Puts @new (may be NULL) where @old hangs below its parent. */
static void replace(struct rb_root *root, struct rb_node *old, struct rb_node *new)
{
	if (!old->parent)
		root->node = new;
	else
		old->parent->child[side_of(old)] = new;
	if (new)
		new->parent = old->parent;
}

/* @top goes down to @side; its child on the other side takes its place. */
static void rotate(struct rb_root *root, struct rb_node *top, int side)
{
	struct rb_node *up = top->child[!side];

	replace(root, top, up);
	top->child[!side] = up->child[side];
	if (top->child[!side])
		top->child[!side]->parent = top;
	up->child[side] = top;
	top->parent = up;
	if (root->update) {
		root->update(top);
		root->update(up);
	}
}

void rb_update_path(const struct rb_root *root, struct rb_node *n)
{
	if (!root->update)
		return;
	for (; n; n = n->parent)
		root->update(n);
}

void rb_insert(struct rb_root *root, struct rb_node *n, struct rb_node *parent, int side)
{
	n->parent = parent;
	n->child[RB_LEFT] = n->child[RB_RIGHT] = NULL;
	n->red = true;
	if (parent)
		parent->child[side] = n;
	else
		root->node = n;
	rb_update_path(root, n);

	while ((parent = n->parent) && parent->red) {
		struct rb_node *grand = parent->parent; /* exists: the root is black */
		int s = side_of(parent);
		struct rb_node *uncle = grand->child[!s];

		if (is_red(uncle)) {
			parent->red = uncle->red = false;
			grand->red = true;
			n = grand;
			continue;
		}
		if (side_of(n) != s) {
			rotate(root, parent, s);
			parent = n;
		}
		parent->red = false;
		grand->red = true;
		rotate(root, grand, !s);
		break;
	}
	root->node->red = false;
}

/* The paths through @n (may be NULL), a child of @parent, lack one black node. */
static void erase_fix(struct rb_root *root, struct rb_node *n, struct rb_node *parent)
{
	while (parent && !is_red(n)) {
		int s = parent->child[RB_RIGHT] == n;
		struct rb_node *sib =
			parent->child[!s]; /* exists: its side has a black node more */

		if (sib->red) {
			sib->red = false;
			parent->red = true;
			rotate(root, parent, s);
			sib = parent->child[!s];
		}
		if (!is_red(sib->child[RB_LEFT]) && !is_red(sib->child[RB_RIGHT])) {
			sib->red = true;
			n = parent;
			parent = n->parent;
			continue;
		}
		if (!is_red(sib->child[!s])) {
			sib->child[s]->red = false;
			sib->red = true;
			rotate(root, sib, !s);
			sib = parent->child[!s];
		}
		sib->red = parent->red;
		parent->red = false;
		sib->child[!s]->red = false;
		rotate(root, parent, s);
		return;
	}
	if (n)
		n->red = false;
}

void rb_erase(struct rb_root *root, struct rb_node *n)
{
	struct rb_node *moved, *parent;
	bool red = n->red;

	if (!n->child[RB_LEFT] || !n->child[RB_RIGHT]) {
		moved = n->child[!n->child[RB_LEFT]];
		parent = n->parent;
		replace(root, n, moved);
	} else {
		struct rb_node *next = n->child[RB_RIGHT];

		while (next->child[RB_LEFT])
			next = next->child[RB_LEFT];
		red = next->red;
		moved = next->child[RB_RIGHT];
		if (next->parent == n) {
			parent = next;
		} else {
			parent = next->parent;
			replace(root, next, moved);
			next->child[RB_RIGHT] = n->child[RB_RIGHT];
			next->child[RB_RIGHT]->parent = next;
		}
		replace(root, n, next);
		next->child[RB_LEFT] = n->child[RB_LEFT];
		next->child[RB_LEFT]->parent = next;
		next->red = n->red;
	}
	rb_update_path(root, parent);
	if (!red)
		erase_fix(root, moved, parent);
	n->parent = n->child[RB_LEFT] = n->child[RB_RIGHT] = NULL;
}

static struct rb_node *outermost(struct rb_node *n, int side)
{
	while (n && n->child[side])
		n = n->child[side];
	return n;
}

static struct rb_node *step(struct rb_node *n, int side)
{
	if (n->child[side])
		return outermost(n->child[side], !side);
	while (n->parent && side_of(n) == side)
		n = n->parent;
	return n->parent;
}

struct rb_node *rb_first(const struct rb_root *root)
{
	return outermost(root->node, RB_LEFT);
}

struct rb_node *rb_next(struct rb_node *n)
{
	return step(n, RB_RIGHT);
}

struct rb_node *rb_prev(struct rb_node *n)
{
	return step(n, RB_LEFT);
}
