/* SPDX-License-Identifier: Apache-2.0 */
/* Guest credentials: all virtual, they never are host ids. credentials(7), capabilities(7). Immutable once shared:
 * a change makes a copy. */
#ifndef SBX_SENTRY_KERNEL_CRED_H
#define SBX_SENTRY_KERNEL_CRED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/ref.h"

#define NGROUPS_LIMIT 64 /* of setgroups(2) here; Linux: 65536 */

struct cred {
	struct ref ref;
	uid_t uid, euid, suid, fsuid;
	gid_t gid, egid, sgid, fsgid;
	uint64_t cap_inheritable, cap_permitted, cap_effective, cap_bounding, cap_ambient;
	uint32_t securebits;
	bool no_new_privs; /* of the task in Linux; carried here */
	unsigned n_groups;
	gid_t groups[NGROUPS_LIMIT];
};

struct cred *cred_get(struct cred *c);
void cred_put(struct cred *c);
struct cred *cred_copy(const struct cred *c); /* NULL: no memory */

bool cred_has_cap(const struct cred *c, int cap); /* CAP_* of <linux/capability.h>, effective set */
bool cred_in_group(const struct cred *c, gid_t gid); /* fsgid or a supplementary group */

#endif
