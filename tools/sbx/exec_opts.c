/* SPDX-License-Identifier: Apache-2.0 */
/* The options of `sbx exec`, in the order of its help. */
#include "tools/sbx/exec_opts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "policy/env.h"
#include "policy/units.h"

/* An absolute path for a policy: relative ones are meant from where the caller is. */
static int absolute(const char *path, char *out, struct sbx_err *err)
{
	size_t n;

	if (!*path)
		return sbx_fail(err, 0, "an empty path");
	if (path[0] == '/') {
		n = 0;
	} else {
		if (!getcwd(out, PATH_MAX))
			return sbx_fail(err, -errno, "current directory");
		n = strlen(out);
		out[n++] = '/';
	}
	if (n + strlen(path) >= PATH_MAX)
		return sbx_fail(err, -ENAMETOOLONG, "'%.64s...'", path);
	strcpy(out + n, path);
	return 0;
}

static int set_grant(void *ctx, const struct opt *o, const char *value, struct sbx_err *err)
{
	struct exec_opts *e = ctx;
	char path[PATH_MAX];
	int r = absolute(value, path, err);

	if (r)
		return r;
	if (policy_add_grant(&e->cli, path, (enum policy_mode)o->id, true))
		return sbx_fail(err, -ENOMEM, "'%s'", value);
	return 0;
}

static int set_rootfs(void *ctx, const struct opt *o, const char *value, struct sbx_err *err)
{
	struct exec_opts *e = ctx;
	char path[PATH_MAX];
	int r;

	if (strcmp(value, "host")) {
		r = absolute(value, path, err);
		if (r)
			return r;
		value = path;
	}
	e->cli.rootfs = pool_strdup(&e->cli.pool, value);
	return e->cli.rootfs ? 0 : sbx_fail(err, -ENOMEM, "'%s'", value);
}

static int set_env(void *ctx, const struct opt *o, const char *value, struct sbx_err *err)
{
	struct exec_opts *e = ctx;

	if (!env_name_valid(value, strcspn(value, "=")) || !strchr(value, '='))
		return sbx_fail(err, 0, "'%s' is not NAME=VALUE", value);
	return str_list_add(&e->cli.pool, &e->cli.env, value)
	               ? sbx_fail(err, -ENOMEM, "'%s'", value)
	               : 0;
}

static int set_pass_env(void *ctx, const struct opt *o, const char *value, struct sbx_err *err)
{
	struct exec_opts *e = ctx;

	if (!env_name_valid(value, strlen(value)))
		return sbx_fail(err, 0, "'%s' is no variable name", value);
	return str_list_add(&e->cli.pool, &e->cli.pass_env, value)
	               ? sbx_fail(err, -ENOMEM, "'%s'", value)
	               : 0;
}

static int set_time(void *ctx, const struct opt *o, const char *value, struct sbx_err *err)
{
	struct exec_opts *e = ctx;
	uint64_t ms;
	int r = units_parse_time(value, &ms);

	if (r || ms > POLICY_TIME_MAX_MS)
		return sbx_fail(err, 0, "'%s' is no time in seconds up to 30 days", value);
	*(o->id ? &e->cli.idle_timeout_ms : &e->cli.timeout_ms) = ms;
	return 0;
}

static int set_limit(void *ctx, const struct opt *o, const char *value, struct sbx_err *err)
{
	struct exec_opts *e = ctx;
	int r = policy_limit_parse(&e->cli, (enum policy_limit)o->id, value);

	if (r == -ERANGE)
		return sbx_fail(err, 0, "'%s' is out of range", value);
	return r ? sbx_fail(err, 0, "'%s' is no number with a unit", value) : 0;
}

static int set_user(void *ctx, const struct opt *o, const char *value, struct sbx_err *err)
{
	struct exec_opts *e = ctx;

	if (policy_user_parse(value ? value : "0:0", &e->cli.uid, &e->cli.gid))
		return sbx_fail(err, 0, "'%s' is not UID or UID:GID in numbers", value);
	e->cli.user_set = true;
	return 0;
}

static int set_audit(void *ctx, const struct opt *o, const char *value, struct sbx_err *err)
{
	struct exec_opts *e = ctx;
	char path[PATH_MAX];
	int r = absolute(value, path, err);

	if (r)
		return r;
	e->cli.audit_file = pool_strdup(&e->cli.pool, path);
	return e->cli.audit_file ? 0 : sbx_fail(err, -ENOMEM, "'%s'", value);
}

