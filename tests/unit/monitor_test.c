/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The monitor with stand-ins for its helpers (tests/fake): exit codes, deadlines, limits, output,
 * signals, what becomes of processes that outlive their sentry. Each case is a child of its own,
 * because a monitor changes its process.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "policy/audit.h"
#include "tests/lib/tap.h"
#include "tools/monitor/grants.h"
#include "tools/monitor/monitor.h"
#include "tools/monitor/result.h"

struct test_case {
	const char *argv[6];
	uint64_t timeout_ms, idle_ms, memory;
	bool pass, merge, gofer_dies;
	int kill_with; /* a signal to the monitor once @ready exists, and again after 0.5 s */
	const char *ready;
	int kills;     /* how often */
	const char *audit;
};

/* What a case left: the result as JSON, its exit code, the time it took. */
struct got {
	json_t *v;
	int code;
	uint64_t ms;
};

static uint64_t clock_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void write_result(int fd, struct run_result *res, bool merge, const struct audit *audit)
{
	struct strbuf sb = { 0 };
	size_t at = 0;

	result_put(&sb, res, merge, audit);
	while (at < sb.len) {
		ssize_t n = write(fd, sb.p + at, sb.len - at);

		if (n <= 0)
			break;
		at += (size_t)n;
	}
}

static int child_main(const struct test_case *t, int out)
{
	static struct grant_set grants;
	static struct run_result res;
	struct sbx_err err = { 0 };
	struct policy p;
	char *envp[] = { (char *)"PATH=/usr/bin:/bin", NULL };
	struct run_spec spec = {
		.policy = &p,
		.grants = &grants,
		.argv = (char *const *)t->argv,
		.envp = envp,
		.cwd = "/",
		.platform = "auto",
		.cgroup = "none",
		.capture = true,
		.pass = t->pass,
		.merge = t->merge,
		.events_fd = -1,
	};

	policy_init(&p);
	p.timeout_ms = t->timeout_ms ? t->timeout_ms : 20000;
	p.idle_timeout_ms = t->idle_ms;
	p.limits[LIMIT_MEMORY] = t->memory ? t->memory : POLICY_UNSET;
	if (policy_complete(&p) || grants_build(&grants, &p.pool, &p, NULL, &err))
		return 90;
	if (t->gofer_dies && str_list_add(&p.pool, &grants.protect, "@die"))
		return 90;
	if (t->audit && audit_open(t->audit, &spec.audit, &err))
		return 91;
	if (monitor_run(&spec, &res, &err))
		snprintf(res.message, sizeof(res.message), "%s", err.msg);
	write_result(out, &res, t->merge, spec.audit);
	audit_close(spec.audit);
	return res.exit_code;
}

static struct got run_case(const struct test_case *t)
{
	int fd = memfd_create("result", 0), st;
	uint64_t start = clock_ms();
	struct got g = { 0 };
	pid_t pid = fork();

	if (pid == 0)
		_exit(child_main(t, fd));
	for (int i = 0; t->kills && i < 1500 && access(t->ready, F_OK) < 0; i++)
		usleep(10000);
	for (int i = 0; i < t->kills; i++) {
		kill(pid, t->kill_with);
		usleep(500000);
	}
	if (t->kills)
		unlink(t->ready);
	waitpid(pid, &st, 0);
	g.ms = clock_ms() - start;
	g.code = WIFEXITED(st) ? WEXITSTATUS(st) : -WTERMSIG(st);
	lseek(fd, 0, SEEK_SET);
	g.v = json_loadfd(fd, JSON_REJECT_DUPLICATES, NULL);
	close(fd);
	return g;
}

static const char *text(const struct got *g, const char *key)
{
	const char *s = json_string_value(json_object_get(g->v, key));

	return s ? s : "(none)";
}

static void check(const char *name, const struct got *g, int code, const char *status)
{
	if (!tap_ok(g->code == code && !strcmp(text(g, "status"), status), "%s: %s, exit code %d",
	            name, status, code))
		printf("# %d %s %s\n", g->code, text(g, "status"), text(g, "message"));
}

