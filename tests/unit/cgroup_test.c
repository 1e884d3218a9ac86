/* SPDX-License-Identifier: Apache-2.0 */
/* Where control groups are found, and one of this host's own where it lets us. */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/tap.h"
#include "tools/monitor/cgroup.h"
#include "tools/monitor/cgroup_find.h"

#define V2_MOUNT "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
#define V1_MOUNTS \
	"31 23 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n" \
	"32 23 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n" \
	"33 23 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"

static void test_find(void)
{
	static const struct {
		const char *name, *groups, *mounts, *controller, *path;
		size_t top;
	} cases[] = {
		{ "version 2", "0::/user.slice/a.scope\n", "1 1 0:1 / / rw - ext4 /dev/a rw\n" V2_MOUNT, NULL,
		  "/sys/fs/cgroup/user.slice/a.scope", 14 },
		{ "its root", "0::/\n", V2_MOUNT, NULL, "/sys/fs/cgroup", 14 },
		{ "a part that is mounted", "0::/docker/x/in\n",
		  "30 23 0:26 /docker/x /sys/fs/cgroup rw - cgroup2 cgroup rw\n", NULL, "/sys/fs/cgroup/in", 14 },
		{ "another part", "0::/docker/xy\n", "30 23 0:26 /docker/x /sys/fs/cgroup rw - cgroup2 cgroup rw\n", NULL,
		  NULL, 0 },
		{ "outside of the namespace", "0::/../other\n", V2_MOUNT, NULL, NULL, 0 },
		{ "a part outside of it", "0::/\n", "30 23 0:26 /.. /sys/fs/cgroup rw - cgroup2 cgroup rw\n", NULL, NULL, 0 },
		{ "version 1", "4:memory:/a/b\n1:cpu,cpuacct:/c\n0::/\n", V1_MOUNTS, "memory",
		  "/sys/fs/cgroup/memory/a/b", 21 },
		{ "two in one", "4:memory:/a/b\n1:cpu,cpuacct:/c\n0::/\n", V1_MOUNTS, "cpuacct", "/sys/fs/cgroup/cpu/c", 18 },
		{ "version 2 beside it", "4:memory:/a/b\n0::/d\n", V1_MOUNTS, NULL, "/sys/fs/cgroup/unified/d", 22 },
		{ "part of a name", "4:memory2:/a\n", V1_MOUNTS, "memory", NULL, 0 },
		{ "named hierarchies", "9:name=memory:/a\n", V1_MOUNTS, "memory", NULL, 0 },
		{ "a colon in a path", "0::/a:b:c\n", V2_MOUNT, NULL, "/sys/fs/cgroup/a:b:c", 14 },
		{ "blanks", "0::/a b\n", "30 23 0:26 / /mnt/c\\040g rw - cgroup2 cgroup2 rw\n", NULL, "/mnt/c g/a b", 8 },
		{ "no mount", "0::/a\n", "", NULL, NULL, 0 },
		{ "no group", "", V2_MOUNT, NULL, NULL, 0 },
		{ "half a line", "0:", V2_MOUNT, NULL, NULL, 0 },
		{ "half a mount", "0::/a\n", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2\n30 23 -", NULL, NULL, 0 },
	};
	static struct cgroup_place p;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int r = cgroup_find(cases[i].groups, cases[i].mounts, cases[i].controller, &p);

		if (!cases[i].path)
			tap_eq(r, -ENOENT, "%s: none", cases[i].name);
		else if (!tap_ok(r == 0 && !strcmp(p.path, cases[i].path) && p.top_len == cases[i].top, "%s",
				 cases[i].name))
			printf("# %d %s %zu\n", r, p.path, p.top_len);
	}
}

static void test_words(void)
{
	tap_ok(cgroup_has_word("cpuset cpu memory pids\n", " \n", "memory"), "a word");
	tap_ok(!cgroup_has_word("memory2 xmemory", " \n", "memory"), "not a part of one");
	tap_ok(!cgroup_has_word("", " \n", "memory"), "nor of nothing");
}

/* A child that waits for a word, then takes more memory than it may. */
static pid_t hungry(int *start)
{
	int p[2];
	pid_t pid;
	char c;

	if (pipe(p) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		close(p[1]);
		if (read(p[0], &c, 1) == 1) {
			char *m = mmap(NULL, 200 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

			memset(m, 1, 200 << 20);
		}
		_exit(0);
	}
	close(p[0]);
	*start = p[1];
	return pid;
}

static void test_real(void)
{
	const struct cgroup_limits l = { .memory = 50 << 20, .tasks = 10 };
	struct cgroup_usage u;
	struct sbx_err err;
	struct cgroup c;
	int st = 0, start = -1;
	pid_t pid;

	cgroup_init(&c);
	tap_eq(cgroup_create(&c, "auto", &l, &err), 0, "no group is no error");
	if (c.kind == CGROUP_NONE) {
		printf("# no control group here: %s\n", c.why_none);
		cgroup_read(&c, &u);
		tap_ok(!u.memory && !u.oom_kills && !u.cpu_known, "and nothing is known");
		cgroup_fini(&c);
		return;
	}
	pid = hungry(&start);
	tap_eq(cgroup_add(&c, pid), 0, "a process is put into it");
	DISCARD(write(start, "x", 1));
	close(start);
	waitpid(pid, &st, 0);
	tap_ok(WIFSIGNALED(st) && WTERMSIG(st) == SIGKILL, "and is killed at the limit");
	cgroup_read(&c, &u);
	tap_ok(u.oom_kills >= 1, "which is seen"); /* version 2 counts the group as well */
	tap_ok(u.memory_peak > 40 << 20 && u.memory_peak < 80 << 20, "with its peak");
	cgroup_fini(&c);
	cgroup_fini(&c); /* harmless */
}

static void test_refused(void)
{
	const struct cgroup_limits l = { .memory = 50 << 20, .tasks = 10 };
	struct sbx_err err;
	struct cgroup c;

	cgroup_init(&c);
	tap_eq(cgroup_create(&c, "none", &l, &err), 0, "none");
	tap_eq(c.kind, CGROUP_NONE, "is none");
	cgroup_fini(&c);
	cgroup_init(&c);
	tap_eq(cgroup_create(&c, "/no/such/directory", &l, &err), -ENOENT, "a directory that is not there");
	cgroup_fini(&c);
	cgroup_init(&c);
	tap_eq(cgroup_create(&c, "/tmp", &l, &err), -EINVAL, "one that is no control group");
	cgroup_fini(&c);
}

int main(void)
{
	test_find();
	test_words();
	test_real();
	test_refused();
	return tap_done();
}
