/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/monitor/result.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "policy/audit.h"
#include "tools/monitor/base64.h"

static const char *const status_names[] = {
	[RUN_EXITED] = "exited",
	[RUN_SIGNALED] = "signaled",
	[RUN_TIMEOUT] = "timeout",
	[RUN_IDLE_TIMEOUT] = "idle_timeout",
	[RUN_OOM] = "oom",
	[RUN_TASK_LIMIT] = "task_limit",
	[RUN_DISK_LIMIT] = "disk_limit",
	[RUN_BANNED] = "banned",
	[RUN_POLICY_KILLED] = "policy_killed",
	[RUN_INTERNAL_ERROR] = "internal_error",
};
static_assert(ARRAY_SIZE(status_names) == RUN_STATUS_COUNT, "a name for each status");

const char *result_status_name(enum run_status s)
{
	return status_names[s];
}

void result_new_id(char id[27])
{
	static const char digits[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
	struct timespec now;
	uint8_t rnd[10] = { 0 };
	uint64_t ms;

	clock_gettime(CLOCK_REALTIME, &now);
	ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
	/* 10 bytes come in one piece once the pool is ready; early in boot the time alone has to
	 * do. */
	if (getrandom(rnd, sizeof(rnd), GRND_NONBLOCK) < 0)
		memset(rnd, 0, sizeof(rnd));
	for (int i = 9; i >= 0; i--, ms >>= 5)
		id[i] = digits[ms & 31];
	for (unsigned i = 0; i < 16; i++) {
		unsigned bit = i * 5, v = (unsigned)rnd[bit / 8] << 8;

		if (bit / 8 + 1 < sizeof(rnd))
			v |= rnd[bit / 8 + 1];
		id[10 + i] = digits[v >> (11 - bit % 8) & 31];
	}
	id[26] = '\0';
}

void result_put_denial(struct jsonw *w, const char *key, const struct run_denial *d)
{
	jsonw_open(w, key, '{');
	jsonw_str(w, "class", d->class);
	jsonw_str(w, "target", d->target);
	jsonw_str(w, "rule", d->rule);
	jsonw_str(w, "reason", d->reason);
	jsonw_str(w, "request", d->request);
	jsonw_uint(w, "count", d->count);
	jsonw_close(w, '}');
}

static bool view_is_text(const struct output_view *v)
{
	return utf8_valid((const char *)v->head, v->head_len) &&
	       utf8_valid((const char *)v->tail, v->tail_len);
}

static void put_text(struct jsonw *w, const char *key, const struct output_view *v)
{
	struct strbuf s = { 0 };

	strbuf_add(&s, v->head, v->head_len);
	if (v->dropped)
		strbuf_printf(&s, "\n[sbx: %llu bytes dropped]\n", (unsigned long long)v->dropped);
	strbuf_add(&s, v->tail, v->tail_len);
	jsonw_strn(w, key, s.p, s.len);
	if (!strbuf_ok(&s))
		w->sb->failed = true;
	strbuf_fini(&s);
}

static void put_output(struct jsonw *w, struct run_result *res, bool merged)
{
	static const char *const separate[] = { "stdout", "stderr" };
	struct output_view v[2];
	bool is_text = true;
	int n = merged ? 1 : 2;

	for (int i = 0; i < n; i++) {
		output_view(&res->out[i], &v[i]);
		is_text = is_text && view_is_text(&v[i]);
	}
	for (int i = 0; i < n; i++) {
		const char *key = merged ? "output" : separate[i];

		if (is_text)
			put_text(w, key, &v[i]);
		else
			jsonw_base64(w, key, v[i].head, v[i].head_len, v[i].tail, v[i].tail_len);
	}
	jsonw_str(w, "encoding", is_text ? "utf-8" : "base64");
	jsonw_open(w, "truncated", '{');
	for (int i = 0; i < n; i++)
		jsonw_uint(w, merged ? "output" : separate[i], v[i].dropped);
	if (res->changes_lost)
		jsonw_uint(w, "changes", res->changes_lost);
	jsonw_close(w, '}');
}

static void put_usage(struct jsonw *w, const struct run_usage *u)
{
	jsonw_open(w, "usage", '{');
	jsonw_uint(w, "cpu_user_ms", u->cpu_user_ms);
	jsonw_uint(w, "cpu_sys_ms", u->cpu_sys_ms);
	jsonw_uint(w, "max_rss", u->max_rss);
	jsonw_uint(w, "tasks_peak", u->tasks_peak);
	jsonw_uint(w, "store_bytes", u->store_bytes);
	jsonw_uint(w, "net_rx", 0);
	jsonw_uint(w, "net_tx", 0);
	jsonw_close(w, '}');
}

static void put_lists(struct jsonw *w, const struct run_result *res)
{
	jsonw_open(w, "changes", '[');
	for (size_t i = 0; i < res->n_changes; i++) {
		const struct run_change *c = &res->changes[i];
		char mode[16];

		snprintf(mode, sizeof(mode), "%04o", c->mode & 07777);
		jsonw_open(w, NULL, '{');
		jsonw_str(w, "op", c->op);
		jsonw_str(w, "path", c->path);
		jsonw_uint(w, "bytes", c->bytes);
		jsonw_str(w, "mode", mode);
		jsonw_close(w, '}');
	}
	jsonw_close(w, ']');
	jsonw_open(w, "denials", '[');
	for (size_t i = 0; i < res->n_denials; i++)
		result_put_denial(w, NULL, &res->denials[i]);
	jsonw_close(w, ']');
	jsonw_open(w, "net", '[');
	jsonw_close(w, ']');
	jsonw_open(w, "background", '[');
	for (size_t i = 0; i < res->n_background; i++) {
		jsonw_open(w, NULL, '{');
		jsonw_uint(w, "pid", res->background[i].pid);
		jsonw_str(w, "cmd", res->background[i].cmd);
		jsonw_close(w, '}');
	}
	jsonw_close(w, ']');
}

static void put_audit(struct jsonw *w, const struct audit *audit)
{
	struct audit_range range;

	if (!audit) {
		jsonw_null(w, "audit");
		return;
	}
	audit_get_range(audit, &range);
	jsonw_open(w, "audit", '{');
	jsonw_uint(w, "first", range.first);
	jsonw_uint(w, "last", range.last);
	jsonw_str(w, "head", range.head);
	if (range.lost)
		jsonw_uint(w, "lost", range.lost);
	jsonw_close(w, '}');
}

void result_put(struct strbuf *sb, struct run_result *res, bool merged, const struct audit *audit)
{
	struct jsonw w = { .sb = sb };

	jsonw_open(&w, NULL, '{');
	jsonw_int(&w, "v", 1);
	jsonw_str(&w, "id", res->id);
	jsonw_int(&w, "exit_code", res->exit_code);
	if (res->signo)
		jsonw_int(&w, "signal", res->signo);
	else
		jsonw_null(&w, "signal");
	jsonw_str(&w, "status", status_names[res->status]);
	jsonw_str(&w, "message", res->message);
	put_output(&w, res, merged);
	jsonw_bool(&w, "waiting_for_input", res->waiting_for_input);
	jsonw_uint(&w, "duration_ms", res->duration_ms);
	put_usage(&w, &res->usage);
	put_lists(&w, res);
	jsonw_str(&w, "platform", res->platform);
	put_audit(&w, audit);
	jsonw_close(&w, '}');
	strbuf_putc(sb, '\n');
}

void run_result_fini(struct run_result *res)
{
	output_fini(&res->out[0]);
	output_fini(&res->out[1]);
	pool_fini(&res->pool);
}
