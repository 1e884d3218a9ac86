/* SPDX-License-Identifier: Apache-2.0 */
/* The rest of an open that blocked: see vfs.h for open itself. */
#ifndef SBX_SENTRY_VFS_OPEN_H
#define SBX_SENTRY_VFS_OPEN_H

#include "base/macros.h"

struct file;
struct task;

/* The call is run again and t->op.data is set: the FIFO whose other end was waited for. As vfs_open(). */
MUST_CHECK int open_resume(struct task *t, struct file **ret);

#endif
