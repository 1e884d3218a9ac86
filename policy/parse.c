/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policy file. Each object has a table of its keys; a parse function gets the value and sets
 * the policy. The position of what is looked at ("files.grants[0].mode") is kept for messages. Keys
 * of parts that this version cannot enforce are taken only when they ask for nothing, so that no
 * policy is silently weaker than it reads.
 */
#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/glob.h"
#include "base/log.h"
#include "policy/env.h"
#include "policy/model.h"
#include "policy/units.h"

#define POSITION_MAX 200
#define LIST_MAX 1000 /* elements of one array or object */
#define STRING_MAX 4096

struct parse {
	struct policy *p;
	struct sbx_err *err;
	char pos[POSITION_MAX]; /* of the current value */
	void *cur;              /* what nested tables fill: a grant, a rule */
};

struct key {
	const char *name;
	int (*fn)(struct parse *c, json_t *v);
	bool required;
};

static int PRINTF(2, 3) fail(struct parse *c, const char *fmt, ...)
{
	char msg[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	return sbx_fail(c->err, 0, "%s: %s", c->pos[0] ? c->pos : "policy", msg);
}

static int no_memory(struct parse *c)
{
	return sbx_fail(c->err, -ENOMEM, "policy");
}

/* Appends to the position; returns the old length for pos_pop. Names of unknown keys are made
 * printable. */
static size_t pos_push(struct parse *c, const char *name)
{
	size_t old = strlen(c->pos), n = old;

	if (n && n < POSITION_MAX - 1 && name[0] != '[')
		c->pos[n++] = '.';
	for (; *name && n < POSITION_MAX - 1; name++)
		c->pos[n++] = *name >= 0x20 && *name < 0x7f ? *name : '?';
	c->pos[n] = '\0';
	return old;
}

static void pos_pop(struct parse *c, size_t old)
{
	c->pos[old] = '\0';
}

static const struct key *find_key(const struct key *keys, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++) {
		if (!strcmp(keys[i].name, name))
			return &keys[i];
	}
	return NULL;
}

static int parse_object(struct parse *c, json_t *v, const struct key *keys, size_t n)
{
	const char *name;
	json_t *child;

	if (!json_is_object(v))
		return fail(c, "expected an object");
	json_object_foreach(v, name, child)
	{
		const struct key *k = find_key(keys, n, name);
		size_t old = pos_push(c, name);
		int r = k ? k->fn(c, child) : fail(c, "unknown key");

		if (r)
			return r;
		pos_pop(c, old);
	}
	for (size_t i = 0; i < n; i++) {
		if (keys[i].required && !json_object_get(v, keys[i].name))
			return fail(c, "\"%s\" is missing", keys[i].name);
	}
	return 0;
}

static int parse_array(struct parse *c, json_t *v, int (*fn)(struct parse *c, json_t *v))
{
	json_t *child;
	size_t i;

	if (!json_is_array(v))
		return fail(c, "expected an array");
	if (json_array_size(v) > LIST_MAX)
		return fail(c, "more than %d elements", LIST_MAX);
	json_array_foreach(v, i, child)
	{
		char index[24];
		size_t old;
		int r;

		snprintf(index, sizeof(index), "[%zu]", i);
		old = pos_push(c, index);
		r = fn(c, child);
		if (r)
			return r;
		pos_pop(c, old);
	}
	return 0;
}

/* A string without NUL, not too long. NULL after fail(). */
static const char *string(struct parse *c, json_t *v)
{
	if (!json_is_string(v)) {
		(void)fail(c, "expected a string");
		return NULL;
	}
	if (json_string_length(v) != strlen(json_string_value(v)) ||
	    json_string_length(v) > STRING_MAX) {
		(void)fail(c, "the string is too long or has a NUL in it");
		return NULL;
	}
	return json_string_value(v);
}

static int set_string(struct parse *c, json_t *v, char **to)
{
	const char *s = string(c, v);

	if (!s)
		return c->err->code;
	*to = pool_strdup(&c->p->pool, s);
	return *to ? 0 : no_memory(c);
}

static bool has_dot_component(const char *path)
{
	for (const char *p = path; (p = strchr(p, '/')); p++) {
		size_t n = strcspn(p + 1, "/");

		if ((n == 1 && p[1] == '.') || (n == 2 && p[1] == '.' && p[2] == '.'))
			return true;
	}
	return false;
}

