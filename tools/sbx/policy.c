/* SPDX-License-Identifier: Apache-2.0 */
/* sbx policy check FILE; sbx policy explain [options of exec] */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/sbx/exec_opts.h"
#include "tools/sbx/verb.h"

static int check(int argc, char **argv)
{
	struct sbx_err err = { 0 };
	struct policy p;

	if (argc != 2)
		return verb_fail("usage: sbx policy check FILE");
	if (policy_load(&p, argv[1], false, &err))
		return verb_fail("%s", err.msg);
	policy_fini(&p);
	printf("%s: good\n", argv[1]);
	return 0;
}

static void explain_files(const struct exec_plan *plan)
{
	const struct grant_set *g = &plan->grants;

	printf("files\n");
	for (size_t i = 0; i < g->n; i++) {
		if (g->v[i].root)
			printf("  /  made from %s, changes stay in the sandbox\n", g->v[i].path);
		else
			printf("  %s  %s%s\n", g->v[i].path, policy_mode_name(g->v[i].mode),
			       g->v[i].exec ? "" : ", no programs");
	}
	printf("  hidden: %zu names", g->hide.n);
	for (size_t i = 0; i < plan->policy.hide.n; i++)
		printf("%s %s", i ? "," : ", added:", plan->policy.hide.v[i]);
	printf("\n  protected:");
	for (size_t i = 0; i < g->protect.n; i++)
		printf(" %s", g->protect.v[i]);
	printf("\n");
}

static void explain_process(const struct exec_plan *plan)
{
	const struct policy *p = &plan->policy;

	printf("process\n  starts in %s\n", plan->cwd);
	if (p->user_set)
		printf("  user %u, group %u\n", p->uid, p->gid);
	else
		printf("  user and group of the caller\n");
	printf("  timeout %g s, without output %g s (0: none)\n", (double)p->timeout_ms / 1000,
	       (double)p->idle_timeout_ms / 1000);
	for (int i = 0; i < LIMIT_COUNT; i++) {
		if (policy_limits[i].unit == UNIT_SECONDS)
			printf("  %s %g%s\n", policy_limits[i].key, (double)p->limits[i] / 1000,
			       p->limits[i] ? "" : " (none)");
		else
			printf("  %s %" PRIu64 "\n", policy_limits[i].key, p->limits[i]);
	}
	printf("  environment:");
	for (size_t i = 0; i < plan->env.n; i++)
		printf(" %.*s", (int)strcspn(plan->env.v[i], "="), plan->env.v[i]);
	printf("\n");
}

static void explain(const struct exec_plan *plan)
{
	const struct policy *p = &plan->policy;

	printf("sources: defaults%s%s, command line%s\n", plan->policy_source ? ", " : "",
	       plan->policy_source ? plan->policy_source : "",
	       plan->workspace_file ? ", the workspace's .sbx.json (it can only tighten)" : "");
	explain_files(plan);
	explain_process(plan);
	printf("exec\n  refused: the default bans");
	for (size_t i = 0; i < p->exec_deny.n; i++)
		printf(", %s (%s)", p->exec_deny.v[i].program, p->exec_deny.v[i].id);
	printf("\nnet\n  none\naudit\n  %s\n", p->audit_file ? p->audit_file : "no log");
}

static int explain_args(int argc, char **argv)
{
	static struct exec_plan plan;
	struct sbx_err err = { 0 };
	struct exec_opts o;
	int r;

	exec_opts_init(&o);
	r = opt_parse(exec_opt_table, exec_opt_count, argc, argv, &o, &err);
	if (r >= 0)
		r = exec_plan_make(&plan, &o, &err);
	if (r >= 0) {
		explain(&plan);
		r = 0;
	} else {
		r = verb_fail("%s", err.msg);
	}
	exec_plan_fini(&plan);
	exec_opts_fini(&o);
	return r;
}

static const struct {
	const char *name;
	int (*fn)(int argc, char **argv);
} actions[] = {
	{ "check", check },
	{ "explain", explain_args },
};

int verb_policy(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < ARRAY_SIZE(actions); i++) {
		if (!strcmp(argv[1], actions[i].name))
			return actions[i].fn(argc - 1, argv + 1);
	}
	return verb_fail("usage: sbx policy check FILE | explain [exec options]");
}
