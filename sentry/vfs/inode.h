/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inodes and superblocks, and the operations that a file system gives. Names are checked by vfs before any op is
 * called: 1..255 bytes, no '/', no NUL, never "." or "..". Permission (mode bits, credentials, read-only mounts, sticky
 * directories) is checked by vfs; ops do the work. Ops may block the leader for a gofer round trip.
 * vfs calls ops only through the vfs_* functions (vfs.h), which hold the defaults.
 */
#ifndef SBX_SENTRY_VFS_INODE_H
#define SBX_SENTRY_VFS_INODE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/list.h"
#include "base/ref.h"

struct cred;
struct dentry;
struct file;
struct file_ops;
struct inode;
struct mount;
struct super;
struct task;
struct walk;

struct ktime {
	int64_t sec;
	uint32_t nsec;
};

struct qname {
	const char *s; /* not NUL terminated */
	uint32_t len;
	uint32_t hash; /* of the dentry cache; ops need not look */
	const struct walk *walk; /* of which it is a component, or NULL: walk_ahead() tells what follows */
};

/* What stat and statx report. */
struct kstat {
	uint64_t ino;
	uint64_t dev;    /* as st_dev: filled by vfs from the superblock unless set */
	uint32_t mode;   /* type and permission */
	uint32_t nlink;
	uid_t uid;
	gid_t gid;
	uint64_t rdev;
	uint64_t size, blocks; /* 512-byte units */
	uint32_t blksize;
	struct ktime atime, mtime, ctime, btime; /* btime 0/0: unknown */
};

#define ATTR_MODE  1u
#define ATTR_UID   2u
#define ATTR_GID   4u
#define ATTR_SIZE  8u
#define ATTR_ATIME 16u
#define ATTR_MTIME 32u
#define ATTR_CTIME 64u  /* to now; implied by every change */
#define ATTR_TOUCH 128u /* the times are "now": write permission is enough (vfs only) */

struct iattr {
	uint32_t valid;
	uint32_t mode; /* permission bits */
	uid_t uid;
	gid_t gid;
	uint64_t size;
	struct ktime atime, mtime;
};

struct kstatfs {
	uint64_t type, bsize, blocks, bfree, bavail, files, ffree, namelen;
};

/* Of lookup only: there is no such name, and each attempt is to be asked for. Not an errno of Linux. */
#define ENOENT_UNCACHED 1100

struct inode_ops {
	/* Makes what was put off of changes of attributes, so that refresh tells them as they are. NULL: nothing is. */
	void (*settle)(struct inode *in);
	/* Brings the cached attributes (inode fields) up to date; NULL: they always are. */
	int (*refresh)(struct inode *in);
	/* Result in *ret, one reference. -ENOENT, or -ENOENT_UNCACHED. NULL op: -ENOTDIR. */
	int (*lookup)(struct inode *dir, const struct qname *name, struct inode **ret);
	/* Is what the dentry cache holds for @name still true? @in NULL: a negative entry. 1 yes, 0 no (vfs drops it
	 * and looks up again). NULL: always true. Called often: must be cheap. */
	int (*revalidate)(struct inode *dir, const struct qname *name, struct inode *in);
	/* Creation; -EEXIST when the name is there. uid and gid are the new owner. NULL: -EPERM. */
	int (*create)(struct inode *dir, const struct qname *name, uint32_t mode, uid_t uid, gid_t gid,
	              struct inode **ret);
	int (*mkdir)(struct inode *dir, const struct qname *name, uint32_t mode, uid_t uid, gid_t gid,
	             struct inode **ret);
	/* S_IFIFO, S_IFSOCK, S_IFCHR with rdev 0 (whiteouts are refused by vfs) */
	int (*mknod)(struct inode *dir, const struct qname *name, uint32_t mode, uint64_t rdev, uid_t uid, gid_t gid,
		     struct inode **ret);
	int (*symlink)(struct inode *dir, const struct qname *name, const char *target, uid_t uid, gid_t gid,
		       struct inode **ret);
	int (*link)(struct inode *dir, const struct qname *name, struct inode *in);
	int (*unlink)(struct inode *dir, const struct qname *name, struct inode *in);
	int (*rmdir)(struct inode *dir, const struct qname *name, struct inode *in); /* -ENOTEMPTY */
	/* flags: RENAME_NOREPLACE, RENAME_EXCHANGE (checked by vfs for existence). @target: what is replaced, or NULL.
	 */
	int (*rename)(struct inode *odir, const struct qname *oname, struct inode *in, struct inode *ndir,
		      const struct qname *nname, struct inode *target, unsigned flags);
	int (*tmpfile)(struct inode *dir, uint32_t mode, uid_t uid, gid_t gid,
	               struct inode **ret); /* NULL: -EOPNOTSUPP */
	/* Into buf, no NUL; returns the length, cut to n. */
	int (*readlink)(struct inode *in, char *buf, size_t n);
	/* A magic link (/proc/PID/fd/N, exe, cwd, root): gives the place itself; NULL: an ordinary symlink. */
	int (*follow)(struct inode *in, struct task *t, struct dentry **dentry, struct mount **mnt);
	int (*setattr)(struct inode *in, const struct iattr *attr); /* NULL: -EPERM */
	/* Sets file->ops (default: inode->fops) and private state by replacing *file's embedding; see file.h. NULL:
	 * fops serve. */
	int (*open)(struct inode *in, struct file *f);
	/* xattr(7); size 0 asks for the length. NULL: -EOPNOTSUPP */
	ssize_t (*getxattr)(struct inode *in, const char *name, void *buf, size_t size);
	int (*setxattr)(struct inode *in, const char *name, const void *buf, size_t size, int flags);
	ssize_t (*listxattr)(struct inode *in, char *buf, size_t size);
	int (*removexattr)(struct inode *in, const char *name);
	/* The last reference went: frees the object. */
	void (*destroy)(struct inode *in);
};

