/* SPDX-License-Identifier: Apache-2.0 */
#include "sentry/control/control.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>

#include "base/log.h"
#include "base/wire/wire.h"
#include "sentry/control/changes.h"
#include "sentry/control/channel.h"
#include "sentry/kernel/event.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/sig.h"
#include "sentry/kernel/task.h"
#include "sentry/vfs/dentry.h"
#include "sentry/vfs/vfs.h"

#define BACKGROUND_MAX    64                   /* processes named in the result */
#define BACKGROUND_BUDGET (WIRE_MSG_MAX / 4)   /* bytes of their names: the guest chooses those */
#define CHANGES_PER_MESSAGE (WIRE_MSG_MAX / 2)

static uint8_t send_buf[WIRE_MSG_MAX];
static const Sbx__Control__SentryConfig *config;
static bool reported; /* the last message was sent, or is being made */

static void send_message(const Sbx__Control__Message *msg)
{
	struct wire_msg w = { .buf = send_buf };
	int err;

	if (sbx__control__message__get_packed_size(msg) > sizeof(send_buf)) {
		log_err(CH_CORE, "message to the monitor is too long");
		return;
	}
	w.len = sbx__control__message__pack(msg, send_buf);
	err = wire_send(CONTROL_FD, &w);
	if (err)
		log_dbg(CH_CORE, "monitor does not listen: %s", strerror(-err));
}

int control_config(Sbx__Control__SentryConfig **cfg, int stdio[3], int *disk, struct sbx_err *err)
{
	int fds[WIRE_FDS_MAX];
	Sbx__Control__Message *msg;
	unsigned n;
	int r = control_recv_config(CONTROL_FD, &msg, fds, &n);

	if (r <= 0)
		return sbx_fail(err, r ? r : -EPIPE, "receive configuration");
	if (msg->m_case != SBX__CONTROL__MESSAGE__M_SENTRY_CONFIG || n != (msg->sentry_config->store_disk ? 4 : 3))
		return sbx_fail(err, -EPROTO, "first message is no configuration"); /* and the process ends */
	for (int i = 0; i < 3; i++)
		stdio[i] = fds[i];
	*disk = n == 4 ? fds[3] : -1;
	config = msg->sentry_config;
	*cfg = msg->sentry_config; /* never freed: it lives as long as the process */
	return 0;
}

static void report_end(int wait_status, bool stop);

static void handle_signal(const Sbx__Control__Signal *s)
{
	if (s->signo <= 0 || s->signo > NSIG_LINUX) {
		report_end(SIGKILL, true);
		kernel_shutdown(); /* when the end was reported before */
		return;
	}
	if (kernel.first)
		sig_send_tgroup(kernel.first, s->signo, NULL);
}

static void control_ready(struct hostfd_watch *watch, uint32_t events)
{
	static uint8_t buf[4096];
	struct wire_msg w = { .buf = buf, .cap = sizeof(buf) };
	Sbx__Control__Message *msg;
	int r = wire_recv(CONTROL_FD, &w);

	if (r <= 0) {
		kernel_shutdown(); /* the monitor is gone */
		return;
	}
	wire_close_fds(&w);
	msg = sbx__control__message__unpack(NULL, w.len, buf);
	if (msg && msg->m_case == SBX__CONTROL__MESSAGE__M_SIGNAL)
		handle_signal(msg->signal);
	else
		log_warn(CH_CORE, "unexpected message from the monitor");
	if (msg)
		sbx__control__message__free_unpacked(msg, NULL);
	if (hostfd_watch_arm(watch))
		kernel_shutdown();
}

static struct hostfd_watch control_watch = { .fd = CONTROL_FD, .events = EPOLLIN, .ready = control_ready };

int control_listen(struct sbx_err *err)
{
	int r = hostfd_watch_arm(&control_watch);

	return r ? sbx_fail(err, r, "watch the monitor") : 0;
}

void control_started(const char *platform, const char *note, const char *error, int code)
{
	Sbx__Control__Started s = SBX__CONTROL__STARTED__INIT;
	Sbx__Control__Message m = SBX__CONTROL__MESSAGE__INIT;

	s.platform = (char *)platform;
	s.note = (char *)note;
	s.error = (char *)error;
	s.error_exit = code;
	m.m_case = SBX__CONTROL__MESSAGE__M_STARTED;
	m.started = &s;
	send_message(&m);
}

static void report_denial(const char *cls, const char *op, const char *object, const char *rule, const char *reason)
{
	Sbx__Control__Denial d = SBX__CONTROL__DENIAL__INIT;
	Sbx__Control__Message m = SBX__CONTROL__MESSAGE__INIT;

	d.class_ = (char *)cls;
	d.op = (char *)op;
	d.object = (char *)object;
	d.rule = (char *)rule;
	d.reason = (char *)reason;
	m.m_case = SBX__CONTROL__MESSAGE__M_DENIAL;
	m.denial = &d;
	send_message(&m);
}

