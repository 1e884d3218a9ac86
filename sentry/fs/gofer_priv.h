/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gofer client: private to sentry/fs/gofer_*.c.
 *
 * A host file has one inode for each (device, inode number) of a grant. An inode knows the place where it was last seen
 * (parent and name) and is given an id of the gofer's (fid) only when an operation needs one: most files are looked up
 * and looked at by attributes alone. A request that needs the id of an inode without one walks there in the same
 * message.
 *
 * What is cached of a stable grant is trusted for good; of a live one for GOFER_TRUST_NS, or, where the gofer watches
 * the directory (gofer_watch.c), until somebody changes it.
 */
#ifndef SBX_SENTRY_FS_GOFER_PRIV_H
#define SBX_SENTRY_FS_GOFER_PRIV_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/list.h"
#include "base/macros.h"
#include "base/ref.h"
#include "base/wire/wire.h"
#include "gofer/proto/gofer.pb-c.h"
#include "sentry/fs/fs.h"
#include "sentry/kernel/timer.h"
#include "sentry/vfs/file.h"
#include "sentry/vfs/inode.h"

#define GOFER_TRUST_NS      NSEC_PER_SEC
#define GOFER_FOREVER       UINT64_MAX
#define GOFER_CALL_WALK_MAX 32   /* names of one request */
#define GOFER_REFRESHES     4u   /* attributes asked for in a directory before all are */
#define GOFER_PENDING_MAX   16   /* files whose attributes are set later; the gofer takes no more at once */
#define GOFER_AHEAD_MAX     8    /* names looked up ahead */
#define GOFER_CLUNKS_MAX    1024 /* ids given back with one request */
#define GOFER_IDLE_FDS      128  /* host fds of files that nobody has open */
#define GOFER_LISTING_BYTES (16u << 20) /* of all directory listings */
#define GOFER_LISTING_MAX   (4u << 20)  /* of one */
#define GOFER_PREFETCH_MISSES 4  /* lookups in a directory before it is listed */
#define GOFER_PREFETCH_MAX  2000 /* entries: a larger directory is not listed ahead */
#define GOFER_NEG_SLOTS     2048 /* a power of two */
#define GOFER_ARENA_SIZE    (768u * 1024)

struct gofer_fs;
struct gofer_inode;
struct gofer_listing;

/* A name that was not there. */
struct gofer_neg {
	uint64_t key, until;
};

/* What a lookup that looked ahead found, for the next lookups. */
struct gofer_found {
	struct gofer_inode *dir, *gi; /* counted; gi NULL: there is nothing */
	uint64_t until;
	uint32_t len;
	bool hidden; /* there is nothing because the policy says so */
	char name[255];
};

struct gofer_conn {
	struct ref ref;
	int sock;
	int events;         /* polls readable while changes by others wait to be told; -1: nothing is watched */
	uint64_t checked;   /* when that was looked at, and with what vfs_host_reads */
	uint64_t checked_reads;
	struct list *watched; /* by id of the watch: of gofer_inode.watch_node */
	uint32_t n_watched;   /* size of it */
	uint32_t n_live;      /* directories in it */
	bool dead;          /* the gofer has gone or talks nonsense: everything is -EIO */
	uint32_t tag;
	struct hash_key key;
	/* Ids: free_fids is a stack; clunks wait for the next request. */
	uint32_t *free_fids, n_free, cap_free, next_fid;
	uint32_t *clunks, n_clunks, cap_clunks;
	struct list idle;   /* of gofer_hfd, most recently used first */
	unsigned n_idle;
	struct list listings; /* most recently used first */
	size_t listing_bytes;
	uint64_t serial;    /* of the last inode */
	struct gofer_neg *neg;
	struct gofer_found found[GOFER_AHEAD_MAX];
	unsigned n_found;
	uint32_t found_tag; /* the message that brought them */
	struct gofer_inode *unopened; /* was created and not opened yet: has a writable fd without a user; borrowed */
	/* gofer_defer.c: put off; under way. Counted. */
	struct gofer_inode *pending[GOFER_PENDING_MAX], *sent[GOFER_PENDING_MAX];
	unsigned n_pending, n_sent;
	uint64_t pending_until; /* clock_mono_ns(): the first of them is not put off longer */
	struct ktimer defer_timer;
	Sbx__Gofer__SetAttr before[GOFER_PENDING_MAX];
	Sbx__Gofer__SetAttr *before_ptrs[GOFER_PENDING_MAX];
	uint8_t buf[WIRE_MSG_MAX];
	uint8_t arena[GOFER_ARENA_SIZE];
};

