/* SPDX-License-Identifier: Apache-2.0 */
/* What a role has given up once it is steady: looked at from outside, and by trying. */
#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "policy/roles.h"
#include "policy/seccomp/load.h"
#include "tests/lib/tap.h"

struct child {
	pid_t pid;
	int to, from;
	struct policy_obtained obtained;
	int error;
};

/* Starts a child that enters @role up to the last stage and then does what it is told. */
static void start(struct child *c, enum role role, void (*act)(int in))
{
	struct sbx_err err = { 0 };
	int in[2], out[2];

	if (pipe(in) < 0 || pipe(out) < 0)
		abort();
	c->pid = fork();
	if (c->pid == 0) {
		int r;

		close(in[1]);
		dup2(out[1], 2); /* where every role may write */
		r = policy_enter(role, STAGE_STEADY, &err);

		(void)!write(2, &r, sizeof(r));
		(void)!write(2, policy_obtained(), sizeof(c->obtained));
		act(in[0]);
		_exit(0);
	}
	close(in[0]);
	close(out[1]);
	c->to = in[1];
	c->from = out[0];
	if (read(c->from, &c->error, sizeof(c->error)) != sizeof(c->error))
		c->error = -EIO;
	if (read(c->from, &c->obtained, sizeof(c->obtained)) != sizeof(c->obtained))
		c->error = -EIO;
}

/* Lets the child act. Returns its wait status. */
static int finish(struct child *c)
{
	int st;

	close(c->to);
	waitpid(c->pid, &st, 0);
	close(c->from);
	return st;
}

static bool status_line(pid_t pid, const char *want)
{
	char path[64], line[256];
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		found = found || !strcmp(line, want);
	}
	if (f)
		fclose(f);
	return found;
}

static void wait_for_go(int in)
{
	char b;

	(void)!read(in, &b, 1);
}

static void act_nothing(int in)
{
	wait_for_go(in);
}

static void act_malloc(int in)
{
	wait_for_go(in);
	for (size_t i = 1; i < 1 << 22; i *= 2) {
		void *p = malloc(i);

		p = realloc(p, 2 * i);
		free(p);
	}
}

#ifndef SBX_SANITIZED /* whose filters are wider */

static void act_open(int in)
{
	wait_for_go(in);
	open("/", O_RDONLY);
}

static void act_socket(int in)
{
	wait_for_go(in);
	socket(AF_INET, SOCK_STREAM, 0);
}

static void act_fork(int in)
{
	wait_for_go(in);
	fork();
}

static void act_kill_term(int in)
{
	wait_for_go(in);
	kill(getppid(), SIGTERM);
}

static void act_getregs(int in)
{
	wait_for_go(in);
	ptrace(PTRACE_GETREGS, 1, NULL, NULL);
}

static void act_attach(int in)
{
	wait_for_go(in);
	ptrace(PTRACE_SEIZE, 1, NULL, NULL);
}

static void act_affinity(int in)
{
	cpu_set_t set;

	wait_for_go(in);
	CPU_ZERO(&set);
	sched_setaffinity(0, sizeof(set), &set);
}

static bool killed(enum role role, void (*act)(int in))
{
	struct child c;
	int st;

	start(&c, role, act);
	st = finish(&c);
	return WIFSIGNALED(st) && WTERMSIG(st) == SIGSYS;
}

#endif

static void set_platform(const char *name)
{
	const struct policy_options o = { .platform = name };

	policy_set_options(&o);
}

