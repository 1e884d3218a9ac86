/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A group is named sbx-<pid namespace>-<pid>-<start time>: whoever sees one whose owner is certainly
 * dead removes it. A pid namespace that is not one's own tells nothing about its owners, so groups
 * made from there stay.
 *
 * Version 2 has no processes in a group that passes controllers on, so the sandbox cannot be below
 * its caller's group, unless that is the root; it goes beside it, or beside the nearest ancestor that
 * has a place. It would then be out of reach of limits between: a limit found on the way ends the
 * search. Version 1 knows no such rule, the group is below the caller's.
 */
#include "tools/monitor/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/host/file.h"
#include "base/log.h"
#include "tools/monitor/cgroup_find.h"

#define PREFIX       "sbx-"
#define TEXT_MAX     (256u * 1024) /* mountinfo of a host with many mounts */
#define OWN_MEMORY   (16ull << 20) /* sentry and gofer themselves, the host's bookkeeping for them */
#define OWN_TASKS    64u
#define REMOVE_TRIES 200
#define REMOVE_NAP_NS 5000000l

void cgroup_init(struct cgroup *c)
{
	*c = (struct cgroup){
		.memory = { -1, -1 },
		.cpu = { -1, -1 },
		.usage = -1,
		.peak = -1,
		.stat = -1,
		.events = -1,
		.kill = -1,
		.cpu_stat = -1,
		.cpu_sys = -1,
	};
}

/* The whole of a small file as a string; negative when there is none. */
static ssize_t read_at(int dir, const char *name, char *buf, size_t cap)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	size_t n = 0;
	ssize_t r = 0;

	buf[0] = '\0';
	if (fd < 0)
		return -errno;
	while (n < cap - 1 && (r = host_read(fd, buf + n, cap - 1 - n)) > 0)
		n += (size_t)r;
	close(fd);
	buf[n] = '\0';
	return r < 0 ? r : (ssize_t)n;
}

static int write_at(int dir, const char *name, const char *text)
{
	int fd = openat(dir, name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
	ssize_t r;

	if (fd < 0)
		return -errno;
	r = host_write(fd, text, strlen(text));
	close(fd);
	return r < 0 ? (int)r : 0;
}

static int write_number(int dir, const char *name, uint64_t v)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)v);
	return write_at(dir, name, text);
}

/* When @pid started, in the host's clock ticks; 0 when there is no such process. */
static unsigned long long start_time(pid_t pid)
{
	char path[40], buf[1024], *p;
	unsigned long long t;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (read_at(AT_FDCWD, path, buf, sizeof(buf)) < 0)
		return 0;
	p = strrchr(buf, ')'); /* the name may hold anything */
	if (!p || sscanf(p, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %llu",
			 &t) != 1)
		return 0;
	return t;
}

static unsigned long own_pidns(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) < 0 ? 0 : (unsigned long)st.st_ino;
}

static int set_name(struct cgroup *c)
{
	unsigned long long t = start_time(getpid());
	unsigned long ns = own_pidns();

	if (!t || !ns)
		return -ENOENT;
	snprintf(c->name, sizeof(c->name), PREFIX "%lu-%d-%llu", ns, (int)getpid(), t);
	return 0;
}

static bool is_stale(const char *name, unsigned long ns)
{
	unsigned long long t;
	unsigned long its_ns;
	int pid, end = 0;

	if (sscanf(name, PREFIX "%lu-%d-%llu%n", &its_ns, &pid, &t, &end) != 3 || name[end])
		return false;
	return ns && its_ns == ns && pid > 0 && start_time(pid) != t;
}