struct gofer_fs {
	struct super sb;
	struct gofer_conn *conn; /* counted */
	struct gofer_fs_args args;
	uint64_t root_dev;
	struct list *buckets;    /* inodes by (dev, ino) */
	uint32_t n_buckets, n_inodes;
	uint32_t forgotten;      /* the message that made everything forgotten */
};

/* A host fd, shared by all files that are open on an inode in one access mode. */
struct gofer_hfd {
	int fd;
	uint32_t users;
	bool readable, writable;
	bool changed;             /* written through since the attributes were read */
	struct gofer_inode *gi;   /* borrowed; NULL: not in its slot any more */
	struct list idle;
};

struct gofer_inode {
	struct inode inode;
	struct list hash_node;
	struct gofer_fs *fs;
	struct gofer_inode *parent; /* counted; NULL: the root, or no known place */
	char *name;                 /* in it */
	uint32_t name_len;
	uint32_t fid;               /* 0: none */
	uint64_t dev, ino;          /* of the host */
	uint64_t serial;            /* unique in the connection */
	uint64_t attr_until, name_until;
	struct gofer_hfd *rd, *wr;  /* open host fds: read-only, and writable */
	struct gofer_listing *listing;
	uint32_t watch;             /* of a directory: 0, or the gofer tells what others do in it */
	struct list watch_node;
	char *link;                 /* target of a symlink, once read: it never changes */
	uint64_t misses_until, refreshes_until;
	uint16_t misses;
	uint16_t refreshes;
	struct iattr pend;          /* put off; valid 0: nothing */
	int late_error;             /* of what was put off: the next fsync tells */
	bool owned;                 /* by the user whom the gofer works for */
	bool listed;                /* the parent's listing may have attributes of it */
	bool too_big;               /* a directory that is not listed ahead */
	bool gone;                  /* no name is left: the attributes are the last that were seen */
	struct list put_node;
};

static inline struct gofer_inode *gofer_inode(struct inode *in)
{
	return container_of(in, struct gofer_inode, inode);
}

uint64_t gofer_now(void); /* monotonic, coarse */

/* gofer_conn.c */

/* One request. Between gofer_call_run and gofer_call_end the reply is valid; no other call may run in between. */
struct gofer_call {
	struct gofer_conn *conn;
	Sbx__Gofer__Request req;
	Sbx__Gofer__Walk walk;
	unsigned n_bind;                                    /* of the walk's names: inodes to give ids to */
	struct gofer_inode *bind[GOFER_CALL_WALK_MAX];
	struct gofer_inode *subject; /* of gofer_call_fid or gofer_call_peek */
	struct gofer_inode *from;    /* where the walk starts */
	uint32_t new_fids[GOFER_CALL_WALK_MAX];
	char *names[GOFER_CALL_WALK_MAX];
	uint32_t alloc[2]; /* ids given by gofer_call_new_fid */
	unsigned n_alloc;
	const Sbx__Gofer__Reply *rep;
	Sbx__Gofer__Attr **attrs; /* of the operation: those of the bound inodes are used up */
	unsigned n_attrs;
	bool hides;               /* the reply named hidden names */
	bool lost_fd;             /* one came, and the sentry has no number left for it */
	int fd;                   /* came with the reply; the caller's to take (then set it to -1) */
};

