/* SPDX-License-Identifier: Apache-2.0 */
/* Paths as arguments of system calls. */
#ifndef SBX_SENTRY_SYSCALLS_PATHIN_H
#define SBX_SENTRY_SYSCALLS_PATHIN_H

#include "base/macros.h"
#include "platform/platform.h"
#include "sentry/vfs/dentry.h"

struct task;

/* A path: copied in once, used from here. */
struct pathbuf {
	char s[PATH_MAX_LINUX];
};

/* 0, -EFAULT, -ENAMETOOLONG. */
MUST_CHECK int path_in(struct task *t, uaddr_t src, struct pathbuf *p);

/*
 * Copies in and walks. @at_flags: AT_SYMLINK_NOFOLLOW, AT_SYMLINK_FOLLOW and AT_EMPTY_PATH count, others are the
 * caller's to check; @follow: without either of the first two.
 */
MUST_CHECK int path_walk_user(struct task *t, int dirfd, uaddr_t src, int at_flags, bool follow, struct path *out);

#endif
