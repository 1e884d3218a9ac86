/* SPDX-License-Identifier: Apache-2.0 */
/* Loading the filters that gen.c made. */
#ifndef SBX_POLICY_SECCOMP_LOAD_H
#define SBX_POLICY_SECCOMP_LOAD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/macros.h"

enum seccomp_filter_id {
	FILTER_SBX,
	FILTER_SENTRY, /* on platform unotify */
	FILTER_SENTRY_PTRACE,
	FILTER_SENTRY_KVM,
	FILTER_GOFER,
	FILTER_COUNT
};

/*
 * Puts all threads of the process under a filter. no_new_privs must be set. @log: calls outside the
 * table are logged by the host kernel and go on, for finding what a table lacks; never for use.
 * Returns 0 or -errno.
 */
MUST_CHECK int seccomp_filter_load(enum seccomp_filter_id id, bool log);

/* Instructions of a filter, for tests. */
size_t seccomp_filter_size(enum seccomp_filter_id id);

#endif
