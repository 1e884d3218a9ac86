/* SPDX-License-Identifier: Apache-2.0 */
/* sbx exec: one command in a new sandbox. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/host/file.h"
#include "base/log.h"
#include "base/strbuf.h"
#include "policy/audit.h"
#include "policy/match.h"
#include "tools/monitor/events.h"
#include "tools/monitor/monitor.h"
#include "tools/monitor/result.h"
#include "tools/sbx/exec_opts.h"
#include "tools/sbx/verb.h"

static void write_all(int fd, const char *p, size_t len)
{
	while (len) {
		ssize_t n = host_write(fd, p, len);

		if (n < 0) {
			log_warn(CH_MONITOR, "result: %s", strerror((int)-n));
			return;
		}
		p += n;
		len -= (size_t)n;
	}
}

static void print_result(const struct exec_opts *o, struct run_result *res,
                         const struct audit *audit)
{
	struct strbuf sb = { 0 };

	if (res->message[0])
		verb_fail("%s", res->message);
	if (res->counters)
		fprintf(stderr, "sbx: counters: %s\n", res->counters);
	if (o->json_fd < 0)
		return;
	result_put(&sb, res, o->merge, audit);
	if (strbuf_ok(&sb))
		write_all(o->json_fd, sb.p, sb.len);
	else
		verb_fail("no memory for the result");
	strbuf_fini(&sb);
}

/* The first command is looked at here, so that a refused one starts nothing at all. */
static bool refuse_banned(const struct run_spec *spec, struct run_result *res)
{
	struct exec_verdict v;
	struct run_denial *d;
	struct audit_event e = {
		.source = "monitor", .class = "exec", .op = "exec", .verdict = "deny", .count = 1
	};

	if (!exec_denied(&spec->policy->exec_deny, spec->argv[0], spec->argv, &v))
		return false;
	*res = (struct run_result){ .status = RUN_BANNED, .exit_code = EXIT_REFUSED };
	result_new_id(res->id);
	snprintf(res->message, sizeof(res->message), "%s (%s: %s)", RUN_BAN_MESSAGE, v.rule,
	         v.reason);
	d = &res->denials[res->n_denials++];
	*d = (struct run_denial){ (char *)"exec",   spec->argv[0], (char *)v.rule,
		                  (char *)v.reason, (char *)"",    1 };
	e.object = spec->argv[0];
	e.rule = v.rule;
	e.reason = v.reason;
	if (spec->audit)
		audit_write(spec->audit, res->id, &e);
	return true;
}

/* The log is the one file that the sandbox must not be able to write. */
static int open_audit(const struct exec_plan *plan, struct audit **ret, struct sbx_err *err)
{
	const char *path = plan->policy.audit_file;
	char real[PATH_MAX];
	int r;

	if (!path)
		return 0;
	r = audit_open(path, ret, err);
	if (r)
		return r;
	if (!realpath(path, real))
		return sbx_fail(err, -errno, "audit log '%s'", path);
	if (grants_writable(&plan->grants, real))
		return sbx_fail(err, 0, "audit log '%s' lies in a read-write grant", real);
	return 0;
}

static int run(const struct exec_opts *o, struct exec_plan *plan, char **argv, struct sbx_err *err)
{
	char *shell_argv[] = { (char *)"sh", (char *)"-c", (char *)o->shell, NULL };
	struct run_spec spec = {
		.policy = &plan->policy,
		.grants = &plan->grants,
		.argv = o->shell ? shell_argv : argv,
		.envp = plan->env.v,
		.cwd = plan->cwd,
		.home = plan->home,
		.platform = o->platform,
		.debug_channels = o->debug,
		.strace = o->strace,
		.counters = o->counters,
		.no_userns = o->no_userns,
		.cgroup = o->cgroup,
		.stdin_pipe = o->stdin_pipe,
		.capture = o->json_fd >= 0,
		.pass = o->json_fd != STDOUT_FILENO,
		.merge = o->merge,
		.events_fd = o->events_fd,
	};
	static struct run_result res;
	int r = open_audit(plan, &spec.audit, err);
	bool refused;

	if (r)
		return r;
	refused = refuse_banned(&spec, &res);
	if (!refused)
		r = monitor_run(&spec, &res, err);
	if (r)
		snprintf(res.message, sizeof(res.message), "%s", err->msg);
	if (r || refused)
		events_refused(o->events_fd, &res);
	print_result(o, &res, spec.audit);
	r = res.exit_code;
	audit_close(spec.audit);
	run_result_fini(&res);
	return r;
}

/* Who asked for a result gets one, whatever went wrong. */
static int fail(const struct exec_opts *o, const struct sbx_err *err)
{
	static struct run_result res;

	res.status = RUN_INTERNAL_ERROR;
	res.exit_code = EXIT_SBX;
	result_new_id(res.id);
	snprintf(res.message, sizeof(res.message), "%s", err->msg);
	events_refused(o->events_fd, &res);
	print_result(o, &res, NULL);
	return EXIT_SBX;
}

int verb_exec(int argc, char **argv)
{
	static struct exec_plan plan;
	struct sbx_err err = { 0 };
	struct exec_opts o;
	int i, r;

	exec_opts_init(&o);
	i = opt_parse(exec_opt_table, exec_opt_count, argc, argv, &o, &err);
	r = i < 0 ? i : 0;
	if (!r && !o.shell && i == argc)
		r = sbx_fail(&err, 0, "no command (see sbx help exec)");
	if (!r && o.shell && i < argc)
		r = sbx_fail(&err, 0, "--shell and a command cannot be used together");
	if (!r)
		r = exec_plan_make(&plan, &o, &err);
	if (!r)
		r = run(&o, &plan, argv + i, &err);
	if (r < 0)
		r = fail(&o, &err);
	exec_plan_fini(&plan);
	exec_opts_fini(&o);
	return r;
}