static int set_fd(void *ctx, const struct opt *o, const char *value, struct sbx_err *err)
{
	struct exec_opts *e = ctx;
	long fd = STDOUT_FILENO;
	char *end;

	if (value) {
		errno = 0;
		fd = strtol(value, &end, 10);
		if (errno || end == value || *end || fd < 0 || fd > INT_MAX)
			return sbx_fail(err, 0, "'%s' is no file descriptor", value);
	}
	if (fcntl((int)fd, F_GETFL) < 0 || (fcntl((int)fd, F_GETFL) & O_ACCMODE) == O_RDONLY)
		return sbx_fail(err, 0, "file descriptor %ld is not open for writing", fd);
	if (o->id && fd <= STDERR_FILENO)
		return sbx_fail(err, 0, "file descriptor %ld is a standard stream", fd);
	*(o->id ? &e->events_fd : &e->json_fd) = (int)fd;
	return 0;
}

static int set_stdin(void *ctx, const struct opt *o, const char *value, struct sbx_err *err)
{
	struct exec_opts *e = ctx;

	if (strcmp(value, "none") && strcmp(value, "pipe"))
		return sbx_fail(err, 0, "'%s' is neither none nor pipe", value);
	e->stdin_pipe = !strcmp(value, "pipe");
	return 0;
}

static int set_platform(void *ctx, const struct opt *o, const char *value, struct sbx_err *err)
{
	static const char *const names[] = { "auto", "unotify", "ptrace", "kvm" };
	struct exec_opts *e = ctx;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (!strcmp(names[i], value)) {
			e->platform = value;
			return 0;
		}
	}
	return sbx_fail(err, 0, "'%s' is none of auto, unotify, ptrace, kvm", value);
}

static int set_debug(void *ctx, const struct opt *o, const char *value, struct sbx_err *err)
{
	struct exec_opts *e = ctx;

	if (log_enable(value))
		return sbx_fail(err, 0, "'%s' names an unknown channel", value);
	e->debug = value;
	return 0;
}

/* So that nobody takes it for a wrong spelling, or counts on it. */
static int refuse_keep(void *ctx, const struct opt *o, const char *value, struct sbx_err *err)
{
	return sbx_fail(err, 0, "--keep is not built: nothing can use kept changes yet (sbx diff, commit, discard are missing)");
}

static int set_cgroup(void *ctx, const struct opt *o, const char *value, struct sbx_err *err)
{
	struct exec_opts *e = ctx;

	if (strcmp(value, "auto") && strcmp(value, "none") && value[0] != '/')
		return sbx_fail(err, 0, "'%s' is neither auto, none nor an absolute path", value);
	e->cgroup = value;
	return 0;
}

enum { STR_WORKSPACE, STR_POLICY, STR_SHELL };

static int set_string(void *ctx, const struct opt *o, const char *value, struct sbx_err *err)
{
	struct exec_opts *e = ctx;

	switch (o->id) {
	case STR_WORKSPACE:
		e->workspace = value;
		break;
	case STR_POLICY:
		e->policy_file = value;
		break;
	default:
		e->shell = value;
		break;
	}
	return 0;
}

enum { FLAG_COW, FLAG_MERGE, FLAG_STRACE, FLAG_COUNTERS, FLAG_NO_USERNS };

static int set_flag(void *ctx, const struct opt *o, const char *value, struct sbx_err *err)
{
	struct exec_opts *e = ctx;
	bool *const flags[] = {
		[FLAG_COW] = &e->cow,
		[FLAG_MERGE] = &e->merge,
		[FLAG_STRACE] = &e->strace,
		[FLAG_COUNTERS] = &e->counters,
		[FLAG_NO_USERNS] = &e->no_userns,
	};

	*flags[o->id] = true;
	return 0;
}

enum { GROUP_NONE, GROUP_USER };

