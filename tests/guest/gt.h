/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Guest tests: a static program with a table of cases, run natively first and then in sbx. Each case runs in a child,
 * so that one that dies fails alone, in a fresh directory of its own. A case ends itself by a failed check.
 */
#ifndef SBX_TESTS_GUEST_GT_H
#define SBX_TESTS_GUEST_GT_H

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct gt_case {
	const char *name; /* no blanks */
	void (*fn)(void);
};

#define GT_SKIP    77
#define GT_TIMEOUT 20 /* seconds a case may take, and more on a slow platform */

/* What deadlines are multiplied by: the runner knows the platform. */
__attribute__((unused)) static unsigned gt_slow(void)
{
	const char *s = getenv("GT_SLOW");
	int n = s ? atoi(s) : 1;

	return n > 0 && n <= 100 ? (unsigned)n : 1;
}

__attribute__((noreturn, format(printf, 3, 4), unused))
static void gt_fail(const char *file, int line, const char *fmt, ...)
{
	va_list ap;

	printf("# %s:%d: ", file, line);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	fflush(stdout);
	_exit(1);
}

/* Checks of a case; each ends it when it does not hold. */
#define CHECK(cond) \
	do { \
		if (!(cond)) \
			gt_fail(__FILE__, __LINE__, "%s (errno %d)", #cond, errno); \
	} while (0)
#define CHECK_EQ(got, want) \
	do { \
		long long g_ = (long long)(got), w_ = (long long)(want); \
		if (g_ != w_) \
			gt_fail(__FILE__, __LINE__, "%s is %lld, not %lld (errno %d)", #got, g_, w_, errno); \
	} while (0)
/* A call that must fail with this errno. */
#define CHECK_ERR(call, want) \
	do { \
		long long r_; \
		errno = 0; \
		r_ = (long long)(call); \
		if (r_ != -1 || errno != (want)) \
			gt_fail(__FILE__, __LINE__, "%s gave %lld errno %d, not errno %d", #call, r_, errno, want); \
	} while (0)
#define CHECK_OK(call) \
	({ \
		long long r_ = (long long)(call); \
		if (r_ < 0) \
			gt_fail(__FILE__, __LINE__, "%s failed with errno %d", #call, errno); \
		r_; \
	})

#define BAD_PTR ((void *)0xdead0000ull) /* no process can read it */

/* One page with an unmapped page behind it. */
__attribute__((unused)) static char *gt_edge_page(void)
{
	char *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	CHECK_OK(munmap(p + 4096, 4096));
	return p;
}

static const char *gt_base = "/tmp"; /* where the directory of a case is made */

static int gt_run_case(const struct gt_case *c, int n)
{
	char dir[300];
	int st = 0;
	pid_t pid;

	snprintf(dir, sizeof(dir), "%s/gt.%d.%d", gt_base, (int)getpid(), n);
	mkdir(dir, 0755);
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		if (chdir(dir))
			_exit(1);
		alarm(GT_TIMEOUT * gt_slow());
		c->fn();
		fflush(stdout);
		_exit(0);
	}
	waitpid(pid, &st, 0);
	pid = fork();
	if (pid == 0) {
		execl("/bin/rm", "rm", "-rf", dir, (char *)NULL);
		_exit(127);
	}
	waitpid(pid, NULL, 0);
	return st;
}

__attribute__((unused)) static int gt_main(int argc, char **argv, const struct gt_case *cases)
{
	int n = 0, failed = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (const struct gt_case *c = cases; c->name; c++) {
		int st;

		if (argc > 1 && strcmp(argv[1], c->name))
			continue;
		st = gt_run_case(c, n++);
		if (WIFEXITED(st) && WEXITSTATUS(st) == 0) {
			printf("ok %d - %s\n", n, c->name);
		} else if (WIFEXITED(st) && WEXITSTATUS(st) == GT_SKIP) {
			printf("ok %d - %s # SKIP not possible here\n", n, c->name);
		} else {
			printf("not ok %d - %s\n# wait status %#x\n", n, c->name, st);
			failed++;
		}
	}
	printf("1..%d\n", n);
	return failed != 0;
}

#define GT_MAIN(cases) \
	int main(int argc, char **argv) \
	{ \
		return gt_main(argc, argv, cases); \
	}

#endif
