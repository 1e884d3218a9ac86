/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open file descriptions and the operations behind them. A file system embeds struct file in its own type
 * (container_of) when it needs state per open; the size is given by file_ops.file_size.
 */
#ifndef SBX_SENTRY_VFS_FILE_H
#define SBX_SENTRY_VFS_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/list.h"
#include "base/macros.h"
#include "base/ref.h"
#include "platform/platform.h"
#include "sentry/vfs/inode.h"

struct epoll_link;
struct file;
struct task;
struct uio;
struct waitq;

/* Receives directory entries; returns false when its buffer is full (the entry was not taken: stop, keep pos before
 * it). */
struct dir_emit {
	bool (*emit)(struct dir_emit *e, const char *name, size_t len, uint64_t ino, unsigned dtype, uint64_t next_pos);
};

/* What a mapping of a file is made of. */
struct file_map {
	int fd; /* a host fd, borrowed from the file: valid while the file is; -1: anonymous zero memory (/dev/zero) */
	uint64_t offset; /* in it */
};

struct file_ops {
	size_t file_size; /* of the embedding struct; 0: sizeof(struct file) */
	/*
	 * Read and write at *pos and advance it (pos is NULL for files that cannot seek). Return bytes, 0 at end of
	 * file, or -errno: -EAGAIN means "would block": vfs then waits by poll unless O_NONBLOCK. A partial transfer is
	 * returned as such; for write on a blocking pipe or socket vfs continues. Write appends when f->flags has
	 * O_APPEND. NULL: -EINVAL.
	 */
	ssize_t (*read)(struct file *f, struct uio *u, uint64_t *pos);
	ssize_t (*write)(struct file *f, struct uio *u, uint64_t *pos);
	/* Ready mask (POLL*), and in *q the queue that is woken when it changes (left NULL: never changes). NULL op:
	 * always POLLIN|POLLOUT. */
	uint32_t (*poll)(struct file *f, struct waitq **q);
	/* Emits from f->pos on. "." and ".." included. NULL: -ENOTDIR. */
	int (*iterate)(struct file *f, struct dir_emit *e);
	/* lseek(2). NULL: generic (size from the inode) for regular files and directories, -ESPIPE for others. */
	int64_t (*llseek)(struct file *f, int64_t off, int whence);
	int64_t (*ioctl)(struct file *f, struct task *t, uint32_t cmd, uint64_t arg); /* NULL: -ENOTTY */
	int (*mmap)(struct file *f, int prot, bool shared, struct file_map *map); /* NULL: -ENODEV */
	int (*fsync)(struct file *f, bool data_only); /* NULL: -EINVAL for non-files, 0 for files */
	int (*fallocate)(struct file *f, int mode, uint64_t off, uint64_t len); /* NULL: -EOPNOTSUPP */
	int (*truncate)(struct file *f, uint64_t size); /* NULL: inode setattr */
	/* Called for each close of a descriptor (POSIX locks have gone already). */
	void (*flush)(struct file *f);
	/* The last reference went; must release what open made. The struct itself is freed by vfs. */
	void (*release)(struct file *f);
};

struct file {
	struct ref ref;
	const struct file_ops *ops;
	struct inode *inode;   /* counted */
	struct dentry *dentry; /* counted; NULL for pipes, sockets and other anonymous files */
	struct mount *mnt;     /* counted, with dentry */
	uint32_t flags;        /* O_ACCMODE, O_APPEND, O_NONBLOCK, O_DIRECT, O_PATH, … as F_GETFL shows */
	uint64_t pos;
	struct list epoll_links; /* epoll items that watch it */
	pid_t owner_pid;         /* F_SETOWN */
	int owner_sig;
	const char *anon_name;   /* "pipe", "anon_inode:[eventpoll]": for /proc/PID/fd, when dentry is NULL */
	uint32_t writers_seen;   /* of a pipe: how often it had been opened for writing when this was opened */
	bool write_counted;      /* counted in inode->writers */
};

/* A new description on @in (a reference is taken) with @ops (its file_size is allocated, zeroed); NULL when out of
 * memory or over the file limit. */
struct file *file_create(const struct file_ops *ops, struct inode *in, uint32_t flags);
struct file *file_get(struct file *f);
void file_put(struct file *f); /* NULL is allowed */

/* file_put() in the form that task_op_hold() takes. */
static inline void file_put_held(void *f)
{
	file_put(f);
}

/* An inode for anonymous files (pipes, eventfd, sockets): one shared "anon" superblock. */
struct inode *anon_inode_create(uint32_t mode);
/* The same for an embedded inode; ops, with a destroy, are then the caller's to set. */
void anon_inode_init(struct inode *in, uint32_t mode);
struct super *anon_super(void);
bool inode_is_anon(const struct inode *in);

/* The place of @f, for /proc/PID/fd/N: its path, or for an anonymous file a dentry of its own outside the tree. Both
 * counted. -ENOMEM. */
MUST_CHECK int file_place(struct file *f, struct dentry **dentry, struct mount **mnt);

#define FILE_OPATH 010000000u /* O_PATH */

/* Access mode 3 can neither read nor write (ioctl only). */
static inline bool file_readable(const struct file *f)
{
	return ((f->flags + 1) & 1) && !(f->flags & FILE_OPATH);
}

static inline bool file_writable(const struct file *f)
{
	return ((f->flags + 1) & 2) && !(f->flags & FILE_OPATH);
}

/* Has a position: pread, lseek. */
bool file_seekable(const struct file *f);

/* fds donated by the host as guest files: the caller's stdin, stdout, stderr. Consumes @host_fd. */
int hostfile_create(int host_fd, uint32_t flags, struct file **ret);

/* For file_ops.llseek: moves the position of a file that has @size bytes and no holes. The new one, or -errno. */
int64_t file_seek(struct file *f, int64_t off, int whence, uint64_t size);

#endif
