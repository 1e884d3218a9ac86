/* SPDX-License-Identifier: Apache-2.0 */
/* Options of the command line: the parser, and the table of exec. */
#include <string.h>
#include <unistd.h>

#include "tests/lib/tap.h"
#include "tools/sbx/exec_opts.h"

/* Parses a command line; the words end with NULL. Returns opt_parse's result. */
static int parse(struct exec_opts *o, struct sbx_err *err, char *const *argv)
{
	int argc = 0;

	while (argv[argc])
		argc++;
	exec_opts_init(o);
	*err = (struct sbx_err){ 0 };
	return opt_parse(exec_opt_table, exec_opt_count, argc, (char **)argv, o, err);
}

#define PARSE(...) parse(&o, &err, (char *const[]){ (char *)"exec", __VA_ARGS__, NULL })
#define S(x) ((char *)(x))

static void test_good(void)
{
	struct sbx_err err;
	struct exec_opts o;

	tap_eq(PARSE(S("ls"), S("-l")), 1, "the command ends the options");
	exec_opts_fini(&o);
	tap_eq(PARSE(S("--"), S("-x")), 2, "so does --");
	exec_opts_fini(&o);
	tap_ok(PARSE(S("-t"), S("5"), S("ls")) == 3 && o.cli.timeout_ms == 5000, "-t 5");
	exec_opts_fini(&o);
	tap_ok(PARSE(S("-t5"), S("ls")) == 2 && o.cli.timeout_ms == 5000, "-t5");
	exec_opts_fini(&o);
	tap_ok(PARSE(S("--timeout=0.5"), S("ls")) == 2 && o.cli.timeout_ms == 500, "--timeout=0.5");
	exec_opts_fini(&o);
	tap_ok(PARSE(S("--memory"), S("1G"), S("--tasks=9"), S("--cpu-time"), S("3"), S("x")) ==
	                       6 &&
	               o.cli.limits[LIMIT_MEMORY] == 1ull << 30 && o.cli.limits[LIMIT_TASKS] == 9 &&
	               o.cli.limits[LIMIT_CPU] == 3000,
	       "limits");
	exec_opts_fini(&o);
	tap_ok(PARSE(S("--ro"), S("/a"), S("--rw=b"), S("--cow-path"), S("/c"), S("x")) == 6 &&
	               o.cli.grants.n == 3 && o.cli.grants.v[0].mode == POLICY_RO &&
	               o.cli.grants.v[1].mode == POLICY_RW && o.cli.grants.v[1].path[0] == '/' &&
	               o.cli.grants.v[2].mode == POLICY_COW,
	       "grants");
	exec_opts_fini(&o);
	tap_ok(PARSE(S("-e"), S("A=b=c"), S("-eX="), S("--pass-env"), S("L"), S("x")) == 6 &&
	               o.cli.env.n == 2 && !strcmp(o.cli.env.v[0], "A=b=c") &&
	               o.cli.pass_env.n == 1,
	       "environment");
	exec_opts_fini(&o);
	tap_ok(PARSE(S("--user"), S("5:6"), S("x")) == 3 && o.cli.user_set && o.cli.uid == 5 &&
	               o.cli.gid == 6,
	       "user");
	exec_opts_fini(&o);
	tap_ok(PARSE(S("--root"), S("x")) == 2 && o.cli.user_set && o.cli.uid == 0, "root");
	exec_opts_fini(&o);
	tap_ok(PARSE(S("--json"), S("x")) == 2 && o.json_fd == 1, "json");
	exec_opts_fini(&o);
	tap_ok(PARSE(S("--json=2"), S("x")) == 2 && o.json_fd == 2, "json=2");
	exec_opts_fini(&o);
	tap_ok(PARSE(S("--shell"), S("ls | wc"), S("--merge-output"), S("--stdin=pipe")) == 5 &&
	               o.shell && o.merge && o.stdin_pipe,
	       "shell, merge-output, stdin");
	exec_opts_fini(&o);
}

static void refused(char *const *argv, const char *want)
{
	struct sbx_err err;
	struct exec_opts o;

	if (!tap_ok(parse(&o, &err, argv) < 0 && strstr(err.msg, want) && !strchr(err.msg, '\n'),
	            "refused: %s %s", argv[1], argv[2] ? argv[2] : ""))
		printf("# %s\n", err.msg);
	exec_opts_fini(&o);
}

#define REFUSED(want, ...) refused((char *const[]){ (char *)"exec", __VA_ARGS__, NULL }, want)

static void test_bad(void)
{
	REFUSED("unknown option --x", S("--x"));
	REFUSED("unknown option -q", S("-q"));
	REFUSED("unknown option --time", S("--time=1"));
	REFUSED("unknown option --allow", S("--allow"), S("h"));
	REFUSED("--timeout needs a value", S("-t"));
	REFUSED("--cow takes no value", S("--cow=1"));
	REFUSED("--timeout: 'x' is no time", S("-t"), S("x"));
	REFUSED("--timeout: '-1' is no time", S("-t"), S("-1"));
	REFUSED("--memory: '1' is out of range", S("--memory"), S("1"));
	REFUSED("--tasks: 'many' is no number", S("--tasks"), S("many"));
	REFUSED("--env: 'A' is not NAME=VALUE", S("-e"), S("A"));
	REFUSED("--env: '=x' is not NAME=VALUE", S("-e"), S("=x"));
	REFUSED("--user: 'me' is not UID", S("--user"), S("me"));
	REFUSED("--user and --root cannot be used together", S("--user"), S("1"), S("--root"));
	REFUSED("--json: 'x' is no file", S("--json=x"));
	REFUSED("--json: file descriptor 99 is not open", S("--json=99"));
	REFUSED("--events: file descriptor 1 is a standard", S("--events"), S("1"));
	REFUSED("--stdin: 'tty' is neither", S("--stdin"), S("tty"));
	REFUSED("--platform: 'xen' is none", S("--platform"), S("xen"));
	REFUSED("--debug: 'nothing' names", S("--debug"), S("nothing"));
	REFUSED("--ro: an empty path", S("--ro"), S(""));
}

static void test_table(void)
{
	bool unique = true, helped = true;

	for (size_t i = 0; i < exec_opt_count; i++) {
		const struct opt *a = &exec_opt_table[i];

		helped = helped && a->help && (a->arg == OPT_FLAG || a->value_name);
		for (size_t k = i + 1; k < exec_opt_count; k++) {
			const struct opt *b = &exec_opt_table[k];

			unique = unique && strcmp(a->name, b->name) &&
			         (!a->letter || a->letter != b->letter);
		}
	}
	tap_ok(unique, "names and letters are unique");
	tap_ok(helped, "each option has its help");
}

int main(void)
{
	test_good();
	test_bad();
	test_table();
	return tap_done();
}