static void report_waiting(bool waiting)
{
	Sbx__Control__WaitingForInput w = SBX__CONTROL__WAITING_FOR_INPUT__INIT;
	Sbx__Control__Message m = SBX__CONTROL__MESSAGE__INIT;

	w.waiting = waiting;
	m.m_case = SBX__CONTROL__MESSAGE__M_WAITING;
	m.waiting = &w;
	send_message(&m);
}

/* What still runs beside the first process. The names are the caller's to free: the processes may not live as long. */
static unsigned list_background(Sbx__Control__Background *bg, Sbx__Control__Background **ptr, unsigned cap)
{
	size_t budget = BACKGROUND_BUDGET;
	struct tgroup *tg;
	unsigned n = 0;

	list_for_each_entry(tg, &kernel.tgroups, all_node) {
		if (tg == kernel.first || tg == kernel.init || tg->dead || n == cap)
			continue;
		sbx__control__background__init(&bg[n]);
		bg[n].pid = (uint32_t)tg->tgid;
		bg[n].cmd = strdup(tg->exe_path && strlen(tg->exe_path) < budget ? tg->exe_path : "");
		if (!bg[n].cmd)
			break;
		budget -= strlen(bg[n].cmd);
		ptr[n] = &bg[n];
		n++;
	}
	return n;
}

/* For the tests: what is left at the end. Unused dentries are no leak, nor what they hold. */
static void counters_json(char *buf, size_t cap)
{
	const struct kernel_counters *k = &kernel.counters;

	dcache_shrink(0);
	snprintf(buf, cap,
		 "{\"tasks\":%u,\"tgroups\":%u,\"files\":%u,\"vmas\":%u,\"mms\":%u,\"inodes\":%u,\"dentries\":%u,"
		 "\"ktimers\":%u,\"store_bytes\":%llu,\"store_inodes\":%llu}",
		 k->tasks, k->tgroups, k->files, k->vmas, k->mms, k->inodes, k->dentries, k->ktimers,
		 (unsigned long long)k->store_bytes, (unsigned long long)k->store_inodes);
}

/* Returns how many found no room. */
static uint64_t send_changes(void)
{
	struct change_list l;
	uint64_t dropped;

	if (change_list_fill(&l, CHANGES_BUDGET, config->make_dirs, config->n_make_dirs))
		log_warn(CH_CORE, "not all changes could be collected");
	for (size_t at = 0, n; at < l.n; at += n) {
		Sbx__Control__Message m = SBX__CONTROL__MESSAGE__INIT;
		Sbx__Control__Changes c = SBX__CONTROL__CHANGES__INIT;

		n = change_list_chunk(&l, at, CHANGES_PER_MESSAGE);
		c.changes = l.v + at;
		c.n_changes = n;
		m.m_case = SBX__CONTROL__MESSAGE__M_CHANGES;
		m.changes = &c;
		send_message(&m);
	}
	dropped = l.dropped;
	change_list_fini(&l);
	return dropped;
}

static void fill_counts(Sbx__Control__Exited *e)
{
	uint64_t user, sys;

	kernel_cpu_times(&user, &sys);
	e->cpu_user_ms = user / 1000000;
	e->cpu_sys_ms = sys / 1000000;
	e->tasks_peak = kernel.counters.tasks_peak;
	e->store_bytes = kernel.counters.store_bytes;
	e->hit_task_limit = kernel.counters.hit_task_limit;
	e->hit_disk_limit = kernel.counters.hit_disk_limit;
	e->hit_memory_limit = kernel.counters.hit_memory_limit;
	e->hit_cpu_limit = kernel.counters.hit_cpu_limit;
	e->banned = exec_policy_hit();
}

/* The last message. @stop: what still runs is listed, and killed before its changes are collected. */
static void report_end(int wait_status, bool stop)
{
	char counters[512];
	Sbx__Control__Background bg[BACKGROUND_MAX], *bg_ptr[BACKGROUND_MAX];
	Sbx__Control__Exited e = SBX__CONTROL__EXITED__INIT;
	Sbx__Control__Message m = SBX__CONTROL__MESSAGE__INIT;

	if (reported)
		return;
	reported = true;
	if (vfs_settle)
		vfs_settle();
	if (vfs_drop_ahead)
		vfs_drop_ahead();
	e.wait_status = wait_status;
	fill_counts(&e);
	if (config->counters) {
		counters_json(counters, sizeof(counters));
		e.counters = counters;
	}
	e.n_background = list_background(bg, bg_ptr, BACKGROUND_MAX);
	e.background = bg_ptr;
	if (stop)
		kernel_shutdown();
	e.changes_dropped = send_changes();
	m.m_case = SBX__CONTROL__MESSAGE__M_EXITED;
	m.exited = &e;
	send_message(&m);
	for (unsigned i = 0; i < e.n_background; i++)
		free(bg[i].cmd);
}

static void report_exited(int wait_status)
{
	report_end(wait_status, false);
}

const struct kernel_report_ops control_report_ops = {
	.denial = report_denial,
	.waiting_for_input = report_waiting,
	.exited = report_exited,
};
