/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The copy-on-write file system: a read-only lower and a tmpfs as upper (theory in overlay.c). This header is shared by
 * the overlay_*.c files; others need overlay_create() of fs.h and overlay_changes() only.
 */
#ifndef SBX_SENTRY_FS_OVERLAY_H
#define SBX_SENTRY_FS_OVERLAY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/macros.h"
#include "sentry/fs/tmpfs.h"
#include "sentry/vfs/file.h"
#include "sentry/vfs/inode.h"

/* What differs from the lower, for the report of a run. @op: 'A' added, 'M' modified or replaced, 'D' deleted; @path is
 * absolute in the overlay, "/" for its root. Parents come before their children. Stops when it returns false. */
struct overlay_change {
	char op;
	const char *path;
	uint64_t bytes;
	uint32_t mode;
};
typedef bool (*overlay_change_fn)(const struct overlay_change *c, void *arg);
/* 0, or -ENOMEM. @sb must come from overlay_create(). */
MUST_CHECK int overlay_changes(struct super *sb, overlay_change_fn fn, void *arg);
bool overlay_is(const struct super *sb);

/* ---- private ---- */

#define OVL_INO_BASE (1ull << 50) /* inode numbers of what the guest makes: apart from the host's, exact in a double */
#define OVL_ALL_DATA UINT64_MAX

/* A lower file with several names of which one was changed or removed. */
struct ovl_index {
	struct list node;
	struct inode *lower;       /* counted */
	struct tmpfs_inode *upper; /* counted; NULL: not copied up */
	uint32_t removed;          /* names that are gone, while not copied up */
};

/* Lists by inode number: one to start with, more as it fills. */
struct ovl_table {
	struct list *buckets; /* owned; NULL: only first */
	struct list first;
	uint32_t n_buckets, n;
};

struct ovl_super {
	struct super sb;
	struct super *lower, *upper;  /* counted */
	struct ovl_table hash;        /* inodes that have no upper, by the number of their lower */
	struct ovl_table index;
};

/* The merged entries of a directory at one moment; shared by the files that read it. */
struct ovl_listing;

struct ovl_inode {
	struct inode vfs;
	struct inode *lower, *upper; /* counted; one of them may be NULL */
	/* Where it is, as far as known: a directory's parent; for others only while there is no upper. Counted. */
	struct ovl_inode *parent;
	char *name;                  /* owned; NULL: not needed any more, or unlinked */
	uint32_t name_len;
	uint32_t removed;            /* names that are gone, while there is no upper */
	struct list hash_node;
	struct ovl_listing *listing; /* of a directory: counted, dropped by each change */
};

struct ovl_file {
	struct file file;
	struct file *lower, *upper;  /* counted; opened on first use. Both stay, a mapping may need them */
	struct ovl_listing *listing; /* counted */
};

static inline struct ovl_inode *ovl_i(const struct inode *in)
{
	return container_of((struct inode *)(uintptr_t)in, struct ovl_inode, vfs);
}

static inline struct ovl_super *ovl_s(const struct super *sb)
{
	return container_of((struct super *)(uintptr_t)sb, struct ovl_super, sb);
}

static inline struct tmpfs_super *ovl_upper(const struct ovl_super *os)
{
	return tmpfs_s(os->upper);
}

/* overlay.c */
extern const struct inode_ops ovl_dir_iops, ovl_iops;
bool ovl_is(const struct inode *in); /* a wrapper; else what the overlay shows is an inode of the upper itself */
struct tmpfs_inode *ovl_upper_of(struct inode *in); /* borrowed, or NULL */
void ovl_sync(struct ovl_inode *oi);                /* takes the attributes of upper or lower over */
/* The inode that stands for @ti of the upper, in @dir: one reference. */
MUST_CHECK int ovl_wrap_upper(struct ovl_inode *dir, struct tmpfs_inode *ti, struct inode **ret);
MUST_CHECK int ovl_set_place(struct ovl_inode *oi, struct ovl_inode *dir, const char *name, size_t len);
void ovl_clear_place(struct ovl_inode *oi);
void ovl_dir_changed(struct ovl_inode *dir);
struct ovl_index *ovl_index_find(struct ovl_super *os, const struct inode *lower);
MUST_CHECK int ovl_index_make(struct ovl_super *os, struct inode *lower, struct ovl_index **ret);
void ovl_index_forget(struct ovl_super *os, struct tmpfs_inode *ti); /* it has no name left */

/* overlay_copyup.c. With at most @data bytes of a file's contents. */
MUST_CHECK int ovl_copy_up(struct ovl_inode *oi, uint64_t data);
MUST_CHECK int ovl_copy_attrs(struct inode *from, struct tmpfs_inode *to);
MUST_CHECK int ovl_open_real(struct inode *real, uint32_t flags, struct file **ret);

/* overlay_dir.c */
int ovl_create(struct inode *dir, const struct qname *name, uint32_t mode, uid_t uid, gid_t gid, struct inode **ret);
int ovl_mkdir(struct inode *dir, const struct qname *name, uint32_t mode, uid_t uid, gid_t gid, struct inode **ret);
int ovl_mknod(struct inode *dir, const struct qname *name, uint32_t mode, uint64_t rdev, uid_t uid, gid_t gid,
	      struct inode **ret);
int ovl_symlink(struct inode *dir, const struct qname *name, const char *target, uid_t uid, gid_t gid,
		struct inode **ret);
int ovl_link(struct inode *dir, const struct qname *name, struct inode *in);
int ovl_unlink(struct inode *dir, const struct qname *name, struct inode *in);
int ovl_rmdir(struct inode *dir, const struct qname *name, struct inode *in);
int ovl_tmpfile(struct inode *dir, uint32_t mode, uid_t uid, gid_t gid, struct inode **ret);
/* Notes that the lower name @name of @in, which has no entry in the upper, is gone. */
void ovl_lower_name_gone(struct inode *in, struct ovl_inode *dir, const struct qname *name);
/* Prepares that: what can fail. */
MUST_CHECK int ovl_lower_name_prepare(struct inode *in);

/* overlay_rename.c */
int ovl_rename(struct inode *odir, const struct qname *oname, struct inode *in, struct inode *ndir,
	       const struct qname *nname, struct inode *target, unsigned flags);

/* overlay_readdir.c */
extern const struct file_ops ovl_dir_ops;
void ovl_listing_put(struct ovl_listing *l);
MUST_CHECK int ovl_dir_empty(struct ovl_inode *oi); /* 0, or -ENOTEMPTY */

/* overlay_file.c */
extern const struct file_ops ovl_file_ops;

#endif
