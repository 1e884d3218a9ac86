/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks, traps and waiting, with the test as the guest of a fake platform. */
#include <errno.h>
#include <linux/wait.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "sentry/abi/process.h"
#include "sentry/abi/syscall_nr.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/pid.h"
#include "sentry/kernel/restart.h"
#include "sentry/kernel/sig_deliver.h"
#include "sentry/kernel/task.h"
#include "sentry/kernel/task_priv.h"
#include "sentry/kernel/uaccess.h"
#include "sentry/syscalls/ids.h"
#include "sentry/syscalls/prctl.h"
#include "sentry/syscalls/process.h"
#include "sentry/syscalls/usage.h"
#include "sentry/vfs/fdtable.h"
#include "sentry/vfs/vfs.h"
#include "tests/lib/fake_platform.h"
#include "tests/lib/tap.h"

#define M(off) (FAKE_MEM_BASE + (off))

/* Calls of the test's own, above Linux's numbers. */
enum { T_RESTART = 470, T_WAIT, T_MANY, T_SLEEP, T_INPUT, T_STALE_PATH, T_STALE_FD };

static struct waitq test_wq, many_wq[40];
static bool test_ready;

static int64_t sys_t_restart(struct task *t, const struct sysargs *a)
{
	(void)t;
	return -ARG_INT(a, 0);
}

/* Stale as often as it is told. */
static unsigned stale;

static int64_t sys_t_stale(struct task *t, const struct sysargs *a)
{
	(void)t;
	(void)a;
	if (!stale)
		return 5;
	stale--;
	return -ESTALE;
}

static int64_t sys_t_wait(struct task *t, const struct sysargs *a)
{
	if (test_ready)
		return 7;
	if (task_wait_on(t, &test_wq, POLLIN) < 0)
		return -ENOMEM;
	return task_block(t, -ARG_INT(a, 0));
}

static int64_t sys_t_many(struct task *t, const struct sysargs *a)
{
	(void)a;
	if (test_ready)
		return 8;
	for (unsigned i = 0; i < ARRAY_SIZE(many_wq); i++) {
		if (task_wait_on(t, &many_wq[i], POLLIN) < 0)
			return -ENOMEM;
	}
	return task_block(t, -ERESTARTSYS);
}

static int64_t sys_t_sleep(struct task *t, const struct sysargs *a)
{
	if (task_timed_out(t))
		return 0;
	task_deadline(t, clock_mono_ns() + ARG_U64(a, 0));
	return task_block(t, -ERESTART_BLOCK);
}

static int64_t sys_t_input(struct task *t, const struct sysargs *a)
{
	(void)a;
	if (test_ready)
		return 9;
	if (task_wait_on(t, &test_wq, POLLIN) < 0)
		return -ENOMEM;
	kernel_note_input_wait(t, true);
	return task_block(t, -ERESTARTSYS);
}

const struct sys_desc sys_table[SYS_TABLE_SIZE] = {
	[LINUX_SYS_fork] = { "fork", sys_fork, SYS_FULL, "" },
	[LINUX_SYS_vfork] = { "vfork", sys_vfork, SYS_FULL, "" },
	[LINUX_SYS_clone] = { "clone", sys_clone, SYS_FULL, "" },
	[LINUX_SYS_clone3] = { "clone3", sys_clone3, SYS_FULL, "" },
	[LINUX_SYS_exit] = { "exit", sys_exit, SYS_FULL, "" },
	[LINUX_SYS_exit_group] = { "exit_group", sys_exit_group, SYS_FULL, "" },
	[LINUX_SYS_wait4] = { "wait4", sys_wait4, SYS_FULL, "" },
	[LINUX_SYS_waitid] = { "waitid", sys_waitid, SYS_FULL, "" },
	[LINUX_SYS_getppid] = { "getppid", sys_getppid, SYS_FULL, "" },
	[LINUX_SYS_setpgid] = { "setpgid", sys_setpgid, SYS_FULL, "" },
	[LINUX_SYS_getpgid] = { "getpgid", sys_getpgid, SYS_FULL, "" },
	[LINUX_SYS_setsid] = { "setsid", sys_setsid, SYS_FULL, "" },
	[LINUX_SYS_getsid] = { "getsid", sys_getsid, SYS_FULL, "" },
	[LINUX_SYS_prctl] = { "prctl", sys_prctl, SYS_FULL, "" },
	[LINUX_SYS_prlimit64] = { "prlimit64", sys_prlimit64, SYS_FULL, "" },
	[LINUX_SYS_set_tid_address] = { "set_tid_address", sys_set_tid_address, SYS_FULL, "" },
	[LINUX_SYS_pidfd_open] = { "pidfd_open", sys_pidfd_open, SYS_FULL, "" },
	[T_RESTART] = { "t_restart", sys_t_restart, SYS_FULL, "" },
	[T_WAIT] = { "t_wait", sys_t_wait, SYS_FULL, "" },
	[T_MANY] = { "t_many", sys_t_many, SYS_FULL, "" },
	[T_INPUT] = { "t_input", sys_t_input, SYS_FULL, "" },
	[T_STALE_PATH] = { "t_stale_path", sys_t_stale, SYS_FULL, "dirfd,path" },
	[T_STALE_FD] = { "t_stale_fd", sys_t_stale, SYS_FULL, "fd,ptr" },
	[T_SLEEP] = { "t_sleep", sys_t_sleep, SYS_FULL, "" },
};

