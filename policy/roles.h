/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each of our processes gives up, and when. One table (roles.c); code calls policy_enter(role,
 * stage).
 *
 *   initial    as started. Gives up: the terminal, core dumps, outliving its parent, new privileges
 * by execve. Still has: everything else. identity   Gives up: the host's user ids, network, IPC and
 * host name; signals to and memory of processes that are not its own. Still has: paths,
 * capabilities inside its own user namespace, to make the namespaces of its children and to empty
 * its root. confined   Gives up: every path (the sentry: but an fd of /proc, while its stubs
 * start). Still has: capabilities. steady     Gives up:
 * capabilities, being traced by its user, every host call that is not in its table
 *              (policy/seccomp). Still has: its fds.
 *
 * Where the host forbids a namespace the process goes on without; policy_obtained() tells, and
 * Started passes it on. Everything else fails closed.
 */
#ifndef SBX_POLICY_ROLES_H
#define SBX_POLICY_ROLES_H

#include <stdbool.h>

#include "base/err.h"
#include "base/macros.h"

enum role { ROLE_SBX, ROLE_SENTRY, ROLE_GOFER, ROLE_STUB, ROLE_COUNT };
enum stage { STAGE_NONE, STAGE_INITIAL, STAGE_IDENTITY, STAGE_CONFINED, STAGE_STEADY, STAGE_COUNT };

struct policy_options {
	bool no_userns;  /* make no user namespace even where the host allows it */
	bool log_filter; /* calls outside the table are logged, not fatal: for debugging */
	const char *platform; /* of the sentry, which chooses its filter; borrowed */
};

struct policy_obtained {
	bool userns, mountns, netns, ipcns, utsns, landlock, empty_root, uid_dropped;
};

/* Before the first policy_enter; may be left out. */
void policy_set_options(const struct policy_options *o);

/*
 * Goes through the stages after the current one up to @stage. Called with rising stages by one role
 * a process. The identity stage of the sentry needs a process of one thread, and comes before the
 * platform makes stubs; with more threads its namespaces are left out. The steady stage puts all
 * threads under the filter.
 */
MUST_CHECK int policy_enter(enum role role, enum stage stage, struct sbx_err *err);

const struct policy_obtained *policy_obtained(void);

/* A new root that is an empty read-only directory; the old one is gone. Needs CAP_SYS_ADMIN over
 * the mount namespace, which the process must have for itself. Returns 0 or -errno. */
MUST_CHECK int policy_empty_root(void);

#endif
