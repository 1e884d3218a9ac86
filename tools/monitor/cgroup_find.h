/* SPDX-License-Identifier: Apache-2.0 */
/* Where the control groups of a process are, from what the kernel tells in /proc/self. */
#ifndef SBX_TOOLS_MONITOR_CGROUP_FIND_H
#define SBX_TOOLS_MONITOR_CGROUP_FIND_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/macros.h"

struct cgroup_place {
	char path[PATH_MAX]; /* the directory of the process's own group */
	size_t top_len;      /* of path: the mount point, above which there is nothing */
};

/*
 * @groups and @mounts: the text of /proc/self/cgroup and /proc/self/mountinfo. @controller: a
 * hierarchy of version 1; NULL: the one of version 2. Returns 0 with @p, or -ENOENT when it is not
 * mounted, or not so that the group is below it.
 */
MUST_CHECK int cgroup_find(const char *groups, const char *mounts, const char *controller,
                           struct cgroup_place *p);

/* Does @list, words between single characters of @sep, hold @word? */
bool cgroup_has_word(const char *list, const char *sep, const char *word);

#endif
