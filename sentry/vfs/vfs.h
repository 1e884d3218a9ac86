/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the rest of the sentry calls to work on files. Nobody calls an inode or file op directly: these check mode,
 * permission, limits and NULL, and hold the defaults.
 */
#ifndef SBX_SENTRY_VFS_VFS_H
#define SBX_SENTRY_VFS_VFS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/macros.h"
#include "sentry/vfs/dentry.h"
#include "sentry/vfs/file.h"
#include "sentry/vfs/inode.h"

struct cred;
struct task;
struct uio;

/* Builds the caches and the mount namespace; the caller then mounts. */
MUST_CHECK int vfs_init(void);

/* open(2) as the kernel does it for itself and for the guest; @path is a kernel string. *ret is the caller's. */
MUST_CHECK int vfs_open(struct task *t, int dirfd, const char *path, uint32_t flags, uint32_t mode, unsigned walk_flags,
			struct file **ret);
MUST_CHECK int vfs_open_place(struct task *t, struct path *p, uint32_t flags, struct file **ret);

/* What open(2) and its kin accept: unknown flags, O_TMPFILE's and access modes' rules. *flags as vfs_open() takes them.
 */
MUST_CHECK int vfs_open_flags(uint32_t *flags, uint32_t *mode);

/* Makes @name (no slash) in @dir as the kernel itself, without permission checks. @mode has the type: a directory or a
 * regular file. *out is the caller's. -EEXIST. */
MUST_CHECK int vfs_make_node(const struct path *dir, const char *name, uint32_t mode, struct path *out);

/* One attempt without blocking: -EAGAIN when it would block. pos NULL: the file's own position. */
MUST_CHECK ssize_t vfs_read(struct file *f, struct uio *u, uint64_t *pos);
MUST_CHECK ssize_t vfs_write(struct task *t, struct file *f, struct uio *u, uint64_t *pos);
/* The whole of a read or write system call on @t: blocks by SYS_BLOCKED, keeps progress in task->op, raises SIGPIPE. */
int64_t vfs_read_call(struct task *t, struct file *f, struct uio *u, uint64_t *pos);
int64_t vfs_write_call(struct task *t, struct file *f, struct uio *u, uint64_t *pos);
/* Kernel buffer, for exec and the loader: reads exactly up to n (short only at end of file). */
MUST_CHECK ssize_t vfs_read_kernel(struct file *f, void *buf, size_t n, uint64_t pos);

/* Counts what was read from host files and pipes outside of grants: what the guest learned of the host's doings. */
extern uint64_t vfs_host_reads;

/* Called before something is written to such files: what a file system has put off is then done. NULL: nothing is. */
extern void (*vfs_settle)(void);
/* Before objects are counted: drops what is held only because it may be asked for next. NULL: nothing is. */
extern void (*vfs_drop_ahead)(void);

int64_t vfs_llseek(struct file *f, int64_t off, int whence);
uint32_t vfs_poll(struct file *f, struct waitq **q);
MUST_CHECK int vfs_mmap(struct file *f, int prot, bool shared, struct file_map *map);

MUST_CHECK int vfs_getattr(const struct path *p, struct kstat *st);
MUST_CHECK int vfs_getattr_inode(struct inode *in, struct kstat *st);
/* With all checks of chmod(2), chown(2), utimensat(2); not those of a new size. */
MUST_CHECK int vfs_setattr(struct task *t, const struct path *p, struct iattr *attr);
/* RLIMIT_FSIZE, file type and ETXTBSY are checked; permission is the caller's matter. @f: opened on it, or NULL. */
MUST_CHECK int vfs_truncate(struct task *t, struct inode *in, struct file *f, int64_t size);
MUST_CHECK int vfs_statfs(struct super *sb, struct kstatfs *st);

#define MAY_EXEC  1
#define MAY_WRITE 2
#define MAY_READ  4
/* 0 or -EACCES, by the fs ids of @c, or what refreshing the attributes gave. A read-only mount: path_want_write(). */
MUST_CHECK int vfs_permission(const struct cred *c, struct inode *in, int mask);

/* Runs of programs: deny writing while it is executed. */
MUST_CHECK int inode_deny_write(struct inode *in); /* -ETXTBSY when open for writing */
void inode_allow_write(struct inode *in);

#endif
