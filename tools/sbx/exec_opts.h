/* SPDX-License-Identifier: Apache-2.0 */
/* What `sbx exec` is asked for: the command line, the policy file, the workspace's file, merged. */
#ifndef SBX_TOOLS_SBX_EXEC_OPTS_H
#define SBX_TOOLS_SBX_EXEC_OPTS_H

#include <stdbool.h>

#include "policy/model.h"
#include "tools/monitor/grants.h"
#include "tools/sbx/opt.h"

struct exec_opts {
	struct policy cli; /* of the command line alone */
	const char *policy_file;
	const char *workspace; /* NULL: the current directory */
	bool cow;
	const char *shell; /* NULL: argv mode */
	bool merge, stdin_pipe, strace, counters, no_userns;
	const char *platform, *debug, *cgroup;
	int json_fd, events_fd; /* -1: none */
};

extern const struct opt exec_opt_table[];
extern const size_t exec_opt_count;

void exec_opts_init(struct exec_opts *o);
void exec_opts_fini(struct exec_opts *o);

/* Everything resolved. */
struct exec_plan {
	struct policy policy; /* complete */
	struct grant_set grants;
	const char *home, *user;
	const char *cwd; /* in the guest */
	struct str_list env;
	const char *policy_source; /* for explain: file name or NULL */
	bool workspace_file;
};

/* Fills @plan (exec_plan_fini in any case). Returns 0 or -errno with @err. */
MUST_CHECK int exec_plan_make(struct exec_plan *plan, const struct exec_opts *o,
                              struct sbx_err *err);
void exec_plan_fini(struct exec_plan *plan);

/* Reads and parses a policy file. @own: one that the guest may have written. Returns 0, 1 when an
 * own file is not there, or -errno with @err. */
MUST_CHECK int policy_load(struct policy *p, const char *path, bool own, struct sbx_err *err);

#endif
