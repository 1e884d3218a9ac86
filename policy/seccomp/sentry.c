/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sentry's host calls. Whoever takes over the sentry has these: no path can be opened, nothing
 * executed, no process made, no socket, and the only sockets that messages go over are those to the
 * monitor and the gofer.
 */
#include <fcntl.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>

#include "base/macros.h"
#include "policy/seccomp/rows.h"

#define CONTROL_FD 3
#define GOFER_FD 4
#define PTRACE_SOCK_FD 99

/* platform unotify */
static const struct seccomp_row unotify_rows[] = {
	ROW_IF(ioctl, "platform/unotify/listener.c: receive", 1,
	       ARG(1, EQ, SECCOMP_IOCTL_NOTIF_RECV)),
	ROW_IF(ioctl, "platform/unotify/listener.c: answer", 1,
	       ARG(1, EQ, SECCOMP_IOCTL_NOTIF_SEND)),
	ROW_IF(ioctl, "platform/unotify/listener.c: still there", 1,
	       ARG(1, EQ, SECCOMP_IOCTL_NOTIF_ID_VALID)),
	ROW_IF(ioctl, "platform/unotify/listener.c: inject a mapping's fd", 1,
	       ARG(1, EQ, SECCOMP_IOCTL_NOTIF_ADDFD)),
	ROW_IF(tgkill, "platform/unotify/run.c: kick", 1, ARG(2, EQ, SIGUSR2)),
	ROW(pidfd_open, "platform/unotify/proc.c: a new stub"),
	ROW(epoll_pwait, "platform/unotify/deathwatch.c"),
};

#define REQUEST(name, reason) ROW_IF(ptrace, "platform/ptrace/" reason, 1, ARG(0, EQ, name))

/* Requests to threads that are traced already: none attaches to another, and nothing but the zygote was ever attached
 * to, so what is traced is a clone of it. */
static const struct seccomp_row ptrace_rows[] = {
	REQUEST(PTRACE_SYSEMU, "tracee.c: go on with guest code"),
	REQUEST(PTRACE_CONT, "order.c: make a host call"),
	REQUEST(PTRACE_SINGLESTEP, "fault.c: into the handler"),
	REQUEST(PTRACE_GETREGS, "tracee.c: at every stop"),
	REQUEST(PTRACE_SETREGS, "tracee.c: registers"),
	REQUEST(PTRACE_POKEUSER, "run.c: a result"),
	REQUEST(PTRACE_GETREGSET, "tracee.c: FPU state"),
	REQUEST(PTRACE_SETREGSET, "tracee.c: FPU state"),
	REQUEST(PTRACE_GETSIGINFO, "event.c: what fault it was"),
	REQUEST(PTRACE_GETEVENTMSG, "event.c: the number of a child"),
	REQUEST(PTRACE_GET_SYSCALL_INFO, "event.c: 32-bit calls"),
	REQUEST(PTRACE_INTERRUPT, "run.c: stop a guest thread"),
	ROW(sched_setaffinity, "platform/ptrace/affinity.c: itself and stubs"),
	ROW_IF(sendmsg, "platform/ptrace/fds.c: files to be mapped", 1, ARG(0, EQ, PTRACE_SOCK_FD)),
};

/* platforms of stubs: guest memory, the end of guests */
static const struct seccomp_row stub_rows[] = {
	ROW(process_vm_readv,
	    "platform/stub/mem.c; Landlock and the user namespace bound its reach to stubs"),
	ROW(process_vm_writev, "platform/stub/mem.c; platform/unotify/order.c"),
	ROW_IF(tgkill, "platform/stub/leader.c: wake the leader", 1, ARG(2, EQ, SIGUSR1)),
	ROW_IF(tgkill, "a stub that does not obey", 1, ARG(2, EQ, SIGKILL)),
	ROW_IF(kill, "platform/unotify/event.c, platform/ptrace/proc.c: end a stub", 1, ARG(1, EQ, SIGKILL)),
	ROW_IF(pidfd_send_signal, "platform/unotify/proc.c, platform/stub/spawn.c: end a stub", 1,
	       ARG(1, EQ, SIGKILL)),
	ROW_IF(rt_sigaction, "platform/stub/leader.c: the wake signal", 1,
	       ARG(0, EQ, SIGUSR1)),
	ROW(wait4, "platform/stub/spawn.c: the end; platform/ptrace/event.c"),
	ROW(getpid, "platform/stub/leader.c"),
	ROW(gettid, "platform/stub/leader.c"),
	ROW(rt_sigreturn, "platform/stub/leader.c: the wake signal"),
	ROW(rt_sigprocmask, "platform; base/host/thread.c"),
};

