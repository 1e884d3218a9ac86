/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of credentials(7) and capabilities(7), as commoncap.c and sys.c of Linux have them. User namespaces do not
 * exist here: an id is an id. */
#include "sentry/kernel/cred.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define ID_NONE ((uint32_t)-1)

/* Capabilities that follow the file-system uid. */
#define CAP_FS_SET \
	(CAP_BIT(CAP_CHOWN) | CAP_BIT(CAP_MKNOD) | CAP_BIT(CAP_DAC_OVERRIDE) | CAP_BIT(CAP_DAC_READ_SEARCH) | \
	 CAP_BIT(CAP_FOWNER) | CAP_BIT(CAP_FSETID) | CAP_BIT(CAP_LINUX_IMMUTABLE) | CAP_BIT(CAP_MAC_OVERRIDE))

struct cred *cred_get(struct cred *c)
{
	ref_get(&c->ref);
	return c;
}

void cred_put(struct cred *c)
{
	if (c && ref_put(&c->ref))
		free(c);
}

struct cred *cred_copy(const struct cred *c)
{
	struct cred *n = malloc(sizeof(*n));

	if (!n)
		return NULL;
	*n = *c;
	ref_init(&n->ref);
	return n;
}

struct cred *cred_create(uid_t uid, gid_t gid, const gid_t *groups, unsigned n_groups)
{
	struct cred *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	ref_init(&c->ref);
	c->uid = c->euid = c->suid = c->fsuid = uid;
	c->gid = c->egid = c->sgid = c->fsgid = gid;
	c->n_groups = n_groups < NGROUPS_LIMIT ? n_groups : NGROUPS_LIMIT;
	for (unsigned i = 0; i < c->n_groups; i++)
		c->groups[i] = groups[i];
	c->cap_bounding = CAP_ALL;
	if (uid == 0)
		c->cap_permitted = c->cap_effective = CAP_ALL;
	return c;
}

bool cred_has_cap(const struct cred *c, int cap)
{
	return cap >= 0 && cap <= CAP_LAST && (c->cap_effective & CAP_BIT(cap));
}

static bool in_groups(const struct cred *c, gid_t gid)
{
	for (unsigned i = 0; i < c->n_groups; i++) {
		if (c->groups[i] == gid)
			return true;
	}
	return false;
}

bool cred_in_group(const struct cred *c, gid_t gid)
{
	return c->fsgid == gid || in_groups(c, gid);
}

bool cred_in_egroup(const struct cred *c, gid_t gid)
{
	return c->egid == gid || in_groups(c, gid);
}

/* capabilities(7) "Effect of user ID changes on capabilities". */
static void setuid_fixup(struct cred *c, const struct cred *old)
{
	bool had_root = old->uid == 0 || old->euid == 0 || old->suid == 0;
	bool has_root = c->uid == 0 || c->euid == 0 || c->suid == 0;

	if (c->securebits & SECBIT_NO_SETUID_FIXUP)
		return;
	if (had_root && !has_root) {
		if (!(c->securebits & SECBIT_KEEP_CAPS))
			c->cap_permitted = c->cap_effective = 0;
		c->cap_ambient = 0;
	}
	if (old->euid == 0 && c->euid != 0)
		c->cap_effective = 0;
	if (old->euid != 0 && c->euid == 0)
		c->cap_effective = c->cap_permitted;
}

int cred_setuid(struct cred *c, uid_t uid)
{
	const struct cred old = *c;

	if (uid == ID_NONE)
		return -EINVAL;
	if (cred_has_cap(c, CAP_SETUID))
		c->uid = c->suid = uid;
	else if (uid != c->uid && uid != c->suid)
		return -EPERM;
	c->euid = c->fsuid = uid;
	setuid_fixup(c, &old);
	return 0;
}

int cred_setreuid(struct cred *c, uid_t ruid, uid_t euid)
{
	const struct cred old = *c;
	bool cap = cred_has_cap(c, CAP_SETUID);

	if (ruid != ID_NONE && !cap && ruid != old.uid && ruid != old.euid)
		return -EPERM;
	if (euid != ID_NONE && !cap && euid != old.uid && euid != old.euid && euid != old.suid)
		return -EPERM;
	if (ruid != ID_NONE)
		c->uid = ruid;
	if (euid != ID_NONE)
		c->euid = euid;
	if (ruid != ID_NONE || (euid != ID_NONE && euid != old.uid))
		c->suid = c->euid;
	c->fsuid = c->euid;
	setuid_fixup(c, &old);
	return 0;
}

static bool one_of3(uint32_t id, uint32_t a, uint32_t b, uint32_t c)
{
	return id == ID_NONE || id == a || id == b || id == c;
}

int cred_setresuid(struct cred *c, uid_t ruid, uid_t euid, uid_t suid)
{
	const struct cred old = *c;

	if (!cred_has_cap(c, CAP_SETUID) &&
	    !(one_of3(ruid, c->uid, c->euid, c->suid) && one_of3(euid, c->uid, c->euid, c->suid) &&
	      one_of3(suid, c->uid, c->euid, c->suid)))
		return -EPERM;
	if (ruid != ID_NONE)
		c->uid = ruid;
	if (euid != ID_NONE)
		c->euid = euid;
	if (suid != ID_NONE)
		c->suid = suid;
	c->fsuid = c->euid;
	setuid_fixup(c, &old);
	return 0;
}