void gofer_call_init(struct gofer_call *c, struct gofer_conn *conn);
/* The id to name @gi by in this request; one without is walked to. Once a call. -ESTALE: its place is not known. */
MUST_CHECK int gofer_call_fid(struct gofer_call *c, struct gofer_inode *gi, uint32_t *fid);
/* Walks to @name in @dir for its attributes only. */
MUST_CHECK int gofer_call_peek(struct gofer_call *c, struct gofer_inode *dir, const char *name);
/* A new id for what the operation makes; goes back to the pool unless taken (by clearing alloc[]). */
MUST_CHECK int gofer_call_new_fid(struct gofer_call *c, uint32_t *fid);
/* 0, the operation's error, or -EIO. gofer_call_end is needed in any case. */
MUST_CHECK int gofer_call_run(struct gofer_call *c);
void gofer_call_end(struct gofer_call *c);
/* Makes sure that @gi has an id. */
MUST_CHECK int gofer_bind(struct gofer_inode *gi);
uint32_t gofer_fid_new(struct gofer_conn *conn);
void gofer_fid_drop(struct gofer_conn *conn, uint32_t fid);
void gofer_conn_put(struct gofer_conn *conn);
/* @gi has no id any more. */
void gofer_fid_clear(struct gofer_inode *gi);

/* gofer_watch.c */

/* Hears what others did, when it is time to ask. Before cached things of a live grant are used. No pointers into caches
 * may be held over it. */
void gofer_check(struct gofer_fs *fs);
/* The watch that a reply names for the directory @gi, which has the id that was looked into; 0: none. */
void gofer_watch_set(struct gofer_inode *gi, uint32_t id);
/* It is watched no more: what was to be kept as long as it was is forgotten. */
void gofer_watch_clear(struct gofer_inode *gi);
/* As that, of an inode with nothing in it. */
void gofer_watch_drop(struct gofer_inode *gi);
/* How long what is learned now may be trusted: that a name in @dir is (or is not) a file; attributes of @gi. */
uint64_t gofer_name_until(const struct gofer_inode *dir);
uint64_t gofer_attr_until(const struct gofer_inode *gi);
/* Takes over the changes of a reply. */
void gofer_changes(struct gofer_conn *c, const Sbx__Gofer__Reply *rep);

/* gofer_defer.c */

/* Puts a change of attributes off. False: it is to be made now. */
bool gofer_defer(struct gofer_inode *gi, const struct iattr *attr, uint32_t valid);
/* Makes all changes that were put off. */
void gofer_flush(struct gofer_conn *c);
/* Those of the inode, and with them all. */
void gofer_settle(struct inode *in);
void gofer_setattr_fill(Sbx__Gofer__SetAttr *m, const struct iattr *attr, uint32_t valid);
/* Of each call: takes them along, and takes their answers. */
void gofer_defer_send(struct gofer_call *c);
void gofer_defer_done(struct gofer_call *c);

/* gofer_ahead.c */

/* Of a call that looks ahead: the names that follow the one it is about. */
struct gofer_ahead {
	unsigned first, n; /* first: of the walk's names, the one that it is about */
	char names[GOFER_AHEAD_MAX][256];
};

/* After gofer_call_peek. gofer_ahead_end is needed, before gofer_call_end. */
void gofer_ahead_ask(struct gofer_ahead *a, struct gofer_call *c, const struct qname *q);
/* The reply reached @gi, which is what the call is about. */
void gofer_ahead_got(struct gofer_ahead *a, struct gofer_call *c, struct gofer_inode *gi, uint64_t until);
void gofer_ahead_end(struct gofer_ahead *a, struct gofer_call *c);
/* 1 with *ret (one reference), -ENOENT, or 0: it was not looked up ahead. */
MUST_CHECK int gofer_ahead_take(struct gofer_inode *dir, const struct qname *q, struct gofer_inode **ret);
void gofer_ahead_clear(struct gofer_conn *c);