const struct opt exec_opt_table[] = {
	{ "workspace", 'w', OPT_VALUE, set_string, STR_WORKSPACE, GROUP_NONE, "DIR",
	  "granted read-write at its own path, and where the command starts [current directory]" },
	{ "cow", 0, OPT_FLAG, set_flag, FLAG_COW, GROUP_NONE, NULL,
	  "changes to the workspace stay in the sandbox" },
	{ "ro", 0, OPT_VALUE, set_grant, POLICY_RO, GROUP_NONE, "PATH",
	  "grant a file or directory read-only" },
	{ "rw", 0, OPT_VALUE, set_grant, POLICY_RW, GROUP_NONE, "PATH",
	  "grant a file or directory read-write" },
	{ "cow-path", 0, OPT_VALUE, set_grant, POLICY_COW, GROUP_NONE, "PATH",
	  "grant a path, keep changes in the sandbox" },
	{ "rootfs", 0, OPT_VALUE, set_rootfs, 0, GROUP_NONE, "host|DIR",
	  "what the root file system is made from [host]" },
	{ "env", 'e', OPT_VALUE, set_env, 0, GROUP_NONE, "K=V", "set a variable" },
	{ "pass-env", 0, OPT_VALUE, set_pass_env, 0, GROUP_NONE, "K",
	  "pass a variable of the caller" },
	{ "timeout", 't', OPT_VALUE, set_time, 0, GROUP_NONE, "S",
	  "end after S seconds, 0: never [60]" },
	{ "idle-timeout", 0, OPT_VALUE, set_time, 1, GROUP_NONE, "S",
	  "end after S seconds without output [0: never]" },
	{ "memory", 0, OPT_VALUE, set_limit, LIMIT_MEMORY, GROUP_NONE, "SIZE",
	  "memory limit [2G]" },
	{ "tasks", 0, OPT_VALUE, set_limit, LIMIT_TASKS, GROUP_NONE, "N",
	  "limit of processes and threads [512]" },
	{ "disk", 0, OPT_VALUE, set_limit, LIMIT_DISK, GROUP_NONE, "SIZE",
	  "limit of data kept in the sandbox [4G]" },
	{ "inodes", 0, OPT_VALUE, set_limit, LIMIT_INODES, GROUP_NONE, "N",
	  "limit of files kept in the sandbox [200k]" },
	{ "cpu-time", 0, OPT_VALUE, set_limit, LIMIT_CPU, GROUP_NONE, "S",
	  "CPU time limit [none]" },
	{ "stdin", 0, OPT_VALUE, set_stdin, 0, GROUP_NONE, "none|pipe",
	  "at end of file, or the caller's [none]" },
	{ "user", 0, OPT_VALUE, set_user, 0, GROUP_USER, "UID[:GID]",
	  "who the guest is, inside [the caller]" },
	{ "root", 0, OPT_FLAG, set_user, 0, GROUP_USER, NULL, "same as --user 0:0" },
	{ "shell", 0, OPT_VALUE, set_string, STR_SHELL, GROUP_NONE, "STRING", "run sh -c STRING" },
	{ "merge-output", 0, OPT_FLAG, set_flag, FLAG_MERGE, GROUP_NONE, NULL,
	  "stderr goes where stdout goes" },
	{ "json", 0, OPT_OPTIONAL, set_fd, 0, GROUP_NONE, "FD",
	  "one result object at the end [1: instead of the output]" },
	{ "events", 0, OPT_VALUE, set_fd, 1, GROUP_NONE, "FD",
	  "a line of JSON for each thing that happens" },
	{ "policy", 0, OPT_VALUE, set_string, STR_POLICY, GROUP_NONE, "FILE",
	  "policy file; options add to it" },
	{ "platform", 0, OPT_VALUE, set_platform, 0, GROUP_NONE, "NAME",
	  "auto, unotify, ptrace or kvm [auto]" },
	{ "audit", 0, OPT_VALUE, set_audit, 0, GROUP_NONE, "FILE",
	  "append every decision to this log" },
	{ "no-userns", 0, OPT_FLAG, set_flag, FLAG_NO_USERNS, GROUP_NONE, NULL,
	  "do without user namespaces" },
	{ "keep", 0, OPT_FLAG, refuse_keep, 0, GROUP_NONE, NULL,
	  "keep the changes after the end (not built: refused)" },
	{ "cgroup", 0, OPT_VALUE, set_cgroup, 0, GROUP_NONE, "auto|none|DIR",
	  "where the sandbox's control group is made [auto]" },
	{ "debug", 0, OPT_VALUE, set_debug, 0, GROUP_NONE, "CHANNELS",
	  "log channels (core,mm,... or all) on stderr" },
	{ "strace", 0, OPT_FLAG, set_flag, FLAG_STRACE, GROUP_NONE, NULL,
	  "print the guest's system calls on stderr" },
	{ "counters", 0, OPT_FLAG, set_flag, FLAG_COUNTERS, GROUP_NONE, NULL,
	  "the kernel's counters at the end, in the result" },
};
const size_t exec_opt_count = ARRAY_SIZE(exec_opt_table);

void exec_opts_init(struct exec_opts *o)
{
	*o = (struct exec_opts){ .platform = "auto", .cgroup = "auto", .json_fd = -1, .events_fd = -1 };
	policy_init(&o->cli);
}

void exec_opts_fini(struct exec_opts *o)
{
	policy_fini(&o->cli);
}