static struct task *first;

static int64_t call(struct task *t, uint64_t nr, uint64_t a0, uint64_t a1, uint64_t a2)
{
	return fake_call(t, nr, a0, a1, a2, 0, 0);
}

/* Borrowed. */
static struct task *child_of(struct task *t)
{
	int64_t pid = call(t, LINUX_SYS_fork, 0, 0, 0);

	return pid > 0 ? pid_task((pid_t)pid) : NULL;
}

static int64_t wait_nohang(struct task *t, int64_t pid, unsigned options)
{
	return call(t, LINUX_SYS_wait4, (uint64_t)pid, M(0), WNOHANG | options);
}

static int32_t status_of(struct task *t)
{
	int32_t st;

	memcpy(&st, fake_mem(t, M(0)), sizeof(st));
	return st;
}

static void set_handler(struct task *t, int sig, uint64_t handler, uint64_t flags)
{
	t->sighand->act[sig - 1] = (struct linux_sigaction){ handler, flags | 0x04000000, M(0x100), 0 };
}

static void test_restart_codes(void)
{
	static const int codes[] = { ERESTARTSYS, ERESTARTNOINTR, ERESTARTNOHAND, ERESTART_BLOCK };

	for (unsigned i = 0; i < ARRAY_SIZE(codes); i++) {
		int64_t r = call(first, T_RESTART, (unsigned)codes[i], 0, 0);

		tap_eq(r, -EINTR, "a stray restart code %d becomes EINTR", codes[i]);
	}
	stale = 1;
	tap_eq(call(first, T_STALE_PATH, 0, 0, 0), 5, "a path that is stale is walked again");
	stale = 2;
	tap_eq(call(first, T_STALE_PATH, 0, 0, 0), -ESTALE, "once");
	stale = 1;
	tap_eq(call(first, T_STALE_FD, 0, 0, 0), -ESTALE, "a descriptor is not");
	stale = 0;
	fake_ctx(first->ctx)->regs.rsp = M(0x8000);
	for (unsigned i = 0; i < ARRAY_SIZE(codes); i++) {
		bool again = codes[i] == ERESTARTNOINTR;
		struct gregs *regs = &fake_ctx(first->ctx)->regs;

		set_handler(first, SIGUSR1, M(0x200), 0);
		regs->rip = M(0x300);
		tap_eq(call(first, T_WAIT, (unsigned)codes[i], 0, 0), FAKE_BLOCKED, "a call waits");
		tap_eq(sig_send_task(first, SIGUSR1, NULL), 0, "a signal with a handler comes");
		fake_settle();
		tap_ok(fake_result(first) == FAKE_RESUMED && regs->rip == M(0x200), "the handler runs");
		tap_ok(!first->in_syscall && !first->op.n_waiters, "the call is over");
		(void)again;
		first->sig_blocked = 0;
	}
	tap_eq(call(first, T_WAIT, ERESTARTSYS, 0, 0), FAKE_BLOCKED, "a call waits");
	tap_eq(sig_send_task(first, SIGCHLD, NULL), 0, "an ignored signal");
	fake_settle();
	tap_eq(fake_result(first), FAKE_BLOCKED, "does not end it");
	test_ready = true;
	waitq_wake(&test_wq, POLLIN);
	fake_settle();
	tap_eq(fake_result(first), 7, "the event does");
	test_ready = false;
}

static void test_blocking(void)
{
	uint64_t t0;

	tap_eq(call(first, T_MANY, 0, 0, 0), FAKE_BLOCKED, "a call waits on forty queues");
	waitq_wake(&many_wq[1], POLLOUT);
	tap_eq(first->state, TASK_BLOCKED, "another event does not wake it");
	waitq_wake(&many_wq[39], POLLIN);
	tap_eq(first->state, TASK_RUNNABLE, "the last queue does");
	waitq_wake(&many_wq[3], POLLIN);
	fake_settle();
	tap_eq(first->state, TASK_BLOCKED, "it looks, finds nothing and waits again");
	test_ready = true;
	waitq_wake(&many_wq[0], POLLIN);
	fake_settle();
	tap_eq(fake_result(first), 8, "then it is answered");
	for (unsigned i = 0; i < ARRAY_SIZE(many_wq); i++)
		waitq_fini(&many_wq[i]);
	tap_ok(true, "and is on no queue any more");
	test_ready = false;
	t0 = clock_mono_ns();
	tap_eq(call(first, T_SLEEP, 1000000, 0, 0), FAKE_BLOCKED, "a call with a deadline");
	tap_eq(kernel.counters.ktimers, 1, "has a timer");
	ktimer_run(t0 + 500000);
	fake_settle();
	tap_eq(fake_result(first), FAKE_BLOCKED, "waits");
	ktimer_run(clock_mono_ns() + 1000000);
	fake_settle();
	tap_eq(fake_result(first), 0, "until the deadline");
	tap_eq(kernel.counters.ktimers, 0, "and the timer is gone");
}

