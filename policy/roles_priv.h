/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by roles.c and confine.c. */
#ifndef SBX_POLICY_ROLES_PRIV_H
#define SBX_POLICY_ROLES_PRIV_H

#include "policy/roles.h"

struct policy_state {
	struct policy_options options;
	struct policy_obtained obtained;
	enum stage stage;
};

extern struct policy_state policy_state; /* of this process */

/* Steps of the sentry; see confine.c. */
int policy_step_namespaces(struct sbx_err *err);
int policy_step_landlock(struct sbx_err *err);
int policy_step_empty_root(struct sbx_err *err);
int policy_step_no_caps(struct sbx_err *err);

#endif
