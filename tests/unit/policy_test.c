/* SPDX-License-Identifier: Apache-2.0 */
/* The policy: parser, units, merging, tightening, environment. */
#include <errno.h>
#include <string.h>

#include "policy/env.h"
#include "policy/hide.h"
#include "policy/model.h"
#include "policy/units.h"
#include "tests/lib/tap.h"

static const char *const good[] = {
	"{\"version\":1}",
	"{\"version\":1,\"files\":{\"rootfs\":\"host\",\"grants\":[{\"path\":\"/srv/"
	"data\",\"mode\":\"ro\",\"exec\":false}],"
	"\"protect\":[\"**/.git/hooks/**\"],\"hide\":[\"/etc/ssh\"]}}",
	"{\"version\":1,\"process\":{\"env\":{\"K\":\"V\"},\"pass_env\":[\"LANG\"],\"user\":\"1000:"
	"1000\",\"timeout_s\":60,"
	"\"limits\":{\"memory\":\"2G\",\"tasks\":512,\"disk\":\"4G\",\"inodes\":200000,\"cpu_s\":0,"
	"\"open_files\":4096}}}",
	"{\"version\":1,\"exec\":{\"deny\":[{\"program\":\"dd\",\"args\":[\"of=/dev/"
	"*\"],\"reason\":\"writes a device\"}]}}",
	"{\"version\":1,\"net\":{\"default\":\"deny\",\"groups\":[],\"rules\":[],\"phase\":"
	"\"install\"},\"secrets\":{},"
	"\"mcp\":{\"servers\":{}},\"approve\":{\"path\":\"deny\",\"net\":\"deny\",\"timeout_s\":"
	"120},\"detect\":[]}",
	"{\"version\":1,\"audit\":{\"file\":\"/var/log/sbx\",\"events\":\"deny\"}}",
	"{\"version\":1,\"process\":{\"timeout_s\":\"5m\",\"idle_timeout_s\":0.5}}",
};

