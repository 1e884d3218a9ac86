/* SPDX-License-Identifier: Apache-2.0 */
/* Pipes and FIFOs: pipe(7). */
#ifndef SBX_SENTRY_VFS_PIPE_H
#define SBX_SENTRY_VFS_PIPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/macros.h"

struct file;
struct inode;
struct task;

#define PIPE_DEFAULT_SIZE 65536u
#define PIPE_MAX_SIZE     1048576u /* /proc/sys/fs/pipe-max-size */
#define PIPE_ATOMIC       4096u    /* PIPE_BUF */

/* pipe2(2): both ends, one reference each. flags: O_NONBLOCK, O_CLOEXEC is the caller's matter. */
MUST_CHECK int pipe_create(uint32_t flags, struct file **rd, struct file **wr);

/*
 * The end of an open of a FIFO inode: joins @f (made by file_create with fifo_file_ops) to the pipe of @in. Returns 0,
 * -ENXIO (O_WRONLY|O_NONBLOCK without reader), -ENOMEM; or the blocking protocol of kernel/waitq.h: SYS_BLOCKED or
 * -ERESTARTSYS until the other end is open; the open call is then run again, and finds its place by t->op.data.
 */
MUST_CHECK int64_t fifo_open(struct task *t, struct inode *in, struct file *f);
extern const struct file_ops fifo_file_ops;

/* F_GETPIPE_SZ, F_SETPIPE_SZ; -EBADF when @f is no pipe. */
int64_t pipe_fcntl(struct task *t, struct file *f, int cmd, uint64_t arg);

/* For splice(2) and tee(2), on files of which file_is_pipe() holds. */
bool file_is_pipe(const struct file *f);
bool pipe_same(const struct file *a, const struct file *b);
/* Copies up to @n of the bytes that are next, without taking them; 0 at the end, -EAGAIN when there are none yet. */
MUST_CHECK ssize_t pipe_peek(struct file *f, void *buf, size_t n);
void pipe_consume(struct file *f, size_t n); /* at most what pipe_peek() gave */
/* How many bytes a write takes now: 0 when it would block; -EPIPE without a reader. */
MUST_CHECK ssize_t pipe_room(struct file *f);

#endif
