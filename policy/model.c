/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "policy/units.h"

#define KIB 1024ull
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)
#define TIB (1024 * GIB)

const struct limit_desc policy_limits[LIMIT_COUNT] = {
	[LIMIT_MEMORY] = { "memory", UNIT_BYTES, 4 * MIB, 64 * TIB, 2 * GIB },
	[LIMIT_TASKS] = { "tasks", UNIT_COUNT, 1, 32768, 512 },
	[LIMIT_DISK] = { "disk", UNIT_BYTES, 0, 1024 * TIB, 4 * GIB },
	[LIMIT_INODES] = { "inodes", UNIT_COUNT, 64, 1000000000, 200000 },
	[LIMIT_CPU] = { "cpu_s", UNIT_SECONDS, 0, POLICY_TIME_MAX_MS, 0, .zero_is_none = true },
	[LIMIT_OPEN_FILES] = { "open_files", UNIT_COUNT, 16, 1048576, 4096 },
};

static const char *const mode_names[] = {
	[POLICY_RO] = "ro",
	[POLICY_COW] = "cow",
	[POLICY_RW] = "rw",
};
static_assert(ARRAY_SIZE(mode_names) == POLICY_RW + 1, "a name for each mode");

void policy_init(struct policy *p)
{
	*p = (struct policy){ .timeout_ms = POLICY_UNSET, .idle_timeout_ms = POLICY_UNSET };
	for (int i = 0; i < LIMIT_COUNT; i++)
		p->limits[i] = POLICY_UNSET;
}

void policy_fini(struct policy *p)
{
	pool_fini(&p->pool);
	policy_init(p);
}

const char *policy_mode_name(enum policy_mode m)
{
	return mode_names[m];
}

int policy_mode_parse(const char *s)
{
	for (size_t i = 0; i < ARRAY_SIZE(mode_names); i++) {
		if (!strcmp(mode_names[i], s))
			return (int)i;
	}
	return -EINVAL;
}

/* Doubles an array in the pool when it is full. */
static void *grow(struct pool *pool, void *v, size_t n, size_t *cap, size_t size)
{
	size_t new_cap = *cap ? 2 * *cap : 8;
	void *r;

	if (n < *cap)
		return v;
	r = pool_alloc(pool, new_cap * size);
	if (!r)
		return NULL;
	if (n)
		memcpy(r, v, n * size);
	*cap = new_cap;
	return r;
}

int policy_add_grant(struct policy *p, const char *path, enum policy_mode mode, bool exec)
{
	struct grant_list *l = &p->grants;
	struct policy_grant *v = grow(&p->pool, l->v, l->n, &l->cap, sizeof(*v));
	char *copy = pool_strdup(&p->pool, path);

	if (!v || !copy)
		return -ENOMEM;
	l->v = v;
	v[l->n++] = (struct policy_grant){ .path = copy, .mode = mode, .exec = exec };
	return 0;
}

int policy_add_exec_rule(struct policy *p, const struct exec_rule *r)
{
	struct exec_rule_list *l = &p->exec_deny;
	struct exec_rule *v = grow(&p->pool, l->v, l->n, &l->cap, sizeof(*v));
	struct exec_rule copy = { 0 };

	if (!v)
		return -ENOMEM;
	l->v = v;
	copy.program = pool_strdup(&p->pool, r->program);
	copy.id = pool_strdup(&p->pool, r->id ? r->id : "exec.deny");
	copy.reason = pool_strdup(&p->pool, r->reason ? r->reason : "refused by the policy");
	if (!copy.program || !copy.id || !copy.reason)
		return -ENOMEM;
	for (size_t i = 0; i < r->args.n; i++) {
		if (str_list_add(&p->pool, &copy.args, r->args.v[i]))
			return -ENOMEM;
	}
	v[l->n++] = copy;
	return 0;
}

static int list_append(struct pool *pool, struct str_list *to, const struct str_list *from)
{
	for (size_t i = 0; i < from->n; i++) {
		if (str_list_add(pool, to, from->v[i]))
			return -ENOMEM;
	}
	return 0;
}

