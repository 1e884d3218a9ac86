/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/env.h"

#include <errno.h>
#include <string.h>

/* What makes tools run to their end without a person: no pager, no editor, no prompt, no colour. */
static const char *const defaults[] = {
	"PATH=/usr/local/bin:/usr/bin:/bin",
	"TERM=dumb",
	"LC_ALL=C.UTF-8",
	"CI=true",
	"DEBIAN_FRONTEND=noninteractive",
	"NO_COLOR=1",
	"PAGER=cat",
	"GIT_PAGER=cat",
	"MANPAGER=cat",
	"SYSTEMD_PAGER=cat",
	"AWS_PAGER=",
	"GH_PAGER=cat",
	"GH_PROMPT_DISABLED=1",
	"EDITOR=true",
	"GIT_EDITOR=true",
	"GIT_TERMINAL_PROMPT=0",
	"SSH_ASKPASS=",
	"PIP_NO_INPUT=1",
	"npm_config_yes=true",
};

bool env_name_valid(const char *name, size_t len)
{
	if (!len)
		return false;
	for (size_t i = 0; i < len; i++) {
		if (name[i] == '=' || (unsigned char)name[i] < 0x20 || name[i] == 0x7f)
			return false;
	}
	return true;
}

static int env_set(struct pool *pool, struct str_list *out, const char *assignment)
{
	size_t len = strcspn(assignment, "=") + 1;

	for (size_t i = 0; i < out->n; i++) {
		if (strncmp(out->v[i], assignment, len))
			continue;
		out->v[i] = pool_strdup(pool, assignment);
		return out->v[i] ? 0 : -ENOMEM;
	}
	return str_list_add(pool, out, assignment);
}

static int env_set2(struct pool *pool, struct str_list *out, const char *name, const char *value)
{
	size_t n = strlen(name), m = strlen(value);
	char *s = pool_alloc(pool, n + m + 2);

	if (!s)
		return -ENOMEM;
	memcpy(s, name, n);
	s[n] = '=';
	memcpy(s + n + 1, value, m);
	return env_set(pool, out, s);
}

static int env_pass(struct pool *pool, struct str_list *out, const char *name,
                    char *const *host_env)
{
	size_t len = strlen(name);

	for (; *host_env; host_env++) {
		if (!strncmp(*host_env, name, len) && (*host_env)[len] == '=')
			return env_set(pool, out, *host_env);
	}
	return 0;
}

int env_build(struct pool *pool, const struct policy *p, const struct env_identity *id,
              char *const *host_env, struct str_list *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(defaults); i++) {
		if (env_set(pool, out, defaults[i]))
			return -ENOMEM;
	}
	if (env_set2(pool, out, "HOME", id->home) || env_set2(pool, out, "USER", id->user) ||
	    env_set2(pool, out, "LOGNAME", id->user))
		return -ENOMEM;
	for (size_t i = 0; i < p->pass_env.n; i++) {
		if (env_pass(pool, out, p->pass_env.v[i], host_env))
			return -ENOMEM;
	}
	for (size_t i = 0; i < p->env.n; i++) {
		if (env_set(pool, out, p->env.v[i]))
			return -ENOMEM;
	}
	return 0;
}
