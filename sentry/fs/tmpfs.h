/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tmpfs(5) on the store, and what the overlay, devfs and memfd need of it beyond the operations of an inode. Whiteouts
 * and the lower of a directory are kept here, in fields that no operation of the guest reaches.
 */
#ifndef SBX_SENTRY_FS_TMPFS_H
#define SBX_SENTRY_FS_TMPFS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/macros.h"
#include "sentry/fs/store.h"
#include "sentry/vfs/file.h"
#include "sentry/vfs/inode.h"

struct tmpfs_inode;
struct tmpfs_xattr;

struct tmpfs_super {
	struct super sb;
	struct store *store; /* borrowed */
	struct super *face;  /* what its inodes show as theirs: itself, or the overlay it is the upper of; borrowed */
	uint64_t next_ino;
};

#define TMPFS_DE_COVERS 1u /* overlay: the lower directory has this name too */

struct tmpfs_dirent {
	struct tmpfs_inode *in;     /* counted; NULL: a whiteout */
	struct tmpfs_dirent *hnext;
	uint64_t cookie;            /* place in readdir order, never used again in this directory */
	uint32_t slot;              /* in tmpfs_dir.slots */
	uint32_t hash;
	uint8_t flags;              /* TMPFS_DE_* */
	uint8_t len;
	char name[];
};

/* Made with the first entry. */
struct tmpfs_dir {
	/* In cookie order. A removed entry leaves its cookie as (cookie << 1 | 1) until the next compaction, so
	 * that the array can be searched. */
	uintptr_t *slots;
	uint32_t n_slots, cap;
	uint32_t live, whiteouts;
	struct tmpfs_dirent **buckets; /* NULL while the directory is small */
	uint32_t mask;
	uint64_t next_cookie;
};

#define TMPFS_CHANGED  1u /* overlay: attributes were changed after the copy-up */
#define TMPFS_COPIED   2u /* overlay: made by copy-up */
#define TMPFS_MEMFD    4u /* of memfd_create(2): may be sealed */

struct tmpfs_inode {
	struct inode vfs;
	struct tmpfs_super *ts;      /* borrowed */
	struct tmpfs_xattr *xattrs;
	struct inode *wrapper;       /* overlay: the live inode that stands for this one; not counted */
	union {
		struct store_file data;  /* regular files */
		char *link;              /* symlinks */
		struct {
			struct tmpfs_dir *dir;
			struct tmpfs_inode *parent; /* not counted; NULL once removed */
			struct inode *origin;       /* overlay: the lower directory that shows through; counted */
		};
	};
	uint8_t flags;               /* TMPFS_* */
	uint8_t seals;               /* F_SEAL_* */
};
static_assert(sizeof(struct tmpfs_inode) <= 248, "an inode fits a 256-byte malloc block");

/* An open regular file. */
struct tmpfs_file {
	struct file file;
	bool mapped; /* its fd was given to a mapping */
};

/* An open directory. */
struct tmpfs_dirfile {
	struct file file;
	uint64_t end; /* entries from this cookie on came after the rewind: not shown, so that reading ends */
};

extern const struct file_ops tmpfs_file_ops, tmpfs_dir_ops;

static inline struct tmpfs_inode *tmpfs_i(const struct inode *in)
{
	return container_of((struct inode *)(uintptr_t)in, struct tmpfs_inode, vfs);
}

static inline struct tmpfs_super *tmpfs_s(const struct super *sb)
{
	return container_of((struct super *)(uintptr_t)sb, struct tmpfs_super, sb);
}

bool tmpfs_is(const struct inode *in); /* made by any tmpfs */

/* tmpfs.c. A new inode that is in no directory: nlink is 1, 2 for a directory, and one reference. It counts against the
 * quota until it is destroyed. */
MUST_CHECK int tmpfs_inode_create(struct tmpfs_super *ts, uint32_t mode, uint64_t rdev, uid_t uid, gid_t gid,
				  struct tmpfs_inode **ret);
/* The same for an object that begins with a struct tmpfs_inode; it is freed with it. */
MUST_CHECK int tmpfs_inode_create_sized(struct tmpfs_super *ts, size_t size, uint32_t mode, uint64_t rdev, uid_t uid,
					gid_t gid, struct tmpfs_inode **ret);
MUST_CHECK int tmpfs_symlink_create(struct tmpfs_super *ts, const char *target, uid_t uid, gid_t gid,
				    struct tmpfs_inode **ret);