static const struct {
	uint64_t flags, tls;
	int r;
	const char *what;
} clone_cases[] = {
	{ CLONE_THREAD, 0, -EINVAL, "THREAD needs SIGHAND" },
	{ CLONE_SIGHAND, 0, -EINVAL, "SIGHAND needs VM" },
	{ CLONE_THREAD | CLONE_SIGHAND, 0, -EINVAL, "THREAD and SIGHAND need VM" },
	{ CLONE_FS | CLONE_NEWNS, 0, -EINVAL, "FS and NEWNS exclude each other" },
	{ CLONE_FS | CLONE_NEWUSER, 0, -EINVAL, "FS and NEWUSER exclude each other" },
	{ CLONE_PIDFD | CLONE_PARENT_SETTID, 0, -EINVAL, "PIDFD and PARENT_SETTID store at one place" },
	{ CLONE_PIDFD | CLONE_DETACHED, 0, -EINVAL, "PIDFD and DETACHED" },
	{ CLONE_NEWNS, 0, -EPERM, "no mount namespaces" },
	{ CLONE_NEWUSER, 0, -EPERM, "no user namespaces" },
	{ CLONE_NEWPID | CLONE_THREAD | CLONE_SIGHAND | CLONE_VM, 0, -EINVAL, "a thread has its group's namespace" },
	{ CLONE_SETTLS, 1ull << 63, -EPERM, "a TLS address outside user space" },
};

static void test_clone_flags(void)
{
	for (unsigned i = 0; i < ARRAY_SIZE(clone_cases); i++)
		tap_eq(fake_call(first, LINUX_SYS_clone, clone_cases[i].flags | SIGCHLD, 0, M(0), 0,
		                 clone_cases[i].tls),
		       clone_cases[i].r, "clone: %s", clone_cases[i].what);
}

static void put_clone_args(const struct linux_clone_args *ca)
{
	memcpy(fake_mem(first, M(0x400)), ca, sizeof(*ca));
	memset(fake_mem(first, M(0x400) + sizeof(*ca)), 0, 64);
}

static void test_clone3(void)
{
	struct linux_clone_args ca = { .exit_signal = SIGCHLD };
	char *rest = fake_mem(first, M(0x400) + sizeof(ca));
	int64_t pid;

	put_clone_args(&ca);
	tap_eq(call(first, LINUX_SYS_clone3, M(0x400), 63, 0), -EINVAL, "clone3: too small");
	tap_eq(call(first, LINUX_SYS_clone3, M(0x400), 5000, 0), -E2BIG, "clone3: too large");
	rest[3] = 1;
	tap_eq(call(first, LINUX_SYS_clone3, M(0x400), sizeof(ca) + 8, 0), -E2BIG, "clone3: unknown field set");
	tap_eq(call(first, LINUX_SYS_clone3, 8, sizeof(ca), 0), -EFAULT, "clone3: bad pointer");
	ca.flags = 0x40;
	put_clone_args(&ca);
	tap_eq(call(first, LINUX_SYS_clone3, M(0x400), sizeof(ca), 0), -EINVAL, "clone3: exit signal in flags");
	ca.flags = CLONE_THREAD | CLONE_SIGHAND | CLONE_VM;
	put_clone_args(&ca);
	tap_eq(call(first, LINUX_SYS_clone3, M(0x400), sizeof(ca), 0), -EINVAL, "clone3: a thread has no exit signal");
	ca = (struct linux_clone_args){ .exit_signal = SIGCHLD, .stack = M(0x1000) };
	put_clone_args(&ca);
	tap_eq(call(first, LINUX_SYS_clone3, M(0x400), sizeof(ca), 0), -EINVAL, "clone3: a stack without a size");
	ca = (struct linux_clone_args){ .exit_signal = SIGCHLD, .stack = M(0x1000), .stack_size = 0x1000 };
	put_clone_args(&ca);
	pid = call(first, LINUX_SYS_clone3, M(0x400), sizeof(ca) + 8, 0);
	tap_ok(pid > 0 && fake_ctx(pid_task((pid_t)pid)->ctx)->regs.rsp == M(0x2000), "clone3: the stack's top");
	call(pid_task((pid_t)pid), LINUX_SYS_exit_group, 0, 0, 0);
	tap_eq(wait_nohang(first, pid, 0), pid, "waited for");
}

