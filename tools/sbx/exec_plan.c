/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/host/file.h"
#include "base/log.h"
#include "policy/env.h"
#include "tools/sbx/exec_opts.h"

#define POLICY_FILE_MAX (1u << 20)
#define WORKSPACE_FILE ".sbx.json"
#define WORKSPACE_FILE_MAX (64u << 10)

extern char **environ;

int policy_load(struct policy *p, const char *path, bool own, struct sbx_err *err)
{
	size_t max = own ? WORKSPACE_FILE_MAX : POLICY_FILE_MAX, n = 0;
	int fd = host_open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | (own ? O_NOFOLLOW : 0), 0);
	struct stat st;
	char *buf;
	ssize_t r;

	if (fd == -ENOENT && own)
		return 1;
	if (fd < 0)
		return sbx_fail(err, fd, "policy '%s'", path);
	r = host_fstat(fd, &st);
	if (!r && !S_ISREG(st.st_mode))
		r = -EINVAL;
	buf = malloc(max + 1);
	if (!buf)
		r = -ENOMEM;
	while (!r && n <= max && (r = host_read(fd, buf + n, max + 1 - n)) > 0) {
		n += (size_t)r;
		r = 0;
	}
	host_close(fd);
	if (r < 0)
		r = sbx_fail(err, (int)r, "policy '%s'", path);
	else if (n > max)
		r = sbx_fail(err, -EFBIG, "policy '%s'", path);
	else if (policy_parse(p, buf, n, err))
		r = sbx_fail_in(err, "policy '%s'", path);
	free(buf);
	return (int)r;
}

/* The home directory and login name of the caller, without asking name services. */
static int find_identity(struct exec_plan *plan, struct sbx_err *err)
{
	const char *home = getenv("HOME"), *user = getenv("USER");

	if (plan->policy.user_set && plan->policy.uid == 0)
		user = "root";
	plan->home = home && home[0] == '/' && strlen(home) < PATH_MAX ? home : "/";
	plan->user = user && *user && strlen(user) < 256 ? user : getuid() ? "user" : "root";
	return 0;
}

/* The workspace's grant and the guest's first directory. */
static int add_workspace(struct exec_plan *plan, const struct exec_opts *o, struct sbx_err *err)
{
	enum policy_mode mode = o->cow ? POLICY_COW : POLICY_RW;
	char real[PATH_MAX];
	const char *why;

	if (!realpath(o->workspace ? o->workspace : ".", real))
		return sbx_fail(err, -errno, "workspace '%s'", o->workspace ? o->workspace : ".");
	plan->cwd = pool_strdup(&plan->policy.pool, real);
	if (!plan->cwd)
		return sbx_fail(err, -ENOMEM, "workspace");
	why = grant_refusal(real, mode, plan->home);
	if (why && o->workspace)
		return sbx_fail(err, 0, "workspace '%s': %s", real, why);
	if (why) {
		/* Where sbx happens to be started asks for nothing. */
		if (o->cow)
			return sbx_fail(
				err, 0,
				"--cow: the current directory '%s' cannot be the workspace: %s",
				real, why);
		log_warn(CH_MONITOR, "the current directory '%s' is not granted: %s", real, why);
		return 0;
	}
	if (policy_add_grant(&plan->policy, real, mode, true))
		return sbx_fail(err, -ENOMEM, "workspace");
	return 0;
}

static void warn_ignored(void *ctx, const char *key, const char *why)
{
	log_warn(CH_MONITOR, "%s: %s %s: ignored", WORKSPACE_FILE, key, why);
}

static int tighten_by_workspace(struct exec_plan *plan, struct sbx_err *err)
{
	struct policy ws;
	char path[PATH_MAX + sizeof(WORKSPACE_FILE) + 1];
	int r;

	snprintf(path, sizeof(path), "%s/%s", plan->cwd, WORKSPACE_FILE);
	r = policy_load(&ws, path, true, err);
	if (r)
		return r < 0 ? r : 0;
	plan->workspace_file = true;
	r = policy_tighten(&plan->policy, &ws, warn_ignored, NULL);
	policy_fini(&ws);
	return r ? sbx_fail(err, r, "%s", path) : 0;
}

static int merge_sources(struct exec_plan *plan, const struct exec_opts *o, struct sbx_err *err)
{
	struct policy *p = &plan->policy;
	struct policy file;
	int r;

	policy_init(p);
	if (o->policy_file) {
		r = policy_load(&file, o->policy_file, false, err);
		if (r)
			return r;
		plan->policy_source = o->policy_file;
		r = policy_merge(p, &file);
		policy_fini(&file);
		if (r)
			return sbx_fail(err, r, "policy '%s'", o->policy_file);
	}
	r = policy_merge(p, &o->cli);
	if (!r)
		r = policy_complete(p);
	return r ? sbx_fail(err, r, "policy") : 0;
}

int exec_plan_make(struct exec_plan *plan, const struct exec_opts *o, struct sbx_err *err)
{
	struct env_identity id;
	int r;

	*plan = (struct exec_plan){ 0 };
	r = merge_sources(plan, o, err);
	if (!r)
		r = find_identity(plan, err);
	if (!r)
		r = add_workspace(plan, o, err);
	if (!r)
		r = tighten_by_workspace(plan, err);
	if (!r)
		r = grants_build(&plan->grants, &plan->policy.pool, &plan->policy, plan->home, err);
	if (r)
		return r;
	id = (struct env_identity){ .home = plan->home, .user = plan->user };
	r = env_build(&plan->policy.pool, &plan->policy, &id, environ, &plan->env);
	return r ? sbx_fail(err, r, "environment") : 0;
}

void exec_plan_fini(struct exec_plan *plan)
{
	policy_fini(&plan->policy);
}
