/* SPDX-License-Identifier: Apache-2.0 */
#include "sentry/syscalls/ids.h"

#include <errno.h>
#include <linux/capability.h>

#include "sentry/abi/process.h"
#include "sentry/kernel/cred.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/session.h"
#include "sentry/kernel/task.h"
#include "sentry/kernel/uaccess.h"

int64_t sys_getpid(struct task *t, const struct sysargs *a)
{
	(void)a;
	return t->tg->tgid;
}

int64_t sys_gettid(struct task *t, const struct sysargs *a)
{
	(void)a;
	return t->tid;
}

int64_t sys_getppid(struct task *t, const struct sysargs *a)
{
	(void)a;
	return t->tg->parent->tgid;
}

int64_t sys_getpgrp(struct task *t, const struct sysargs *a)
{
	(void)a;
	return t->tg->pgid;
}

int64_t sys_getpgid(struct task *t, const struct sysargs *a)
{
	return pgrp_get(t, ARG_INT(a, 0));
}

int64_t sys_setpgid(struct task *t, const struct sysargs *a)
{
	return pgrp_set(t, ARG_INT(a, 0), ARG_INT(a, 1));
}

int64_t sys_getsid(struct task *t, const struct sysargs *a)
{
	return session_get(t, ARG_INT(a, 0));
}

int64_t sys_setsid(struct task *t, const struct sysargs *a)
{
	(void)a;
	return session_create(t);
}

int64_t sys_getuid(struct task *t, const struct sysargs *a)
{
	(void)a;
	return t->cred->uid;
}

int64_t sys_geteuid(struct task *t, const struct sysargs *a)
{
	(void)a;
	return t->cred->euid;
}

int64_t sys_getgid(struct task *t, const struct sysargs *a)
{
	(void)a;
	return t->cred->gid;
}

int64_t sys_getegid(struct task *t, const struct sysargs *a)
{
	(void)a;
	return t->cred->egid;
}

static int copy_out_ids(struct task *t, const struct sysargs *a, const uint32_t ids[3])
{
	int r = 0;

	for (unsigned i = 0; i < 3 && r == 0; i++)
		r = copy_out(t, ARG_PTR(a, i), &ids[i], sizeof(ids[i]));
	return r;
}

int64_t sys_getresuid(struct task *t, const struct sysargs *a)
{
	const uint32_t ids[3] = { t->cred->uid, t->cred->euid, t->cred->suid };

	return copy_out_ids(t, a, ids);
}

int64_t sys_getresgid(struct task *t, const struct sysargs *a)
{
	const uint32_t ids[3] = { t->cred->gid, t->cred->egid, t->cred->sgid };

	return copy_out_ids(t, a, ids);
}

void task_commit_cred(struct task *t, struct cred *c)
{
	const struct cred *old = t->cred;

	if (old->euid != c->euid || old->egid != c->egid || old->fsuid != c->fsuid || old->fsgid != c->fsgid ||
	    (c->cap_permitted & ~old->cap_permitted)) {
		t->tg->dumpable = false;
		t->pdeath_signal = 0;
	}
	cred_put(t->cred);
	t->cred = c;
}

/* Ends a change: @r of the rule decides whether @c (consumed) is taken. */
static int64_t finish(struct task *t, struct cred *c, int r)
{
	if (r < 0)
		cred_put(c);
	else
		task_commit_cred(t, c);
	return r;
}

int64_t sys_setuid(struct task *t, const struct sysargs *a)
{
	struct cred *c = cred_copy(t->cred);

	return c ? finish(t, c, cred_setuid(c, ARG_U32(a, 0))) : -ENOMEM;
}

int64_t sys_setgid(struct task *t, const struct sysargs *a)
{
	struct cred *c = cred_copy(t->cred);

	return c ? finish(t, c, cred_setgid(c, ARG_U32(a, 0))) : -ENOMEM;
}

int64_t sys_setreuid(struct task *t, const struct sysargs *a)
{
	struct cred *c = cred_copy(t->cred);

	return c ? finish(t, c, cred_setreuid(c, ARG_U32(a, 0), ARG_U32(a, 1))) : -ENOMEM;
}

int64_t sys_setregid(struct task *t, const struct sysargs *a)
{
	struct cred *c = cred_copy(t->cred);

	return c ? finish(t, c, cred_setregid(c, ARG_U32(a, 0), ARG_U32(a, 1))) : -ENOMEM;
}

int64_t sys_setresuid(struct task *t, const struct sysargs *a)
{
	struct cred *c = cred_copy(t->cred);

	return c ? finish(t, c, cred_setresuid(c, ARG_U32(a, 0), ARG_U32(a, 1), ARG_U32(a, 2))) : -ENOMEM;
}

int64_t sys_setresgid(struct task *t, const struct sysargs *a)
{
	struct cred *c = cred_copy(t->cred);

	return c ? finish(t, c, cred_setresgid(c, ARG_U32(a, 0), ARG_U32(a, 1), ARG_U32(a, 2))) : -ENOMEM;
}