static void test_wait(void)
{
	struct task *a, *b;
	pid_t pa, pb;

	tap_eq(wait_nohang(first, -1, 0), -ECHILD, "no child");
	tap_eq(call(first, LINUX_SYS_wait4, 1, 0, 0x80), -EINVAL, "an unknown option");
	tap_eq(call(first, LINUX_SYS_wait4, (uint32_t)INT32_MIN, 0, 0), -ESRCH, "INT_MIN");
	a = child_of(first);
	b = child_of(first);
	pa = a->tid;
	pb = b->tid;
	tap_eq(call(a, LINUX_SYS_getppid, 0, 0, 0), first->tid, "getppid");
	tap_eq(wait_nohang(first, -1, 0), 0, "children, none dead");
	tap_eq(wait_nohang(first, -1, __WCLONE), -ECHILD, "no clone children");
	tap_eq(call(b, LINUX_SYS_exit_group, 3, 0, 0), FAKE_GONE, "one exits");
	tap_eq(wait_nohang(first, pa, 0), 0, "the other has not");
	tap_eq(call(first, LINUX_SYS_waitid, 0, 0, M(64)), -EINVAL, "waitid wants a kind of event");
	tap_eq(fake_call(first, LINUX_SYS_waitid, 0, 0, M(64), WEXITED | WNOWAIT, 0), 0, "waitid leaves it");
	tap_ok(((int32_t *)fake_mem(first, M(64)))[4] == pb && ((int32_t *)fake_mem(first, M(64)))[6] == 3,
	       "and tells who and how");
	tap_eq(wait_nohang(first, -1, 0), pb, "wait4 takes it");
	tap_eq(status_of(first), 0x300, "its status");
	tap_eq(wait_nohang(first, pb, 0), -ECHILD, "once");
	tap_eq(call(first, LINUX_SYS_wait4, (uint64_t)-1, M(0), 0), FAKE_BLOCKED, "a wait blocks");
	tap_eq(sig_send_tgroup(a->tg, SIGKILL, NULL), 0, "the child is killed");
	fake_settle();
	tap_eq(fake_result(first), pa, "and the wait ends");
	tap_eq(status_of(first), SIGKILL, "its status");
}

static void test_wait_autoreap(void)
{
	struct task *a = child_of(first);

	set_handler(first, SIGCHLD, 1, 0);
	tap_eq(call(first, LINUX_SYS_wait4, (uint64_t)-1, 0, 0), FAKE_BLOCKED, "SIGCHLD is ignored: a wait blocks");
	call(a, LINUX_SYS_exit_group, 0, 0, 0);
	fake_settle();
	tap_eq(fake_result(first), -ECHILD, "until all children are gone");
	set_handler(first, SIGCHLD, 0, 0);
}

static void test_stop(void)
{
	struct task *a = child_of(first);
	pid_t pid = a->tid;

	/* A group that is not orphaned: its member's parent is in another group of the session. */
	tap_eq(call(a, LINUX_SYS_setpgid, 0, 0, 0), 0, "setpgid");
	tap_eq(sig_send_tgroup(a->tg, SIGTSTP, NULL), 0, "SIGTSTP");
	fake_settle();
	tap_ok(a->state == TASK_STOPPED && a->tg->stopped, "stops it");
	tap_eq(wait_nohang(first, pid, 0), 0, "not told without WUNTRACED");
	tap_eq(wait_nohang(first, pid, WUNTRACED), pid, "told with it");
	tap_eq(status_of(first), SIGTSTP << 8 | 0x7f, "its status");
	tap_eq(wait_nohang(first, pid, WUNTRACED), 0, "once");
	tap_eq(wait_nohang(first, pid, WCONTINUED), 0, "not continued yet");
	tap_eq(sig_send_tgroup(a->tg, SIGCONT, NULL), 0, "SIGCONT");
	fake_settle();
	tap_eq(a->state, TASK_RUNNING, "continues it");
	tap_eq(wait_nohang(first, -pid, WCONTINUED), pid, "told by group");
	tap_eq(status_of(first), 0xffff, "its status");
	tap_eq(call(a, T_WAIT, ERESTARTSYS, 0, 0), FAKE_BLOCKED, "it waits in a call");
	tap_eq(sig_send_tgroup(a->tg, SIGSTOP, NULL), 0, "SIGSTOP");
	fake_settle();
	tap_eq(a->state, TASK_STOPPED, "stops the call");
	test_ready = true;
	waitq_wake(&test_wq, POLLIN);
	fake_settle();
	tap_eq(a->state, TASK_STOPPED, "an event does not start it");
	tap_eq(sig_send_tgroup(a->tg, SIGCONT, NULL), 0, "SIGCONT");
	fake_settle();
	tap_eq(fake_result(a), 7, "the call is run again and finds the event");
	test_ready = false;
	tap_eq(sig_send_tgroup(a->tg, SIGSTOP, NULL), 0, "stopped again");
	fake_settle();
	tap_eq(sig_send_tgroup(a->tg, SIGKILL, NULL), 0, "a stopped process can be killed");
	fake_settle();
	tap_eq(wait_nohang(first, pid, 0), pid, "waited for");
}

