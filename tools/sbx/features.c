/* SPDX-License-Identifier: Apache-2.0 */
/* sbx features: what this host and this build offer. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/host/notif.h"
#include "base/jsonw.h"
#include "base/macros.h"
#include "tools/monitor/cgroup.h"
#include "tools/sbx/verb.h"

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

static bool ended_well(pid_t pid)
{
	int st;

	return pid > 0 && waitpid(pid, &st, 0) == pid && st == 0;
}

/* Tries @flags in a child, which ends with 0 when they can be had. */
static bool can_unshare(int flags)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(unshare(flags) < 0);
	return ended_well(pid);
}

static bool has_userns(void)
{
	return can_unshare(CLONE_NEWUSER);
}

static bool has_pidns(void)
{
	return can_unshare(CLONE_NEWUSER | CLONE_NEWPID);
}

static bool has_netns(void)
{
	return can_unshare(CLONE_NEWUSER | CLONE_NEWNET);
}

/* pidfd_getfd(2), by which the listener is taken over. */
static bool can_take_fds(void)
{
	int self = (int)syscall(SYS_pidfd_open, getpid(), 0);

	return self >= 0 && (syscall(SYS_pidfd_getfd, self, self, 0) >= 0 || (errno != EPERM && errno != ENOSYS));
}

/* Tries in a child to be the supervisor that platform unotify is: another one above us is in its way. */
static bool has_notif(void)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog prog = { 1, &allow };
	pid_t pid = fork();

	if (pid == 0)
		_exit(!can_take_fds() || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
		      syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
		              SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, &prog) < 0);
	return ended_well(pid);
}

/* What `auto` asks before it takes unotify. */
static bool has_sound_notif(void)
{
	char why[128];

	return has_notif() && !host_notif_race(why, sizeof(why));
}

/* A child stops before its getppid(2), which is not made. */
static bool has_ptrace(void)
{
	pid_t pid = fork();
	bool have;
	int st;

	if (pid == 0) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
			_exit(1);
		raise(SIGSTOP);
		for (;;)
			getppid();
	}
	have = pid > 0 && waitpid(pid, &st, 0) == pid && WIFSTOPPED(st) &&
	       ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD) == 0 &&
	       ptrace(PTRACE_SYSEMU, pid, NULL, NULL) == 0 && waitpid(pid, &st, 0) == pid && WIFSTOPPED(st) &&
	       WSTOPSIG(st) == (SIGTRAP | 0x80);
	if (pid > 0) {
		kill(pid, SIGKILL);
		DISCARD(waitpid(pid, &st, 0));
	}
	return have;
}

/* SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP: Linux 6.6. There is no way to ask but the version. */
static bool has_sync_wakeup(void)
{
	unsigned major = 0, minor = 0;
	struct utsname u;

	return uname(&u) == 0 && sscanf(u.release, "%u.%u", &major, &minor) == 2 &&
	       (major > 6 || (major == 6 && minor >= 6));
}

static bool has_kvm(void)
{
	return access("/dev/kvm", R_OK | W_OK) == 0;
}

static bool has_openat2(void)
{
	return syscall(SYS_openat2, -1, "", NULL, 0) < 0 && errno != ENOSYS;
}

/* Landlock keeps a sentry's signals and ptrace inside its sandbox since Linux 6.12 (ABI 6). */
static bool has_landlock_scopes(void)
{
	return syscall(SYS_landlock_create_ruleset, NULL, 0, 1) >= 6;
}

/* Makes one and removes it. */
static bool has_cgroup(void)
{
	const struct cgroup_limits l = { .memory = 1ull << 30, .tasks = 512 };
	struct sbx_err err;
	struct cgroup c;
	bool have;

	cgroup_init(&c);
	have = cgroup_create(&c, "auto", &l, &err) == 0 && c.kind != CGROUP_NONE;
	cgroup_fini(&c);
	return have;
}

static bool is_secure_build(void)
{
#ifdef SBX_SANITIZED
	return false;
#else
	return true;
#endif
}

static const struct feature {
	const char *name;
	bool (*have)(void);
	const char *without; /* what it means when it is not there */
	const char *platform; /* what `auto` may take with it, best first */
} features[] = {
	{ "seccomp_notify", has_notif, "platform unotify cannot run", NULL },
	{ "seccomp_notify_sound", has_sound_notif, "platform unotify is only taken when asked for", "unotify" },
	{ "ptrace", has_ptrace, "platform ptrace cannot run", "ptrace" },
	{ "seccomp_sync_wakeup", has_sync_wakeup, "system calls of the guest are slower" },
	{ "openat2", has_openat2, "the gofer cannot serve files" },
	{ "user_namespace", has_userns, "sentry and stubs keep the caller's namespaces" },
	{ "pid_namespace", has_pidns, "sbx itself kills what a dead sentry leaves" },
	{ "net_namespace", has_netns, "only its filter keeps the sentry from the network" },
	{ "landlock_scopes", has_landlock_scopes,
	  "only its filter and namespaces bound whom the sentry can signal" },
	{ "cgroup", has_cgroup,
	  "memory is sampled: a limit is found out up to a moment late, and CPU time is an estimate" },
	{ "kvm", has_kvm, "platform kvm cannot run" },
	{ "secure_build", is_secure_build, "insecure build: sanitizers need a wider host filter" },
};

int verb_features(int argc, char **argv)
{
	struct strbuf sb = { 0 };
	struct jsonw w = { .sb = &sb };
	bool json = argc == 2 && !strcmp(argv[1], "--json");
	const char *platform = ""; /* what `auto` takes */

	if (argc > 2 || (argc == 2 && !json))
		return verb_fail("usage: sbx features [--json]");
	jsonw_open(&w, NULL, '{');
	jsonw_str(&w, "version", PACKAGE_VERSION);
	for (size_t i = 0; i < ARRAY_SIZE(features); i++) {
		bool have = features[i].have();

		if (have && !*platform && features[i].platform)
			platform = features[i].platform;

		jsonw_bool(&w, features[i].name, have);
		if (!json)
			printf("%-20s %s%s%s\n", features[i].name, have ? "yes" : "no",
			       have ? "" : ": ", have ? "" : features[i].without);
	}
	jsonw_str(&w, "platform", platform);
	if (!json)
		printf("%-20s %s\n", "platform", *platform ? platform : "none: no sandbox can run");
	jsonw_close(&w, '}');
	if (json && strbuf_ok(&sb))
		printf("%s\n", sb.p);
	strbuf_fini(&sb);
	return 0;
}
