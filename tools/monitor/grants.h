/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the grants of a policy to those that gofer and sentry get: real paths, checked against what
 * is never granted, the directories that a git worktree needs added, and one grant for each path.
 */
#ifndef SBX_TOOLS_MONITOR_GRANTS_H
#define SBX_TOOLS_MONITOR_GRANTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "policy/model.h"

#define GRANTS_MAX 256

struct grant {
	uint32_t id;
	char *path; /* on the host; no symlinks in it */
	char *guest_path;
	enum policy_mode mode;
	bool exec, root;
	const char *const *only; /* the names directly below it that exist for the guest; NULL: all */
	size_t n_only;
};

struct grant_set {
	struct pool *pool; /* borrowed */
	struct grant v[GRANTS_MAX];
	size_t n;
	struct str_list hide, protect;
};

/*
 * Builds the set for a complete @p. @home is the caller's home directory (refused as a whole), may
 * be NULL. A path that does not exist, is no file or directory, or is refused fails with @err.
 */
MUST_CHECK int grants_build(struct grant_set *set, struct pool *pool, const struct policy *p,
                            const char *home, struct sbx_err *err);

/* Why @path (real, absolute) is never granted in @mode, or NULL. */
const char *grant_refusal(const char *path, enum policy_mode mode, const char *home);

/* True when the guest can write @path (real, absolute) on the host. */
bool grants_writable(const struct grant_set *set, const char *path);

/* The common directory of the git worktree whose ".git" file lies in @dir: a real path in @out
 * (PATH_MAX). Returns 1, 0 when @dir is no worktree, or -errno for one that is broken. The ".git"
 * file may be written by a guest, so the answer is given only when the repository names this
 * worktree too. */
MUST_CHECK int git_common_dir(const char *dir, char *out);

#endif