static const struct {
	const char *text, *want; /* a part of the message */
} bad[] = {
	{ "", "line" },
	{ "{", "line" },
	{ "[]", "policy: expected an object" },
	{ "{}", "\"version\" is missing" },
	{ "{\"version\":2}", "version: expected 1" },
	{ "{\"version\":1,\"version\":1}", "duplicate" },
	{ "{\"version\":1,\"file\":{}}", "file: unknown key" },
	{ "{\"version\":1,\"files\":{\"grant\":[]}}", "files.grant: unknown key" },
	{ "{\"version\":1,\"files\":{\"grants\":{}}}", "files.grants: expected an array" },
	{ "{\"version\":1,\"files\":{\"grants\":[{\"path\":\"/a\",\"mode\":\"ro\"},{\"path\":\"/"
	  "b\",\"mode\":\"x\"}]}}",
	  "files.grants[1].mode: expected" },
	{ "{\"version\":1,\"files\":{\"grants\":[{\"path\":\"a\",\"mode\":\"ro\"}]}}",
	  "files.grants[0].path: expected an abs" },
	{ "{\"version\":1,\"files\":{\"grants\":[{\"path\":\"/a/../b\",\"mode\":\"ro\"}]}}",
	  "files.grants[0].path" },
	{ "{\"version\":1,\"files\":{\"grants\":[{\"path\":\"/a/..\",\"mode\":\"ro\"}]}}",
	  "files.grants[0].path" },
	{ "{\"version\":1,\"files\":{\"grants\":[{\"path\":\"/a\"}]}}",
	  "files.grants[0]: \"mode\" is missing" },
	{ "{\"version\":1,\"files\":{\"grants\":[{\"path\":\"/a\",\"mode\":\"ro\",\"exec\":1}]}}",
	  "[0].exec: expected true" },
	{ "{\"version\":1,\"files\":{\"protect\":[\"[a\"]}}", "files.protect[0]: not a pattern" },
	{ "{\"version\":1,\"files\":{\"hide\":[\"etc\"]}}", "files.hide[0]" },
	{ "{\"version\":1,\"files\":{\"rootfs\":\"img\"}}", "files.rootfs" },
	{ "{\"version\":1,\"process\":{\"env\":{\"A\":1}}}", "process.env.A: expected a string" },
	{ "{\"version\":1,\"process\":{\"env\":{\"A=B\":\"\"}}}",
	  "process.env.A=B: not a variable" },
	{ "{\"version\":1,\"process\":{\"env\":{\"A\":\"x\\u0000y\"}}}", "line" },
	{ "{\"version\":1,\"process\":{\"pass_env\":[\"\"]}}", "process.pass_env[0]" },
	{ "{\"version\":1,\"process\":{\"user\":\"root\"}}", "process.user" },
	{ "{\"version\":1,\"process\":{\"user\":\"1:4294967295\"}}", "process.user" },
	{ "{\"version\":1,\"process\":{\"timeout_s\":-1}}", "process.timeout_s: out of range" },
	{ "{\"version\":1,\"process\":{\"timeout_s\":1e300}}", "process.timeout_s: out of range" },
	{ "{\"version\":1,\"process\":{\"limits\":{\"memory\":\"2X\"}}}",
	  "process.limits.memory: expected" },
	{ "{\"version\":1,\"process\":{\"limits\":{\"memory\":1}}}",
	  "process.limits.memory: out of range" },
	{ "{\"version\":1,\"process\":{\"limits\":{\"tasks\":0}}}",
	  "process.limits.tasks: out of range" },
	{ "{\"version\":1,\"process\":{\"limits\":{\"tasks\":-5}}}",
	  "process.limits.tasks: out of range" },
	{ "{\"version\":1,\"process\":{\"limits\":{\"tasks\":1.5}}}",
	  "process.limits.tasks: expected" },
	{ "{\"version\":1,\"process\":{\"limits\":{\"files\":1}}}",
	  "process.limits.files: unknown key" },
	{ "{\"version\":1,\"exec\":{\"deny\":[{\"args\":[]}]}}",
	  "exec.deny[0]: \"program\" is missing" },
	{ "{\"version\":1,\"exec\":{\"allow\":[]}}", "exec.allow: unknown key" },
	{ "{\"version\":1,\"net\":{\"default\":\"allow\"}}", "not supported yet: net.default" },
	{ "{\"version\":1,\"net\":{\"rules\":[{\"to\":\"a\"}]}}", "not supported yet: net.rules" },
	{ "{\"version\":1,\"net\":{\"groups\":[\"npm\"]}}", "not supported yet: net.groups" },
	{ "{\"version\":1,\"secrets\":{\"T\":{}}}", "not supported yet: secrets" },
	{ "{\"version\":1,\"mcp\":{\"servers\":{\"a\":{}}}}", "not supported yet: mcp.servers" },
	{ "{\"version\":1,\"approve\":{\"path\":\"ask\"}}", "not supported yet: approve.path" },
	{ "{\"version\":1,\"detect\":[{}]}", "not supported yet: detect" },
	{ "{\"version\":1,\"audit\":{\"events\":\"some\"}}", "audit.events" },
	{ "{\"version\":1,\"a\\u001b[31m\":1}", "a?[31m: unknown key" },
};

static void test_parse(void)
{
	struct sbx_err err;
	struct policy p;

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		int r = policy_parse(&p, good[i], strlen(good[i]), &err);

		if (!tap_ok(!r, "good policy %zu", i))
			printf("# %s\n", err.msg);
		if (!r)
			policy_fini(&p);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		err = (struct sbx_err){ 0 };
		if (!policy_parse(&p, bad[i].text, strlen(bad[i].text), &err)) {
			tap_ok(false, "refused: %s", bad[i].text);
			policy_fini(&p);
		} else if (!tap_ok(strstr(err.msg, bad[i].want), "refused: %.60s", bad[i].text)) {
			printf("# %s\n", err.msg);
		}
	}
}

static void test_values(void)
{
	struct sbx_err err;
	struct policy p;

	if (policy_parse(&p, good[2], strlen(good[2]), &err))
		return;
	tap_ok(p.env.n == 1 && !strcmp(p.env.v[0], "K=V"), "env");
	tap_ok(p.user_set && p.uid == 1000 && p.gid == 1000, "user");
	tap_eq(p.timeout_ms, 60000, "timeout");
	tap_eq(p.limits[LIMIT_MEMORY], 2ll << 30, "memory");
	tap_eq(p.limits[LIMIT_INODES], 200000, "inodes");
	tap_ok(p.idle_timeout_ms == POLICY_UNSET && !p.rootfs, "what is not named is not set");
	policy_fini(&p);
	if (policy_parse(&p, good[1], strlen(good[1]), &err))
		return;
	tap_ok(p.grants.n == 1 && p.grants.v[0].mode == POLICY_RO && !p.grants.v[0].exec, "grant");
	policy_fini(&p);
	if (policy_parse(&p, good[3], strlen(good[3]), &err))
		return;
	tap_ok(p.exec_deny.n == 1 && !strcmp(p.exec_deny.v[0].id, "exec.deny[0]") &&
	               p.exec_deny.v[0].args.n == 1,
	       "exec rule");
	policy_fini(&p);
}