/* setfsuid(2) has no way to tell an error: it returns the old value. */
int64_t sys_setfsuid(struct task *t, const struct sysargs *a)
{
	struct cred *c = cred_copy(t->cred);
	uid_t old = t->cred->fsuid;

	if (c) {
		(void)cred_setfsuid(c, ARG_U32(a, 0));
		task_commit_cred(t, c);
	}
	return old;
}

int64_t sys_setfsgid(struct task *t, const struct sysargs *a)
{
	struct cred *c = cred_copy(t->cred);
	gid_t old = t->cred->fsgid;

	if (c) {
		(void)cred_setfsgid(c, ARG_U32(a, 0));
		task_commit_cred(t, c);
	}
	return old;
}

int64_t sys_getgroups(struct task *t, const struct sysargs *a)
{
	int n = ARG_INT(a, 0), have = (int)t->cred->n_groups;
	int r;

	if (n < 0 || (n && n < have))
		return -EINVAL;
	if (n) {
		r = copy_out(t, ARG_PTR(a, 1), t->cred->groups, (size_t)have * sizeof(gid_t));
		if (r < 0)
			return r;
	}
	return have;
}

int64_t sys_setgroups(struct task *t, const struct sysargs *a)
{
	uint32_t n = ARG_U32(a, 0);
	struct cred *c;
	int r = 0;

	if (!cred_has_cap(t->cred, CAP_SETGID))
		return -EPERM;
	if (n > NGROUPS_LIMIT)
		return -EINVAL;
	c = cred_copy(t->cred);
	if (!c)
		return -ENOMEM;
	c->n_groups = n;
	r = copy_in(t, ARG_PTR(a, 1), c->groups, n * sizeof(gid_t));
	for (uint32_t i = 0; r == 0 && i < n; i++) {
		if (c->groups[i] == (gid_t)-1)
			r = -EINVAL;
	}
	return finish(t, c, r);
}

/* How many 32-bit sets a version of the interface has; 0: unknown version. */
static unsigned cap_words(uint32_t version)
{
	switch (version) {
	case _LINUX_CAPABILITY_VERSION_1:
		return 1;
	case _LINUX_CAPABILITY_VERSION_2:
	case _LINUX_CAPABILITY_VERSION_3:
		return 2;
	default:
		return 0;
	}
}

/* Reads the header; for an unknown version tells ours, as capget(2) says. */
static int cap_header(struct task *t, uaddr_t uhdr, struct linux_cap_header *h, unsigned *words)
{
	uint32_t ours = _LINUX_CAPABILITY_VERSION_3;
	int r = copy_in(t, uhdr, h, sizeof(*h));

	if (r < 0)
		return r;
	*words = cap_words(h->version);
	if (*words)
		return 0;
	r = copy_out(t, uhdr, &ours, sizeof(ours));
	return r < 0 ? r : -EINVAL;
}

int64_t sys_capget(struct task *t, const struct sysargs *a)
{
	struct linux_cap_data d[2];
	struct linux_cap_header h;
	const struct cred *c;
	struct task *p;
	unsigned words;
	int r = cap_header(t, ARG_PTR(a, 0), &h, &words);

	/* A null data pointer only asks for the version. */
	if (r == -EINVAL && !ARG_PTR(a, 1))
		return 0;
	if (r < 0)
		return r;
	if (h.pid < 0)
		return -EINVAL;
	p = h.pid ? task_lookup(h.pid) : task_get(t);
	if (!p)
		return -ESRCH;
	c = p->cred;
	for (unsigned i = 0; i < 2; i++) {
		d[i].effective = (uint32_t)(c->cap_effective >> (32 * i));
		d[i].permitted = (uint32_t)(c->cap_permitted >> (32 * i));
		d[i].inheritable = (uint32_t)(c->cap_inheritable >> (32 * i));
	}
	task_put(p);
	return ARG_PTR(a, 1) ? copy_out(t, ARG_PTR(a, 1), d, words * sizeof(d[0])) : 0;
}

int64_t sys_capset(struct task *t, const struct sysargs *a)
{
	struct linux_cap_data d[2] = { { 0 } };
	struct linux_cap_header h;
	struct cred *c;
	unsigned words;
	int r = cap_header(t, ARG_PTR(a, 0), &h, &words);

	if (r < 0)
		return r;
	if (h.pid && h.pid != t->tid)
		return -EPERM;
	r = copy_in(t, ARG_PTR(a, 1), d, words * sizeof(d[0]));
	if (r < 0)
		return r;
	c = cred_copy(t->cred);
	if (!c)
		return -ENOMEM;
	r = cred_capset(c, ((uint64_t)d[1].effective << 32 | d[0].effective) & CAP_ALL,
			((uint64_t)d[1].permitted << 32 | d[0].permitted) & CAP_ALL,
			((uint64_t)d[1].inheritable << 32 | d[0].inheritable) & CAP_ALL);
	return finish(t, c, r);
}
