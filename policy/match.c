/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/match.h"

#include <string.h>

#include "base/glob.h"

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool some_arg_matches(const char *pattern, char *const *argv)
{
	for (size_t i = 1; argv[0] && argv[i]; i++) {
		if (glob_match(pattern, argv[i], 0))
			return true;
	}
	return false;
}

static bool rule_matches(const struct exec_rule *r, const char *program, char *const *argv)
{
	if (strchr(r->program, '/') ? !glob_match(r->program, program, GLOB_PATH)
	                            : !glob_match(r->program, base_name(program), 0))
		return false;
	for (size_t i = 0; i < r->args.n; i++) {
		if (!some_arg_matches(r->args.v[i], argv))
			return false;
	}
	return true;
}

bool exec_rules_denied(const struct exec_rule_list *rules, const char *program, char *const *argv,
                       struct exec_verdict *v)
{
	for (size_t i = 0; i < rules->n; i++) {
		const struct exec_rule *r = &rules->v[i];

		if (!rule_matches(r, program, argv))
			continue;
		*v = (struct exec_verdict){ r->id, r->reason };
		return true;
	}
	return false;
}

bool exec_denied(const struct exec_rule_list *rules, const char *program, char *const *argv,
                 struct exec_verdict *v)
{
	if (!program)
		program = argv[0];
	if (!program)
		return false;
	return exec_rules_denied(rules, program, argv, v) || ban_denied(program, argv, v);
}