static void test_groups(void)
{
	struct task *a = child_of(first), *b = child_of(first), *c;
	pid_t pa = a->tid, pb = b->tid, pc;

	tap_eq(call(first, LINUX_SYS_setpgid, 0, 0, 0), -EPERM, "a session leader keeps its group");
	tap_eq(call(first, LINUX_SYS_setpgid, 9999, 0, 0), -ESRCH, "no such process");
	tap_eq(call(first, LINUX_SYS_setpgid, (uint64_t)pa, (uint64_t)-1, 0), -EINVAL, "no such group number");
	tap_eq(call(first, LINUX_SYS_setpgid, (uint64_t)pa, (uint64_t)pb, 0), -EPERM, "the group must exist");
	tap_eq(call(first, LINUX_SYS_setpgid, (uint64_t)pa, 0, 0), 0, "a group of its own for a child");
	tap_eq(call(first, LINUX_SYS_setpgid, (uint64_t)pb, (uint64_t)pa, 0), 0, "a second member");
	tap_eq(call(a, LINUX_SYS_setpgid, (uint64_t)pb, 0, 0), -ESRCH, "not for a sibling");
	b->tg->execed = true;
	tap_eq(call(first, LINUX_SYS_setpgid, (uint64_t)pb, 0, 0), -EACCES, "not after the child's exec");
	tap_eq(call(a, LINUX_SYS_setsid, 0, 0, 0), -EPERM, "a group leader cannot start a session");
	tap_eq(call(b, LINUX_SYS_setsid, 0, 0, 0), pb, "a member can");
	tap_eq(call(first, LINUX_SYS_setpgid, (uint64_t)pb, 0, 0), -EPERM, "another session's process");
	tap_eq(call(first, LINUX_SYS_getsid, (uint64_t)pb, 0, 0), pb, "getsid");
	tap_eq(call(first, LINUX_SYS_getpgid, (uint64_t)pa, 0, 0), pa, "getpgid");
	c = child_of(a);
	pc = c->tid;
	call(c, LINUX_SYS_setpgid, 0, 0, 0);
	(void)sig_send_tgroup(c->tg, SIGSTOP, NULL);
	fake_settle();
	tap_eq(c->state, TASK_STOPPED, "a stopped grandchild in a group of its own");
	call(a, LINUX_SYS_exit_group, 0, 0, 0);
	fake_settle();
	tap_ok(!pid_task(pc), "its group is orphaned: SIGHUP ends it");
	call(b, LINUX_SYS_exit_group, 0, 0, 0);
	tap_ok(wait_nohang(first, pa, 0) == pa && wait_nohang(first, pb, 0) == pb, "waited for");
	tap_ok(!pid_is_pgrp(pa) && !pid_is_session(pb), "the group and session numbers are free");
}

static void test_vfork(void)
{
	struct task *c;
	int64_t r = call(first, LINUX_SYS_vfork, 0, 0, 0);
	char *exe;

	tap_eq(r, FAKE_BLOCKED, "a vfork parent waits");
	c = list_first_entry(&first->tg->children, struct tgroup, sibling)->leader;
	tap_ok(c->mm == first->mm, "in the same memory");
	set_handler(first, SIGUSR1, M(0x200), 0);
	(void)sig_send_task(first, SIGUSR1, NULL);
	fake_settle();
	tap_eq(fake_result(first), FAKE_BLOCKED, "a signal does not end the wait");
	exe = strdup("/bin/x");
	task_exec_done(c, "x", exe);
	fake_settle();
	tap_ok(fake_result(first) == FAKE_RESUMED && fake_ctx(first->ctx)->regs.rip == M(0x200),
	       "the child's exec does, and then the handler runs");
	tap_ok(!strcmp(c->comm, "x") && !strcmp(c->tg->exe_path, "/bin/x") && c->tg->execed, "exec set the names");
	first->sig_blocked = 0;
	r = c->tid;
	call(c, LINUX_SYS_exit_group, 0, 0, 0);
	tap_eq(wait_nohang(first, r, 0), r, "waited for");
	set_handler(first, SIGUSR1, 0, 0);
	r = call(first, LINUX_SYS_vfork, 0, 0, 0);
	c = list_first_entry(&first->tg->children, struct tgroup, sibling)->leader;
	r = c->tid;
	call(c, LINUX_SYS_exit_group, 0, 0, 0);
	fake_settle();
	tap_eq(fake_result(first), r, "the child's exit ends the wait too");
	tap_eq(wait_nohang(first, r, 0), r, "waited for");
}

