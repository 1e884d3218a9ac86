/* SPDX-License-Identifier: Apache-2.0 */
#include "sentry/syscalls/pathin.h"

#include <fcntl.h>

#include "sentry/kernel/uaccess.h"

int path_in(struct task *t, uaddr_t src, struct pathbuf *p)
{
	ssize_t n = copy_in_str(t, src, p->s, sizeof(p->s));

	return n < 0 ? (int)n : 0;
}

int path_walk_user(struct task *t, int dirfd, uaddr_t src, int at_flags, bool follow, struct path *out)
{
	unsigned wf = 0;
	struct pathbuf p;
	int err;

	if (at_flags & AT_SYMLINK_NOFOLLOW)
		follow = false;
	else if (at_flags & AT_SYMLINK_FOLLOW)
		follow = true;
	if (follow)
		wf |= WALK_FOLLOW;
	if (at_flags & AT_EMPTY_PATH)
		wf |= WALK_EMPTY;
	err = path_in(t, src, &p);
	return err ? err : path_walk(t, dirfd, p.s, wf, out);
}
