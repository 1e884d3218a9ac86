/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From an O_PATH fd to the file itself, by the magic links of /proc/self/fd: no name is looked up, so there is nothing
 * to race with, and it works in an empty root because the directory was opened before. It is also the working
 * directory, for calls that take only a path.
 */
#ifndef SBX_GOFER_REOPEN_H
#define SBX_GOFER_REOPEN_H

#include "base/macros.h"

#define REOPEN_PATH_MAX 16

/* Before confinement. Changes the working directory. 0 or -errno. */
MUST_CHECK int reopen_init(void);
/* Again, after the root was changed. */
MUST_CHECK int reopen_enter(void);
int reopen_dirfd(void);

/* Opens the file behind @fd with @flags (O_CLOEXEC is added). The caller has checked its type. */
MUST_CHECK int reopen_fd(int fd, int flags);
/* A path of the file behind @fd, relative to the working directory and to reopen_dirfd(). Returns @buf. */
const char *reopen_path(int fd, char buf[REOPEN_PATH_MAX]);

#endif
