/* SPDX-License-Identifier: Apache-2.0 */
/* What the helpers tell us. A message that does not parse, or that is not this helper's to send,
 * ends the sandbox. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/host/file.h"
#include "base/log.h"
#include "policy/audit.h"
#include "policy/hide.h"
#include "tools/monitor/monitor_priv.h"

/* Records of a helper in the audit log: more than the gofer sends, which keeps to a rate by itself. */
#define AUDIT_PER_SECOND 500u
#define AUDIT_BURST      2000u

/* Kept for the result, whatever the sentry sends. CHANGES_FIRST is a power of two. */
#define CHANGES_FIRST    64u
#define CHANGES_MAX      100000u
#define CHANGE_BYTES_MAX (8u << 20)
#define BACKGROUND_MAX   1000u

/* A copy in the result's pool. Control bytes stay: the JSON writer escapes them. */
static char *keep(struct run *r, const char *s)
{
	char *c = pool_strdup(&r->res->pool, s ? s : "");

	return c ? c : (char *)"";
}

static void on_started(struct run *r, struct helper *h, const Sbx__Control__Message *msg)
{
	const Sbx__Control__Started *m = msg->started;

	if (h == &r->gofer) {
		/* Only a failure is news: that it is ready the sentry finds out by talking to it.
		 */
		if (m->error[0]) {
			log_quote(r->gofer_error, sizeof(r->gofer_error), m->error,
			          strlen(m->error));
			run_fail(r, r->gofer_error);
		}
		return;
	}
	if (r->started)
		return;
	r->started = true;
	log_quote(r->res->platform, sizeof(r->res->platform), m->platform, strlen(m->platform));
	if (m->error[0]) {
		r->start_failed = true;
		r->res->exit_code = m->error_exit >= EXIT_SBX && m->error_exit <= EXIT_NOT_FOUND
		                            ? m->error_exit
		                            : EXIT_SBX;
		log_quote(r->res->message, sizeof(r->res->message), m->error, strlen(m->error));
		return; /* the last event says why */
	}
	events_started(&r->events, r->res);
}

/* May it stand between single quotes in a command that somebody pastes into a shell? The guest chose it. */
static bool shell_safe(const char *s)
{
	for (; *s; s++) {
		if (*s < 0x20 || *s >= 0x7f || *s == '\'')
			return false;
	}
	return true;
}

/* The option that would have allowed it, or "". */
static const char *request_for(const Sbx__Control__Denial *m, char *buf, size_t cap)
{
	bool write = strchr(m->op, 'w') || !strcmp(m->op, "create") || !strcmp(m->op, "unlink") ||
	             !strcmp(m->op, "rename") || !strcmp(m->op, "mkdir");

	buf[0] = '\0';
	if (strlen(m->object) > cap - 32 || !shell_safe(m->object))
		return buf;
	if (!strcmp(m->class_, "file") && m->object[0] == '/')
		snprintf(buf, cap, "sbx exec %s '%s'", write ? "--rw" : "--ro", m->object);
	else if (!strcmp(m->class_, "net"))
		snprintf(buf, cap, "sbx exec --allow '%s'", m->object);
	return buf;
}

/* @times: how often; a helper tells the same within a second once. */
static void count_denial(struct run *r, const Sbx__Control__Denial *m, uint32_t times)
{
	struct run_result *res = r->res;
	struct run_denial *d;
	char request[320];

	for (size_t i = 0; i < res->n_denials; i++) {
		d = &res->denials[i];
		if (strcmp(d->class, m->class_) || strcmp(d->target, m->object) ||
		    strcmp(d->rule, m->rule))
			continue;
		if (__builtin_add_overflow(d->count, times, &d->count))
			d->count = UINT32_MAX;
		return;
	}
	if (res->n_denials == DENIALS_MAX) {
		res->denials_lost++;
		return;
	}
	d = &res->denials[res->n_denials++];
	*d = (struct run_denial){ keep(r, m->class_),
		                  keep(r, m->object),
		                  keep(r, m->rule),
		                  keep(r, m->reason),
		                  keep(r, request_for(m, request, sizeof(request))),
		                  times };
	events_denial(&r->events, d);
}

/*
 * A guest decides how often it is denied something, and a hostile sentry what it tells: neither fills a disk with that.
 * What passes a helper's budget is counted, and the count is in the log.
 */
