/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/monitor/config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "policy/hide.h"
#include "sentry/control/channel.h"
#include "tools/monitor/grants.h"

/* Protobuf structs of one message, on the heap for as long as it takes to send it. */
struct grant_msgs {
	Sbx__Control__Grant v[GRANTS_MAX];
	Sbx__Control__Grant *p[GRANTS_MAX];
};

static const Sbx__Control__GrantMode wire_modes[] = {
	[POLICY_RO] = SBX__CONTROL__GRANT_MODE__GRANT_RO,
	[POLICY_COW] = SBX__CONTROL__GRANT_MODE__GRANT_COW,
	[POLICY_RW] = SBX__CONTROL__GRANT_MODE__GRANT_RW,
};
static_assert(ARRAY_SIZE(wire_modes) == POLICY_RW + 1, "a value for each mode");

static char *text(const char *s)
{
	static char empty[1];

	return s ? (char *)s : empty; /* protobuf-c only reads it */
}

static void fill_grants(struct grant_msgs *m, const struct grant_set *set)
{
	for (size_t i = 0; i < set->n; i++) {
		const struct grant *g = &set->v[i];

		sbx__control__grant__init(&m->v[i]);
		m->v[i].id = g->id;
		m->v[i].path = g->path;
		m->v[i].guest_path = g->guest_path;
		m->v[i].mode = wire_modes[g->mode];
		m->v[i].exec = g->exec;
		m->v[i].root = g->root;
		m->v[i].only = (char **)(uintptr_t)g->only; /* protobuf-c only reads it */
		m->v[i].n_only = g->n_only;
		m->p[i] = &m->v[i];
	}
}

int config_send_gofer(int sock, const struct run_spec *spec)
{
	Sbx__Control__Message m = SBX__CONTROL__MESSAGE__INIT;
	Sbx__Control__GoferConfig c = SBX__CONTROL__GOFER_CONFIG__INIT;
	struct grant_msgs *grants = malloc(sizeof(*grants));
	int r;

	if (!grants)
		return -ENOMEM;
	fill_grants(grants, spec->grants);
	c.grants = grants->p;
	c.n_grants = spec->grants->n;
	c.hide = spec->grants->hide.v;
	c.n_hide = spec->grants->hide.n;
	c.protect = spec->grants->protect.v;
	c.n_protect = spec->grants->protect.n;
	c.log_channels = text(spec->debug_channels);
	c.audit_allows = spec->audit && spec->policy->audit_events == AUDIT_ALL;
	c.userns = !spec->no_userns;
	m.m_case = SBX__CONTROL__MESSAGE__M_GOFER_CONFIG;
	m.gofer_config = &c;
	r = control_send(sock, &m, NULL, 0);
	free(grants);
	return r;
}

#define MAKE_DIRS_MAX 64

struct dir_msgs {
	Sbx__Control__EmptyDir v[MAKE_DIRS_MAX];
	Sbx__Control__EmptyDir *p[MAKE_DIRS_MAX];
	size_t n;
};

static void add_dir(struct dir_msgs *d, const char *path, uint32_t mode, bool owned, bool hidden)
{
	Sbx__Control__EmptyDir *e = &d->v[d->n];

	if (d->n == MAKE_DIRS_MAX)
		return;
	sbx__control__empty_dir__init(e);
	e->path = (char *)path;
	e->mode = mode;
	e->owned = owned;
	e->hidden = hidden;
	d->p[d->n++] = e;
}

static void fill_dirs(struct dir_msgs *d, const struct run_spec *spec)
{
	d->n = 0;
	if (!strcmp(spec->policy->rootfs, "host")) {
		for (size_t i = 0; i < policy_hide_count; i++) {
			if (policy_hide_rows[i].empty_mode)
				add_dir(d, policy_hide_rows[i].path, policy_hide_rows[i].empty_mode,
				        false, true);
		}
	} else {
		add_dir(d, "/tmp", 01777, false, false);
	}
	if (spec->home && strcmp(spec->home, "/"))
		add_dir(d, spec->home, 0755, true, false);
}

struct rule_msgs {
	Sbx__Control__ExecRule *v, **p;
};

