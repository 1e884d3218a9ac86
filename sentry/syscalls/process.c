/* SPDX-License-Identifier: Apache-2.0 */
#include "sentry/syscalls/process.h"

#include <errno.h>
#include <linux/wait.h>
#include <sched.h>
#include <signal.h>
#include <string.h>

#include "sentry/abi/process.h"
#include "sentry/kernel/clone.h"
#include "sentry/kernel/pidfd.h"
#include "sentry/kernel/restart.h"
#include "sentry/kernel/sig.h"
#include "sentry/kernel/task.h"
#include "sentry/kernel/uaccess.h"
#include "sentry/kernel/wait.h"
#include "sentry/syscalls/usage.h"

#ifndef CLONE_CLEAR_SIGHAND
#define CLONE_CLEAR_SIGHAND 0x100000000ull
#endif
#ifndef CLONE_INTO_CGROUP
#define CLONE_INTO_CGROUP 0x200000000ull
#endif
#define CLONE_NEWTIME_BIT  0x80ull
#define CLONE_LEGACY_FLAGS 0xffffffffull

int64_t sys_fork(struct task *t, const struct sysargs *a)
{
	const struct clone_request rq = { .exit_signal = SIGCHLD };

	(void)a;
	return task_clone(t, &rq);
}

int64_t sys_vfork(struct task *t, const struct sysargs *a)
{
	const struct clone_request rq = { .flags = CLONE_VFORK | CLONE_VM, .exit_signal = SIGCHLD };

	(void)a;
	return task_clone(t, &rq);
}

int64_t sys_clone(struct task *t, const struct sysargs *a)
{
	const struct clone_request rq = {
		/* The unused CLONE_DETACHED is ignored, as ever. */
		.flags = ARG_U32(a, 0) & ~(uint64_t)CSIGNAL,
		.exit_signal = ARG_INT(a, 0) & CSIGNAL,
		.stack = ARG_PTR(a, 1),
		.parent_tid = ARG_PTR(a, 2),
		.pidfd = ARG_PTR(a, 2),
		.child_tid = ARG_PTR(a, 3),
		.tls = ARG_U64(a, 4),
	};

	return task_clone(t, &rq);
}

/* copy_struct_from_user() of Linux: a longer structure must end in zeros. */
static int clone_args_copy(struct task *t, uaddr_t src, uint64_t size, struct linux_clone_args *ca)
{
	char rest[PAGE_SIZE];
	size_t extra;
	int r;

	if (size > PAGE_SIZE)
		return -E2BIG;
	if (size < LINUX_CLONE_ARGS_VER0)
		return -EINVAL;
	memset(ca, 0, sizeof(*ca));
	r = copy_in(t, src, ca, MIN(size, (uint64_t)sizeof(*ca)));
	if (r < 0 || size <= sizeof(*ca))
		return r;
	extra = size - sizeof(*ca);
	r = copy_in(t, src + sizeof(*ca), rest, extra);
	for (size_t i = 0; r == 0 && i < extra; i++) {
		if (rest[i])
			return -E2BIG;
	}
	return r;
}

static int clone3_check(const struct linux_clone_args *ca, uint64_t size)
{
	const uint64_t known = CLONE_LEGACY_FLAGS | CLONE_CLEAR_SIGHAND | CLONE_INTO_CGROUP;

	if (ca->set_tid_size > 32 || !ca->set_tid != !ca->set_tid_size)
		return -EINVAL;
	if (ca->exit_signal & ~(uint64_t)CSIGNAL || ca->exit_signal > NSIG_LINUX)
		return -EINVAL;
	if ((ca->flags & CLONE_INTO_CGROUP) && (ca->cgroup > INT32_MAX || size < LINUX_CLONE_ARGS_VER2))
		return -EINVAL;
	if (ca->flags & ~known)
		return -EINVAL;
	if (ca->flags & (CLONE_DETACHED | (CSIGNAL & ~CLONE_NEWTIME_BIT)))
		return -EINVAL;
	if ((ca->flags & CLONE_SIGHAND) && (ca->flags & CLONE_CLEAR_SIGHAND))
		return -EINVAL;
	if ((ca->flags & (CLONE_THREAD | CLONE_PARENT)) && ca->exit_signal)
		return -EINVAL;
	if (!ca->stack != !ca->stack_size)
		return -EINVAL;
	/* One pid namespace: one number. */
	if (ca->set_tid_size > 1)
		return -EINVAL;
	return 0;
}

int64_t sys_clone3(struct task *t, const struct sysargs *a)
{
	struct linux_clone_args ca;
	struct clone_request rq = { 0 };
	uint64_t size = ARG_U64(a, 1);
	int32_t tid;
	int r;

	/* After CLONE_VFORK the arguments are in memory that the child has changed since. */
	if (task_clone_waits(t))
		return task_clone(t, &rq);
	r = clone_args_copy(t, ARG_PTR(a, 0), size, &ca);
	if (r == 0)
		r = clone3_check(&ca, size);
	if (r < 0)
		return r;
	rq = (struct clone_request){
		.flags = ca.flags,
		.exit_signal = (int)ca.exit_signal,
		.tls = ca.tls,
		.parent_tid = ca.parent_tid,
		.child_tid = ca.child_tid,
		.pidfd = ca.pidfd,
	};
	if (ca.stack && (__builtin_add_overflow(ca.stack, ca.stack_size, &rq.stack) || rq.stack > GUEST_TASK_SIZE))
		return -EINVAL;
	if (ca.flags & CLONE_INTO_CGROUP)
		return -EBADF; /* no descriptor here is a cgroup directory */
	if (ca.set_tid) {
		r = copy_in(t, ca.set_tid, &tid, sizeof(tid));
		if (r < 0)
			return r;
		if (tid < 1)
			return -EINVAL;
		rq.set_tid = tid;
	}
	return task_clone(t, &rq);
}

