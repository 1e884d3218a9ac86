/* SPDX-License-Identifier: Apache-2.0 */
#include "sentry/kernel/wait.h"

#include <errno.h>
#include <linux/wait.h>
#include <poll.h>
#include <signal.h>

#include "sentry/kernel/cred.h"
#include "sentry/kernel/restart.h"
#include "sentry/kernel/task_priv.h"

#define STATUS_STOPPED(sig) ((sig) << 8 | 0x7f)
#define STATUS_CONTINUED    0xffff
#define STATUS_SIG(st)      ((st) & 0x7f)
#define STATUS_CORE         0x80

static bool child_eligible(const struct task *t, const struct wait_request *rq, const struct tgroup *tg)
{
	if (rq->which == WAIT_PID && tg->tgid != rq->id)
		return false;
	if (rq->which == WAIT_PGID && tg->pgid != rq->id)
		return false;
	if ((rq->options & __WNOTHREAD) && tg->parent_tid != t->tid)
		return false;
	/* wait(2): a "clone" child is one that does not deliver SIGCHLD. */
	if (rq->options & __WALL)
		return true;
	return (tg->exit_signal != SIGCHLD) == !!(rq->options & __WCLONE);
}

static void fill(struct wait_result *res, const struct tgroup *tg, int code, int status, int wstatus)
{
	res->pid = tg->tgid;
	res->uid = tg->leader->cred->uid;
	res->code = code;
	res->status = status;
	res->wstatus = wstatus;
	tgroup_times(tg, &res->utime_ns, &res->stime_ns);
	res->utime_ns += tg->child_utime_ns;
	res->stime_ns += tg->child_stime_ns;
	res->max_rss_kib = tg->max_rss_kib > tg->child_max_rss_kib ? tg->max_rss_kib : tg->child_max_rss_kib;
}

static bool take_exit(struct tgroup *tg, const struct wait_request *rq, struct wait_result *res)
{
	int st = tgroup_exit_status(tg);

	if (STATUS_SIG(st))
		fill(res, tg, st & STATUS_CORE ? CLD_DUMPED : CLD_KILLED, STATUS_SIG(st), st);
	else
		fill(res, tg, CLD_EXITED, st >> 8 & 0xff, st);
	if (!(rq->options & WNOWAIT))
		tgroup_reap(tg);
	return true;
}

/* One event of one child, if it has any that is asked for. */
static bool take_event(struct tgroup *tg, const struct wait_request *rq, struct wait_result *res)
{
	if (tg->dead)
		return rq->options & WEXITED ? take_exit(tg, rq, res) : false;
	if ((rq->options & WSTOPPED) && tg->stopped && !tg->stop_reported) {
		fill(res, tg, CLD_STOPPED, tg->stop_signal, STATUS_STOPPED(tg->stop_signal));
		if (!(rq->options & WNOWAIT))
			tg->stop_reported = true;
		return true;
	}
	if ((rq->options & WCONTINUED) && tg->continued) {
		fill(res, tg, CLD_CONTINUED, SIGCONT, STATUS_CONTINUED);
		if (!(rq->options & WNOWAIT))
			tg->continued = false;
		return true;
	}
	return false;
}

int64_t task_wait(struct task *t, const struct wait_request *rq, struct wait_result *res)
{
	struct tgroup *tg;
	bool any = false;
	int r;

	list_for_each_entry(tg, &t->tg->children, sibling) {
		if (!child_eligible(t, rq, tg))
			continue;
		/* A dead child that is not waited for by exit is none to wait for. */
		any = any || !tg->dead || (rq->options & WEXITED);
		if (take_event(tg, rq, res))
			return res->pid;
	}
	if (!any)
		return -ECHILD;
	if (rq->options & WNOHANG)
		return 0;
	if (rq->nonblock)
		return -EAGAIN;
	r = task_wait_on(t, &t->tg->child_wq, POLLIN);
	return r < 0 ? r : task_block(t, -ERESTARTSYS);
}
