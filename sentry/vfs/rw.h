/* SPDX-License-Identifier: Apache-2.0 */
/* For system calls that read and write: see vfs.h for the reads and writes themselves. */
#ifndef SBX_SENTRY_VFS_RW_H
#define SBX_SENTRY_VFS_RW_H

#include <stdint.h>

#include "base/macros.h"

struct file;
struct task;

/* As fd_get(); in a call that is run again, the file of its first run, whatever @fd is now. */
MUST_CHECK int rw_file_get(struct task *t, int fd, struct file **ret);

/*
 * Ends this run of the call until @f is ready for @events, and holds @f meanwhile. SYS_BLOCKED; -ERESTARTSYS when a
 * signal is pending; -EAGAIN when @f cannot be waited for.
 */
MUST_CHECK int64_t rw_block(struct task *t, struct file *f, uint32_t events);

#endif
