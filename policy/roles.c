/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/roles.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "policy/roles_priv.h"
#include "policy/seccomp/load.h"

struct policy_state policy_state;

void policy_set_options(const struct policy_options *o)
{
	policy_state.options = *o;
}

const struct policy_obtained *policy_obtained(void)
{
	return &policy_state.obtained;
}

static int no_new_privs(struct sbx_err *err)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return sbx_fail(err, -errno, "no_new_privs");
	return 0;
}

/* The monitor starts helpers in sessions of their own; this is for those that are started
 * otherwise. */
static int session(struct sbx_err *err)
{
	(void)setsid(); /* fails for a session leader, which is what is wanted */
	return 0;
}

static int die_with_parent(struct sbx_err *err)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return sbx_fail(err, -errno, "parent death signal");
	/* A parent that died before that shows as the end of the control socket. */
	return 0;
}

static int no_core(struct sbx_err *err)
{
	const struct rlimit none = { 0, 0 };

	if (setrlimit(RLIMIT_CORE, &none) < 0)
		return sbx_fail(err, -errno, "core limit");
	umask(0);
	return 0;
}

static int not_dumpable(struct sbx_err *err)
{
	if (prctl(PR_SET_DUMPABLE, 0) < 0)
		return sbx_fail(err, -errno, "dumpable");
	return 0;
}

static int load(enum seccomp_filter_id id, struct sbx_err *err)
{
	int r = seccomp_filter_load(id, policy_state.options.log_filter);

	return r ? sbx_fail(err, r, "system call filter") : 0;
}

static int filter_sbx(struct sbx_err *err)
{
	return load(FILTER_SBX, err);
}

static int filter_sentry(struct sbx_err *err)
{
	static const struct {
		const char *platform;
		enum seccomp_filter_id filter;
	} of[] = {
		{ "unotify", FILTER_SENTRY },
		{ "ptrace", FILTER_SENTRY_PTRACE },
		{ "kvm", FILTER_SENTRY_KVM },
	};
	const char *platform = policy_state.options.platform;

	for (size_t i = 0; platform && i < ARRAY_SIZE(of); i++)
		if (!strcmp(platform, of[i].platform))
			return load(of[i].filter, err);
	return sbx_fail(err, 0, "no system call filter for platform '%s'", platform ? platform : "");
}

static int filter_gofer(struct sbx_err *err)
{
	return load(FILTER_GOFER, err);
}

/* In the order in which they are done. */
static const struct {
	enum role role;
	enum stage stage;
	int (*fn)(struct sbx_err *err);
} steps[] = {
	{ ROLE_SBX, STAGE_INITIAL, no_new_privs },
	{ ROLE_SBX, STAGE_STEADY, filter_sbx },

	{ ROLE_SENTRY, STAGE_INITIAL, session },
	{ ROLE_SENTRY, STAGE_INITIAL, no_new_privs },
	{ ROLE_SENTRY, STAGE_INITIAL, no_core },
	{ ROLE_SENTRY, STAGE_IDENTITY, policy_step_namespaces },
	{ ROLE_SENTRY, STAGE_IDENTITY, policy_step_landlock },
	{ ROLE_SENTRY, STAGE_IDENTITY, die_with_parent }, /* a change of ids clears it */
	{ ROLE_SENTRY, STAGE_CONFINED, policy_step_empty_root },
	{ ROLE_SENTRY, STAGE_STEADY, policy_step_no_caps },
	{ ROLE_SENTRY, STAGE_STEADY, not_dumpable },
	{ ROLE_SENTRY, STAGE_STEADY, filter_sentry },

	/* gofer/confine.c does what depends on the grants in between. */
	{ ROLE_GOFER, STAGE_INITIAL, session },
	{ ROLE_GOFER, STAGE_INITIAL, no_core },
	{ ROLE_GOFER, STAGE_INITIAL, die_with_parent },
	{ ROLE_GOFER, STAGE_STEADY, no_new_privs },
	{ ROLE_GOFER, STAGE_STEADY, not_dumpable },
	{ ROLE_GOFER, STAGE_STEADY, filter_gofer },

	/* A stub gives up all in its own start-up (platform/stub/boot.c): it has no libc to do it
	   with. */
};

int policy_enter(enum role role, enum stage stage, struct sbx_err *err)
{
	struct policy_state *s = &policy_state;

	if (stage <= s->stage || stage >= STAGE_COUNT)
		return sbx_fail(err, 0, "stages only go forward");
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		int r;

		if (steps[i].role != role || steps[i].stage <= s->stage || steps[i].stage > stage)
			continue;
		r = steps[i].fn(err);
		if (r)
			return r;
	}
	s->stage = stage;
	return 0;
}
