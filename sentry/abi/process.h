/* SPDX-License-Identifier: Apache-2.0 */
/* Structures of process-related system calls, as the guest sees them. */
#ifndef SBX_SENTRY_ABI_PROCESS_H
#define SBX_SENTRY_ABI_PROCESS_H

#include <assert.h>
#include <stdint.h>

/* clone3(2) */
struct linux_clone_args {
	uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls;
	uint64_t set_tid, set_tid_size; /* since version 1 */
	uint64_t cgroup;                /* since version 2 */
};
#define LINUX_CLONE_ARGS_VER0 64u
#define LINUX_CLONE_ARGS_VER2 88u
static_assert(sizeof(struct linux_clone_args) == LINUX_CLONE_ARGS_VER2, "clone_args");

/* getrusage(2), wait4(2) */
struct linux_rusage {
	int64_t utime_sec, utime_usec, stime_sec, stime_usec;
	int64_t maxrss, ixrss, idrss, isrss, minflt, majflt, nswap, inblock, oublock, msgsnd, msgrcv, nsignals,
		nvcsw, nivcsw;
};
static_assert(sizeof(struct linux_rusage) == 144, "rusage");

/* times(2), in clock ticks of 10 ms */
struct linux_tms {
	int64_t utime, stime, cutime, cstime;
};
#define LINUX_NS_PER_TICK 10000000ull

/* getrlimit(2), prlimit(2) */
struct linux_rlimit {
	uint64_t cur, max;
};

#define LINUX_UTS_LEN 65
struct linux_utsname {
	char sysname[LINUX_UTS_LEN], nodename[LINUX_UTS_LEN], release[LINUX_UTS_LEN], version[LINUX_UTS_LEN],
		machine[LINUX_UTS_LEN], domainname[LINUX_UTS_LEN];
};
static_assert(sizeof(struct linux_utsname) == 390, "utsname");

struct linux_sysinfo {
	int64_t uptime;
	uint64_t loads[3], totalram, freeram, sharedram, bufferram, totalswap, freeswap;
	uint16_t procs, pad;
	uint64_t totalhigh, freehigh;
	uint32_t mem_unit;
};
static_assert(sizeof(struct linux_sysinfo) == 112, "sysinfo");

struct linux_sched_param {
	int32_t priority;
};

/* sched_setattr(2) */
struct linux_sched_attr {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
	uint32_t util_min, util_max; /* since version 1 */
};
#define LINUX_SCHED_ATTR_VER0 48u
static_assert(sizeof(struct linux_sched_attr) == 56, "sched_attr");

/* capget(2) */
struct linux_cap_header {
	uint32_t version;
	int32_t pid;
};
struct linux_cap_data {
	uint32_t effective, permitted, inheritable;
};

/* waitid(2): the part of siginfo_t that it fills */
struct linux_wait_siginfo {
	int32_t signo, error, code, pad;
	int32_t pid;
	uint32_t uid;
	int32_t status;
};
static_assert(sizeof(struct linux_wait_siginfo) == 28, "wait siginfo");

#endif