uid_t cred_setfsuid(struct cred *c, uid_t fsuid)
{
	uid_t old = c->fsuid;

	if (fsuid == ID_NONE || fsuid == old)
		return old;
	if (!one_of3(fsuid, c->uid, c->euid, c->suid) && !cred_has_cap(c, CAP_SETUID))
		return old;
	c->fsuid = fsuid;
	if (!(c->securebits & SECBIT_NO_SETUID_FIXUP)) {
		if (old == 0)
			c->cap_effective &= ~CAP_FS_SET;
		if (fsuid == 0)
			c->cap_effective |= c->cap_permitted & CAP_FS_SET;
	}
	return old;
}

int cred_setgid(struct cred *c, gid_t gid)
{
	if (gid == ID_NONE)
		return -EINVAL;
	if (cred_has_cap(c, CAP_SETGID))
		c->gid = c->sgid = gid;
	else if (gid != c->gid && gid != c->sgid)
		return -EPERM;
	c->egid = c->fsgid = gid;
	return 0;
}

int cred_setregid(struct cred *c, gid_t rgid, gid_t egid)
{
	const gid_t old_gid = c->gid;
	bool cap = cred_has_cap(c, CAP_SETGID);

	if (rgid != ID_NONE && !cap && rgid != c->gid && rgid != c->egid)
		return -EPERM;
	if (egid != ID_NONE && !cap && egid != c->gid && egid != c->egid && egid != c->sgid)
		return -EPERM;
	if (rgid != ID_NONE)
		c->gid = rgid;
	if (egid != ID_NONE)
		c->egid = egid;
	if (rgid != ID_NONE || (egid != ID_NONE && egid != old_gid))
		c->sgid = c->egid;
	c->fsgid = c->egid;
	return 0;
}

int cred_setresgid(struct cred *c, gid_t rgid, gid_t egid, gid_t sgid)
{
	if (!cred_has_cap(c, CAP_SETGID) &&
	    !(one_of3(rgid, c->gid, c->egid, c->sgid) && one_of3(egid, c->gid, c->egid, c->sgid) &&
	      one_of3(sgid, c->gid, c->egid, c->sgid)))
		return -EPERM;
	if (rgid != ID_NONE)
		c->gid = rgid;
	if (egid != ID_NONE)
		c->egid = egid;
	if (sgid != ID_NONE)
		c->sgid = sgid;
	c->fsgid = c->egid;
	return 0;
}

gid_t cred_setfsgid(struct cred *c, gid_t fsgid)
{
	gid_t old = c->fsgid;

	if (fsgid != ID_NONE && (one_of3(fsgid, c->gid, c->egid, c->sgid) || cred_has_cap(c, CAP_SETGID)))
		c->fsgid = fsgid;
	return old;
}

int cred_capset(struct cred *c, uint64_t effective, uint64_t permitted, uint64_t inheritable)
{
	if (!cred_has_cap(c, CAP_SETPCAP) && (inheritable & ~(c->cap_inheritable | c->cap_permitted)))
		return -EPERM;
	if (inheritable & ~(c->cap_inheritable | c->cap_bounding))
		return -EPERM;
	if (permitted & ~c->cap_permitted)
		return -EPERM;
	if (effective & ~permitted)
		return -EPERM;
	c->cap_effective = effective;
	c->cap_permitted = permitted;
	c->cap_inheritable = inheritable;
	c->cap_ambient &= permitted & inheritable;
	return 0;
}

struct cred *cred_exec(const struct cred *old, uint32_t mode, uid_t uid, gid_t gid, bool nosuid, bool *secure)
{
	struct cred *c = cred_copy(old);
	bool setid, effective = false;

	if (!c)
		return NULL;
	if (!nosuid && !old->no_new_privs) {
		if (mode & S_ISUID)
			c->euid = uid;
		/* Without group execution the bit marks mandatory locking. */
		if ((mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP))
			c->egid = gid;
	}
	setid = c->euid != old->uid || c->egid != old->gid;
	c->cap_permitted = 0;
	if (!(c->securebits & SECBIT_NOROOT) && (c->euid == 0 || c->uid == 0)) {
		c->cap_permitted = c->cap_bounding | c->cap_inheritable;
		effective = c->euid == 0;
	}
	if (setid)
		c->cap_ambient = 0;
	c->cap_permitted |= c->cap_ambient;
	c->cap_effective = effective ? c->cap_permitted : c->cap_ambient;
	c->suid = c->fsuid = c->euid;
	c->sgid = c->fsgid = c->egid;
	c->securebits &= ~SECBIT_KEEP_CAPS;
	*secure = setid || (c->uid != 0 && (effective || (c->cap_permitted & ~c->cap_ambient)));
	return c;
}

bool cred_may_signal(const struct cred *c, const struct cred *target)
{
	return c->euid == target->suid || c->euid == target->uid || c->uid == target->suid ||
	       c->uid == target->uid || cred_has_cap(c, CAP_KILL);
}

bool cred_may_ptrace(const struct cred *c, const struct cred *target, bool dumpable)
{
	bool same = c->uid == target->uid && c->uid == target->euid && c->uid == target->suid &&
		    c->gid == target->gid && c->gid == target->egid && c->gid == target->sgid;

	if (cred_has_cap(c, CAP_SYS_PTRACE))
		return true;
	return same && dumpable && !(target->cap_permitted & ~c->cap_permitted);
}