/* An absolute path without "." and ".." components. */
static const char *abs_path(struct parse *c, json_t *v)
{
	const char *s = string(c, v);

	if (!s)
		return NULL;
	if (s[0] != '/' || has_dot_component(s)) {
		(void)fail(c, "expected an absolute path without \".\" and \"..\"");
		return NULL;
	}
	return s;
}

static int add_glob(struct parse *c, json_t *v, struct str_list *l)
{
	const char *s = string(c, v);

	if (!s)
		return c->err->code;
	if (!glob_valid(s))
		return fail(c, "not a pattern");
	return str_list_add(&c->p->pool, l, s) ? no_memory(c) : 0;
}

/* Nothing may be asked of a part that is not there. */
static int unsupported(struct parse *c)
{
	return sbx_fail(c->err, 0, "not supported yet: %s", c->pos);
}

static int only_empty(struct parse *c, json_t *v)
{
	if (!json_is_array(v) && !json_is_object(v))
		return fail(c, "expected an array or an object");
	return json_array_size(v) || json_object_size(v) ? unsupported(c) : 0;
}

static int only_deny(struct parse *c, json_t *v)
{
	const char *s = string(c, v);

	if (!s)
		return c->err->code;
	return strcmp(s, "deny") ? unsupported(c) : 0;
}

static int any_number(struct parse *c, json_t *v)
{
	return json_is_number(v) && json_number_value(v) >= 0 ? 0 : fail(c, "expected a number");
}

static int any_string(struct parse *c, json_t *v)
{
	return string(c, v) ? 0 : c->err->code;
}

/* files */

static int grant_path(struct parse *c, json_t *v)
{
	struct policy_grant *g = c->cur;
	const char *s = abs_path(c, v);

	g->path = (char *)s; /* borrowed from the document until the grant is added */
	return s ? 0 : c->err->code;
}

static int grant_mode(struct parse *c, json_t *v)
{
	struct policy_grant *g = c->cur;
	const char *s = string(c, v);
	int mode = s ? policy_mode_parse(s) : 0;

	if (!s)
		return c->err->code;
	if (mode < 0)
		return fail(c, "expected \"ro\", \"rw\" or \"cow\"");
	g->mode = (enum policy_mode)mode;
	return 0;
}

static int grant_exec(struct parse *c, json_t *v)
{
	struct policy_grant *g = c->cur;

	g->exec = json_is_true(v);
	return json_is_boolean(v) ? 0 : fail(c, "expected true or false");
}

static int parse_grant(struct parse *c, json_t *v)
{
	static const struct key keys[] = {
		{ "path", grant_path, .required = true },
		{ "mode", grant_mode, .required = true },
		{ "exec", grant_exec },
	};
	struct policy_grant g = { .exec = true };
	int r;

	c->cur = &g;
	r = parse_object(c, v, keys, ARRAY_SIZE(keys));
	c->cur = NULL;
	if (r)
		return r;
	return policy_add_grant(c->p, g.path, g.mode, g.exec) ? no_memory(c) : 0;
}

static int files_grants(struct parse *c, json_t *v)
{
	return parse_array(c, v, parse_grant);
}

static int files_rootfs(struct parse *c, json_t *v)
{
	const char *s = string(c, v);

	if (!s)
		return c->err->code;
	if (strcmp(s, "host") && !abs_path(c, v))
		return c->err->code;
	return set_string(c, v, &c->p->rootfs);
}

static int protect_element(struct parse *c, json_t *v)
{
	return add_glob(c, v, &c->p->protect);
}

static int files_protect(struct parse *c, json_t *v)
{
	return parse_array(c, v, protect_element);
}

static int hide_element(struct parse *c, json_t *v)
{
	const char *s = abs_path(c, v);

	if (!s)
		return c->err->code;
	return str_list_add(&c->p->pool, &c->p->hide, s) ? no_memory(c) : 0;
}

static int files_hide(struct parse *c, json_t *v)
{
	return parse_array(c, v, hide_element);
}

static int parse_files(struct parse *c, json_t *v)
{
	static const struct key keys[] = {
		{ "rootfs", files_rootfs },
		{ "grants", files_grants },
		{ "protect", files_protect },
		{ "hide", files_hide },
	};

	return parse_object(c, v, keys, ARRAY_SIZE(keys));
}

/* process */

