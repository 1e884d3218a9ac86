/* SPDX-License-Identifier: Apache-2.0 */
/* From a policy's grants to what the gofer gets: refusals, duplicates, git worktrees. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/tap.h"
#include "tools/monitor/grants.h"

static char top[] = "/tmp/sbx-grants-XXXXXX";

static const char *at(const char *rel)
{
	static char paths[8][PATH_MAX];
	static unsigned next;
	char *p = paths[next++ % 8];

	snprintf(p, PATH_MAX, "%s/%s", top, rel);
	return p;
}

static void make_dir(const char *rel)
{
	mkdir(at(rel), 0755);
}

static void make_file(const char *rel, const char *content)
{
	FILE *f = fopen(at(rel), "w");

	if (f) {
		fputs(content, f);
		fclose(f);
	}
}

static void test_refusals(void)
{
	static const struct {
		const char *path;
		enum policy_mode mode;
		bool refused;
	} v[] = {
		{ "/", POLICY_RO, true },
		{ "/", POLICY_RW, true },
		{ "/proc", POLICY_RO, true },
		{ "/proc/self", POLICY_RW, true },
		{ "/sys/fs", POLICY_COW, true },
		{ "/dev", POLICY_RW, true },
		{ "/device", POLICY_RW, false },
		{ "/etc", POLICY_RW, true },
		{ "/etc/app", POLICY_RW, true },
		{ "/etc/app", POLICY_RO, false },
		{ "/usr/bin", POLICY_COW, false },
		{ "/usr/local/src", POLICY_RW, false },
		{ "/home", POLICY_RO, true },
		{ "/home/u", POLICY_RO, true },
		{ "/home/u/project", POLICY_RW, false },
		{ "/home/uu", POLICY_RW, false },
		{ "/srv", POLICY_RW, false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(v); i++)
		tap_eq(grant_refusal(v[i].path, v[i].mode, "/home/u") != NULL, v[i].refused,
		       "%s %s", policy_mode_name(v[i].mode), v[i].path);
}

/* Builds a set with one or two grants. Returns the result of grants_build. */
static int build(struct grant_set *set, struct policy *p, const char *a, const char *b,
                 struct sbx_err *err)
{
	policy_init(p);
	*err = (struct sbx_err){ 0 };
	if (policy_complete(p) || policy_add_grant(p, a, POLICY_RW, true) ||
	    (b && policy_add_grant(p, b, POLICY_RO, false)))
		return -ENOMEM;
	return grants_build(set, &p->pool, p, NULL, err);
}

static void test_build(void)
{
	static struct grant_set set;
	struct sbx_err err;
	struct policy p;

	make_dir("w");
	make_dir("w/sub");
	make_file("w/file", "x");
	symlink(at("w"), at("link"));
	mkfifo(at("fifo"), 0600);
	tap_eq(build(&set, &p, at("w"), at("w/sub"), &err), 0, "nested grants");
	tap_ok(set.n == 3 && set.v[0].root && !strcmp(set.v[0].path, "/") &&
	               set.v[0].mode == POLICY_COW,
	       "the root is first");
	tap_ok(set.v[1].id != set.v[2].id && set.v[1].id && set.v[2].mode == POLICY_RO,
	       "ids and modes");
	tap_ok(grants_writable(&set, at("w/x")) && !grants_writable(&set, at("w/sub/x")) &&
	               !grants_writable(&set, "/x"),
	       "what can be written");
	tap_ok(set.hide.n > 10 && set.protect.n == 0,
	       "hidden names, and nothing protected in a plain workspace");
	policy_fini(&p);
	tap_eq(build(&set, &p, at("link"), at("w"), &err), 0, "the same path by a link");
	tap_ok(set.n == 2 && set.v[1].mode == POLICY_RO && !strcmp(set.v[1].path, at("w")),
	       "is one grant; the later one wins");
	policy_fini(&p);
	tap_eq(build(&set, &p, at("w/file"), NULL, &err), 0, "a file");
	policy_fini(&p);
	tap_ok(build(&set, &p, at("none"), NULL, &err) < 0 && strstr(err.msg, "No such file"),
	       "a missing path");
	policy_fini(&p);
	tap_ok(build(&set, &p, at("fifo"), NULL, &err) < 0 && strstr(err.msg, "only files"),
	       "a FIFO");
	policy_fini(&p);
	symlink("/proc", at("proc"));
	tap_ok(build(&set, &p, at("proc"), NULL, &err) < 0 && strstr(err.msg, "/proc"),
	       "a link to what is refused");
	policy_fini(&p);
}

static void make_worktree(void)
{
	char text[PATH_MAX + 32];

	make_dir("repo");
	make_dir("repo/.git");
	make_dir("repo/.git/worktrees");
	make_dir("repo/.git/worktrees/task");
	make_file("repo/.git/worktrees/task/commondir", "../..\n");
	make_dir("tree");
	snprintf(text, sizeof(text), "gitdir: %s\n", at("repo/.git/worktrees/task"));
	make_file("tree/.git", text);
	snprintf(text, sizeof(text), "%s\n", at("tree/.git"));
	make_file("repo/.git/worktrees/task/gitdir", text);
}

static void test_worktree(void)
{
	static struct grant_set set;
	char out[PATH_MAX], text[PATH_MAX + 32];
	struct sbx_err err;
	struct policy p;
	bool hooks = false;

	make_worktree();
	tap_ok(git_common_dir(at("tree"), out) == 1 && !strcmp(out, at("repo/.git")),
	       "a worktree's common directory");
	tap_eq(git_common_dir(at("repo"), out), 0, "a repository of its own has none");
	tap_eq(git_common_dir(at("w"), out), 0, "nor has another directory");
	tap_eq(build(&set, &p, at("tree"), NULL, &err), 0, "grant a worktree");
	tap_ok(set.n == 3 && !strcmp(set.v[2].path, at("repo/.git")) &&
	               set.v[2].mode == POLICY_RW && !set.v[2].exec,
	       "the common directory is granted with it");
	for (size_t i = 0; i < set.protect.n; i++)
		hooks = hooks || !strcmp(set.protect.v[i], at("repo/.git/hooks"));
	tap_ok(hooks, "its hooks are protected");
	policy_fini(&p);
	/* A guest can write the .git file: it must not lead us to a repository that knows nothing
	 * of it. */
	make_dir("evil");
	snprintf(text, sizeof(text), "gitdir: %s\n", at("repo/.git/worktrees/task"));
	make_file("evil/.git", text);
	tap_eq(git_common_dir(at("evil"), out), -EPERM, "a forged .git file");
	tap_ok(build(&set, &p, at("evil"), NULL, &err) < 0, "is refused");
	policy_fini(&p);
	make_file("evil/.git", "gitdir: /nowhere\n");
	tap_eq(git_common_dir(at("evil"), out), -ENOENT, "a broken one");
}

int main(void)
{
	char cmd[64];

	if (!mkdtemp(top))
		return 1;
	test_refusals();
	test_build();
	test_worktree();
	snprintf(cmd, sizeof(cmd), "rm -r %s", top);
	return system(cmd) ? 1 : tap_done();
}