#define INODE_LINKABLE     1u /* made by O_TMPFILE without O_EXCL: link(2) may give it its first name */
#define INODE_WRITE_SEALED 2u /* F_SEAL_WRITE or F_SEAL_FUTURE_WRITE: no shared mapping for writing any more */

struct inode {
	struct ref ref;
	const struct inode_ops *ops;
	const struct file_ops *fops; /* of files opened on it; NULL: open gives them, or -ENXIO */
	struct super *sb;            /* borrowed: the mount keeps it */
	uint64_t ino;
	uint32_t mode, nlink;
	uid_t uid;
	gid_t gid;
	uint64_t rdev;
	uint64_t size, blocks;
	struct ktime atime, mtime, ctime, btime;
	struct flock_set *locks; /* flock and POSIX locks, made on first use (locks.c) */
	void *ipc;               /* the pipe of a FIFO, the bound socket (fifo.c, unix.c); counted by them */
	int32_t writers;         /* open for writing, or -n denied (ETXTBSY of running programs) */
	uint32_t vflags;         /* INODE_*: of vfs */
	struct dentry *alias;    /* of a directory: its one dentry, borrowed (dcache.c) */
};

struct inode *inode_get(struct inode *in);
void inode_put(struct inode *in); /* NULL is allowed */
/* Fills the generic fields of an embedded inode: one reference. */
void inode_init(struct inode *in, struct super *sb, const struct inode_ops *ops, uint64_t ino, uint32_t mode);

struct super_ops {
	int (*statfs)(struct super *sb, struct kstatfs *st);
	int (*sync)(struct super *sb); /* NULL: nothing to do */
	void (*destroy)(struct super *sb);
};

/* Embedded by each file system. */
struct super {
	struct ref ref;
	const struct super_ops *ops;
	const char *fstype;  /* "tmpfs", for /proc/mounts */
	uint64_t magic;      /* of statfs */
	uint64_t dev;        /* unique st_dev, given by super_init */
	struct inode *root;  /* counted */
	struct dentry *root_dentry; /* borrowed, while the dentry cache holds one */
	bool stable;         /* cached names are true for good unless changed through us: no revalidate calls */
};

void super_init(struct super *sb, const struct super_ops *ops, const char *fstype, uint64_t magic);
struct super *super_get(struct super *sb);
void super_put(struct super *sb);

struct ktime ktime_now(void); /* CLOCK_REALTIME, coarse */

#endif