/* Brings size and blocks in line with the data and notes a change of contents. */
void tmpfs_touch(struct tmpfs_inode *ti, bool contents);

/* tmpfs_dir.c. Entries of directories; times and link counts are the caller's business. */
struct tmpfs_dirent *tmpfs_dir_find(const struct tmpfs_inode *dir, const char *name, size_t len);
/* Adds an entry and takes a reference on @in (NULL: a whiteout). A whiteout of that name is replaced and leaves
 * COVERS. */
MUST_CHECK int tmpfs_dir_insert(struct tmpfs_inode *dir, const char *name, size_t len, struct tmpfs_inode *in,
				uint8_t flags);
/* Takes an entry out; the caller's is the reference on its inode. With @whiteout the entry becomes one: no
 * allocation. */
void tmpfs_dir_remove(struct tmpfs_inode *dir, struct tmpfs_dirent *de, bool whiteout);
/* Puts @in (a reference is taken) in place of what @de names; the reference on that is the caller's. */
struct tmpfs_inode *tmpfs_dir_replace(struct tmpfs_inode *dir, struct tmpfs_dirent *de, struct tmpfs_inode *in);
/* Moves the readdir place of @from, which will go, to @to: a rename is not seen twice. */
void tmpfs_dir_keep_place(struct tmpfs_inode *dir, struct tmpfs_dirent *from, struct tmpfs_dirent *to);
/* The first entry with a cookie >= *cookie, whiteouts included; *cookie is then the one after it. */
struct tmpfs_dirent *tmpfs_dir_next(const struct tmpfs_inode *dir, uint64_t *cookie);
uint32_t tmpfs_dir_live(const struct tmpfs_inode *dir);
void tmpfs_dir_free(struct tmpfs_inode *dir); /* drops what is left, whiteouts too */

/* tmpfs_name.c: the name operations of struct inode_ops, and rename with the overlay's needs. */
#define TMPFS_RENAME_WHITEOUT 0x10000u /* the old name becomes a whiteout */
#define TMPFS_RENAME_COVERS   0x20000u /* the lower has the new name */
MUST_CHECK int tmpfs_rename_flags(struct inode *odir, const struct qname *oname, struct inode *in, struct inode *ndir,
				  const struct qname *nname, unsigned flags);
int tmpfs_lookup(struct inode *dir, const struct qname *name, struct inode **ret);
int tmpfs_create_file(struct inode *dir, const struct qname *name, uint32_t mode, uid_t uid, gid_t gid,
		      struct inode **ret);
int tmpfs_mkdir(struct inode *dir, const struct qname *name, uint32_t mode, uid_t uid, gid_t gid, struct inode **ret);
int tmpfs_mknod(struct inode *dir, const struct qname *name, uint32_t mode, uint64_t rdev, uid_t uid, gid_t gid,
		struct inode **ret);
int tmpfs_symlink(struct inode *dir, const struct qname *name, const char *target, uid_t uid, gid_t gid,
		  struct inode **ret);
int tmpfs_link(struct inode *dir, const struct qname *name, struct inode *in);
int tmpfs_unlink(struct inode *dir, const struct qname *name, struct inode *in);
int tmpfs_rmdir(struct inode *dir, const struct qname *name, struct inode *in);
int tmpfs_rename(struct inode *odir, const struct qname *oname, struct inode *in, struct inode *ndir,
		 const struct qname *nname, struct inode *target, unsigned flags);
int tmpfs_tmpfile(struct inode *dir, uint32_t mode, uid_t uid, gid_t gid, struct inode **ret);
/* One name of a file went: counts down nlink and the quota. */
void tmpfs_drop_link(struct tmpfs_inode *ti);

extern const struct inode_ops tmpfs_dir_iops, tmpfs_file_iops, tmpfs_link_iops, tmpfs_special_iops;

/* tmpfs_attr.c. */
int tmpfs_setattr(struct inode *in, const struct iattr *attr);
ssize_t tmpfs_getxattr(struct inode *in, const char *name, void *buf, size_t size);
int tmpfs_setxattr(struct inode *in, const char *name, const void *buf, size_t size, int flags);
ssize_t tmpfs_listxattr(struct inode *in, char *buf, size_t size);
int tmpfs_removexattr(struct inode *in, const char *name);
void tmpfs_xattr_free(struct tmpfs_inode *ti);

#endif