/* gofer_reply.c: replies come from another process; nothing in them is used before it was looked at. */
MUST_CHECK int gofer_reply_parse(const uint8_t *buf, size_t len, struct wire_arena *arena,
                                 const Sbx__Gofer__Reply **ret);
bool gofer_attr_sane(const Sbx__Gofer__Attr *a);

/* gofer_inode.c */

/* The inode of what @attr describes, found at @name in @parent (NULL: a root, or without a place). One reference.
 * @until: how long the attributes are true; older ones than it has are left out. */
MUST_CHECK int gofer_iget(struct gofer_fs *fs, struct gofer_inode *parent, const char *name,
                          const Sbx__Gofer__Attr *attr, uint64_t until, struct gofer_inode **ret);
void gofer_attr_set(struct gofer_inode *gi, const Sbx__Gofer__Attr *attr, uint64_t until);
struct gofer_inode *gofer_inode_peek(struct gofer_fs *fs, uint64_t dev, uint64_t ino);
uint64_t gofer_guest_ino(const struct gofer_fs *fs, uint64_t dev, uint64_t ino);
/* It is at this place now. -ESTALE: it would be below itself. */
MUST_CHECK int gofer_place_set(struct gofer_inode *gi, struct gofer_inode *parent, const char *name);
void gofer_place_clear(struct gofer_inode *gi);
bool gofer_place_is(const struct gofer_inode *gi, const struct gofer_inode *parent, const char *name, size_t len);
/* The host has something else at the place of @gi: the dentry cache forgets it. Returns -ESTALE. */
int gofer_stale(struct gofer_inode *gi);
/* We changed it: cached attributes are no longer true. */
void gofer_touched(struct gofer_inode *gi);
uint64_t gofer_until(const struct gofer_fs *fs); /* for what is learned now and not watched */
void gofer_neg_add(struct gofer_inode *dir, const char *name, size_t len);
void gofer_neg_forget_all(struct gofer_inode *dir);
void gofer_neg_forget(struct gofer_inode *dir, const char *name, size_t len);
bool gofer_neg_hit(struct gofer_inode *dir, const char *name, size_t len);
int gofer_refresh(struct inode *in);
/* As gofer_refresh, without asking for what others did. */
int gofer_attrs_update(struct gofer_inode *gi);
void gofer_inode_destroy(struct inode *in);

extern const struct inode_ops gofer_reg_inode_ops, gofer_dir_inode_ops, gofer_link_inode_ops, gofer_special_inode_ops;

/* gofer_listing.c */

struct gofer_ent {
	uint64_t cookie;       /* of the entry after this one */
	uint64_t dev, ino, rdev, size, blocks;
	int64_t atime, mtime, ctime, btime;
	uint32_t atime_nsec, mtime_nsec, ctime_nsec, btime_nsec;
	uint32_t mode, nlink, uid, gid;
	uint32_t hash, next;   /* in the bucket: index + 1 */
	uint32_t name;         /* offset in names */
	uint8_t name_len, flags;
};

#define ENT_ATTR  1u /* has attributes */
#define ENT_GONE  2u /* the name is no longer there; its cookie still is a place to go on from */
#define ENT_ADDED 4u /* we made it: its cookie is not known */

struct gofer_listing {
	struct list lru;
	struct gofer_inode *dir;
	struct gofer_ent *ents;
	uint32_t n, cap;
	char *names;
	uint32_t names_len, names_cap;
	uint32_t *buckets, n_buckets; /* index + 1 */
	uint64_t start, next; /* cookies: of the first entry, and to read on from */
	uint64_t until;       /* the names */
	uint64_t attr_until;
	uint32_t *hidden, n_hidden; /* hashes of names that the policy hides here */
	bool hides_all;
	bool eof;             /* read to the end */
	bool ordered;         /* false: has names whose place in the order is not known */
};