static void test_units(void)
{
	static const struct {
		const char *s;
		int (*fn)(const char *s, uint64_t *v);
		int r;
		uint64_t v;
	} t[] = {
		{ "0", units_parse_size, 0, 0 },
		{ "2G", units_parse_size, 0, 2ull << 30 },
		{ "1.5k", units_parse_size, 0, 1536 },
		{ "10MiB", units_parse_size, 0, 10ull << 20 },
		{ "", units_parse_size, -EINVAL, 0 },
		{ "G", units_parse_size, -EINVAL, 0 },
		{ "-1", units_parse_size, -EINVAL, 0 },
		{ "1.", units_parse_size, -EINVAL, 0 },
		{ "1 G", units_parse_size, -EINVAL, 0 },
		{ "99999999999999999999", units_parse_size, -ERANGE, 0 },
		{ "99999999999T", units_parse_size, -ERANGE, 0 },
		{ "200k", units_parse_count, 0, 200000 },
		{ "2G", units_parse_count, -EINVAL, 0 },
		{ "60", units_parse_time, 0, 60000 },
		{ "0.5", units_parse_time, 0, 500 },
		{ "5m", units_parse_time, 0, 300000 },
		{ "20ms", units_parse_time, 0, 20 },
		{ "1d", units_parse_time, -EINVAL, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		uint64_t v = 0;
		int r = t[i].fn(t[i].s, &v);

		tap_ok(r == t[i].r && v == t[i].v, "unit '%s'", t[i].s);
	}
}

static void load(struct policy *p, const char *text)
{
	struct sbx_err err;

	if (policy_parse(p, text, strlen(text), &err)) {
		tap_ok(false, "%s", err.msg);
		policy_init(p);
	}
}

static void test_merge(void)
{
	struct policy base, over;

	load(&base, "{\"version\":1,\"process\":{\"timeout_s\":5,\"limits\":{\"tasks\":7}},"
	            "\"files\":{\"hide\":[\"/a\"]}}");
	load(&over, "{\"version\":1,\"process\":{\"timeout_s\":9},\"files\":{\"hide\":[\"/b\"]}}");
	tap_eq(policy_merge(&base, &over), 0, "merge");
	tap_eq(base.timeout_ms, 9000, "the later one wins");
	tap_eq(base.limits[LIMIT_TASKS], 7, "what it does not set stays");
	tap_eq(base.hide.n, 2, "lists are added");
	tap_eq(policy_complete(&base), 0, "complete");
	tap_ok(base.limits[LIMIT_MEMORY] == 2ull << 30 && !strcmp(base.rootfs, "host"), "defaults");
	policy_fini(&over);
	policy_fini(&base);
}

static int warnings;

static void count_warning(void *ctx, const char *key, const char *why)
{
	printf("# %s %s\n", key, why);
	warnings++;
}

static void tightened(struct policy *p, const char *base, const char *ws_text, int want_warnings)
{
	struct policy ws;

	load(p, base);
	if (policy_complete(p))
		return;
	load(&ws, ws_text);
	warnings = 0;
	tap_eq(policy_tighten(p, &ws, count_warning, NULL), 0, "tighten by %s", ws_text);
	tap_eq(warnings, want_warnings, "%d parts are ignored", want_warnings);
	policy_fini(&ws);
}

static void test_tighten(void)
{
	static const char *base =
		"{\"version\":1,\"process\":{\"timeout_s\":60,\"env\":{\"A\":\"1\"}},"
		"\"files\":{\"grants\":[{\"path\":\"/w\",\"mode\":\"rw\"}]}}";
	struct policy p;

	tightened(&p, base,
	          "{\"version\":1,\"process\":{\"timeout_s\":30,\"limits\":{\"tasks\":10}}}", 0);
	tap_ok(p.timeout_ms == 30000 && p.limits[LIMIT_TASKS] == 10, "lower limits are taken over");
	policy_fini(&p);
	tightened(&p, base,
	          "{\"version\":1,\"process\":{\"timeout_s\":90,\"limits\":{\"tasks\":1000,\"cpu_"
	          "s\":0}}}",
	          2);
	tap_ok(p.timeout_ms == 60000 && p.limits[LIMIT_TASKS] == 512, "higher ones are not");
	policy_fini(&p);
	tightened(&p, base, "{\"version\":1,\"process\":{\"timeout_s\":0}}", 1);
	tap_eq(p.timeout_ms, 60000, "no limit is higher than any");
	policy_fini(&p);
	tightened(&p, base, "{\"version\":1,\"process\":{\"limits\":{\"cpu_s\":10}}}", 0);
	tap_eq(p.limits[LIMIT_CPU], 10000, "a limit where there was none is taken over");
	policy_fini(&p);
	tightened(&p, base,
	          "{\"version\":1,\"files\":{\"grants\":[{\"path\":\"/w\",\"mode\":\"ro\"}]}}", 0);
	tap_ok(p.grants.n == 1 && p.grants.v[0].mode == POLICY_RO, "a grant can be made weaker");
	policy_fini(&p);
	tightened(&p, base,
	          "{\"version\":1,\"files\":{\"grants\":[{\"path\":\"/x\",\"mode\":\"ro\"}]}}", 1);
	tap_eq(p.grants.n, 1, "a new grant is ignored");
	policy_fini(&p);
	tightened(&p, base,
	          "{\"version\":1,\"process\":{\"env\":{\"A\":\"2\",\"B\":\"3\"},\"pass_env\":["
	          "\"S\"],\"user\":\"0\"},"
	          "\"files\":{\"rootfs\":\"/img\",\"hide\":[\"/h\"]},\"audit\":{\"file\":\"/"
	          "x\",\"events\":\"deny\"},"
	          "\"exec\":{\"deny\":[{\"program\":\"curl\"}]}}",
	          6);
	tap_ok(p.env.n == 2 && !strcmp(p.env.v[0], "A=1"), "variables: only new ones");
	tap_ok(!p.pass_env.n && !p.user_set && !strcmp(p.rootfs, "host") && !p.audit_file &&
	               p.audit_events == AUDIT_ALL,
	       "nothing that gives more");
	tap_ok(p.hide.n == 1 && p.exec_deny.n == 1, "more hidden and refused names are taken over");
	policy_fini(&p);
}

static const char *env_get(const struct str_list *env, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < env->n; i++) {
		if (!strncmp(env->v[i], name, len) && env->v[i][len] == '=')
			return env->v[i] + len + 1;
	}
	return "(none)";
}

