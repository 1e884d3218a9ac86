/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exec bans: rules on the resolved program and its arguments, and the default bans (policy/bans.c). They stop
 * mistakes, not attacks (a program can be copied under another name); what a program may do is decided where it acts.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "policy/match.h"
#include "sentry/control/control.h"
#include "sentry/kernel/kernel.h"
#include "sentry/loader/exec.h"

static struct exec_rule_list rules;
static bool bans;
static bool hit;

/* The rules borrow the configuration's strings, which live as long as the process. */
int exec_policy_init(const Sbx__Control__SentryConfig *cfg)
{
	bans = cfg->exec_bans;
	rules.v = calloc(cfg->n_exec_deny + 1, sizeof(*rules.v));
	if (!rules.v)
		return -ENOMEM;
	for (size_t i = 0; i < cfg->n_exec_deny; i++) {
		const Sbx__Control__ExecRule *r = cfg->exec_deny[i];

		rules.v[rules.n++] = (struct exec_rule){
			.id = r->id, .program = r->program, .reason = r->reason,
			.args = { .v = r->args, .n = r->n_args },
		};
	}
	return 0;
}

bool exec_policy_hit(void)
{
	return hit;
}

int exec_policy_check(struct task *t, const char *program, const struct exec_strings *strings)
{
	char *arg = strings->block, **argv;
	struct exec_verdict v;
	bool denied;

	if (!rules.n && !bans)
		return 0;
	argv = malloc((strings->argc + 1) * sizeof(*argv));
	if (!argv)
		return -ENOMEM;
	for (unsigned i = 0; i < strings->argc; i++, arg += strlen(arg) + 1)
		argv[i] = arg;
	argv[strings->argc] = NULL;
	denied = exec_rules_denied(&rules, program, argv, &v) || (bans && ban_denied(program, argv, &v));
	free(argv);
	if (!denied)
		return 0;
	hit = true;
	kernel.report->denial("exec", "execve", program, v.rule, v.reason);
	return -EACCES;
}
