/* SPDX-License-Identifier: Apache-2.0 */
/* Advisory locks: flock(2), and fcntl(2)'s POSIX and open-file-description record locks. */
#ifndef SBX_SENTRY_VFS_LOCKS_H
#define SBX_SENTRY_VFS_LOCKS_H

#include <stdint.h>

struct fdtable;
struct file;
struct inode;
struct task;

#define LOCKS_MAX 65536u /* of the sandbox: ENOLCK beyond */

/* F_GETLK, F_SETLK, F_SETLKW and the F_OFD_ ones; the blocking protocol of kernel/waitq.h. */
int64_t locks_fcntl(struct task *t, struct file *f, int cmd, uint64_t arg);
/* flock(2) on an open file. */
int64_t locks_flock(struct task *t, struct file *f, int op);

/* A descriptor of @f in table @owner was closed: its POSIX locks on the inode go (all of them, as POSIX wants). */
void locks_fd_closed(struct file *f, struct fdtable *owner);
/* The last reference to @f goes: its flock and OFD locks go. */
void locks_file_gone(struct file *f);
/* Frees inode->locks; none may be held. */
void locks_inode_gone(struct inode *in);

#endif
