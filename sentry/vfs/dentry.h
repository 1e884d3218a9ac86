/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dentry cache, mounts and path walk. A dentry names an inode in a directory; a negative one (inode NULL) says there is
 * none. Unused dentries stay on an LRU bounded by DENTRY_CACHE_MAX.
 */
#ifndef SBX_SENTRY_VFS_DENTRY_H
#define SBX_SENTRY_VFS_DENTRY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/ref.h"
#include "sentry/vfs/inode.h"

struct mount;
struct task;

#define DENTRY_CACHE_MAX  65536
#define DENTRY_INLINE_LEN 32
#define PATH_MAX_LINUX    4096
#define NAME_MAX_LINUX    255
#define MAX_SYMLINKS      40

struct dentry {
	struct ref ref;          /* 0 is allowed: unused, on the LRU */
	struct dentry *parent;   /* counted; itself for a root */
	struct inode *inode;     /* counted; NULL: negative */
	struct list hash_node;
	struct list lru_node;
	struct list children;    /* by sibling */
	struct list sibling;
	bool hashed;             /* reachable by name; false once unlinked */
	bool mounted;            /* some mount sits on it */
	uint32_t name_hash;
	uint32_t name_len;
	char *name;              /* inline_name or malloc */
	char inline_name[DENTRY_INLINE_LEN];
};

struct dentry *dentry_get(struct dentry *d);
void dentry_put(struct dentry *d);
struct dentry *dentry_create_root(struct inode *root); /* takes a reference on root */

/* Forgets cached names: all of a superblock, or one name of a directory inode (a change that came from the host). */
void dcache_invalidate(struct inode *dir, const char *name, size_t len);
void dcache_drop_super(struct super *sb);
void dcache_shrink(unsigned target);

#define MNT_RDONLY  1u
#define MNT_NOEXEC  2u
#define MNT_NOSUID  4u
#define MNT_NODEV   8u

struct mount {
	struct ref ref;
	struct super *sb;          /* counted */
	struct dentry *root;       /* counted */
	struct mount *parent;      /* counted; NULL for the root mount */
	struct dentry *mountpoint; /* counted, in parent */
	struct list node;          /* in the namespace */
	uint32_t flags;            /* MNT_* */
	uint32_t id;
	const char *source;        /* shown in /proc/mounts; owned */
};

struct mount_ns {
	struct ref ref;
	struct mount *root;
	struct list mounts; /* in order of mounting */
	unsigned n_mounts;
};

struct mount *mount_get(struct mount *m);
void mount_put(struct mount *m);
/* Mounts @sb's root (a reference is taken) on a place; NULL parent makes the root of @ns. */
int mount_add(struct mount_ns *ns, struct super *sb, struct mount *parent, struct dentry *mountpoint, uint32_t flags,
	      const char *source);

/* A place in the tree: both counted. */
struct path {
	struct mount *mnt;
	struct dentry *dentry;
};

void path_get(struct path *p);
void path_put(struct path *p); /* and clears it */

/* Current and root directory, umask: fs_ctx, shared by CLONE_FS. */
struct fs_ctx {
	struct ref ref;
	struct path root, cwd;
	uint32_t umask;
};

struct fs_ctx *fs_ctx_get(struct fs_ctx *fs);
void fs_ctx_put(struct fs_ctx *fs);
struct fs_ctx *fs_ctx_copy(const struct fs_ctx *fs);

#define WALK_FOLLOW     1u  /* follow a symlink in the last component */
#define WALK_DIRECTORY  2u  /* -ENOTDIR unless a directory */
#define WALK_EMPTY      4u  /* AT_EMPTY_PATH: "" is dirfd itself */
#define WALK_CREATE     8u  /* the last component may be missing: dentry is then negative */
#define WALK_NO_XDEV    16u /* openat2 RESOLVE_* */
#define WALK_NO_MAGIC   32u
#define WALK_NO_SYMLINK 64u
#define WALK_BENEATH    128u
#define WALK_IN_ROOT    256u

/* Resolves a guest path for @t from @dirfd (AT_FDCWD). Checks search permission on the way. On success *out is the
 * caller's. With WALK_CREATE and a trailing slash on a missing name: -ENOENT, or the dentry with *trailing set for mkdir. */
int path_walk(struct task *t, int dirfd, const char *path, unsigned flags, struct path *out);
/* As path_walk, but from a given place (kernel use; t may be NULL for no permission checks). */
int path_walk_at(struct task *t, const struct path *from, const char *path, unsigned flags, struct path *out);
/* Resolves all but the last component: *dir is the directory, @name (buffer of NAME_MAX_LINUX + 1) the last name, NUL
 * terminated; "." , ".." and "/" are left to the caller as *kind. */
enum last_kind { LAST_NORM, LAST_DOT, LAST_DOTDOT, LAST_ROOT };
int path_walk_parent(struct task *t, int dirfd, const char *path, unsigned flags, struct path *dir, char *name,
		     enum last_kind *kind, bool *trailing_slash);

/* Absolute guest path of a place as seen from @root, into buf: length without the NUL, or -ENAMETOOLONG;
 * " (deleted)" is appended when it is unlinked, "(unreachable)" put before when outside root. */
int path_name(const struct path *p, const struct path *root, char *buf, size_t cap);

#endif
