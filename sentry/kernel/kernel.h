/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sandbox's kernel: one object. All sentry state is guarded by the kernel lock, taken once in kernel_trap() and
 * kernel_idle() by the leader (kernel/trap.c); functions of the sentry are called with it held unless their header says
 * otherwise. It is not dropped in a call: the sentry has one worker, and what could take long (a guest waiting) blocks
 * by kernel/waitq.h instead.
 */
#ifndef SBX_SENTRY_KERNEL_KERNEL_H
#define SBX_SENTRY_KERNEL_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/list.h"
#include "base/lock.h"
#include "platform/platform.h"

struct cred;
struct mount_ns;
struct task;
struct tgroup;

struct kernel_limits {
	uint64_t memory;   /* bytes, 0: none */
	uint64_t disk;     /* store bytes */
	uint64_t inodes;   /* store inodes */
	uint64_t cpu_ns;   /* 0: none */
	uint32_t tasks;
	uint32_t open_files; /* RLIMIT_NOFILE of the first process */
};

/* Counters that must return to their start after each guest test. */
struct kernel_counters {
	uint32_t tasks, tgroups, files, vmas, mms, inodes, dentries, ktimers;
	uint64_t store_bytes, store_inodes;
	uint32_t tasks_peak;
	bool hit_task_limit, hit_disk_limit, hit_memory_limit;
};

/* What the sentry tells the monitor; see control.proto. Strings are borrowed. */
struct kernel_report_ops {
	void (*denial)(const char *cls, const char *op, const char *object, const char *rule, const char *reason);
	void (*waiting_for_input)(bool waiting);
	void (*exited)(int wait_status); /* the first process ended; background: others still run */
};

struct kernel {
	const struct platform_ops *plat;
	struct platform *platform;
	struct kernel_limits limits;
	struct kernel_counters counters;
	const struct kernel_report_ops *report;
	struct hash_key hash_key; /* random */

	struct list tgroups;      /* all, by all_node */
	struct tgroup *init;      /* pid 1: the reaper of orphans; a process of the kernel's own without guest code */
	struct list runq;         /* TASK_RUNNABLE */
	struct mount_ns *mnt_ns;  /* counted */
	char hostname[65], domainname[65];
	uint64_t boot_ns;         /* CLOCK_BOOTTIME at start: uptime begins at 0 */
	bool shutting_down;
};

extern struct kernel kernel;
extern struct sbx_mutex lc_kernel;

/* The callbacks of struct platform_up. */
void kernel_trap(void *arg, struct vcpu_ctx *ctx, const struct trap *trap) MUST_NOT_HOLD(lc_kernel);
void kernel_idle(void *arg) MUST_NOT_HOLD(lc_kernel);

/* Sets up the kernel object; the platform is started by the caller. */
int kernel_init(const struct kernel_limits *limits, const struct kernel_report_ops *report);

/* Kills every guest task and stops platform_run(). */
void kernel_shutdown(void);

/* Random bytes for the guest and for ourselves. */
void kernel_random(void *buf, size_t n);

#endif
