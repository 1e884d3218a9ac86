/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control group of one sandbox: its memory limit, its own count of memory and CPU time, and the
 * way to kill all of it. Where the caller may make one: version 2 with the memory controller passed
 * down to it, or version 1's memory hierarchy. Elsewhere the monitor samples (usage.h).
 */
#ifndef SBX_TOOLS_MONITOR_CGROUP_H
#define SBX_TOOLS_MONITOR_CGROUP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/macros.h"

enum cgroup_kind { CGROUP_NONE, CGROUP_V1, CGROUP_V2 };

struct cgroup_part {
	int parent, dir; /* fds; -1 */
};

struct cgroup {
	enum cgroup_kind kind;
	char name[80];
	struct cgroup_part memory, cpu; /* version 2: cpu is not used */
	int usage, peak, stat, events, kill; /* fds of its files; -1: the host has none */
	int cpu_stat, cpu_sys; /* the second: version 1 only */
	const char *why_none;
};

struct cgroup_limits {
	uint64_t memory; /* bytes; what our own processes need comes on top */
	uint64_t tasks;
};

struct cgroup_usage {
	uint64_t memory;      /* bytes, without what the host caches of files */
	uint64_t memory_peak; /* the same, by what is known */
	uint64_t oom_kills;
	bool cpu_known;
	uint64_t cpu_user_us, cpu_sys_us;
};

void cgroup_init(struct cgroup *c);

/*
 * Makes the group. @where: "auto": beside or below our own group, but never where a limit of the
 * caller's own group would not hold; "none"; or the absolute path of a directory that the caller was
 * given. Returns 0, also with CGROUP_NONE and the reason; or -errno with @err when a directory was
 * named and cannot be used. Removes groups of monitors that died without doing so.
 */
MUST_CHECK int cgroup_create(struct cgroup *c, const char *where, const struct cgroup_limits *l, struct sbx_err *err);

/* Puts a process of one's own into it, before that has children. 0 or -errno. */
MUST_CHECK int cgroup_add(const struct cgroup *c, pid_t pid);

/* All zero without a group. */
void cgroup_read(const struct cgroup *c, struct cgroup_usage *u);

/* SIGKILL for all in it, where the host has such a call. */
void cgroup_kill(const struct cgroup *c);

/* Removes the group, waiting a moment for processes that are on their way out, and closes all. */
void cgroup_fini(struct cgroup *c);

#endif
