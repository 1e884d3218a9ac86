/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of file descriptors. Shared with CLONE_FILES, copied by fork. */
#ifndef SBX_SENTRY_VFS_FDTABLE_H
#define SBX_SENTRY_VFS_FDTABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/macros.h"
#include "base/ref.h"

struct file;
struct task;

struct fdtable;

struct fdtable *fdtable_create(void);
struct fdtable *fdtable_get(struct fdtable *t);
void fdtable_put(struct fdtable *t); /* the last put closes all */
struct fdtable *fdtable_copy(struct fdtable *t);
void fdtable_close_on_exec(struct fdtable *t);

/* Counted, or NULL. */
struct file *fd_lookup(struct fdtable *t, int fd);
/* As above with -EBADF, and O_PATH descriptors refused: what most calls want. */
MUST_CHECK int fd_get(struct task *t, int fd, struct file **ret);
MUST_CHECK int fd_get_opath(struct task *t, int fd, struct file **ret); /* O_PATH allowed */

/* The number that fd_install() would give now, or its error: for calls that must fail before they do anything else. */
MUST_CHECK int fd_reserve(struct task *task, int min);
/* Lowest free number >= min. Consumes @f. The fd, or -EMFILE (RLIMIT_NOFILE of @task). */
MUST_CHECK int fd_install(struct task *task, struct file *f, int min, bool cloexec);
/* At exactly @fd, replacing (dup2). Consumes @f. */
MUST_CHECK int fd_install_at(struct task *task, struct file *f, int fd, bool cloexec);
MUST_CHECK int fd_close(struct task *task, int fd);
MUST_CHECK int fd_close_range(struct task *task, unsigned first, unsigned last, bool cloexec_only);
/* A table of @task's own, if it shares one: CLOSE_RANGE_UNSHARE, unshare(CLONE_FILES), execve. */
MUST_CHECK int fd_unshare(struct task *task);
MUST_CHECK int fd_get_flags(struct fdtable *t, int fd); /* FD_CLOEXEC or 0 */
MUST_CHECK int fd_set_flags(struct fdtable *t, int fd, int flags);
/* The next open descriptor >= fd, or -1: for /proc/PID/fd. */
int fd_next(struct fdtable *t, int fd);

#endif