static void audit_of_helper(struct run *r, const struct helper *h, const struct audit_event *e)
{
	struct audit_budget *b = &r->audit_budget[h == &r->sentry];
	const uint64_t step = NSEC_PER_SEC / AUDIT_PER_SECOND;
	uint64_t n = (now_ns() - b->at_ns) / step;

	if (!r->spec->audit)
		return;
	b->at_ns += n * step;
	b->left = (uint32_t)MIN(b->left + n, (uint64_t)AUDIT_BURST);
	if (b->left) {
		b->left--;
		audit_write(r->spec->audit, r->res->id, e);
	} else {
		audit_skip(r->spec->audit);
	}
}

static void on_denial(struct run *r, struct helper *h, const Sbx__Control__Message *msg)
{
	const Sbx__Control__Denial *m = msg->denial;
	struct audit_event e = {
		.pid = m->pid,
		.exe = m->exe,
		.source = h == &r->sentry ? "sentry" : "gofer",
		.class = m->class_,
		.op = m->op,
		.object = m->object,
		.verdict = "deny",
		.rule = m->rule,
		.reason = m->reason,
		.count = 1,
	};

	count_denial(r, m, 1);
	audit_of_helper(r, h, &e);
}

/*
 * The sentry makes empty directories where hidden ones would be, and looks for them first. Nobody
 * in the guest is denied anything by that: what it finds there is the empty directory.
 */
static bool is_own_lookup(const struct run *r, const struct helper *h, const Sbx__Control__Audit *m)
{
	if (h != &r->gofer || strcmp(m->rule, "hide") || strcmp(m->op, "lookup"))
		return false;
	for (size_t i = 0; i < policy_hide_count; i++) {
		if (policy_hide_rows[i].empty_mode && !strcmp(policy_hide_rows[i].path, m->object))
			return true;
	}
	return false;
}

static void on_audit(struct run *r, struct helper *h, const Sbx__Control__Message *msg)
{
	const Sbx__Control__Audit *m = msg->audit;
	struct audit_event e = {
		.pid = m->pid,
		.exe = m->exe,
		.source = h == &r->sentry ? "sentry" : "gofer",
		.class = m->class_,
		.op = m->op,
		.object = m->object,
		.mode = m->mode,
		.verdict = m->verdict,
		.rule = m->rule,
		.reason = m->reason,
		.count = m->count,
	};

	if (is_own_lookup(r, h, m))
		return;
	if (!strcmp(m->verdict, "deny")) {
		Sbx__Control__Denial d = SBX__CONTROL__DENIAL__INIT;

		d.class_ = m->class_;
		d.op = m->op;
		d.object = m->object;
		d.rule = m->rule;
		d.reason = m->reason;
		count_denial(r, &d, MAX(m->count, 1u));
	}
	audit_of_helper(r, h, &e);
}

/* Room for one more change with a path of @len bytes? Doubles the list in the pool where it is full. */
static bool change_room(struct run *r, size_t len)
{
	struct run_result *res = r->res;
	size_t n = res->n_changes;
	struct run_change *v;

	if (n >= CHANGES_MAX || len > CHANGE_BYTES_MAX - r->change_bytes)
		return false;
	if (n & (n - 1) || (n && n < CHANGES_FIRST))
		return true;
	v = pool_alloc(&res->pool, (n ? 2 * n : CHANGES_FIRST) * sizeof(*v));
	if (!v)
		return false;
	if (n)
		memcpy(v, res->changes, n * sizeof(*v));
	res->changes = v;
	return true;
}

static void on_changes(struct run *r, struct helper *h, const Sbx__Control__Message *msg)
{
	const Sbx__Control__Changes *m = msg->changes;

	if (r->reported)
		return;
	for (size_t i = 0; i < m->n_changes; i++) {
		const Sbx__Control__Change *c = m->changes[i];
		size_t len = strlen(c->path) + strlen(c->op);

		if (!change_room(r, len)) {
			r->res->changes_lost++;
			continue;
		}
		r->change_bytes += len;
		r->res->changes[r->res->n_changes++] =
			(struct run_change){ keep(r, c->op), keep(r, c->path), c->bytes, c->mode };
	}
}

static void keep_background(struct run *r, const Sbx__Control__Exited *m)
{
	struct run_result *res = r->res;
	size_t n = MIN(m->n_background, (size_t)BACKGROUND_MAX);

	res->background = pool_alloc(&res->pool, n * sizeof(*res->background));
	for (size_t i = 0; res->background && i < n; i++) {
		res->background[i] = (struct run_background){ m->background[i]->pid,
			                                      keep(r, m->background[i]->cmd) };
		res->n_background++;
	}
}