static void test_schema(const struct got *g)
{
	static const struct {
		const char *key;
		json_type type;
	} fields[] = {
		{ "v", JSON_INTEGER },
		{ "id", JSON_STRING },
		{ "exit_code", JSON_INTEGER },
		{ "signal", JSON_NULL },
		{ "status", JSON_STRING },
		{ "message", JSON_STRING },
		{ "stdout", JSON_STRING },
		{ "stderr", JSON_STRING },
		{ "encoding", JSON_STRING },
		{ "truncated", JSON_OBJECT },
		{ "waiting_for_input", JSON_FALSE },
		{ "duration_ms", JSON_INTEGER },
		{ "usage", JSON_OBJECT },
		{ "changes", JSON_ARRAY },
		{ "denials", JSON_ARRAY },
		{ "net", JSON_ARRAY },
		{ "background", JSON_ARRAY },
		{ "platform", JSON_STRING },
		{ "audit", JSON_NULL },
	};
	bool ok = json_object_size(g->v) == sizeof(fields) / sizeof(fields[0]);

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		json_t *v = json_object_get(g->v, fields[i].key);

		if (!v || json_typeof(v) != fields[i].type) {
			printf("# %s\n", fields[i].key);
			ok = false;
		}
	}
	tap_ok(ok, "the result has the fields of the interface, and no others");
	tap_ok(json_object_size(json_object_get(g->v, "usage")) == 7, "so has its usage");
	tap_eq(strlen(text(g, "id")), 26, "the id is a ULID");
}

static void test_exit(void)
{
	struct got g =
		run_case(&(struct test_case){ { "sh", "-c", "echo out; echo err >&2; exit 7" } });

	check("exit", &g, 7, "exited");
	tap_ok(!strcmp(text(&g, "stdout"), "out\n") && !strcmp(text(&g, "stderr"), "err\n"),
	       "output is captured");
	test_schema(&g);
	json_decref(g.v);
	g = run_case(&(struct test_case){ { "sh", "-c", "echo a; echo b >&2" }, .merge = true });
	tap_ok(!strcmp(text(&g, "output"), "a\nb\n") && !json_object_get(g.v, "stdout"),
	       "merged output");
	json_decref(g.v);
	g = run_case(&(struct test_case){ { "sh", "-c", "kill -TERM $$" } });
	check("signal", &g, 128 + SIGTERM, "signaled");
	tap_eq(json_integer_value(json_object_get(g.v, "signal")), SIGTERM,
	       "its number is in the result");
	json_decref(g.v);
	g = run_case(&(struct test_case){ { "sh", "-c", "printf '\\377\\001'" } });
	tap_ok(!strcmp(text(&g, "encoding"), "base64") && !strcmp(text(&g, "stdout"), "/wE="),
	       "binary output");
	json_decref(g.v);
	g = run_case(&(struct test_case){ { "@missing" } });
	check("missing program", &g, 127, "exited");
	json_decref(g.v);
	g = run_case(&(struct test_case){ { "@banned" } });
	check("banned", &g, 126, "banned");
	json_decref(g.v);
	g = run_case(&(struct test_case){ { "sh", "-c", "cat" } });
	check("stdin is at its end", &g, 0, "exited");
	json_decref(g.v);
}

static void test_output(void)
{
	struct got g = run_case(&(struct test_case){
		{ "sh", "-c", "head -c 3000000 /dev/zero | tr '\\0' x; echo END" } });
	json_t *dropped = json_object_get(json_object_get(g.v, "truncated"), "stdout");
	const char *out = text(&g, "stdout");
	size_t n = strlen(out);

	check("much output", &g, 0, "exited");
	tap_eq(json_integer_value(dropped), 3000004 - (1 << 20), "what was dropped is counted");
	tap_ok(n > 1 << 20 && n < (1 << 20) + 100 && !strncmp(out, "xxx", 3) &&
	               !strcmp(out + n - 4, "END\n"),
	       "head and tail are kept");
	json_decref(g.v);
}