#define THREAD_FLAGS (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM)

static struct task *thread_of(struct task *t)
{
	int64_t tid = fake_call(t, LINUX_SYS_clone, THREAD_FLAGS | CLONE_CHILD_CLEARTID | CLONE_CHILD_SETTID, M(0x4000),
				0, M(0x80), 0);

	return tid > 0 ? pid_task((pid_t)tid) : NULL;
}

static void test_threads(void)
{
	struct task *a = child_of(first), *t1, *t2;
	pid_t pa = a->tid, tid1;
	int32_t word;

	t1 = thread_of(a);
	tid1 = t1->tid;
	memcpy(&word, fake_mem(a, M(0x80)), 4);
	tap_ok(t1->tg == a->tg && a->tg->n_tasks == 2 && word == tid1, "a thread, its number in its memory");
	call(t1, LINUX_SYS_exit, 0, 0, 0);
	memcpy(&word, fake_mem(a, M(0x80)), 4);
	tap_ok(word == 0 && !pid_task(tid1) && a->tg->n_tasks == 1, "its exit clears the word and the number");
	t1 = thread_of(a);
	t2 = thread_of(a);
	call(a, LINUX_SYS_exit, 5, 0, 0);
	tap_ok(!a->tg->dead && wait_nohang(first, pa, 0) == 0, "the leader's exit leaves the process");
	tid1 = t1->tid;
	(void)task_get(t1);
	task_exec_done(t1, "new", strdup("/new"));
	tap_ok(t1->tid == pa && t1->tg->leader == t1 && t1->tg->n_tasks == 1 && pid_task(pa) == t1 && !pid_task(tid1),
	       "a thread that executes a program becomes the leader and the only thread");
	(void)t2;
	t2 = thread_of(t1);
	call(t2, LINUX_SYS_exit_group, 9, 0, 0);
	tap_ok(t1->exiting && !t1->ctx, "exit_group ends all threads at once");
	task_put(t1);
	tap_ok(wait_nohang(first, pa, 0) == pa && status_of(first) == 0x900, "with its status");
}

static void test_reparent(void)
{
	struct task *a = child_of(first), *b = child_of(a), *c = child_of(b);
	pid_t pa = a->tid, pb = b->tid, pc = c->tid;

	tap_eq(call(c, LINUX_SYS_prctl, PR_SET_PDEATHSIG, SIGUSR2, 0), 0, "PDEATHSIG");
	tap_eq(call(a, LINUX_SYS_prctl, PR_SET_CHILD_SUBREAPER, 1, 0), 0, "subreaper");
	set_handler(c, SIGUSR2, 1, 0);
	call(b, LINUX_SYS_exit_group, 0, 0, 0);
	fake_settle();
	tap_eq(call(c, LINUX_SYS_getppid, 0, 0, 0), pa, "an orphan goes to the subreaper");
	tap_eq(wait_nohang(a, pb, 0), pb, "waited for");
	set_handler(c, SIGUSR2, 0, 0);
	call(a, LINUX_SYS_exit_group, 0, 0, 0);
	fake_settle();
	tap_ok(!pid_task(pc), "the parent's death sends PDEATHSIG, and init reaps");
	tap_eq(wait_nohang(first, pa, 0), pa, "waited for");
	a = child_of(first);
	b = child_of(a);
	pb = b->tid;
	pa = a->tid;
	call(b, LINUX_SYS_exit_group, 0, 0, 0);
	call(a, LINUX_SYS_exit_group, 0, 0, 0);
	tap_ok(!pid_task(pb), "a zombie whose parent dies is reaped by init");
	tap_eq(wait_nohang(first, pa, 0), pa, "waited for");
}

