/* SPDX-License-Identifier: Apache-2.0 */
/* What the guest changed on copy-on-write mounts, for the last message to the monitor. */
#ifndef SBX_SENTRY_CONTROL_CHANGES_H
#define SBX_SENTRY_CONTROL_CHANGES_H

#include <stddef.h>

#include "base/macros.h"
#include "sentry/control/control.pb-c.h"

struct change_list {
	Sbx__Control__Change **v; /* with what they point to: owned */
	size_t n;
	size_t dropped; /* did not fit */
	/* private */
	size_t cap, budget;
};

/* Collects the changes of all mounts, as many as fit in @budget bytes when packed. An error leaves what was found so
 * far. */
MUST_CHECK int change_list_fill(struct change_list *l, size_t budget);
void change_list_fini(struct change_list *l);

#endif
