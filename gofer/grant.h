/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the gofer may serve: the grants of the policy with their roots, and the places below them that are hidden or
 * belong to another grant. Places are kept as a tree of marks that nodes follow as they walk; what is hidden is also
 * known by its identity, so that another name for it is hidden as well.
 */
#ifndef SBX_GOFER_GRANT_H
#define SBX_GOFER_GRANT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/macros.h"
#include "gofer/node.h"

#define GRANTS_MAX     256
#define HIDE_MAX       1024
#define HIDE_FDS_MAX   128 /* hidden files that are also known by identity */

#define MARK_HIDE          1u /* does not exist for the guest */
#define MARK_HIDE_CHILDREN 2u
#define MARK_COVERED       4u /* the root of another grant: reached through that one only */
#define MARK_ONLY          8u /* of its children only those that are MARK_SHOWN exist for the guest */
#define MARK_SHOWN         16u

/* A place at or above one that is special. */
struct mark {
	const struct mark *child, *next;
	unsigned flags;
	char name[];
};

struct grant {
	uint32_t id;
	bool writable;     /* rw; ro and cow are not */
	bool revoked;
	char *path;        /* canonical, on the host: for audit, hide and absolute protect patterns */
	struct mark *marks; /* of the root; owned, with all below */
	struct node *root;
};

struct hidden_id {
	struct file_id id;
	int fd; /* O_PATH: keeps the inode number from being used again */
};

struct grant_table {
	struct grant *grants;
	unsigned n;
	struct hidden_id *hidden;
	unsigned n_hidden;
};

/* Adds the grant of @path with root @fd (O_PATH, consumed; see grant_open_root). */
MUST_CHECK int grant_add(struct grant_table *gt, struct node_table *nt, uint32_t id, const char *path, bool writable,
                         int fd, struct sbx_err *err);
/* Opens the root of a grant: a directory or a regular file, no symlink. *canonical is malloced. With @clone the fd is
 * of a copy of the mounts below the path, read-only unless @writable: nothing above the root can be reached from it. */
MUST_CHECK int grant_open_root(const char *path, bool clone, bool writable, char **canonical, struct sbx_err *err);
/* Of the names directly below the root of @g only @names exist for the guest. */
MUST_CHECK int grant_show_only(struct grant *g, char *const *names, size_t n, struct sbx_err *err);
/* After the last grant: @path is hidden; "DIR/" "*" hides all that is in DIR. */
MUST_CHECK int grant_hide(struct grant_table *gt, const char *path, struct sbx_err *err);
/* After the last grant_add: grants inside grants are closed to their outer one. */
MUST_CHECK int grant_cover(struct grant_table *gt);
void grant_table_fini(struct grant_table *gt, struct node_table *nt);

struct grant *grant_peek(struct grant_table *gt, uint32_t id); /* NULL: none */

/* The mark of a name below @m; both may be NULL. */
const struct mark *mark_child(const struct mark *m, const char *name);
/* Is @name in a directory with mark @m hidden? */
bool mark_hides(const struct mark *m, const char *name);
/* Is the reason only that @name is none of those that are shown? */
bool mark_unlisted(const struct mark *m, const char *name);
/* Must the place with mark @m (NULL: none) stay what it is, because something at or below it is special? */
bool mark_pins(const struct mark *m);
bool grant_hides_id(const struct grant_table *gt, const struct file_id *id);
/* Is @n (open), found in @dir, to show as an empty directory? */
bool grant_bars(const struct node *dir, const struct node *n);

/* The host path of @name in @n (NULL: of @n itself) into buf, cut in front when too long. Returns its start in buf. */
const char *grant_path(const struct node *n, const char *name, char *buf, size_t cap);

#endif
