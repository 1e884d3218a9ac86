/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The monitor: starts gofer and sentry, gives them their configuration, and holds what must not
 * depend on them: deadlines, limits, the audit log, the exit status. Nothing of a sandbox is alive
 * when monitor_run returns.
 */
#ifndef SBX_TOOLS_MONITOR_MONITOR_H
#define SBX_TOOLS_MONITOR_MONITOR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "policy/model.h"
#include "tools/monitor/output.h"

struct audit;
struct grant_set;

enum run_status {
	RUN_EXITED,
	RUN_SIGNALED,
	RUN_TIMEOUT,
	RUN_IDLE_TIMEOUT,
	RUN_OOM,
	RUN_TASK_LIMIT,
	RUN_DISK_LIMIT,
	RUN_BANNED,
	RUN_POLICY_KILLED,
	RUN_INTERNAL_ERROR,
	RUN_STATUS_COUNT,
};

/* Exit codes of sbx itself. */
#define EXIT_TIMEOUT 124
#define EXIT_SBX 125
#define EXIT_REFUSED 126
#define EXIT_NOT_FOUND 127

#define RUN_BAN_MESSAGE "Execution Denied: Command contains blacklisted host operations."

/* What to run. Everything is borrowed for the time of monitor_run. */
struct run_spec {
	const struct policy *policy;    /* complete */
	const struct grant_set *grants; /* the root first */
	char *const *argv;
	char *const *envp;
	const char *cwd;
	const char *home; /* made as an empty directory when nothing grants it; may be NULL */
	const char *platform;
	const char *debug_channels; /* may be NULL */
	bool strace;
	bool counters;                  /* ask the sentry for its counters at the end (tests) */
	bool no_userns;
	const char *cgroup; /* auto, none or a directory: see cgroup.h */
	bool stdin_pipe;     /* the guest gets our stdin; else its stdin is at end of file */
	bool capture;        /* keep output for the result */
	bool pass;           /* give output to our stdout and stderr */
	bool merge;          /* one stream for both */
	int events_fd;       /* -1: none */
	struct audit *audit; /* NULL: none */
};

#define DENIALS_MAX 256 /* different ones kept for the result */

struct run_denial {
	char *class, *target, *rule, *reason, *request;
	uint32_t count;
};

struct run_change {
	char *op, *path;
	uint64_t bytes;
	uint32_t mode;
};

struct run_background {
	uint32_t pid;
	char *cmd;
};

struct run_usage {
	uint64_t cpu_user_ms, cpu_sys_ms, max_rss, store_bytes; /* max_rss in bytes */
	uint32_t tasks_peak;
};

struct run_result {
	struct pool pool; /* of all strings */
	char id[27];
	enum run_status status;
	int exit_code; /* what sbx ends with */
	int signo;     /* of RUN_SIGNALED; else 0 */
	char message[512];
	char platform[32];
	struct output out[2]; /* stdout and stderr; merged: only the first */
	bool waiting_for_input;
	uint64_t duration_ms;
	struct run_usage usage;
	struct run_denial denials[DENIALS_MAX];
	size_t n_denials;
	uint64_t denials_lost; /* that found no room above; all are in the audit log */
	struct run_change *changes;
	size_t n_changes;
	uint64_t changes_lost;
	struct run_background *background;
	size_t n_background;
	char *counters; /* tests */
};

/*
 * Runs the sandbox to its end. Returns 0 with @res filled (also when the guest failed, timed out or
 * could not start); or -errno with @err when sbx itself could not do its work, @res then being
 * valid but empty. Changes signal mask and subreaper state of the process: for the main program
 * only. Free with run_result_fini.
 */
MUST_CHECK int monitor_run(const struct run_spec *spec, struct run_result *res,
                           struct sbx_err *err);

void run_result_fini(struct run_result *res);

#endif
