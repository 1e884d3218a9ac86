/* SPDX-License-Identifier: Apache-2.0 */
/* What the guest changed on copy-on-write mounts, for the last message to the monitor. */
#ifndef SBX_SENTRY_CONTROL_CHANGES_H
#define SBX_SENTRY_CONTROL_CHANGES_H

#include <stddef.h>

#include "base/macros.h"
#include "sentry/control/control.pb-c.h"

#define CHANGES_BUDGET (4u << 20) /* bytes of all that is reported */

struct change_list {
	Sbx__Control__Change **v; /* with what they point to: owned */
	size_t n;
	size_t dropped; /* did not fit */
	/* private */
	size_t cap, budget;
};

/* Collects the changes of all mounts, as many as fit in @budget bytes when packed, but for directories that were made
 * for the guest (@made). An error leaves what was found so far. */
MUST_CHECK int change_list_fill(struct change_list *l, size_t budget, Sbx__Control__EmptyDir *const *made,
				size_t n_made);
/* How many of the changes from @first on take at most @budget bytes when packed; at least 1 while there is one. */
size_t change_list_chunk(const struct change_list *l, size_t first, size_t budget);
void change_list_fini(struct change_list *l);

#endif