/* A listing that tells of all names and may be trusted now, or NULL. */
struct gofer_listing *gofer_listing_full(struct gofer_inode *dir);
struct gofer_ent *gofer_listing_find(struct gofer_listing *l, const char *name, size_t len);
/* An empty listing from @cookie on, in place of what there was. */
MUST_CHECK int gofer_listing_reset(struct gofer_inode *dir, uint64_t cookie, struct gofer_listing **ret);
/* Reads one more batch. -ESTALE without a listing: it was dropped, as the host changed the directory. */
MUST_CHECK int gofer_listing_more(struct gofer_listing *l);
/* Lists @dir to its end when that is worth it. */
void gofer_listing_prefetch(struct gofer_inode *dir);
void gofer_listing_drop(struct gofer_inode *dir);
/* A name that is to be asked for though it is not listed. */
bool gofer_listing_hides(const struct gofer_listing *l, const char *name, size_t len);
void gofer_listing_add(struct gofer_inode *dir, const char *name, size_t len, const struct gofer_inode *gi);
void gofer_listing_remove(struct gofer_inode *dir, const char *name, size_t len);
void gofer_ent_attr(const struct gofer_ent *e, Sbx__Gofer__Attr *a);

/* gofer_file.c */
extern const struct file_ops gofer_file_ops;
int gofer_open(struct inode *in, struct file *f);
/* The fd of a reply becomes the inode's writable or readable host fd, without a user yet. Consumes @fd. NULL: no
 * memory. */
struct gofer_hfd *gofer_hfd_install(struct gofer_inode *gi, int fd, bool readable, bool writable);
bool gofer_hfd_drop_all_idle(struct gofer_conn *c); /* of all inodes; false: there were none */
void gofer_hfd_drop_idle(struct gofer_inode *gi); /* closes what nobody uses */
void gofer_hfds_fini(struct gofer_inode *gi);
void gofer_unopened_close(struct gofer_conn *conn);
int gofer_truncate_fd(struct gofer_inode *gi, uint64_t size); /* -ENOENT: no writable fd is open */

/* gofer_dir.c */
extern const struct file_ops gofer_dir_ops;
int gofer_lookup(struct inode *dir, const struct qname *name, struct inode **ret);
int gofer_revalidate(struct inode *dir, const struct qname *name, struct inode *in);

/* gofer_change.c */
int gofer_create(struct inode *dir, const struct qname *name, uint32_t mode, uid_t uid, gid_t gid, struct inode **ret);
int gofer_mkdir(struct inode *dir, const struct qname *name, uint32_t mode, uid_t uid, gid_t gid, struct inode **ret);
int gofer_mknod(struct inode *dir, const struct qname *name, uint32_t mode, uint64_t rdev, uid_t uid, gid_t gid,
		struct inode **ret);
int gofer_symlink(struct inode *dir, const struct qname *name, const char *target, uid_t uid, gid_t gid,
		  struct inode **ret);
int gofer_link(struct inode *dir, const struct qname *name, struct inode *in);
int gofer_unlink(struct inode *dir, const struct qname *name, struct inode *in);
int gofer_rmdir(struct inode *dir, const struct qname *name, struct inode *in);
int gofer_rename(struct inode *odir, const struct qname *oname, struct inode *in, struct inode *ndir,
		 const struct qname *nname, struct inode *target, unsigned flags);
int gofer_tmpfile(struct inode *dir, uint32_t mode, uid_t uid, gid_t gid, struct inode **ret);
int gofer_setattr(struct inode *in, const struct iattr *attr);

/* gofer_attr.c */
/* Where a symlink leads, from a reply. -EIO: it is none. */
int gofer_link_set(struct gofer_inode *gi, const ProtobufCBinaryData *d);
int gofer_readlink(struct inode *in, char *buf, size_t n);
ssize_t gofer_getxattr(struct inode *in, const char *name, void *buf, size_t size);
int gofer_setxattr(struct inode *in, const char *name, const void *buf, size_t size, int flags);
ssize_t gofer_listxattr(struct inode *in, char *buf, size_t size);
int gofer_removexattr(struct inode *in, const char *name);

#endif
