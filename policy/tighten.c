/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A workspace's own file (.sbx.json). The guest can write it, so it is taken over only where the
 * sandbox that results can do less than without it: lower limits and deadlines, more hidden and
 * protected names, more refused programs, a grant that is already there in a weaker mode, and
 * variables that nobody else set.
 */
#include <errno.h>
#include <string.h>

#include "policy/model.h"

struct tighten {
	struct policy *p;
	policy_warn_fn warn;
	void *ctx;
};

/* Takes @v when it is lower than *@cur. 0 in @zero_is_none fields is higher than any number. */
static void lower(struct tighten *t, const char *key, uint64_t *cur, uint64_t v, bool zero_is_none)
{
	if (v == POLICY_UNSET || v == *cur)
		return;
	if (zero_is_none ? v == 0 || (*cur != 0 && v > *cur) : v > *cur) {
		t->warn(t->ctx, key, "is weaker than what the caller asked for");
		return;
	}
	*cur = v;
}

static void tighten_grants(struct tighten *t, const struct policy *ws)
{
	for (size_t i = 0; i < ws->grants.n; i++) {
		const struct policy_grant *w = &ws->grants.v[i];
		bool known = false;

		for (size_t k = 0; k < t->p->grants.n; k++) {
			struct policy_grant *g = &t->p->grants.v[k];

			if (strcmp(g->path, w->path))
				continue;
			known = true;
			if (w->mode > g->mode || (w->exec && !g->exec)) {
				t->warn(t->ctx, "files.grants",
				        "asks for more than the caller gave");
				continue;
			}
			g->mode = w->mode;
			g->exec = w->exec;
		}
		if (!known)
			t->warn(t->ctx, "files.grants",
			        "names a path that the caller did not grant");
	}
}

static bool env_has(const struct str_list *l, const char *assignment)
{
	size_t len = strcspn(assignment, "=") + 1;

	for (size_t i = 0; i < l->n; i++) {
		if (!strncmp(l->v[i], assignment, len))
			return true;
	}
	return false;
}

static int tighten_env(struct tighten *t, const struct policy *ws)
{
	for (size_t i = 0; i < ws->env.n; i++) {
		if (env_has(&t->p->env, ws->env.v[i]))
			t->warn(t->ctx, "process.env", "sets a variable that the caller has set");
		else if (str_list_add(&t->p->pool, &t->p->env, ws->env.v[i]))
			return -ENOMEM;
	}
	if (ws->pass_env.n)
		t->warn(t->ctx, "process.pass_env", "cannot be asked for by a workspace");
	return 0;
}

int policy_tighten(struct policy *p, const struct policy *ws, policy_warn_fn warn, void *ctx)
{
	struct tighten t = { p, warn, ctx };
	struct policy lists;
	int r;

	if (ws->rootfs && strcmp(ws->rootfs, p->rootfs))
		warn(ctx, "files.rootfs", "cannot be chosen by a workspace");
	if (ws->user_set && (!p->user_set || ws->uid != p->uid || ws->gid != p->gid))
		warn(ctx, "process.user", "cannot be chosen by a workspace");
	if (ws->audit_file)
		warn(ctx, "audit.file", "cannot be chosen by a workspace");
	if (ws->audit_events == AUDIT_DENY && p->audit_events == AUDIT_ALL)
		warn(ctx, "audit.events", "is weaker than what the caller asked for");
	else if (ws->audit_events != AUDIT_UNSET)
		p->audit_events = ws->audit_events;

	lower(&t, "process.timeout_s", &p->timeout_ms, ws->timeout_ms, true);
	lower(&t, "process.idle_timeout_s", &p->idle_timeout_ms, ws->idle_timeout_ms, true);
	for (int i = 0; i < LIMIT_COUNT; i++)
		lower(&t, policy_limits[i].key, &p->limits[i], ws->limits[i],
		      policy_limits[i].zero_is_none);
	tighten_grants(&t, ws);
	r = tighten_env(&t, ws);
	if (r)
		return r;

	policy_init(&lists);
	lists.protect = ws->protect;
	lists.hide = ws->hide;
	lists.exec_deny = ws->exec_deny;
	return policy_merge(p, &lists);
}