static void test_limits(void)
{
	uint64_t lim[2] = { 1, 2 };
	struct task *a = child_of(first);

	memcpy(fake_mem(a, M(0)), lim, sizeof(lim));
	tap_eq(fake_call(a, LINUX_SYS_prlimit64, 0, 6, M(0), M(16), 0), 0, "prlimit lowers RLIMIT_NPROC");
	tap_eq(call(a, LINUX_SYS_fork, 0, 0, 0), -EAGAIN, "a user at RLIMIT_NPROC cannot fork");
	lim[1] = 3;
	memcpy(fake_mem(a, M(0)), lim, sizeof(lim));
	tap_eq(fake_call(a, LINUX_SYS_prlimit64, 0, 6, M(0), 0, 0), -EPERM, "a hard limit does not rise");
	lim[0] = 9;
	memcpy(fake_mem(a, M(0)), lim, sizeof(lim));
	tap_eq(fake_call(a, LINUX_SYS_prlimit64, 0, 6, M(0), 0, 0), -EINVAL, "soft above hard");
	tap_eq(fake_call(a, LINUX_SYS_prlimit64, 0, 16, 0, 0, 0), -EINVAL, "no such limit");
	call(a, LINUX_SYS_exit_group, 0, 0, 0);
	(void)wait_nohang(first, -1, 0);
	kernel.limits.tasks = kernel.counters.tasks;
	tap_eq(call(first, LINUX_SYS_fork, 0, 0, 0), -EAGAIN, "the sandbox's limit on tasks");
	tap_ok(kernel.counters.hit_task_limit, "is noted");
	kernel.limits.tasks = 0;
}

static int input_state = -1;

static void note_input(bool waiting)
{
	input_state = waiting;
}

static void test_input_wait(void)
{
	static const struct kernel_report_ops ops = { .waiting_for_input = note_input };
	struct task *a = child_of(first);

	kernel.report = &ops;
	tap_eq(call(first, T_INPUT, 0, 0, 0), FAKE_BLOCKED, "a call waits for input");
	kernel_idle(NULL);
	ktimer_run(clock_mono_ns() + INPUT_WAIT_NS);
	tap_eq(input_state, -1, "not told while another task runs");
	tap_eq(call(a, T_WAIT, ERESTARTSYS, 0, 0), FAKE_BLOCKED, "now all wait");
	ktimer_run(clock_mono_ns() + INPUT_WAIT_NS);
	tap_eq(input_state, -1, "something ran meanwhile");
	kernel_idle(NULL);
	ktimer_run(clock_mono_ns() + 2 * INPUT_WAIT_NS);
	tap_eq(input_state, 1, "told when nothing did");
	test_ready = true;
	waitq_wake(&test_wq, POLLIN);
	fake_settle();
	tap_ok(input_state == 0 && fake_result(first) == 9 && !kernel.input_waiters, "and when it is over");
	test_ready = false;
	kernel.report = NULL;
	call(a, LINUX_SYS_exit_group, 0, 0, 0);
	(void)wait_nohang(first, -1, 0);
	ktimer_run(clock_mono_ns() + 10 * INPUT_WAIT_NS);
}

static void test_cpu_limit(void)
{
	struct task *a = child_of(first);
	pid_t pa = a->tid;
	uint64_t lim[2] = { 3, 5 };

	memcpy(fake_mem(a, M(0)), lim, sizeof(lim));
	set_handler(a, SIGXCPU, M(0x200), 0);
	fake_ctx(a->ctx)->regs.rsp = M(0x8000);
	tap_eq(fake_call(a, LINUX_SYS_prlimit64, 0, 0, M(0), 0, 0), 0, "a limit on CPU time");
	ktimer_run(clock_mono_ns() + NSEC_PER_SEC);
	tap_ok(!sig_pending(a), "is not reached");
	a->utime_ns += 4 * NSEC_PER_SEC;
	ktimer_run(clock_mono_ns() + NSEC_PER_SEC);
	tap_ok(sig_pending(a), "the soft one sends SIGXCPU");
	fake_settle();
	a->stime_ns += NSEC_PER_SEC;
	ktimer_run(clock_mono_ns() + NSEC_PER_SEC);
	tap_ok(wait_nohang(first, pa, 0) == pa && status_of(first) == SIGKILL, "the hard one kills");
	ktimer_run(clock_mono_ns() + NSEC_PER_SEC);
}

static void test_pidfd(void)
{
	struct task *a = child_of(first);
	int64_t fd = call(first, LINUX_SYS_pidfd_open, (uint64_t)a->tid, 0, 0);
	struct waitq *q = NULL;
	struct file *f;
	pid_t pa = a->tid;

	tap_ok(fd >= 0, "pidfd_open");
	f = fd_lookup(first->fdt, (int)fd);
	tap_eq(vfs_poll(f, &q), 0, "alive: not ready");
	tap_eq(fake_call(first, LINUX_SYS_waitid, 3, (uint64_t)fd, M(64), WEXITED | WNOHANG, 0), 0, "waitid by pidfd");
	call(a, LINUX_SYS_exit_group, 0, 0, 0);
	tap_ok(q && vfs_poll(f, &q) == (POLLIN | POLLRDNORM), "dead: readable");
	tap_eq(fake_call(first, LINUX_SYS_waitid, 3, (uint64_t)fd, M(64), WEXITED, 0), 0, "waited for");
	tap_eq(((int32_t *)fake_mem(first, M(64)))[4], pa, "the right one");
	tap_ok(vfs_poll(f, &q) & POLLHUP, "reaped: hung up");
	tap_eq(fake_call(first, LINUX_SYS_waitid, 3, (uint64_t)fd, M(64), WEXITED, 0), -ECHILD, "once");
	tap_eq(call(first, LINUX_SYS_pidfd_open, 1 << 20, 0, 0), -ESRCH, "no such process");
	tap_eq(call(first, LINUX_SYS_pidfd_open, 0, 0, 0), -EINVAL, "no number");
	file_put(f);
	tap_eq(fd_close(first, (int)fd), 0, "close");
}