static void test_sentry(void)
{
	struct child c;

	start(&c, ROLE_SENTRY, act_nothing);
	tap_ok(c.error < 0, "without a platform there is no last stage");
	DISCARD(finish(&c));
	set_platform("unotify");
	start(&c, ROLE_SENTRY, act_nothing);
	tap_eq(c.error, 0, "the sentry enters its last stage");
	tap_ok(status_line(c.pid, "CapEff:\t0000000000000000"), "no capability");
	tap_ok(status_line(c.pid, "CapPrm:\t0000000000000000"), "none to take either");
	tap_ok(status_line(c.pid, "NoNewPrivs:\t1"), "no new privileges");
	tap_ok(status_line(c.pid, "Seccomp:\t2"), "a filter");
	if (c.obtained.userns && geteuid() == 0)
		tap_ok(status_line(c.pid, "Uid:\t65534\t65534\t65534\t65534"),
		       "root's sentry is nobody");
	else
		tap_skip("not root, or no user namespaces", "root's sentry is nobody");
	if (c.obtained.mountns)
		tap_ok(c.obtained.empty_root, "with a mount namespace the root is empty");
	else
		tap_skip("no mount namespace", "with a mount namespace the root is empty");
	printf("# userns %d mountns %d netns %d landlock %d\n", c.obtained.userns,
	       c.obtained.mountns, c.obtained.netns, c.obtained.landlock);
	tap_eq(finish(&c), 0, "it lives on");
#ifdef SBX_SANITIZED
	tap_skip("sanitizers need a wider filter", "forbidden calls");
#else
	tap_ok(killed(ROLE_SENTRY, act_open), "open kills it");
	tap_ok(killed(ROLE_SENTRY, act_socket), "socket kills it");
	tap_ok(killed(ROLE_SENTRY, act_fork), "fork kills it");
	tap_ok(killed(ROLE_SENTRY, act_kill_term), "a signal other than SIGKILL kills it");
	tap_ok(killed(ROLE_SENTRY, act_getregs), "ptrace kills it on platform unotify");
	tap_ok(killed(ROLE_SENTRY, act_affinity), "sched_setaffinity too");
	set_platform("ptrace");
	tap_ok(!killed(ROLE_SENTRY, act_getregs), "on platform ptrace it may ask its tracees");
	tap_ok(killed(ROLE_SENTRY, act_attach), "but attaching to another process kills it");
	tap_ok(killed(ROLE_SENTRY, act_open), "and open does");
	set_platform("unotify");
#endif
	start(&c, ROLE_SENTRY, act_malloc);
	tap_eq(finish(&c), 0, "malloc works");
}

static void test_others(void)
{
	struct child c;

	start(&c, ROLE_GOFER, act_malloc);
	tap_eq(c.error, 0, "the gofer enters its last stage");
	start(&c, ROLE_SBX, act_malloc);
	tap_eq(c.error, 0, "the monitor enters its last stage");
	tap_eq(finish(&c), 0, "and lives on");
#ifndef SBX_SANITIZED
	tap_ok(killed(ROLE_SBX, act_socket), "socket kills the monitor");
	tap_ok(killed(ROLE_GOFER, act_socket), "socket kills the gofer");
#endif
}

static void test_order(void)
{
	struct sbx_err err = { 0 };
	pid_t pid = fork();
	int st;

	if (pid == 0) {
		if (policy_enter(ROLE_GOFER, STAGE_INITIAL, &err))
			_exit(1);
		_exit(policy_enter(ROLE_GOFER, STAGE_INITIAL, &err) == 0);
	}
	waitpid(pid, &st, 0);
	tap_eq(st, 0, "a stage is entered once");
	for (int i = 0; i < FILTER_COUNT; i++) {
		printf("# filter %d: %zu instructions\n", i,
		       seccomp_filter_size((enum seccomp_filter_id)i));
		tap_ok(seccomp_filter_size((enum seccomp_filter_id)i) > 20, "filter %d compiles",
		       i);
	}
}

/* Ends with the errno of ioctl(-1, @req) under the sentry's filter of the kvm platform; SIGSYS: -1. */
static int kvm_ioctl(unsigned long req)
{
	pid_t pid = fork();
	int st;

	if (pid == 0) {
		if (seccomp_filter_load(FILTER_SENTRY_KVM, false))
			_exit(255);
		_exit(syscall(SYS_ioctl, -1, req, 0) < 0 ? errno : 0);
	}
	waitpid(pid, &st, 0);
	return WIFSIGNALED(st) && WTERMSIG(st) == SIGSYS ? -1 : WEXITSTATUS(st);
}

/* KVM_RUN is asked for before the tree of all other calls. */
static void test_first(void)
{
	tap_eq(kvm_ioctl(KVM_RUN), EBADF, "KVM_RUN may be called");
	tap_eq(kvm_ioctl(KVM_SET_XSAVE), EBADF, "and what comes behind it");
	tap_eq(kvm_ioctl(KVM_CREATE_VM), -1, "but no VM be made");
	tap_eq(kvm_ioctl(KVM_RUN | 1ul << 32), -1, "and all 64 bits count");
}

int main(void)
{
	test_sentry();
	test_others();
	test_first();
	test_order();
	return tap_done();
}