static int set_string(struct pool *pool, char **to, const char *from)
{
	if (!from)
		return 0;
	*to = pool_strdup(pool, from);
	return *to ? 0 : -ENOMEM;
}

static int merge_lists(struct policy *p, const struct policy *over)
{
	for (size_t i = 0; i < over->grants.n; i++) {
		const struct policy_grant *g = &over->grants.v[i];

		if (policy_add_grant(p, g->path, g->mode, g->exec))
			return -ENOMEM;
	}
	for (size_t i = 0; i < over->exec_deny.n; i++) {
		if (policy_add_exec_rule(p, &over->exec_deny.v[i]))
			return -ENOMEM;
	}
	if (list_append(&p->pool, &p->protect, &over->protect) ||
	    list_append(&p->pool, &p->hide, &over->hide) ||
	    list_append(&p->pool, &p->env, &over->env) ||
	    list_append(&p->pool, &p->pass_env, &over->pass_env))
		return -ENOMEM;
	return 0;
}

int policy_merge(struct policy *p, const struct policy *over)
{
	if (set_string(&p->pool, &p->rootfs, over->rootfs) ||
	    set_string(&p->pool, &p->audit_file, over->audit_file))
		return -ENOMEM;
	if (over->user_set) {
		p->user_set = true;
		p->uid = over->uid;
		p->gid = over->gid;
	}
	if (over->timeout_ms != POLICY_UNSET)
		p->timeout_ms = over->timeout_ms;
	if (over->idle_timeout_ms != POLICY_UNSET)
		p->idle_timeout_ms = over->idle_timeout_ms;
	for (int i = 0; i < LIMIT_COUNT; i++) {
		if (over->limits[i] != POLICY_UNSET)
			p->limits[i] = over->limits[i];
	}
	if (over->audit_events != AUDIT_UNSET)
		p->audit_events = over->audit_events;
	return merge_lists(p, over);
}

int policy_complete(struct policy *p)
{
	if (!p->rootfs && set_string(&p->pool, &p->rootfs, "host"))
		return -ENOMEM;
	if (p->timeout_ms == POLICY_UNSET)
		p->timeout_ms = 60000;
	if (p->idle_timeout_ms == POLICY_UNSET)
		p->idle_timeout_ms = 0;
	for (int i = 0; i < LIMIT_COUNT; i++) {
		if (p->limits[i] == POLICY_UNSET)
			p->limits[i] = policy_limits[i].def;
	}
	if (p->audit_events == AUDIT_UNSET)
		p->audit_events = AUDIT_ALL;
	return 0;
}

int policy_limit_set(struct policy *p, enum policy_limit l, uint64_t v)
{
	const struct limit_desc *d = &policy_limits[l];

	if (v < d->min || v > d->max)
		return -ERANGE;
	p->limits[l] = v;
	return 0;
}

int policy_limit_parse(struct policy *p, enum policy_limit l, const char *s)
{
	uint64_t v;
	int r = -EINVAL;

	switch (policy_limits[l].unit) {
	case UNIT_BYTES:
		r = units_parse_size(s, &v);
		break;
	case UNIT_COUNT:
		r = units_parse_count(s, &v);
		break;
	case UNIT_SECONDS:
		r = units_parse_time(s, &v);
		break;
	}
	return r ? r : policy_limit_set(p, l, v);
}

static int parse_id(const char *s, size_t len, uint32_t *id)
{
	uint64_t v = 0;

	if (!len || len > 10)
		return -EINVAL;
	for (size_t i = 0; i < len; i++) {
		if (s[i] < '0' || s[i] > '9')
			return -EINVAL;
		v = v * 10 + (uint64_t)(s[i] - '0');
	}
	if (v >= UINT32_MAX) /* (uid_t)-1 means "no change" to the kernel */
		return -ERANGE;
	*id = (uint32_t)v;
	return 0;
}

int policy_user_parse(const char *s, uint32_t *uid, uint32_t *gid)
{
	const char *colon = strchr(s, ':');
	int r = parse_id(s, colon ? (size_t)(colon - s) : strlen(s), uid);

	if (r)
		return r;
	if (!colon) {
		*gid = *uid;
		return 0;
	}
	return parse_id(colon + 1, strlen(colon + 1), gid);
}