static void test_uaccess(void)
{
	char *end = fake_mem(first, M(FAKE_MEM_SIZE - 4));
	char buf[600];

	memcpy(end, "abc", 4);
	tap_eq(copy_in_str(first, M(FAKE_MEM_SIZE - 4), buf, sizeof(buf)), 3, "a string that ends with the memory");
	memcpy(end, "abcd", 4);
	tap_eq(copy_in_str(first, M(FAKE_MEM_SIZE - 4), buf, sizeof(buf)), -EFAULT, "one that does not end");
	memset(fake_mem(first, M(0x2f00)), 'x', 0x400);
	*(char *)fake_mem(first, M(0x2f00 + 500)) = 0;
	tap_eq(copy_in_str(first, M(0x2f00), buf, sizeof(buf)), 500, "one over a page end");
	tap_eq(copy_in_str(first, M(0x2f00), buf, 500), -ENAMETOOLONG, "one too long");
	tap_eq(copy_in(first, ~0ull - 3, buf, 8), -EFAULT, "a range that wraps");
	tap_eq(copy_out(first, M(FAKE_MEM_SIZE - 4), buf, 8), -EFAULT, "all or nothing");
	tap_eq(copy_in(first, 8, buf, 0), 0, "nothing from nowhere");
	tap_eq(clear_user(first, M(0x2f00), 0x400), 0, "clear");
}

static void test_unknown(void)
{
	struct trap trap = { .kind = TRAP_SYSCALL, .foreign = true, .sys = { LINUX_SYS_getppid, { 0 } } };

	tap_eq(call(first, 400, 0, 0, 0), -ENOSYS, "a number without a call");
	tap_eq(call(first, ~0ull, 0, 0, 0), -ENOSYS, "a number out of range");
	fake_ctx(first->ctx)->state = FAKE_STOPPED;
	kernel_trap(NULL, first->ctx, &trap);
	tap_eq(fake_result(first), -ENOSYS, "a foreign call");
}

static void measure(void)
{
	enum { N = 200000 };
	struct trap trap = { .kind = TRAP_SYSCALL, .sys = { LINUX_SYS_getppid, { 0 } } };
	uint64_t t0 = clock_mono_ns();

	for (int i = 0; i < N; i++) {
		fake_ctx(first->ctx)->state = FAKE_STOPPED;
		kernel_trap(NULL, first->ctx, &trap);
		kernel_idle(NULL);
	}
	printf("# getppid: %llu ns a trap, idle included\n", (unsigned long long)(clock_mono_ns() - t0) / N);
}

static void test_end(void)
{
	struct task *a = child_of(first);

	(void)child_of(a);
	(void)thread_of(a);
	(void)call(a, T_WAIT, ERESTARTSYS, 0, 0);
	tap_eq(call(first, LINUX_SYS_exit_group, 0, 0, 0), FAKE_GONE, "the first process ends");
	task_bury(); /* fake_call() held the last reference */
	tap_ok(fake_stopped, "the platform is stopped");
	tap_ok(fake_n_ctx == 0 && fake_n_aspace == 0, "no context or address space is left");
	tap_eq(kernel.counters.tasks, 0, "no task");
	tap_eq(kernel.counters.tgroups, 0, "no process");
	tap_eq(kernel.counters.mms, 0, "no address space");
	tap_eq(kernel.counters.ktimers, 0, "no timer");
	tap_eq(kernel.input_waiters, 0, "no waiter");
	tap_eq(fake_errors, 0, "the platform's rules were kept");
}

int main(void)
{
	const struct kernel_limits limits = { .open_files = 1024 };

	waitq_init(&test_wq);
	for (unsigned i = 0; i < ARRAY_SIZE(many_wq); i++)
		waitq_init(&many_wq[i]);
	first = fake_boot(&limits, 1000);
	tap_ok(first->tid == 2 && first->tg->sid == 2, "the first process is 2, in a session of its own");
	test_unknown();
	test_restart_codes();
	test_blocking();
	test_clone_flags();
	test_clone3();
	test_wait();
	test_wait_autoreap();
	test_stop();
	test_groups();
	test_vfork();
	test_threads();
	test_reparent();
	test_limits();
	test_input_wait();
	test_cpu_limit();
	test_pidfd();
	test_uaccess();
	measure();
	test_end();
	return tap_done();
}
