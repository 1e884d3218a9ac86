/* SPDX-License-Identifier: Apache-2.0 */
/* Guest credentials: all virtual, they never are host ids. credentials(7), capabilities(7). Immutable once shared:
 * a change makes a copy. */
#ifndef SBX_SENTRY_KERNEL_CRED_H
#define SBX_SENTRY_KERNEL_CRED_H

#include <linux/securebits.h>
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
bool cred_in_egroup(const struct cred *c, gid_t gid); /* egid or a supplementary group */

/* All capabilities the guest knows: CAP_CHOWN .. CAP_CHECKPOINT_RESTORE. */
#define CAP_LAST   40
#define CAP_ALL    ((1ull << (CAP_LAST + 1)) - 1)
#define CAP_BIT(c) (1ull << (c))

/* A credential for the first process: all ids alike; a root user has all capabilities. NULL: no memory. */
struct cred *cred_create(uid_t uid, gid_t gid, const gid_t *groups, unsigned n_groups);

/*
 * The changes of setuid(2), setresuid(2) and so on, on a private copy. (uid_t)-1 leaves an id. 0, or -EPERM, -EINVAL.
 * Capabilities follow as capabilities(7) "Effect of user ID changes".
 */
int cred_setuid(struct cred *c, uid_t uid);
int cred_setreuid(struct cred *c, uid_t ruid, uid_t euid);
int cred_setresuid(struct cred *c, uid_t ruid, uid_t euid, uid_t suid);
uid_t cred_setfsuid(struct cred *c, uid_t fsuid); /* returns the old one */
int cred_setgid(struct cred *c, gid_t gid);
int cred_setregid(struct cred *c, gid_t rgid, gid_t egid);
int cred_setresgid(struct cred *c, gid_t rgid, gid_t egid, gid_t sgid);
gid_t cred_setfsgid(struct cred *c, gid_t fsgid);
int cred_capset(struct cred *c, uint64_t effective, uint64_t permitted, uint64_t inheritable);

/* What execve(2) of a file with @mode and owner does: set-id bits (not with @nosuid or no_new_privs), capabilities(7)
 * "Transformation of capabilities during execve()". *secure: the program must not trust its environment (AT_SECURE).
 * A new credential, or NULL: no memory. */
struct cred *cred_exec(const struct cred *old, uint32_t mode, uid_t uid, gid_t gid, bool nosuid, bool *secure);

/* kill(2): may a process with @c signal one with @target? */
bool cred_may_signal(const struct cred *c, const struct cred *target);
/* ptrace(2) "Ptrace access mode checking", with real ids (process_vm_readv, kcmp, pidfd_getfd). */
bool cred_may_ptrace(const struct cred *c, const struct cred *target, bool dumpable);

#endif
