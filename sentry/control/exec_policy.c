/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exec bans: rules on the resolved program and its arguments. They stop mistakes, not attacks (a program can be
 * copied under another name); what a program may do is decided where it acts.
 */
#include <errno.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "sentry/control/control.h"
#include "sentry/kernel/kernel.h"
#include "sentry/loader/exec.h"

static Sbx__Control__ExecRule **rules;
static size_t n_rules;
static bool hit;

void exec_policy_init(const Sbx__Control__SentryConfig *cfg)
{
	rules = cfg->exec_deny;
	n_rules = cfg->n_exec_deny;
}

bool exec_policy_hit(void)
{
	return hit;
}

static bool program_matches(const char *pattern, const char *program)
{
	const char *base = strrchr(program, '/');

	if (!pattern || !*pattern)
		return true;
	if (strchr(pattern, '/'))
		return !fnmatch(pattern, program, 0);
	return !fnmatch(pattern, base ? base + 1 : program, 0);
}

static bool some_arg_matches(const char *pattern, const struct exec_strings *s)
{
	const char *arg = s->block;

	for (unsigned i = 0; i < s->argc; i++, arg += strlen(arg) + 1) {
		if (i && !fnmatch(pattern, arg, 0))
			return true;
	}
	return false;
}

static bool rule_matches(const Sbx__Control__ExecRule *r, const char *program, const struct exec_strings *s)
{
	if (!program_matches(r->program, program))
		return false;
	for (size_t i = 0; i < r->n_args; i++) {
		if (!some_arg_matches(r->args[i], s))
			return false;
	}
	return true;
}

int exec_policy_check(struct task *t, const char *program, const struct exec_strings *strings)
{
	for (size_t i = 0; i < n_rules; i++) {
		if (rule_matches(rules[i], program, strings)) {
			hit = true;
			kernel.report->denial("exec", "execve", program, rules[i]->id, rules[i]->reason);
			return -EACCES;
		}
	}
	return 0;
}