/* Groups of monitors that were killed. What still runs there has lost its monitor. */
static void remove_stale(int parent)
{
	unsigned long ns = own_pidns();
	int fd = openat(parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), dir;
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	if (!d) {
		host_close(fd);
		return;
	}
	while ((e = readdir(d))) {
		if (!is_stale(e->d_name, ns))
			continue;
		dir = openat(parent, e->d_name, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
		if (dir >= 0)
			(void)write_at(dir, "cgroup.kill", "1"); /* version 1 has none */
		host_close(dir);
		if (unlinkat(parent, e->d_name, AT_REMOVEDIR) < 0)
			log_dbg(CH_MONITOR, "control group %s: %s", e->d_name, strerror(errno));
	}
	closedir(d);
}

static int part_open(struct cgroup_part *p, const char *name)
{
	if (mkdirat(p->parent, name, 0755) < 0)
		return -errno;
	p->dir = openat(p->parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (p->dir >= 0)
		return 0;
	(void)unlinkat(p->parent, name, AT_REMOVEDIR);
	return -EACCES;
}

static void part_remove(struct cgroup_part *p, const char *name)
{
	const struct timespec nap = { .tv_nsec = REMOVE_NAP_NS };

	for (int i = 0; p->dir >= 0 && i < REMOVE_TRIES; i++) {
		if (unlinkat(p->parent, name, AT_REMOVEDIR) == 0 || errno != EBUSY)
			break;
		nanosleep(&nap, NULL);
	}
	host_close(p->dir);
	host_close(p->parent);
	*p = (struct cgroup_part){ -1, -1 };
}

static int open_file(int dir, const char *name)
{
	return openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
}

/* Is there a limit that holds for this group's processes? Also when it cannot be told. */
static bool is_limited(int dir)
{
	static const char *const files[] = { "memory.max", "memory.high", "memory.swap.max", "pids.max", "cpu.max" };
	char buf[64];

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		ssize_t n = read_at(dir, files[i], buf, sizeof(buf));

		if (n != -ENOENT && (n < 0 || strncmp(buf, "max", 3)))
			return true;
	}
	return false;
}

/* The nearest group, from our own upwards, that passes the memory controller on. */
static int open_parent(struct cgroup *c, struct cgroup_place *p)
{
	char buf[256];
	size_t len;

	for (;;) {
		int dir = open(p->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		if (dir < 0)
			return -errno;
		if (read_at(dir, "cgroup.subtree_control", buf, sizeof(buf)) > 0 &&
		    cgroup_has_word(buf, " \n", "memory")) {
			c->memory.parent = dir;
			return 0;
		}
		len = (size_t)(strrchr(p->path, '/') - p->path);
		if (is_limited(dir) || strlen(p->path) <= p->top_len || len < p->top_len) {
			close(dir);
			return -ENOENT;
		}
		close(dir);
		p->path[len] = '\0';
	}
}

static int set_up_v2(struct cgroup *c, const struct cgroup_limits *l)
{
	int r = part_open(&c->memory, c->name), dir = c->memory.dir;

	if (!r)
		r = write_number(dir, "memory.max", l->memory + OWN_MEMORY);
	if (r)
		return r;
	/* What follows only makes it better; a host may lack each. */
	(void)write_number(dir, "memory.swap.max", 0);
	(void)write_number(dir, "memory.oom.group", 1);
	(void)write_number(dir, "pids.max", l->tasks + OWN_TASKS);
	c->usage = open_file(dir, "memory.current");
	c->peak = open_file(dir, "memory.peak");
	c->stat = open_file(dir, "memory.stat");
	c->events = open_file(dir, "memory.events");
	c->cpu_stat = open_file(dir, "cpu.stat");
	c->kill = openat(dir, "cgroup.kill", O_WRONLY | O_CLOEXEC | O_NOFOLLOW); /* Linux 5.14 */
	c->kind = CGROUP_V2;
	return c->events < 0 ? -ENOENT : 0;
}

static int set_up_v1(struct cgroup *c, const struct cgroup_limits *l)
{
	int r = part_open(&c->memory, c->name), dir = c->memory.dir;

	if (!r)
		r = write_number(dir, "memory.limit_in_bytes", l->memory + OWN_MEMORY);
	if (r)
		return r;
	(void)write_number(dir, "memory.memsw.limit_in_bytes", l->memory + OWN_MEMORY); /* if swap is counted */
	c->usage = open_file(dir, "memory.usage_in_bytes");
	c->peak = open_file(dir, "memory.max_usage_in_bytes");
	c->stat = open_file(dir, "memory.stat");
	c->events = open_file(dir, "memory.oom_control");
	if (c->cpu.parent >= 0 && part_open(&c->cpu, c->name) == 0) {
		c->cpu_stat = open_file(c->cpu.dir, "cpuacct.usage_user");
		c->cpu_sys = open_file(c->cpu.dir, "cpuacct.usage_sys");
	}
	c->kind = CGROUP_V1;
	return c->events < 0 ? -ENOENT : 0;
}

static int open_place(const struct cgroup_place *p)
{
	int fd = open(p->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* Looks for a place. Returns the version, or -ENOENT. */
static int find_place(struct cgroup *c, char *text)
{
	char *groups = text, *mounts = text + TEXT_MAX;
	struct cgroup_place p;

	if (read_at(AT_FDCWD, "/proc/self/cgroup", groups, TEXT_MAX) < 0 ||
	    read_at(AT_FDCWD, "/proc/self/mountinfo", mounts, TEXT_MAX) < 0)
		return -ENOENT;
	if (cgroup_find(groups, mounts, NULL, &p) == 0 && open_parent(c, &p) == 0)
		return 2;
	if (cgroup_find(groups, mounts, "memory", &p))
		return -ENOENT;
	c->memory.parent = open_place(&p);
	if (c->memory.parent >= 0 && cgroup_find(groups, mounts, "cpuacct", &p) == 0)
		c->cpu.parent = open_place(&p);
	return c->memory.parent < 0 ? -ENOENT : 1;
}

/* A directory that the caller named: the version by its files. Its controllers are switched on for what is below. */
static int named_place(struct cgroup *c, const char *where, struct sbx_err *err)
{
	char buf[256];
	int fd = open(where, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return sbx_fail(err, -errno, "control group '%s'", where);
	c->memory.parent = fd;
	if (read_at(fd, "memory.limit_in_bytes", buf, sizeof(buf)) > 0)
		return 1;
	if (read_at(fd, "cgroup.controllers", buf, sizeof(buf)) < 0 || !cgroup_has_word(buf, " \n", "memory"))
		return sbx_fail(err, -EINVAL, "control group '%s' has no memory controller", where);
	(void)write_at(fd, "cgroup.subtree_control", "+memory");
	(void)write_at(fd, "cgroup.subtree_control", "+pids");
	return 2;
}

static int none(struct cgroup *c, const char *why)
{
	cgroup_fini(c);
	c->why_none = why;
	log_dbg(CH_MONITOR, "no control group: %s", why);
	return 0;
}

int cgroup_create(struct cgroup *c, const char *where, const struct cgroup_limits *l, struct sbx_err *err)
{
	bool automatic = !strcmp(where, "auto");
	char *text;
	int r;

	if (!strcmp(where, "none"))
		return none(c, "none was asked for");
	if (automatic) {
		text = malloc(2 * TEXT_MAX);
		r = text ? find_place(c, text) : -ENOMEM;
		free(text);
		if (r < 0)
			return none(c, "no group that passes the memory controller on is in reach");
	} else {
		r = named_place(c, where, err);
		if (r < 0)
			return r;
	}
	remove_stale(c->memory.parent);
	if (c->cpu.parent >= 0)
		remove_stale(c->cpu.parent);
	if (!set_name(c))
		r = r == 2 ? set_up_v2(c, l) : set_up_v1(c, l);
	else
		r = -ENOENT;
	if (r && automatic)
		return none(c, "none may be made");
	return r ? sbx_fail(err, r, "make a control group in '%s'", where) : 0;
}

int cgroup_add(const struct cgroup *c, pid_t pid)
{
	int r;

	if (c->kind == CGROUP_NONE)
		return 0;
	r = write_number(c->memory.dir, "cgroup.procs", (uint64_t)pid);
	if (!r && c->cpu.dir >= 0)
		r = write_number(c->cpu.dir, "cgroup.procs", (uint64_t)pid);
	return r;
}

/* Reads again from the start; what cannot be read is empty. */
static const char *reread(int fd, char *buf, size_t cap)
{
	ssize_t n = fd < 0 ? -1 : host_pread(fd, buf, cap - 1, 0);

	buf[MAX(n, 0)] = '\0';
	return buf;
}

/* The number in the line "key number". */
static uint64_t value_of(const char *text, const char *key)
{
	size_t n = strlen(key);

	for (; text && *text; text = strchr(text, '\n'), text = text ? text + 1 : NULL) {
		if (!strncmp(text, key, n) && text[n] == ' ')
			return strtoull(text + n + 1, NULL, 10);
	}
	return 0;
}

static void read_cpu(const struct cgroup *c, struct cgroup_usage *u)
{
	char buf[1024];

	reread(c->cpu_stat, buf, sizeof(buf));
	u->cpu_known = buf[0] != '\0';
	if (c->kind == CGROUP_V2) {
		u->cpu_user_us = value_of(buf, "user_usec");
		u->cpu_sys_us = value_of(buf, "system_usec");
		return;
	}
	u->cpu_user_us = strtoull(buf, NULL, 10) / 1000;
	u->cpu_sys_us = strtoull(reread(c->cpu_sys, buf, sizeof(buf)), NULL, 10) / 1000;
}

void cgroup_read(const struct cgroup *c, struct cgroup_usage *u)
{
	char buf[8192];
	const char *v1 = c->kind == CGROUP_V1 ? "total_" : "";
	char key[2][32];
	uint64_t cached, peak;

	*u = (struct cgroup_usage){ 0 };
	if (c->kind == CGROUP_NONE)
		return;
	u->oom_kills = value_of(reread(c->events, buf, sizeof(buf)), "oom_kill");
	read_cpu(c, u);
	u->memory = strtoull(reread(c->usage, buf, sizeof(buf)), NULL, 10);
	peak = strtoull(reread(c->peak, buf, sizeof(buf)), NULL, 10);
	snprintf(key[0], sizeof(key[0]), "%sactive_file", v1);
	snprintf(key[1], sizeof(key[1]), "%sinactive_file", v1);
	reread(c->stat, buf, sizeof(buf));
	cached = value_of(buf, key[0]) + value_of(buf, key[1]);
	u->memory -= MIN(cached, u->memory);
	u->memory_peak = MAX(u->memory, peak - MIN(cached, peak));
}

void cgroup_kill(const struct cgroup *c)
{
	if (c->kill >= 0)
		DISCARD(host_write(c->kill, "1", 1)); /* the caller has other ways */
}

void cgroup_fini(struct cgroup *c)
{
	int *const fds[] = { &c->usage, &c->peak, &c->stat, &c->events, &c->kill, &c->cpu_stat, &c->cpu_sys };

	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		host_close(*fds[i]);
		*fds[i] = -1;
	}
	part_remove(&c->memory, c->name);
	part_remove(&c->cpu, c->name);
	c->kind = CGROUP_NONE;
}
