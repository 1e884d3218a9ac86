/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which programs are refused. Rules look at the resolved program and its argument vector, never at
 * text inside an argument, except where that text is itself a command line (sh -c STRING). This is
 * a guard against accidents and clumsy instructions: a program can do by itself whatever a refused
 * one would have done, and it is the sandbox, not these rules, that makes that harmless.
 */
#ifndef SBX_POLICY_MATCH_H
#define SBX_POLICY_MATCH_H

#include <stdbool.h>

#include "policy/model.h"

struct exec_verdict {
	const char *rule; /* id; borrowed from the rule */
	const char *reason;
};

/*
 * True when running @program (absolute, or a bare name that was not looked up yet) with @argv (NULL
 * terminated) is refused, by @rules or by the default bans. @program NULL: argv[0].
 */
bool exec_denied(const struct exec_rule_list *rules, const char *program, char *const *argv,
                 struct exec_verdict *v);

/* The rules alone. */
bool exec_rules_denied(const struct exec_rule_list *rules, const char *program, char *const *argv,
                       struct exec_verdict *v);

/* The default bans alone; see bans.c for what they are. */
bool ban_denied(const char *program, char *const *argv, struct exec_verdict *v);

#endif
