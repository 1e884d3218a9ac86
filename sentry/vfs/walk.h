/* SPDX-License-Identifier: Apache-2.0 */
/* The path walk in pieces, for the calls that need more than its end: open with O_CREAT. Private to vfs. */
#ifndef SBX_SENTRY_VFS_WALK_H
#define SBX_SENTRY_VFS_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/macros.h"
#include "sentry/vfs/dentry.h"

struct cred;

struct walk {
	struct task *task;
	const struct cred *cred; /* NULL: no permission checks */
	unsigned flags;          /* WALK_* */
	struct path root;        /* borrowed: ".." stops here */
	struct path scope;       /* counted: the root of WALK_BENEATH and WALK_IN_ROOT */
	struct path cur;         /* counted */
	const char *p;           /* what is left of the innermost string */
	const char *rest[MAX_SYMLINKS]; /* what is left of the outer ones; never empty strings */
	unsigned depth, links;
	unsigned pool_mark;
	/* The component before us. */
	const char *name;
	uint32_t len;
	enum last_kind kind;
	bool last;  /* none follows */
	bool slash; /* a slash follows */
};

/* Starts at @dirfd or, with @from, there. On failure nothing needs to be ended. */
MUST_CHECK int walk_begin(struct walk *w, struct task *t, int dirfd, const struct path *from, const char *path,
			  unsigned flags);
/* Goes up to the last component, which is then in name, len, kind; cur is its directory and may be searched. */
MUST_CHECK int walk_parent(struct walk *w);
/* Takes the component: 0, cur is it; 1, it was a symlink, which is now what is left to walk. */
MUST_CHECK int walk_step(struct walk *w);
void walk_end(struct walk *w); /* puts cur unless it was taken (cleared) */

#endif