static void test_deadlines(void)
{
	struct got g = run_case(
		&(struct test_case){ { "sh", "-c", "echo partial; sleep 20" }, .timeout_ms = 500 });

	check("deadline", &g, 124, "timeout");
	tap_ok(!strcmp(text(&g, "message"), "Execution Timed Out after 0.5 seconds."), "message");
	tap_ok(!strcmp(text(&g, "stdout"), "partial\n"), "partial output is kept");
	tap_ok(g.ms < 10000, "it comes in time");
	json_decref(g.v);
	g = run_case(&(struct test_case){
		{ "sh", "-c", "trap '' TERM INT; (setsid sleep 20 &) ; sleep 20" },
		.timeout_ms = 300 });
	check("deadline with daemons", &g, 124, "timeout");
	tap_ok(g.ms < 10000, "nobody delays it");
	json_decref(g.v);
	g = run_case(&(struct test_case){
		{ "sh", "-c", "for i in 1 2 3; do echo $i; sleep 0.2; done; sleep 20" },
		.idle_ms = 600 });
	check("silence", &g, 124, "idle_timeout");
	tap_ok(!strcmp(text(&g, "stdout"), "1\n2\n3\n"), "output puts it off");
	json_decref(g.v);
	g = run_case(&(struct test_case){ { "@memory" }, .memory = 100 << 20 });
	check("memory", &g, 137, "oom");
	json_decref(g.v);
}

static void test_broken(void)
{
	struct got g = run_case(&(struct test_case){ { "@die" } });

	check("sentry dies", &g, 125, "internal_error");
	json_decref(g.v);
	g = run_case(&(struct test_case){ { "@sigsys" } });
	check("sentry breaks its filter", &g, 125, "policy_killed");
	json_decref(g.v);
	g = run_case(&(struct test_case){ { "@nonsense" } });
	check("sentry talks nonsense", &g, 125, "internal_error");
	json_decref(g.v);
	g = run_case(&(struct test_case){ { "@config" } });
	check("sentry sends what is not its to send", &g, 125, "internal_error");
	json_decref(g.v);
	g = run_case(&(struct test_case){ { "sleep", "20" }, .gofer_dies = true });
	check("gofer dies", &g, 125, "internal_error");
	json_decref(g.v);
	g = run_case(&(struct test_case){ { "@linger" } });
	check("sentry does not leave", &g, 0, "exited");
	tap_ok(g.ms < 10000, "it is made to");
	json_decref(g.v);
}

static void test_signals(void)
{
	char ready[64], script[2][160];
	struct got g;

	snprintf(ready, sizeof(ready), "/tmp/sbx-monitor-ready-%d", (int)getpid());
	snprintf(script[0], sizeof(script[0]), "trap 'echo got; exit 3' TERM; : >%s; sleep 20 & wait", ready);
	snprintf(script[1], sizeof(script[1]), "trap '' INT; : >%s; while :; do sleep 1; done", ready);
	g = run_case(&(struct test_case){
		{ "sh", "-c", script[0] }, .kill_with = SIGTERM, .kills = 1, .ready = ready });

	check("a signal goes to the program", &g, 3, "exited");
	tap_ok(!strcmp(text(&g, "stdout"), "got\n"), "which can handle it");
	json_decref(g.v);
	g = run_case(&(struct test_case){
		{ "sh", "-c", script[1] }, .kill_with = SIGINT, .kills = 2, .ready = ready });
	check("the second one ends the sandbox", &g, 128 + SIGINT, "signaled");
	json_decref(g.v);
}

/* The child's subreaper status sends strays to it and not to us, so none may be left anywhere. */
static void test_leftovers(void)
{
	struct got g = run_case(&(struct test_case){ { "@daemon" } });

	check("a daemon is left behind", &g, 0, "exited");
	tap_eq(system("for p in /proc/[0-9]*; do case $({ tr '\\0' ' ' <$p/cmdline; } 2>/dev/null) "
	              "in sbx-sentry*) "
	              "[ \"$(readlink $p/exe)\" = \"$PWD/tests/unit/sbx-sentry\" ] && exit 1;; "
	              "esac; done; exit 0"),
	       0, "and is gone with its sandbox");
	json_decref(g.v);
}

