/* SPDX-License-Identifier: Apache-2.0 */
/* The environment of the guest's first program: defaults, then what the caller names; nothing else
 * is inherited. */
#ifndef SBX_POLICY_ENV_H
#define SBX_POLICY_ENV_H

#include <stdbool.h>

#include "policy/model.h"

struct env_identity {
	const char *home; /* the caller's home path */
	const char *user; /* login name in the guest */
};

/*
 * Builds the environment in @out (memory from @pool): defaults for a program without a terminal,
 * pass_env from
 * @host_env (NULL terminated "K=V"), then env, in that order; the last one of a name wins. Returns
 * 0 or -ENOMEM.
 */
MUST_CHECK int env_build(struct pool *pool, const struct policy *p, const struct env_identity *id,
                         char *const *host_env, struct str_list *out);

/* A name that the shell could assign: [A-Za-z_][A-Za-z0-9_]*, or a longer one without '=' and
 * control bytes. */
bool env_name_valid(const char *name, size_t len);

#endif
