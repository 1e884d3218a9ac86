/* SPDX-License-Identifier: Apache-2.0 */
#include "sentry/kernel/session.h"

#include <errno.h>
#include <signal.h>

#include "sentry/kernel/kernel.h"
#include "sentry/kernel/pid.h"
#include "sentry/kernel/sig.h"
#include "sentry/kernel/task.h"

struct session_hooks session_hooks;

static void set_ids(struct tgroup *tg, pid_t pgid, pid_t sid)
{
	pid_pgrp_add(pgid, 1);
	pid_session_add(sid, 1);
	pid_pgrp_add(tg->pgid, -1);
	pid_session_add(tg->sid, -1);
	tg->pgid = pgid;
	tg->sid = sid;
}

/* The checks of setpgid(2) in the order of Linux. */
static int pgrp_set_check(const struct task *t, const struct task *p, pid_t pgid)
{
	const struct tgroup *self = t->tg, *tg = p->tg;
	pid_t sid;

	if (p->tid != tg->tgid)
		return -EINVAL;
	if (tg->parent == self) {
		if (tg->sid != self->sid)
			return -EPERM;
		if (tg->execed)
			return -EACCES;
	} else if (tg != self) {
		return -ESRCH;
	}
	if (tg->sid == tg->tgid)
		return -EPERM;
	if (pgid != tg->tgid && (!pgrp_exists(pgid, &sid) || sid != self->sid))
		return -EPERM;
	return 0;
}

int pgrp_set(struct task *t, pid_t pid, pid_t pgid)
{
	struct task *p;
	int r;

	if (!pid)
		pid = t->tg->tgid;
	if (!pgid)
		pgid = pid;
	if (pgid < 0)
		return -EINVAL;
	p = pid_task(pid);
	if (!p)
		return -ESRCH;
	r = pgrp_set_check(t, p, pgid);
	if (r == 0 && p->tg->pgid != pgid)
		set_ids(p->tg, pgid, p->tg->sid);
	return r;
}

pid_t pgrp_get(struct task *t, pid_t pid)
{
	struct task *p = pid ? pid_task(pid) : t;

	return p ? p->tg->pgid : -ESRCH;
}

pid_t session_get(struct task *t, pid_t pid)
{
	struct task *p = pid ? pid_task(pid) : t;

	return p ? p->tg->sid : -ESRCH;
}

pid_t session_create(struct task *t)
{
	struct tgroup *tg = t->tg;
	pid_t old = tg->sid;

	if (tg->sid == tg->tgid || pid_is_pgrp(tg->tgid))
		return -EPERM;
	set_ids(tg, tg->tgid, tg->tgid);
	if (session_hooks.left)
		session_hooks.left(tg, old);
	return tg->tgid;
}

bool pgrp_is_orphaned(pid_t pgid)
{
	struct tgroup *tg;

	list_for_each_entry(tg, &kernel.tgroups, all_node) {
		if (tg->pgid != pgid || tg->dead || !tg->parent || tg->parent == kernel.init)
			continue;
		if (tg->parent->pgid != pgid && tg->parent->sid == tg->sid)
			return false;
	}
	return true;
}

static bool pgrp_has_stopped(pid_t pgid)
{
	struct tgroup *tg;

	list_for_each_entry(tg, &kernel.tgroups, all_node) {
		if (tg->pgid == pgid && tg->stopped && !tg->dead)
			return true;
	}
	return false;
}

void pgrp_check_orphaned(struct tgroup *tg, const struct tgroup *parent)
{
	pid_t pgid = tg->pgid;

	if (!parent || parent->pgid == pgid || parent->sid != tg->sid)
		return;
	if (!pgrp_has_stopped(pgid) || !pgrp_is_orphaned(pgid))
		return;
	(void)sig_send_pgrp(pgid, SIGHUP, NULL); /* members whose queues are full have it pending */
	(void)sig_send_pgrp(pgid, SIGCONT, NULL);
}

void session_exit(struct tgroup *tg)
{
	if (tg->sid == tg->tgid && session_hooks.leader_exit)
		session_hooks.leader_exit(tg);
}