static void test_env(void)
{
	char *host[] = { (char *)"LANG=de", (char *)"SSH_AUTH_SOCK=/x", (char *)"AWS_SECRET=1",
		         (char *)"EDITOR=vi", NULL };
	const struct env_identity id = { .home = "/home/u", .user = "u" };
	struct str_list env = { 0 };
	struct policy p;

	load(&p, "{\"version\":1,\"process\":{\"env\":{\"PAGER\":\"less\",\"X\":\"a=b\"},\"pass_"
	         "env\":[\"LANG\",\"EDITOR\",\"NONE\"]}}");
	tap_eq(env_build(&p.pool, &p, &id, host, &env), 0, "build an environment");
	tap_ok(!strcmp(env_get(&env, "PATH"), "/usr/local/bin:/usr/bin:/bin"), "PATH");
	tap_ok(!strcmp(env_get(&env, "CI"), "true") && !strcmp(env_get(&env, "TERM"), "dumb") &&
	               !strcmp(env_get(&env, "GIT_PAGER"), "cat") &&
	               !strcmp(env_get(&env, "DEBIAN_FRONTEND"), "noninteractive"),
	       "defaults");
	tap_ok(!strcmp(env_get(&env, "HOME"), "/home/u") && !strcmp(env_get(&env, "USER"), "u"),
	       "identity");
	tap_ok(!strcmp(env_get(&env, "PAGER"), "less") && !strcmp(env_get(&env, "X"), "a=b"),
	       "named ones win");
	tap_ok(!strcmp(env_get(&env, "LANG"), "de") && !strcmp(env_get(&env, "EDITOR"), "vi"),
	       "passed ones");
	tap_ok(!strcmp(env_get(&env, "SSH_AUTH_SOCK"), "(none)") &&
	               !strcmp(env_get(&env, "AWS_SECRET"), "(none)"),
	       "nothing else");
	policy_fini(&p);
}

static void test_hide(void)
{
	bool plain = true;

	for (size_t i = 0; i < policy_hide_count; i++)
		plain = plain && policy_hide_rows[i].path[0] == '/' && policy_hide_rows[i].why &&
		        !strpbrk(policy_hide_rows[i].path, "*?[");
	tap_ok(plain, "hidden names are absolute, no patterns, and have a reason");
}

int main(void)
{
	test_parse();
	test_values();
	test_units();
	test_merge();
	test_tighten();
	test_env();
	test_hide();
	return tap_done();
}