/* Also of a guest that we stopped: then its status is our doing, and the rest is news. */
static void on_exited(struct run *r, struct helper *h, const Sbx__Control__Message *msg)
{
	const Sbx__Control__Exited *m = msg->exited;
	struct run_usage *u = &r->res->usage;

	if (r->reported)
		return;
	r->reported = true;
	r->exited = r->stop == STOP_NONE;
	r->wait_status = m->wait_status;
	r->hit_tasks = m->hit_task_limit;
	r->hit_disk = m->hit_disk_limit;
	r->hit_memory = m->hit_memory_limit;
	r->hit_cpu = m->hit_cpu_limit;
	r->banned = m->banned;
	*u = (struct run_usage){ m->cpu_user_ms, m->cpu_sys_ms, m->max_rss_kib * 1024,
		                 m->store_bytes, m->tasks_peak };
	keep_background(r, m);
	r->res->changes_lost += m->changes_dropped;
	if (m->counters[0])
		r->res->counters = keep(r, m->counters);
}

static void on_waiting(struct run *r, struct helper *h, const Sbx__Control__Message *msg)
{
	r->res->waiting_for_input = msg->waiting->waiting;
	events_waiting(&r->events, msg->waiting->waiting);
}

enum { FROM_SENTRY = 1, FROM_GOFER = 2 };

static const struct {
	Sbx__Control__Message__MCase type;
	unsigned from;
	void (*fn)(struct run *r, struct helper *h, const Sbx__Control__Message *msg);
} handlers[] = {
	{ SBX__CONTROL__MESSAGE__M_STARTED, FROM_SENTRY | FROM_GOFER, on_started },
	{ SBX__CONTROL__MESSAGE__M_CHANGES, FROM_SENTRY, on_changes },
	{ SBX__CONTROL__MESSAGE__M_EXITED, FROM_SENTRY, on_exited },
	{ SBX__CONTROL__MESSAGE__M_WAITING, FROM_SENTRY, on_waiting },
	{ SBX__CONTROL__MESSAGE__M_DENIAL, FROM_SENTRY | FROM_GOFER, on_denial },
	{ SBX__CONTROL__MESSAGE__M_AUDIT, FROM_SENTRY | FROM_GOFER, on_audit },
};

static bool dispatch(struct run *r, struct helper *h, const Sbx__Control__Message *m)
{
	unsigned from = h == &r->sentry ? FROM_SENTRY : FROM_GOFER;

	for (size_t i = 0; i < ARRAY_SIZE(handlers); i++) {
		if (handlers[i].type != m->m_case)
			continue;
		if (!(handlers[i].from & from))
			return false;
		handlers[i].fn(r, h, m);
		return true;
	}
	return false;
}

bool run_receive(struct run *r, struct helper *h)
{
	Sbx__Control__Message *m;
	int fds[WIRE_FDS_MAX], ret;
	unsigned n_fds;
	bool ok;

	if (h->control < 0)
		return false;
	ret = control_recv(h->control, &m, fds, &n_fds);
	if (ret == -EAGAIN)
		return false;
	if (ret <= 0) {
		/* End of file comes with the helper's death, which its pidfd reports. */
		host_close(h->control);
		h->control = -1;
		if (ret < 0 && ret != -ECONNRESET)
			run_fail(r, "a helper sent a broken message");
		return false;
	}
	while (n_fds)
		host_close(fds[--n_fds]); /* no message to us carries any */
	ok = dispatch(r, h, m);
	sbx__control__message__free_unpacked(m, NULL);
	if (!ok) {
		log_dbg(CH_MONITOR, "%s sent a message that is not its to send", h->name);
		run_fail(r, "a helper sent a message that is not its to send");
	}
	return ok;
}

void run_audit(struct run *r, const char *class, const char *op, const char *object,
               const char *verdict, const char *rule, const char *reason)
{
	struct audit_event e = {
		.source = "monitor",
		.class = class,
		.op = op,
		.object = object,
		.verdict = verdict,
		.rule = rule,
		.reason = reason,
		.count = 1,
	};

	if (r->spec->audit)
		audit_write(r->spec->audit, r->res->id, &e);
}
