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

#endif
