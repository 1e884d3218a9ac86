/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dentry cache, mounts and path walk. A dentry names an inode in a directory; a negative one (inode NULL) says
 * there is none. Unused dentries stay on an LRU bounded by DENTRY_CACHE_MAX.
 */
#ifndef SBX_SENTRY_VFS_DENTRY_H
#define SBX_SENTRY_VFS_DENTRY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/macros.h"
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
	struct dentry *hash_next, **hash_pprev;
	struct list lru_node;    /* while unused */
	struct list children;    /* by sibling */
	struct list sibling;
	bool hashed;             /* reachable by name; false once unlinked */
	bool mounted;            /* some mount sits on it */
	bool ask;                /* while negative: the file system wants to be asked each time */
	bool dead;               /* a removed directory: nothing can be found or made in it */
	uint32_t name_hash;
	uint32_t name_len;
	char *name;              /* inline_name or malloc; a root's: borrowed */
	char inline_name[DENTRY_INLINE_LEN];
};

struct dentry *dentry_get(struct dentry *d);
void dentry_put(struct dentry *d);
struct dentry *dentry_create_root(struct inode *root); /* takes a reference on root */

static inline bool dentry_is_root(const struct dentry *d)
{
	return d->parent == d;
}

/* @name in the directory @parent, from the cache or the file system: counted, and negative for a missing name.
 * -ENOTDIR, -ENOENT (a removed directory), -ENAMETOOLONG, -ENOMEM or what the file system says. */
MUST_CHECK int dentry_lookup(struct dentry *parent, const char *name, size_t len, struct dentry **ret);
/* The component that a path walk is at. */
MUST_CHECK int dentry_lookup_walk(struct dentry *parent, const struct walk *w, struct dentry **ret);
struct qname dentry_qname(const struct dentry *d);
/* What a change of the name space through us does to the cache. The caller holds the dentries. */
void dentry_instantiate(struct dentry *d, struct inode *in); /* consumes the reference on @in */
void dentry_remove(struct dentry *d);                        /* unlinked: negative, or unhashed while others use it */
void dentry_drop(struct dentry *d);                          /* forgotten: looked up anew next time */
void dentry_rename(struct dentry *d, struct dentry *target); /* @target: what was at the new name, or its negative */
void dentry_exchange(struct dentry *a, struct dentry *b);
bool dentry_is_ancestor(const struct dentry *anc, const struct dentry *d); /* or the same */
/* A dentry outside the tree, for an anonymous file; @name is borrowed for ever. NULL: no memory. */
struct dentry *dentry_create_loose(struct inode *in, const char *name);
/* Of a file of O_TMPFILE: "#INO", unhashed. NULL: no memory. */
struct dentry *dentry_create_tmpfile(struct dentry *dir, struct inode *in);

/* Forgets cached names: all of a superblock, or one name of a directory inode (a change that came from the host);
 * @name NULL: all names in it. */
void dcache_invalidate(struct inode *dir, const char *name, size_t len);
/* What the cache has for @name in @dir: borrowed, or NULL. */
struct inode *dcache_peek(const struct inode *dir, const char *name, size_t len);
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
/* The mount that sits on @d of @parent (borrowed; the latest), or NULL. */
struct mount *mount_peek(const struct mount *parent, const struct dentry *d);
/* Takes @m, on which nothing else is mounted, out of the tree; places in it stay valid. -EBUSY. */
MUST_CHECK int mount_remove(struct mount_ns *ns, struct mount *m);
/* Mounts @sb's root (a reference is taken) on a place; NULL parent makes the root of @ns. */
MUST_CHECK int mount_add(struct mount_ns *ns, struct super *sb, struct mount *parent, struct dentry *mountpoint,
                         uint32_t flags, const char *source);

/* A place in the tree: both counted. */
struct path {
	struct mount *mnt;
	struct dentry *dentry;
};

void path_get(struct path *p);
void path_put(struct path *p); /* and clears it */

/* A place outside the tree: of an anonymous file (dentry_create_loose). */
static inline bool dentry_is_loose(const struct path *p)
{
	return dentry_is_root(p->dentry) && p->dentry != p->mnt->root;
}

/* Current and root directory, umask: fs_ctx, shared by CLONE_FS. */
struct fs_ctx {
	struct ref ref;
	struct path root, cwd;
	uint32_t umask;
};

struct fs_ctx *fs_ctx_create(void); /* at the root of kernel.mnt_ns, umask 022; NULL: no memory */
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
 * caller's. With WALK_CREATE and a trailing slash on a missing name: -ENOENT, or the dentry with *trailing set for
 * mkdir. */
MUST_CHECK int path_walk(struct task *t, int dirfd, const char *path, unsigned flags, struct path *out);
/* As path_walk, but from a given place (kernel use; t may be NULL for no permission checks). */
MUST_CHECK int path_walk_at(struct task *t, const struct path *from, const char *path, unsigned flags,
                            struct path *out);
/* Resolves all but the last component: *dir is the directory, @name (buffer of NAME_MAX_LINUX + 1) the last name, NUL
 * terminated; "." , ".." and "/" are left to the caller as *kind. */
enum last_kind { LAST_NORM, LAST_DOT, LAST_DOTDOT, LAST_ROOT };
MUST_CHECK int path_walk_parent(struct task *t, int dirfd, const char *path, unsigned flags, struct path *dir,
                                char *name, enum last_kind *kind, bool *trailing_slash);

/* A piece of a path that is being walked. */
struct name_ref {
	const char *s; /* not NUL terminated */
	uint32_t len;
};

/* The components that follow the one that is being looked up, @max at most and none behind a "." or "..": a guess,
 * because symlinks and mounts may lead elsewhere. Returns their number. */
unsigned walk_ahead(const struct walk *w, struct name_ref *v, unsigned max);

/* Absolute guest path of a place as seen from @root (NULL: of the namespace), into buf: length without the NUL, or
 * -ENAMETOOLONG; " (deleted)" is appended when it is unlinked, "(unreachable)" put before when outside root. Of a loose
 * one: its name. */
MUST_CHECK int path_name(const struct path *p, const struct path *root, char *buf, size_t cap);

#endif
