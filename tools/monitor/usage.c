/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/monitor/usage.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/host/file.h"
#include "base/macros.h"

#define PIDS_MAX 40000 /* more than any tasks limit */
#define CHILDREN_BUF (256 * 1024)

void usage_init(struct usage *u)
{
	*u = (struct usage){ .proc = -1 };
}

void usage_fini(struct usage *u)
{
	host_close(u->proc);
	u->proc = -1;
}

/* Reads a file below /proc into @buf as a string. Returns false when it is gone. */
static bool read_proc(int proc, const char *path, char *buf, size_t cap)
{
	int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
	size_t n = 0;
	ssize_t r = -1;

	if (fd < 0)
		return false;
	while (n < cap - 1 && (r = host_read(fd, buf + n, cap - 1 - n)) > 0)
		n += (size_t)r;
	close(fd);
	buf[n] = '\0';
	return r >= 0 || n > 0;
}

struct pid_list {
	pid_t *v;
	size_t n, cap;
};

static void pid_add(struct pid_list *l, pid_t pid)
{
	if (l->n == l->cap) {
		size_t cap = l->cap ? 2 * l->cap : 64;
		pid_t *v = cap <= PIDS_MAX * 2 ? realloc(l->v, cap * sizeof(*v)) : NULL;

		if (!v)
			return;
		l->v = v;
		l->cap = cap;
	}
	l->v[l->n++] = pid;
}

static void add_children_of_thread(int proc, pid_t pid, const char *tid, struct pid_list *l,
                                   char *buf)
{
	char path[64], *p;

	snprintf(path, sizeof(path), "%d/task/%.10s/children", pid, tid);
	if (!read_proc(proc, path, buf, CHILDREN_BUF))
		return;
	for (p = buf; *p;) {
		pid_t child = (pid_t)strtol(p, &p, 10);

		if (child > 0)
			pid_add(l, child);
		while (*p == ' ')
			p++;
	}
}

/* A process's children are listed by the thread that made them. */
static void add_children(int proc, pid_t pid, struct pid_list *l, char *buf)
{
	struct dirent *e;
	char path[32];
	DIR *d;
	int fd;

	snprintf(path, sizeof(path), "%d/task", pid);
	fd = openat(proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return;
	d = fdopendir(fd);
	if (!d) {
		close(fd);
		return;
	}
	while ((e = readdir(d))) {
		if (e->d_name[0] != '.')
			add_children_of_thread(proc, pid, e->d_name, l, buf);
	}
	closedir(d);
}

/* The number behind @key, a line's start, in KiB; 0 when there is none. */
static uint64_t kib_of(const char *text, const char *key)
{
	const char *p = strstr(text, key);

	return p ? strtoull(p + strlen(key), NULL, 10) : 0;
}

/* Not file pages: program text that the host caches anyway. */
static uint64_t rss_of(int proc, pid_t pid)
{
	char path[32], buf[4096];

	snprintf(path, sizeof(path), "%d/status", pid);
	if (!read_proc(proc, path, buf, sizeof(buf)))
		return 0;
	return (kib_of(buf, "\nRssAnon:") + kib_of(buf, "\nRssShmem:")) * 1024;
}

static uint64_t pss_of(int proc, pid_t pid)
{
	char path[48], buf[2048];

	snprintf(path, sizeof(path), "%d/smaps_rollup", pid);
	if (!read_proc(proc, path, buf, sizeof(buf)) || !strstr(buf, "\nPss_Anon:"))
		return rss_of(proc, pid); /* not to be had, or a kernel before 5.3 */
	return (kib_of(buf, "\nPss_Anon:") + kib_of(buf, "\nPss_Shmem:")) * 1024;
}

/* User and system time with those of reaped children, in milliseconds. */
static uint64_t cpu_of(int proc, pid_t pid)
{
	unsigned long long t[4] = { 0 };
	char path[32], buf[512], *p;

	snprintf(path, sizeof(path), "%d/stat", pid);
	if (!read_proc(proc, path, buf, sizeof(buf)))
		return 0;
	p = strrchr(buf, ')'); /* the name may hold anything */
	if (!p || sscanf(p, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %llu %llu",
	                 &t[0], &t[1], &t[2], &t[3]) != 4)
		return 0;
	return (t[0] + t[1] + t[2] + t[3]) * 1000 / (unsigned long long)sysconf(_SC_CLK_TCK);
}

void usage_sample(struct usage *u, pid_t sentry, uint64_t limit)
{
	struct pid_list l = { 0 };
	uint64_t memory = 0, cpu;
	char *buf;

	if (u->proc < 0)
		u->proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	buf = malloc(CHILDREN_BUF);
	if (u->proc < 0 || !buf)
		goto out;
	cpu = cpu_of(u->proc, sentry);
	memory = rss_of(u->proc, sentry); /* what it keeps for the guest: files, names, queues */
	add_children(u->proc, sentry, &l, buf);
	for (size_t i = 0; i < l.n && i < PIDS_MAX; i++) {
		memory += rss_of(u->proc, l.v[i]);
		cpu += cpu_of(u->proc, l.v[i]);
		add_children(u->proc, l.v[i], &l, buf);
	}
	if (memory > limit) {
		memory = pss_of(u->proc, sentry);
		for (size_t i = 0; i < l.n; i++)
			memory += pss_of(u->proc, l.v[i]);
	}
	u->memory = memory;
	u->memory_peak = MAX(u->memory_peak, memory);
	u->cpu_ms = MAX(u->cpu_ms, cpu);
out:
	free(buf);
	free(l.v);
}
