/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gofer's host calls. openat2 alone opens, below the grants' own fds; nothing is executed, no
 * process made, no socket, no memory executable. New names cannot have set-id bits and no device
 * node can be made.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/macros.h"
#include "policy/seccomp/rows.h"

#define CONTROL_FD 3
#define SENTRY_FD 4

static const struct seccomp_row rows[] = {
	ROW(poll, "conn.c: gofer_serve"),
	ROW(restart_syscall, "conn.c: poll that was stopped and continued"),
	ROW(openat2, "node.c: walk; reopen.c; ops_open.c: create"),
	ROW(close, "base/host/file.c: host_close"),
	ROW(statx, "base/host/at.c: attributes"),
	ROW(fstatfs, "ops_walk.c: statfs; grant.c: is_pseudo"),
	ROW(readlinkat, "ops_walk.c: readlink"),
	ROW(getdents64, "ops_dir.c: readdir"),
	ROW(lseek, "ops_dir.c: cookies"),
	ROW(inotify_add_watch, "watch.c: directories of live grants"),
	ROW(inotify_rm_watch, "watch.c"),
	ROW(read, "watch.c: events; what is open otherwise is O_PATH, a socket, or on its way to the sentry"),
	ROW(symlinkat, "ops_change.c"),
	ROW(linkat, "ops_change.c"),
	ROW(unlinkat, "ops_change.c"),
	ROW(renameat2, "ops_change.c"),
	ROW(utimensat, "ops_change.c: setattr"),
	ROW(truncate, "ops_change.c: setattr"),
	ROW(fsync, "ops_open.c: fsync of directories"),
	ROW(getxattr, "ops_xattr.c"),
	ROW(setxattr, "ops_xattr.c"),
	ROW(listxattr, "ops_xattr.c"),
	ROW(removexattr, "ops_xattr.c"),
	ROW(brk, "malloc"),
	ROW(munmap, "malloc"),
	ROW(mremap, "malloc: realloc of large blocks"),
	ROW(madvise, "malloc: giving memory back"),
	ROW(getrandom, "malloc: start-up of its caches"),
	ROW(clock_gettime, "audit.c, where there is no vDSO"),
	ROW(getpid, "abort"),
	ROW(gettid, "abort"),
	ROW(rt_sigprocmask, "abort"),
	ROW(exit_group, "the end"),
	ROW_IF(mmap, "malloc", 1, ARG(2, MASKED_EQ, PROT_EXEC, 0)),
	ROW_IF(newfstatat, "base/host/file.c: host_fstat", 1, ARG(3, EQ, AT_EMPTY_PATH)),
	ROW_IF(mkdirat, "ops_change.c; no set-id bits", 1, ARG(2, MASKED_EQ, 06000, 0)),
	ROW_IF(fchmodat, "ops_change.c; no set-id bits", 1, ARG(2, MASKED_EQ, 06000, 0)),
	ROW_IF(mknodat, "ops_change.c: FIFO", 1, ARG(2, MASKED_EQ, S_IFMT | 06000, S_IFIFO)),
	ROW_IF(mknodat, "ops_change.c: socket name", 1,
	       ARG(2, MASKED_EQ, S_IFMT | 06000, S_IFSOCK)),
	ROW_IF(sched_setaffinity, "base/host/sched.c: itself, by follow.c", 1, ARG(0, EQ, 0)),
	ROW_IF(write, "log.c", 1, ARG(0, EQ, 2)),
	ROW_IF(recvmsg, "wire.c: requests", 1, ARG(0, EQ, SENTRY_FD)),
	ROW_IF(sendmsg, "wire.c: replies", 1, ARG(0, EQ, SENTRY_FD)),
	ROW_IF(sendmsg, "wire.c: Started", 1, ARG(0, EQ, CONTROL_FD)),
	ROW_IF(sendto, "audit.c; no address can be given over a connected socket", 2,
	       ARG(0, EQ, CONTROL_FD), ARG(4, EQ, 0)),
};

const struct seccomp_table seccomp_gofer = { "gofer", rows, ARRAY_SIZE(rows), NULL };
