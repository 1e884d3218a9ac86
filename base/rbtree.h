/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Intrusive red-black tree. The user walks down to the place of a new node himself (no comparison
 * callback) and may keep an aggregate in each node (the largest gap below it, say): the tree calls
 * @update whenever a node's children changed.
 */
#ifndef SBX_BASE_RBTREE_H
#define SBX_BASE_RBTREE_H

#include <stdbool.h>

#include "base/macros.h"

#define RB_LEFT 0
#define RB_RIGHT 1

struct rb_node {
	struct rb_node *parent;
	struct rb_node *child[2];
	bool red;
};

struct rb_root {
	struct rb_node *node;
	/* Recomputes the aggregate of @n from itself and its children; NULL: there is none. */
	void (*update)(struct rb_node *n);
};

/* Links @n as the child @side of @parent (NULL: the tree is empty), whose place there is free, and
 * rebalances. */
void rb_insert(struct rb_root *root, struct rb_node *n, struct rb_node *parent, int side);
void rb_erase(struct rb_root *root, struct rb_node *n);

/* The aggregate of @n changed by itself: brings it and its ancestors' up to date. NULL is allowed.
 */
void rb_update_path(const struct rb_root *root, struct rb_node *n);

/* In order; NULL at the end. */
struct rb_node *rb_first(const struct rb_root *root);
struct rb_node *rb_next(struct rb_node *n);
struct rb_node *rb_prev(struct rb_node *n);

#define rb_entry(ptr, type, member) container_of(ptr, type, member)

#endif
