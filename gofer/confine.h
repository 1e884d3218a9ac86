/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the gofer gives up beside the steps of policy/roles.c, because it depends on the grants. First confine_isolate,
 * then the grants are opened, then confine_steady.
 */
#ifndef SBX_GOFER_CONFINE_H
#define SBX_GOFER_CONFINE_H

#include <stdbool.h>

#include "base/err.h"
#include "base/macros.h"

struct confine {
	bool all_read_only; /* no grant is rw */
	bool mount_ns;      /* out: has its own mount namespace */
	bool empty_root;    /* out */
};

/* Gives up the terminal, core dumps, outliving the monitor, and where it may the view of the host's mount table. Still
 * has the host's files, because the grants are opened by path next. */
MUST_CHECK int confine_isolate(struct confine *c, struct sbx_err *err);
/*
 * Gives up every path (the root is an empty directory where a mount namespace could be had), the capabilities that no
 * grant needs, being traced by its user, and every system call that is not in policy/seccomp/gofer.c. Still has the
 * granted trees by their O_PATH fds, /proc/self/fd for opening what they lead to, and its two sockets.
 */
MUST_CHECK int confine_steady(struct confine *c, struct sbx_err *err);

#endif