static int process_env(struct parse *c, json_t *v)
{
	const char *name;
	json_t *child;

	if (!json_is_object(v))
		return fail(c, "expected an object");
	json_object_foreach(v, name, child)
	{
		size_t old = pos_push(c, name);
		const char *value = string(c, child);
		char *assignment;

		if (!value)
			return c->err->code;
		if (!env_name_valid(name, strlen(name)))
			return fail(c, "not a variable name");
		assignment = pool_alloc(&c->p->pool, strlen(name) + strlen(value) + 2);
		if (!assignment)
			return no_memory(c);
		sprintf(assignment, "%s=%s", name, value);
		if (str_list_add(&c->p->pool, &c->p->env, assignment))
			return no_memory(c);
		pos_pop(c, old);
	}
	return 0;
}

static int pass_env_element(struct parse *c, json_t *v)
{
	const char *s = string(c, v);

	if (!s)
		return c->err->code;
	if (!env_name_valid(s, strlen(s)))
		return fail(c, "not a variable name");
	return str_list_add(&c->p->pool, &c->p->pass_env, s) ? no_memory(c) : 0;
}

static int process_pass_env(struct parse *c, json_t *v)
{
	return parse_array(c, v, pass_env_element);
}

static int process_user(struct parse *c, json_t *v)
{
	const char *s = string(c, v);

	if (!s)
		return c->err->code;
	if (policy_user_parse(s, &c->p->uid, &c->p->gid))
		return fail(c, "expected \"UID\" or \"UID:GID\" in numbers");
	c->p->user_set = true;
	return 0;
}

/* Seconds, as a number or a text with a unit. */
static int parse_time(struct parse *c, json_t *v, uint64_t *ms)
{
	double s = json_number_value(v);

	if (json_is_string(v)) {
		const char *t = string(c, v);

		if (!t)
			return c->err->code;
		if (units_parse_time(t, ms) || *ms > POLICY_TIME_MAX_MS)
			return fail(c, "expected seconds, up to 30 days");
		return 0;
	}
	if (!json_is_number(v))
		return fail(c, "expected a number of seconds");
	if (!(s >= 0 && s <= (double)(POLICY_TIME_MAX_MS / 1000)))
		return fail(c, "out of range (0 to %llu)",
		            (unsigned long long)(POLICY_TIME_MAX_MS / 1000));
	*ms = (uint64_t)(s * 1000 + 0.5);
	return 0;
}

static int process_timeout(struct parse *c, json_t *v)
{
	return parse_time(c, v, &c->p->timeout_ms);
}

static int process_idle(struct parse *c, json_t *v)
{
	return parse_time(c, v, &c->p->idle_timeout_ms);
}

static int parse_limit(struct parse *c, json_t *v, enum policy_limit l)
{
	const struct limit_desc *d = &policy_limits[l];
	uint64_t ms;
	int r;

	if (d->unit == UNIT_SECONDS) {
		r = parse_time(c, v, &ms);
		if (r)
			return r;
		r = policy_limit_set(c->p, l, ms);
	} else if (json_is_string(v)) {
		r = string(c, v) ? policy_limit_parse(c->p, l, json_string_value(v)) : -ERANGE;
	} else if (json_is_integer(v)) {
		r = json_integer_value(v) < 0
		            ? -ERANGE
		            : policy_limit_set(c->p, l, (uint64_t)json_integer_value(v));
	} else {
		r = -EINVAL;
	}
	if (r == -ERANGE)
		return fail(c, "out of range (%llu to %llu)", (unsigned long long)d->min,
		            (unsigned long long)d->max);
	return r ? fail(c, "expected a number, or a text like \"2G\"") : 0;
}

static int process_limits(struct parse *c, json_t *v)
{
	const char *name;
	json_t *child;

	if (!json_is_object(v))
		return fail(c, "expected an object");
	json_object_foreach(v, name, child)
	{
		size_t old = pos_push(c, name);
		int l = 0, r;

		while (l < LIMIT_COUNT && strcmp(policy_limits[l].key, name))
			l++;
		r = l < LIMIT_COUNT ? parse_limit(c, child, (enum policy_limit)l)
		                    : fail(c, "unknown key");
		if (r)
			return r;
		pos_pop(c, old);
	}
	return 0;
}

static int parse_process(struct parse *c, json_t *v)
{
	static const struct key keys[] = {
		{ "env", process_env },
		{ "pass_env", process_pass_env },
		{ "user", process_user },
		{ "timeout_s", process_timeout },
		{ "idle_timeout_s", process_idle },
		{ "limits", process_limits },
	};

	return parse_object(c, v, keys, ARRAY_SIZE(keys));
}

/* exec */

