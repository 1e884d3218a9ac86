/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The monitor's host calls while a sandbox runs. It reads messages that a hostile sentry may have
 * made; should their parser be wrong, there is nothing to execute, no socket to open and no file to
 * open for writing.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>

#include "base/macros.h"
#include "policy/seccomp/rows.h"

static const struct seccomp_row rows[] = {
	ROW(poll, "tools/monitor/monitor.c"),
	ROW(read, "tools/monitor/streams.c"),
	ROW(write, "tools/monitor/streams.c; policy/audit.c; stdio"),
	ROW(pwritev2, "base/host/hostio.c: output that must not block"),
	ROW(pread64, "policy/audit.c: the tail after another writer; tools/monitor/cgroup.c"),
	ROW_IF(unlinkat, "tools/monitor/cgroup.c: the empty group, at the end", 1, ARG(2, EQ, AT_REMOVEDIR)),
	ROW(recvmsg, "base/wire: from helpers"),
	ROW(sendmsg, "base/wire: signals to the sentry"),
	ROW(pidfd_send_signal, "tools/monitor/helper.c"),
	ROW_IF(kill, "tools/monitor/reap.c", 1, ARG(1, EQ, SIGKILL)),
	ROW(wait4, "tools/monitor/reap.c"),
	ROW_IF(openat, "tools/monitor/usage.c: /proc", 1,
	       ARG(2, MASKED_EQ, O_ACCMODE | O_CREAT | O_TRUNC, O_RDONLY)),
	ROW(getdents64, "tools/monitor/usage.c"),
	ROW(lseek, "readdir(3)"),
	ROW(fstat, "policy/audit.c"),
	ROW(newfstatat, "policy/audit.c: fstat(3) of glibc"),
	ROW(flock, "policy/audit.c"),
	ROW(ftruncate, "policy/audit.c"),
	ROW(fcntl, "fdopendir(3)"),
	ROW(close, "everywhere"),
	ROW(clock_gettime, "where there is no vDSO"),
	ROW(restart_syscall, "a wait that was stopped and continued"),
	ROW(rt_sigprocmask, "abort"),
	ROW(rt_sigaction, "abort"),
	ROW(rt_sigreturn, "signals"),
	ROW(getpid, "tools/monitor/reap.c"),
	ROW(gettid, "abort"),
	ROW(tgkill, "abort"),
	ROW_IF(mmap, "malloc", 1, ARG(2, MASKED_EQ, PROT_EXEC, 0)),
	ROW_IF(mprotect, "malloc", 1, ARG(2, MASKED_EQ, PROT_EXEC, 0)),
	ROW(munmap, "malloc"),
	ROW(mremap, "malloc"),
	ROW(madvise, "malloc"),
	ROW(brk, "malloc"),
	ROW(getrandom, "malloc"),
	ROW(futex, "stdio"),
	ROW(exit_group, "the end"),
};

const struct seccomp_table seccomp_sbx = { "sbx", rows, ARRAY_SIZE(rows), NULL };