/* What the sentry says of changes, and what the result says of a sentry that says nothing. */
static void test_changes(void)
{
	struct got g = run_case(&(struct test_case){ { "@changes" } });
	json_t *list = json_object_get(g.v, "changes");
	json_int_t lost = json_integer_value(json_object_get(json_object_get(g.v, "truncated"), "changes"));

	check("more changes than a result holds", &g, 0, "exited");
	tap_eq(json_array_size(list), 100000, "it holds so many");
	tap_eq(lost, 20000 + 7, "the rest is counted, with those that the sentry counted");
	tap_ok(!strcmp(json_string_value(json_object_get(json_array_get(list, 99999), "path")), "/f19999"),
	       "in order");
	json_decref(g.v);
	g = run_case(&(struct test_case){ { "@late-changes" } });
	tap_eq(json_array_size(json_object_get(g.v, "changes")), 0, "what comes after the last report does not count");
	json_decref(g.v);
	g = run_case(&(struct test_case){ { "@changes-then-deaf" }, .timeout_ms = 500 });
	check("a deadline that the sentry does not answer", &g, 124, "timeout");
	tap_ok(strstr(text(&g, "message"), "What it changed is not known."), "the result says so");
	json_decref(g.v);
	g = run_case(&(struct test_case){ { "@die-later" } });
	check("a sentry that dies in between", &g, 125, "internal_error");
	tap_ok(strstr(text(&g, "message"), "what it changed is not known"), "the result says so");
	json_decref(g.v);
}

static void test_denials(void)
{
	struct got g = run_case(&(struct test_case){ { "@denials" } });
	json_t *list = json_object_get(g.v, "denials"), *d = json_array_get(list, 0);

	tap_ok(json_array_size(list) == 1 && json_integer_value(json_object_get(d, "count")) == 3,
	       "equal denials are counted");
	tap_ok(d && !strcmp(json_string_value(json_object_get(d, "request")), "sbx exec --ro '/etc/shadow'"),
	       "and say how to ask");
	json_decref(g.v);
}

/* However many there are, the log grows slowly, and says what it lacks. */
static void test_audit_flood(void)
{
	char path[] = "/tmp/sbx-monitor-audit-XXXXXX";
	struct audit_check c = { 0 };
	struct sbx_err err;
	struct got g;
	FILE *f;

	close(mkstemp(path));
	g = run_case(&(struct test_case){ { "@denial-flood" }, .audit = path });
	f = fopen(path, "r");
	tap_ok(f && !audit_verify(f, &c, &err) && c.line == 0, "the log of a flood is whole");
	tap_ok(c.records >= 2000 && c.records < 5000 && c.lost, "the rest is counted");
	tap_ok(c.records + c.lost >= 5002, "nothing is missing without a word");
	fclose(f);
	unlink(path);
	json_decref(g.v);
}

static void test_audit(void)
{
	char path[] = "/tmp/sbx-monitor-audit-XXXXXX";
	struct audit_check c = { 0 };
	struct sbx_err err;
	struct got g;
	json_t *a;
	FILE *f;

	close(mkstemp(path));
	g = run_case(&(struct test_case){ { "@denials" }, .audit = path });
	a = json_object_get(g.v, "audit");
	f = fopen(path, "r");
	tap_ok(f && !audit_verify(f, &c, &err) && c.line == 0 && c.records == 5,
	       "start, three denials and the end are in the log");
	tap_ok(json_integer_value(json_object_get(a, "last")) == 5 &&
	               !strcmp(json_string_value(json_object_get(a, "head")), c.head),
	       "the result names its head");
	fclose(f);
	unlink(path);
	json_decref(g.v);
}

static void test_long_command(void)
{
	static char big[120000];
	struct test_case t = { { "sh", "-c", "echo ${#1}; echo ${#2}", "sh", big, NULL } };
	struct got g;

	memset(big, 'a', sizeof(big) - 1);
	g = run_case(&t);
	tap_ok(!strcmp(text(&g, "stdout"), "119999\n0\n"), "an argument near a message's limit");
	json_decref(g.v);
	t.argv[2] = "echo $((${#0} + ${#1}))";
	t.argv[3] = big;
	g = run_case(&t);
	tap_ok(!strcmp(text(&g, "stdout"), "239998\n"), "a command longer than a message");
	json_decref(g.v);
}

int main(void)
{
	test_exit();
	test_output();
	test_deadlines();
	test_broken();
	test_signals();
	test_leftovers();
	test_changes();
	test_denials();
	test_audit();
	test_audit_flood();
	test_long_command();
	return tap_done();
}