int64_t sys_exit(struct task *t, const struct sysargs *a)
{
	task_exit(t, (ARG_INT(a, 0) & 0xff) << 8);
	return SYS_NO_RETURN;
}

int64_t sys_exit_group(struct task *t, const struct sysargs *a)
{
	tgroup_exit(t->tg, (ARG_INT(a, 0) & 0xff) << 8);
	return SYS_NO_RETURN;
}

/* The rusage and status of a child that is already reaped: a bad pointer is EFAULT, and the child is gone, as in Linux.
 */
static int wait_copy_out(struct task *t, const struct wait_result *res, uaddr_t status, uaddr_t rusage)
{
	struct linux_rusage ru;
	int32_t st = res->wstatus;
	int r = 0;

	if (status)
		r = copy_out(t, status, &st, sizeof(st));
	if (r == 0 && rusage) {
		rusage_fill(&ru, res->utime_ns, res->stime_ns, res->max_rss_kib);
		r = copy_out(t, rusage, &ru, sizeof(ru));
	}
	return r;
}

int64_t sys_wait4(struct task *t, const struct sysargs *a)
{
	const unsigned known = WNOHANG | WUNTRACED | WCONTINUED | __WNOTHREAD | __WCLONE | __WALL;
	unsigned options = ARG_U32(a, 2);
	struct wait_request rq = { .options = options | WEXITED };
	struct wait_result res;
	pid_t pid = ARG_INT(a, 0);
	int64_t r;

	if (options & ~known)
		return -EINVAL;
	if (pid == INT32_MIN)
		return -ESRCH;
	if (pid == -1) {
		rq.which = WAIT_ANY;
	} else if (pid > 0) {
		rq.which = WAIT_PID;
		rq.id = pid;
	} else {
		rq.which = WAIT_PGID;
		rq.id = pid < 0 ? -pid : t->tg->pgid;
	}
	r = task_wait(t, &rq, &res);
	if (r > 0) {
		int e = wait_copy_out(t, &res, ARG_PTR(a, 1), ARG_PTR(a, 3));

		if (e < 0)
			return e;
	}
	return r;
}

static int waitid_which(struct task *t, const struct sysargs *a, struct wait_request *rq)
{
	pid_t id = ARG_INT(a, 1);
	struct tgroup *tg;
	int r;

	switch (ARG_INT(a, 0)) {
	case P_ALL:
		rq->which = WAIT_ANY;
		return 0;
	case P_PID:
		rq->which = WAIT_PID;
		rq->id = id;
		return id > 0 ? 0 : -EINVAL;
	case P_PGID:
		rq->which = WAIT_PGID;
		rq->id = id ? id : t->tg->pgid;
		return id >= 0 ? 0 : -EINVAL;
	case P_PIDFD:
		if (id < 0)
			return -EINVAL;
		r = pidfd_tgroup(t, id, &tg, &rq->nonblock);
		if (r < 0)
			return r;
		rq->which = WAIT_PID;
		rq->id = tg->reaped ? -1 : tg->tgid;
		tgroup_put(tg);
		return 0;
	default:
		return -EINVAL;
	}
}

int64_t sys_waitid(struct task *t, const struct sysargs *a)
{
	const unsigned known = WNOHANG | WNOWAIT | WEXITED | WSTOPPED | WCONTINUED | __WNOTHREAD | __WCLONE | __WALL;
	struct wait_request rq = { .options = ARG_U32(a, 3) };
	struct linux_wait_siginfo si = { 0 };
	struct linux_rusage ru;
	struct wait_result res;
	int64_t r;
	int e;

	if (rq.options & ~known || !(rq.options & (WEXITED | WSTOPPED | WCONTINUED)))
		return -EINVAL;
	e = waitid_which(t, a, &rq);
	if (e < 0)
		return e;
	r = task_wait(t, &rq, &res);
	if (r > 0) {
		si = (struct linux_wait_siginfo){ SIGCHLD, 0, res.code, 0, res.pid, res.uid, res.status };
		if (ARG_PTR(a, 4)) {
			rusage_fill(&ru, res.utime_ns, res.stime_ns, res.max_rss_kib);
			e = copy_out(t, ARG_PTR(a, 4), &ru, sizeof(ru));
			if (e < 0)
				return e;
		}
		r = 0;
	}
	if (r == 0 && ARG_PTR(a, 2))
		r = copy_out(t, ARG_PTR(a, 2), &si, sizeof(si));
	return r;
}

int64_t sys_set_tid_address(struct task *t, const struct sysargs *a)
{
	t->clear_tid = ARG_PTR(a, 0);
	return t->tid;
}