static int fill_rules(struct rule_msgs *m, const struct exec_rule_list *rules)
{
	m->v = calloc(rules->n + 1, sizeof(*m->v));
	m->p = calloc(rules->n + 1, sizeof(*m->p));
	if (!m->v || !m->p)
		return -ENOMEM;
	for (size_t i = 0; i < rules->n; i++) {
		const struct exec_rule *r = &rules->v[i];

		sbx__control__exec_rule__init(&m->v[i]);
		m->v[i].id = r->id;
		m->v[i].program = r->program;
		m->v[i].args = r->args.v;
		m->v[i].n_args = r->args.n;
		m->v[i].reason = r->reason;
		m->p[i] = &m->v[i];
	}
	return 0;
}

static void fill_limits(Sbx__Control__Limits *l, const struct policy *p)
{
	sbx__control__limits__init(l);
	l->memory = p->limits[LIMIT_MEMORY];
	l->disk = p->limits[LIMIT_DISK];
	l->inodes = p->limits[LIMIT_INODES];
	/* We count exactly, or nearly so; the sentry's count has waiting for a CPU in it: a second line. */
	l->cpu_ns = p->limits[LIMIT_CPU] ? (2 * p->limits[LIMIT_CPU] + 1000) * 1000000 : 0;
	l->tasks = (uint32_t)p->limits[LIMIT_TASKS];
	l->open_files = (uint32_t)p->limits[LIMIT_OPEN_FILES];
}

static size_t vec_len(char *const *v)
{
	size_t n = 0;

	while (v[n])
		n++;
	return n;
}

static void fill_sentry(Sbx__Control__SentryConfig *c, const struct run_spec *spec)
{
	const struct policy *p = spec->policy;

	c->argv = (char **)spec->argv;
	c->n_argv = vec_len(spec->argv);
	c->envp = (char **)spec->envp;
	c->n_envp = vec_len(spec->envp);
	c->cwd = text(spec->cwd);
	c->host_uid = getuid();
	c->host_gid = getgid();
	c->uid = p->user_set ? p->uid : c->host_uid;
	c->gid = p->user_set ? p->gid : c->host_gid;
	c->hostname = text("sbx");
	c->platform = text(spec->platform);
	c->log_channels = text(spec->debug_channels);
	c->no_userns = spec->no_userns;
	c->strace = spec->strace;
	c->counters = spec->counters;
	c->stdin_none = !spec->stdin_pipe;
	c->exec_bans = true;
	c->debug_filter = spec->debug_channels != NULL;
}

int config_send_sentry(int sock, const struct run_spec *spec, const struct config_fds *fds)
{
	Sbx__Control__Message m = SBX__CONTROL__MESSAGE__INIT;
	Sbx__Control__SentryConfig c = SBX__CONTROL__SENTRY_CONFIG__INIT;
	struct {
		Sbx__Control__Limits limits;
		struct grant_msgs grants;
		struct dir_msgs dirs;
	} *parts = malloc(sizeof(*parts));
	struct rule_msgs rules = { 0 };
	const int all[4] = { fds->stdio[0], fds->stdio[1], fds->stdio[2], fds->disk };
	int r = -ENOMEM;

	if (!parts || fill_rules(&rules, &spec->policy->exec_deny))
		goto out;
	fill_limits(&parts->limits, spec->policy);
	fill_grants(&parts->grants, spec->grants);
	fill_dirs(&parts->dirs, spec);
	fill_sentry(&c, spec);
	c.limits = &parts->limits;
	c.grants = parts->grants.p;
	c.n_grants = spec->grants->n;
	c.make_dirs = parts->dirs.p;
	c.n_make_dirs = parts->dirs.n;
	c.exec_deny = rules.p;
	c.n_exec_deny = spec->policy->exec_deny.n;
	m.m_case = SBX__CONTROL__MESSAGE__M_SENTRY_CONFIG;
	m.sentry_config = &c;
	c.store_disk = fds->disk >= 0;
	c.store_memory = fds->store_memory;
	r = control_send(sock, &m, all, c.store_disk ? 4 : 3);
out:
	free(rules.v);
	free(rules.p);
	free(parts);
	return r;
}