static int rule_program(struct parse *c, json_t *v)
{
	struct exec_rule *r = c->cur;
	const char *s = string(c, v);

	if (!s)
		return c->err->code;
	if (!glob_valid(s))
		return fail(c, "not a pattern");
	r->program = (char *)s;
	return 0;
}

static int rule_arg(struct parse *c, json_t *v)
{
	struct exec_rule *r = c->cur;

	return add_glob(c, v, &r->args);
}

static int rule_args(struct parse *c, json_t *v)
{
	return parse_array(c, v, rule_arg);
}

static int rule_reason(struct parse *c, json_t *v)
{
	struct exec_rule *r = c->cur;
	const char *s = string(c, v);

	r->reason = (char *)s;
	return s ? 0 : c->err->code;
}

static int parse_exec_rule(struct parse *c, json_t *v)
{
	static const struct key keys[] = {
		{ "program", rule_program, .required = true },
		{ "args", rule_args },
		{ "reason", rule_reason },
	};
	struct exec_rule rule = { .id = c->pos };
	int r;

	c->cur = &rule;
	r = parse_object(c, v, keys, ARRAY_SIZE(keys));
	c->cur = NULL;
	if (r)
		return r;
	return policy_add_exec_rule(c->p, &rule) ? no_memory(c) : 0;
}

static int exec_deny(struct parse *c, json_t *v)
{
	return parse_array(c, v, parse_exec_rule);
}

static int parse_exec(struct parse *c, json_t *v)
{
	static const struct key keys[] = { { "deny", exec_deny } };

	return parse_object(c, v, keys, ARRAY_SIZE(keys));
}

/* Parts that other programs will enforce. */

static int parse_net(struct parse *c, json_t *v)
{
	static const struct key keys[] = {
		{ "default", only_deny },
		{ "groups", only_empty },
		{ "rules", only_empty },
		{ "phase", any_string }, /* without rules every phase is the same */
	};

	return parse_object(c, v, keys, ARRAY_SIZE(keys));
}

static int parse_mcp(struct parse *c, json_t *v)
{
	static const struct key keys[] = { { "servers", only_empty } };

	return parse_object(c, v, keys, ARRAY_SIZE(keys));
}

static int parse_approve(struct parse *c, json_t *v)
{
	static const struct key keys[] = {
		{ "path", only_deny },
		{ "net", only_deny },
		{ "timeout_s", any_number },
	};

	return parse_object(c, v, keys, ARRAY_SIZE(keys));
}

/* audit */

static int audit_file(struct parse *c, json_t *v)
{
	if (!abs_path(c, v))
		return c->err->code;
	return set_string(c, v, &c->p->audit_file);
}

static int audit_events(struct parse *c, json_t *v)
{
	const char *s = string(c, v);

	if (!s)
		return c->err->code;
	if (strcmp(s, "all") && strcmp(s, "deny"))
		return fail(c, "expected \"all\" or \"deny\"");
	c->p->audit_events = strcmp(s, "all") ? AUDIT_DENY : AUDIT_ALL;
	return 0;
}

static int parse_audit(struct parse *c, json_t *v)
{
	static const struct key keys[] = {
		{ "file", audit_file },
		{ "events", audit_events },
	};

	return parse_object(c, v, keys, ARRAY_SIZE(keys));
}

static int parse_version(struct parse *c, json_t *v)
{
	if (!json_is_integer(v) || json_integer_value(v) != POLICY_VERSION)
		return fail(c, "expected %d", POLICY_VERSION);
	return 0;
}

static const struct key top_keys[] = {
	{ "version", parse_version, .required = true },
	{ "files", parse_files },
	{ "process", parse_process },
	{ "exec", parse_exec },
	{ "net", parse_net },
	{ "secrets", only_empty },
	{ "mcp", parse_mcp },
	{ "approve", parse_approve },
	{ "detect", only_empty },
	{ "audit", parse_audit },
};

int policy_parse(struct policy *p, const char *text, size_t len, struct sbx_err *err)
{
	struct parse c = { .p = p, .err = err };
	json_error_t je;
	char quoted[JSON_ERROR_TEXT_LENGTH];
	json_t *doc;
	int r;

	policy_init(p);
	doc = json_loadb(text, len, JSON_REJECT_DUPLICATES, &je);
	if (!doc)
		return sbx_fail(err, 0, "line %d, column %d: %s", je.line, je.column,
		                log_quote(quoted, sizeof(quoted), je.text, strlen(je.text)));
	r = parse_object(&c, doc, top_keys, ARRAY_SIZE(top_keys));
	json_decref(doc);
	if (r)
		policy_fini(p);
	return r;
}
