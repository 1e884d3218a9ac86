/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of the grants that the sentry holds, as a tree: a node knows its parent, its name there and the identity of the
 * host file (device and inode number). O_PATH fds are a cache above that tree: a fixed number serves any number of
 * nodes.
 */
#ifndef SBX_GOFER_NODE_H
#define SBX_GOFER_NODE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "base/list.h"
#include "base/macros.h"

struct grant;
struct mark;
struct node_table;
struct watch;

#define NODE_NAME_MAX 255
#define NODE_FIDS_MAX (256u * 1024)
#define NODE_STX_MASK (STATX_BASIC_STATS | STATX_BTIME)

/* Which host file it is. (Not the birth time: overlayfs changes it when a file is first written.) */
struct file_id {
	uint64_t dev, ino;
};

#define NODE_ROOT     1u /* of a grant: its fd stays open */
#define NODE_NAMELESS 2u /* unlinked, or never had a name: cannot be opened again, so its fd stays open while it can */
#define NODE_BARRED 4u   /* shows as an empty directory (or a closed file): pseudo file systems, roots of other grants \
	                  */

struct node {
	struct node *parent;      /* counted; NULL: a root or nameless */
	struct grant *grant;
	const struct mark *mark;  /* of grant.h: what is hidden at or below this place; NULL: nothing */
	struct list hash_node;    /* in the table by (parent, name) */
	struct list lru;          /* open and not pinned, most recently used first */
	struct file_id id;
	uint32_t refs;            /* fids, children and users */
	uint32_t hash;
	int fd;                   /* O_PATH; -1: evicted */
	uint16_t pins;
	uint16_t flags;           /* NODE_* */
	uint16_t fmt;             /* S_IFMT bits of the file; a host file never changes its type */
	uint16_t name_len;
	char *name;               /* NULL: nameless */
	struct watch *watch;      /* of this directory, or NULL (watch.c) */
	struct list watch_node;
};

/* @fd_budget: how many O_PATH fds may be open at once (at least 16). NULL: out of memory. */
struct node_table *node_table_create(unsigned fd_budget);
void node_table_destroy(struct node_table *t); /* all nodes must be gone */
unsigned node_table_open_fds(const struct node_table *t);

void file_id_from_statx(struct file_id *id, const struct statx *stx);
bool file_id_equal(const struct file_id *a, const struct file_id *b);

/* The root of a grant. Consumes @fd (an O_PATH fd). NULL: out of memory (the fd is then closed). */
struct node *node_create_root(struct node_table *t, struct grant *g, int fd, const struct statx *stx);

/* Opens @name in @dir, never through a symlink. Fills *stx and one reference in *ret. */
MUST_CHECK int node_walk(struct node_table *t, struct node *dir, const char *name, struct statx *stx,
                         struct node **ret);
/* As node_walk for a file that was just made and is open as @fd: no other file can get in between. @name NULL: it has
 * none. */
MUST_CHECK int node_adopt(struct node_table *t, struct node *dir, const char *name, int fd, struct statx *stx,
			  struct node **ret);

struct node *node_get(struct node *n);
void node_put(struct node_table *t, struct node *n); /* NULL is allowed */

/* The O_PATH fd, opened again when it was evicted, and safe from eviction until node_unpin. -ESTALE when the file is no
 * longer where it was. Pinning nests. */
MUST_CHECK int node_pin(struct node_table *t, struct node *n);
void node_unpin(struct node_table *t, struct node *n);

/* The tree follows what was done to the host's names. */
void node_unlinked(struct node_table *t, struct node *dir, const char *name);
void node_renamed(struct node_table *t, struct node *odir, const char *oname, struct node *ndir, const char *nname,
		  bool exchange);
void node_named(struct node_table *t, struct node *n, struct node *dir,
                const char *name); /* a nameless one got a name */
/* Before the last name of a file goes: opens it, so that fids on it stay of use. */
void node_prepare_unlink(struct node_table *t, struct node *dir, const char *name);

/* Ids that the sentry gave. */
struct fid_table {
	struct node **nodes;
	uint32_t cap;
};

struct node *fid_peek(const struct fid_table *ft, uint32_t fid); /* NULL: not in use */
/* Consumes the reference @n. -EBADF: the id is in use or out of range. */
MUST_CHECK int fid_install(struct node_table *t, struct fid_table *ft, uint32_t fid, struct node *n);
/* As fid_install would, without a node yet. */
MUST_CHECK int fid_reserve(struct fid_table *ft, uint32_t fid);
void fid_clunk(struct node_table *t, struct fid_table *ft, uint32_t fid); /* an id not in use is ignored */
void fid_table_fini(struct node_table *t, struct fid_table *ft);

#endif
