/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Guest tests of files: each case runs once on every kind of file system a guest has. In sbx /tmp is a tmpfs, the
 * current directory a grant behind the gofer, and /opt a part of the copy-on-write root; natively all are scratch
 * directories, and /opt is not touched.
 */
#ifndef SBX_TESTS_GUEST_GT_DIRS_H
#define SBX_TESTS_GUEST_GT_DIRS_H

#include "tests/guest/gt.h"

__attribute__((unused)) static const char *gt_kind; /* "tmp", "grant" or "cow" */

__attribute__((unused)) static int gt_main_dirs(int argc, char **argv, const struct gt_case *cases)
{
	static const char *const kinds[] = { "tmp", "grant", "cow" };
	const char *cow = access("/var/tmp", F_OK) ? "/opt" : "/var/tmp";
	char cwd[200], name[80];
	int n = 0, failed = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	umask(022);
	if (!getcwd(cwd, sizeof(cwd)))
		return 1;
	for (const struct gt_case *c = cases; c->name; c++) {
		for (int k = 0; k < 3; k++) {
			int st;

			snprintf(name, sizeof(name), "%s@%s", c->name, kinds[k]);
			if (argc > 1 && strcmp(argv[1], name) && strcmp(argv[1], c->name))
				continue;
			gt_base = k == 0 ? "/tmp" : k == 1 ? cwd : cow;
			gt_kind = kinds[k];
			st = gt_run_case(c, n++);
			if (WIFEXITED(st) && (WEXITSTATUS(st) == 0 || WEXITSTATUS(st) == GT_SKIP)) {
				printf("ok %d - %s%s\n", n, name, WEXITSTATUS(st) ? " # SKIP not possible here" : "");
				continue;
			}
			printf("not ok %d - %s\n# wait status %#x\n", n, name, st);
			failed++;
		}
	}
	printf("1..%d\n", n);
	return failed != 0;
}

#define GT_MAIN_DIRS(cases) \
	int main(int argc, char **argv) \
	{ \
		return gt_main_dirs(argc, argv, cases); \
	}

/* Makes or replaces a file with this text. */
__attribute__((unused)) static void gt_put(const char *name, const char *text)
{
	int fd = (int)CHECK_OK(open(name, O_CREAT | O_WRONLY | O_TRUNC, 0644));

	CHECK_EQ(write(fd, text, strlen(text)), strlen(text));
	CHECK_OK(close(fd));
}

/* Whether a file's content is exactly this text. */
__attribute__((unused)) static bool gt_is(const char *name, const char *text)
{
	char buf[256];
	int fd = (int)CHECK_OK(open(name, O_RDONLY));
	ssize_t n = CHECK_OK(read(fd, buf, sizeof(buf)));

	CHECK_OK(close(fd));
	return n == (ssize_t)strlen(text) && !memcmp(buf, text, (size_t)n);
}

__attribute__((unused)) static struct stat gt_stat(const char *name)
{
	struct stat st;

	CHECK_OK(lstat(name, &st));
	return st;
}

/* Exit status of a child that runs fn; a signal counts as 256 + its number. */
__attribute__((unused)) static int gt_child(void (*fn)(void))
{
	pid_t pid;
	int st;

	fflush(stdout);
	pid = (pid_t)CHECK_OK(fork());
	if (!pid) {
		fn();
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &st, 0), pid);
	return WIFSIGNALED(st) ? 256 + WTERMSIG(st) : WEXITSTATUS(st);
}

#endif