static const struct seccomp_table stubs = { "sentry_stubs", stub_rows, ARRAY_SIZE(stub_rows), &seccomp_sentry_common };
const struct seccomp_table seccomp_sentry = { "sentry", unotify_rows, ARRAY_SIZE(unotify_rows), &stubs };
const struct seccomp_table seccomp_sentry_ptrace = { "sentry_ptrace", ptrace_rows, ARRAY_SIZE(ptrace_rows), &stubs };

/* whatever the platform */
static const struct seccomp_row common_rows[] = {
	/* waiting */
	ROW(epoll_wait, "base/host/epoll.c"),
	ROW(epoll_ctl, "base/host/epoll.c; platform/unotify/deathwatch.c"),
	ROW(timerfd_settime, "base/host/epoll.c; platform/unotify/deathwatch.c; platform/ptrace/affinity.c"),
	ROW(poll, "base/host/hostio.c; platform/unotify/listener.c"),
	ROW(futex, "base/lock.c; pthread_join"),
	ROW(clock_nanosleep, "platform/unotify: short waits"),
	ROW(nanosleep, "platform/unotify: short waits"),
	ROW(restart_syscall, "a wait that was stopped and continued"),
	ROW(clock_gettime, "base/host/clock.c, where there is no vDSO"),
	ROW(getcpu, "base/host/sched.c, where there is no rseq or vDSO"),
	ROW(sched_getaffinity, "base/host/sched.c"),

	/* files: fds that are ours or were donated; none can be opened */
	ROW(read, "base/host/file.c"),
	ROW(write, "base/host/file.c; base/log.c"),
	ROW(pread64, "base/host/file.c"),
	ROW(pwrite64, "base/host/file.c"),
	ROW(preadv2, "base/host/hostio.c"),
	ROW(pwritev2, "base/host/hostio.c"),
	ROW(lseek, "base/host/hostio.c: SEEK_DATA, SEEK_HOLE"),
	ROW(fstat, "base/host/file.c"),
	ROW_IF(newfstatat, "base/host/file.c: fstat(3) of glibc", 1, ARG(3, EQ, AT_EMPTY_PATH)),
	ROW(ftruncate, "base/host/file.c"),
	ROW(fallocate, "base/host/file.c: also punches holes in the store"),
	ROW(fsync, "base/host/hostio.c"),
	ROW(fdatasync, "base/host/hostio.c"),
	ROW(close, "base/host/file.c"),
	ROW(memfd_create, "base/host/file.c: a mapped file's own memory"),
	ROW_IF(fcntl, "base/host: a second fd", 1, ARG(1, EQ, F_DUPFD_CLOEXEC)),
	ROW_IF(fcntl, "base/host/file.c", 1, ARG(1, EQ, F_SETFD)),
	ROW_IF(fcntl, "base/host/seal.c", 1, ARG(1, EQ, F_ADD_SEALS)),
	ROW_IF(ioctl, "base/host/hostio.c", 1, ARG(1, EQ, FIONREAD)),
	ROW_IF(sendmsg, "base/wire: to the monitor", 1, ARG(0, EQ, CONTROL_FD)),
	ROW_IF(sendmsg, "base/wire: to the gofer", 1, ARG(0, EQ, GOFER_FD)),
	ROW_IF(recvmsg, "base/wire: from the monitor", 1, ARG(0, EQ, CONTROL_FD)),
	ROW_IF(recvmsg, "base/wire: from the gofer", 1, ARG(0, EQ, GOFER_FD)),

	/* our own memory; none of it ever executable */
	ROW_IF(mmap, "malloc; base/host/map.c", 1, ARG(2, MASKED_EQ, PROT_EXEC, 0)),
	ROW_IF(mprotect, "malloc", 1, ARG(2, MASKED_EQ, PROT_EXEC, 0)),
	ROW(munmap, "malloc; base/host/map.c"),
	ROW(mremap, "malloc: realloc of large blocks; base/host/map.c: the same file page at a second place"),
	ROW(madvise, "malloc: giving memory back; base/host/map.c: the store, guest memory of kvm"),
	ROW(brk, "malloc"),
	ROW(getrandom, "base/host/random.c"),

	/* the end */
	ROW(capset, "base/host/thread.c: a thread whose turn comes late gives up what it has"),
	ROW(set_robust_list, "the end of a thread"),
	ROW(rseq, "the end of a thread"),
	ROW(exit, "the end of a thread"),
	ROW(exit_group, "the end"),
	ROW_IF(tgkill, "abort", 1, ARG(2, EQ, SIGABRT)),
	ROW_IF(rt_sigaction, "abort", 1, ARG(0, EQ, SIGABRT)),
};

const struct seccomp_table seccomp_sentry_common = { "sentry_common", common_rows,
	                                             ARRAY_SIZE(common_rows), NULL };
