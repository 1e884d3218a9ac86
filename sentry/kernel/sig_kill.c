/* SPDX-License-Identifier: Apache-2.0 */
/* Whom kill(2) and its kin reach, and who may. */
#include <errno.h>
#include <linux/capability.h>
#include <limits.h>
#include <signal.h>

#include "sentry/abi/signal.h"
#include "sentry/kernel/cred.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/sig_deliver.h"
#include "sentry/kernel/sig_priv.h"

int sig_may_kill(const struct task *t, const struct task *target, int sig)
{
	const struct cred *c = t->cred, *o = target->cred;

	if (sig < 0 || sig > NSIG_LINUX)
		return -EINVAL;
	if (t->tg == target->tg || !o)
		return 0;
	if (c->euid == o->suid || c->euid == o->uid || c->uid == o->suid || c->uid == o->uid)
		return 0;
	if (cred_has_cap(c, CAP_KILL) || (sig == SIGCONT && t->tg->sid == target->tg->sid))
		return 0;
	return -EPERM;
}

/* A group with its dead leader still counts: a zombie can be signalled, without effect. */
static int may_kill_tgroup(const struct task *t, const struct tgroup *tg, int sig)
{
	const struct task *target = sig_any_task(tg);

	if (!target)
		target = tg->leader;
	if (target)
		return sig_may_kill(t, target, sig);
	if (sig < 0 || sig > NSIG_LINUX)
		return -EINVAL;
	return cred_has_cap(t->cred, CAP_KILL) ? 0 : -EPERM; /* init: it belongs to root */
}

static int kill_tgroup(struct task *t, struct tgroup *tg, int sig, const struct linux_siginfo *info)
{
	struct linux_siginfo user;
	int r = may_kill_tgroup(t, tg, sig);

	if (r < 0 || sig == 0)
		return r;
	if (!info) {
		sig_info_user(&user, t, sig, LINUX_SI_USER);
		info = &user;
	}
	return sig_send_tgroup(tg, sig, info);
}

static int kill_pgrp(struct task *t, pid_t pgid, int sig, const struct linux_siginfo *info)
{
	struct tgroup *tg;
	int r = -ESRCH, one;
	bool success = false;

	list_for_each_entry(tg, &kernel.tgroups, all_node) {
		if (tg->pgid != pgid)
			continue;
		one = kill_tgroup(t, tg, sig, info);
		success |= one == 0;
		r = one;
	}
	return success ? 0 : r;
}

static int kill_all(struct task *t, int sig, const struct linux_siginfo *info)
{
	struct tgroup *tg;
	int r = 0, one;
	bool any = false;

	list_for_each_entry(tg, &kernel.tgroups, all_node) {
		if (tg == kernel.init || tg == t->tg)
			continue;
		any = true;
		one = kill_tgroup(t, tg, sig, info);
		if (one != -EPERM)
			r = one;
	}
	return any ? r : -ESRCH;
}

int sig_kill(struct task *t, pid_t pid, int sig, const struct linux_siginfo *info)
{
	struct tgroup *tg;
	struct task *u;
	int r;

	if (pid == INT_MIN)
		return -ESRCH;
	if (pid == -1)
		return kill_all(t, sig, info);
	if (pid <= 0)
		return kill_pgrp(t, pid ? -pid : t->tg->pgid, sig, info);
	tg = tgroup_lookup(pid);
	if (!tg) {
		/* The number of any thread names its process. */
		u = task_lookup(pid);
		if (!u)
			return -ESRCH;
		tg = tgroup_get(u->tg);
		task_put(u);
	}
	r = kill_tgroup(t, tg, sig, info);
	tgroup_put(tg);
	return r;
}

int sig_kill_thread(struct task *t, pid_t tgid, pid_t tid, int sig,
		    const struct linux_siginfo *info)
{
	struct task *u = task_lookup(tid);
	struct linux_siginfo user;
	int r;

	if (!u || (tgid && u->tg->tgid != tgid)) {
		task_put(u);
		return -ESRCH;
	}
	if (!info) {
		sig_info_user(&user, t, sig, LINUX_SI_TKILL);
		info = &user;
	}
	r = sig_may_kill(t, u, sig);
	if (!r && sig)
		r = sig_send_task(u, sig, info);
	task_put(u);
	return r;
}
