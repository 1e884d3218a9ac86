/* SPDX-License-Identifier: Apache-2.0 */
#include "base/macros.h"
#include "policy/seccomp/rows.h"

#ifdef SBX_SANITIZED

static const struct seccomp_row rows[] = {
	ROW(write, "sanitizer: reports"),
	ROW(read, "sanitizer: /proc/self/maps"),
	ROW(mmap, "sanitizer: shadow memory"),
	ROW(mprotect, "sanitizer: shadow memory"),
	ROW(openat, "sanitizer: /proc/self/maps"),
	ROW(readlink, "sanitizer: names of objects"),
	ROW(newfstatat, "sanitizer: sizes of files"),
	ROW(futex, "sanitizer: locks"),
	ROW(sched_yield, "sanitizer: locks"),
	ROW(sigaltstack, "sanitizer: threads"),
	ROW(rt_sigaction, "sanitizer: deadly signals"),
	ROW(rt_sigreturn, "sanitizer: deadly signals"),
	ROW(getrlimit, "sanitizer: stacks"),
	ROW(prlimit64, "sanitizer: stacks"),
	ROW(getpid, "sanitizer: reports"),
	ROW(gettid, "sanitizer: threads"),
	ROW(tgkill, "sanitizer: abort"),
};

const struct seccomp_table seccomp_sanitizer = { "sanitizer", rows, ARRAY_SIZE(rows), NULL };

#endif
