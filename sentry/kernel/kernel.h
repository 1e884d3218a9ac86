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

/* What uname(2) and /proc/version say. */
#define KERNEL_RELEASE "6.1.0-sbx"
#define KERNEL_VERSION "#1 SMP PREEMPT sbx"

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
	bool hit_task_limit, hit_disk_limit, hit_memory_limit, hit_cpu_limit;
};

/* What the sentry tells the monitor; see control.proto. Strings are borrowed. */
struct kernel_report_ops {
	void (*denial)(const char *cls, const char *op, const char *object, const char *rule, const char *reason);
	void (*waiting_for_input)(bool waiting);
	/* The first process ended. kernel.tgroups still holds what runs beside it; it is killed after the call. */
	void (*exited)(int wait_status);
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
	struct tgroup *first;     /* pid 2: the sandbox ends with it; counted */
	struct list runq;         /* TASK_RUNNABLE */
	struct task *current;     /* whose trap or call the leader handles, else NULL; borrowed (signalfd) */
	uint64_t n_runs;          /* traps and runs of woken calls so far */
	uint32_t input_waiters;   /* calls that wait for the caller's standard input */
	uint64_t dead_utime_ns, dead_stime_ns; /* of processes that are gone, for the CPU limit */
	unsigned n_cpus;          /* that the guest sees */
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

/* Kills every guest task and stops the platform's run(). */
void kernel_shutdown(void);

/* Random bytes for the guest and for ourselves. */
void kernel_random(void *buf, size_t n);

/* Tells that the current call of @t waits (no longer waits) for bytes from the caller's standard input. Undone by
 * itself when the call runs again. When nothing else can run for INPUT_WAIT_NS, report->waiting_for_input is called. */
#define INPUT_WAIT_NS (200 * 1000000ull)
void kernel_note_input_wait(struct task *t, bool waiting);

/* CPU time of all guest tasks so far, ns. */
void kernel_cpu_times(uint64_t *utime_ns, uint64_t *stime_ns);

#endif
