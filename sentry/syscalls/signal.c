/* SPDX-License-Identifier: Apache-2.0 */
#include "sentry/syscalls/signal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>

#include "base/log.h"
#include "sentry/abi/signal.h"
#include "sentry/abi/time.h"
#include "sentry/arch/sigframe.h"
#include "sentry/kernel/clock.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/restart.h"
#include "sentry/kernel/sig_deliver.h"
#include "sentry/kernel/task.h"
#include "sentry/kernel/task_priv.h"
#include "sentry/kernel/timer.h"
#include "sentry/kernel/uaccess.h"
#include "sentry/vfs/fdtable.h"
#include "sentry/vfs/file.h"
#include "sentry/vfs/signalfd.h"

#define SIGSET_SIZE 8u

static_assert(sizeof(struct linux_sigaction) == 32, "struct sigaction of the kernel");
static_assert(sizeof(struct linux_siginfo) == 128, "siginfo_t");

int64_t sys_rt_sigaction(struct task *t, const struct sysargs *a)
{
	struct linux_sigaction act, old;
	uaddr_t uact = ARG_PTR(a, 1), uold = ARG_PTR(a, 2);
	int r;

	if (ARG_U64(a, 3) != SIGSET_SIZE)
		return -EINVAL;
	if (uact && copy_in(t, uact, &act, sizeof(act)) < 0)
		return -EFAULT;
	r = sig_set_action(t, ARG_INT(a, 0), uact ? &act : NULL, &old);
	if (!r && uold)
		r = copy_out(t, uold, &old, sizeof(old));
	return r;
}

int64_t sys_rt_sigprocmask(struct task *t, const struct sysargs *a)
{
	uint64_t old = t->sig_blocked, set;
	uaddr_t uset = ARG_PTR(a, 1), uold = ARG_PTR(a, 2);

	if (ARG_U64(a, 3) != SIGSET_SIZE)
		return -EINVAL;
	if (uset) {
		if (copy_in(t, uset, &set, sizeof(set)) < 0)
			return -EFAULT;
		switch (ARG_INT(a, 0)) {
		case SIG_BLOCK:
			set |= old;
			break;
		case SIG_UNBLOCK:
			set = old & ~set;
			break;
		case SIG_SETMASK:
			break;
		default:
			return -EINVAL;
		}
		sig_set_mask(t, set);
	}
	return uold ? copy_out(t, uold, &old, sizeof(old)) : 0;
}

int64_t sys_rt_sigpending(struct task *t, const struct sysargs *a)
{
	uint64_t set = sig_pending_set(t) & t->sig_blocked;

	if (ARG_U64(a, 1) > SIGSET_SIZE)
		return -EINVAL;
	return copy_out(t, ARG_PTR(a, 0), &set, ARG_U64(a, 1));
}

int64_t sys_rt_sigtimedwait(struct task *t, const struct sysargs *a)
{
	struct linux_timespec ts;
	struct linux_siginfo info;
	uaddr_t uinfo = ARG_PTR(a, 1), uts = ARG_PTR(a, 2);
	uint64_t set, ns = UINT64_MAX;
	int64_t r;
	int sig;

	if (ARG_U64(a, 3) != SIGSET_SIZE)
		return -EINVAL;
	if (copy_in(t, ARG_PTR(a, 0), &set, sizeof(set)) < 0 ||
	    (uts && copy_in(t, uts, &ts, sizeof(ts)) < 0))
		return -EFAULT;
	if (uts && timespec_to_ns(&ts, &ns) < 0)
		return -EINVAL;
	set &= ~(SIG_BIT(SIGKILL) | SIG_BIT(SIGSTOP));
	sig_wait_set(t, 0);
	sig = sig_dequeue(t, set, &info);
	if (sig)
		return uinfo && copy_out(t, uinfo, &info, sizeof(info)) < 0 ? -EFAULT : sig;
	if (task_timed_out(t) || ns == 0)
		return -EAGAIN;
	task_deadline(t, uts ? ns_add_sat(clock_mono_ns(), ns) : UINT64_MAX);
	sig_wait_set(t, set);
	r = task_block(t, -EINTR);
	if (r != SYS_BLOCKED)
		sig_wait_set(t, 0);
	return r;
}

/* A siginfo from the guest: it may not pretend to come from the kernel or from kill(2), except to
 * itself. */
static int copy_in_info(struct task *t, uaddr_t uinfo, int sig, pid_t pid,
			struct linux_siginfo *info)
{
	if (copy_in(t, uinfo, info, sizeof(*info)) < 0)
		return -EFAULT;
	info->si_signo = sig;
	if ((info->si_code >= 0 || info->si_code == LINUX_SI_TKILL) && t->tid != pid)
		return -EPERM;
	return 0;
}

int64_t sys_rt_sigqueueinfo(struct task *t, const struct sysargs *a)
{
	pid_t pid = ARG_INT(a, 0);
	int sig = ARG_INT(a, 1);
	struct linux_siginfo info;
	int r = copy_in_info(t, ARG_PTR(a, 2), sig, pid, &info);

	if (r < 0)
		return r;
	/* Only a process: no groups here. */
	return pid <= 0 ? -ESRCH : sig_kill(t, pid, sig, &info);
}

int64_t sys_rt_tgsigqueueinfo(struct task *t, const struct sysargs *a)
{
	pid_t tgid = ARG_INT(a, 0), tid = ARG_INT(a, 1);
	int sig = ARG_INT(a, 2);
	struct linux_siginfo info;
	int r = copy_in_info(t, ARG_PTR(a, 3), sig, tid, &info);

	if (tgid <= 0 || tid <= 0)
		return r == -EFAULT ? r : -EINVAL;
	return r < 0 ? r : sig_kill_thread(t, tgid, tid, sig, &info);
}

int64_t sys_rt_sigsuspend(struct task *t, const struct sysargs *a)
{
	uint64_t set;

	if (ARG_U64(a, 1) != SIGSET_SIZE)
		return -EINVAL;
	if (copy_in(t, ARG_PTR(a, 0), &set, sizeof(set)) < 0)
		return -EFAULT;
	sig_mask_push(t, set);
	return task_block(t, -ERESTARTNOHAND);
}

int64_t sys_pause(struct task *t, const struct sysargs *a)
{
	(void)a;
	return task_block(t, -ERESTARTNOHAND);
}

int64_t sys_rt_sigreturn(struct task *t, const struct sysargs *a)
{
	struct gregs regs;
	uint64_t mask;

	(void)a;
	if (kernel.plat->ctx_regs_get(t->ctx, 0, &regs) < 0)
		return -EINTR; /* the context is dead; its TRAP_EXITED follows */
	if (sigframe_pop(t, &regs, &mask) == 0) {
		sig_set_mask(t, mask);
		(void)kernel.plat->ctx_regs_set(t->ctx, 0, &regs);
	} else {
		log_dbg(CH_SIGNAL, "%d: bad signal frame at %#llx", t->tid,
			(unsigned long long)regs.rsp);
		sig_force_fault(t, SIGSEGV, LINUX_SI_KERNEL, 0);
	}
	/* What the mask lets through now is delivered before the guest goes on. */
	t->in_syscall = false;
	task_leave(t, 0);
	return SYS_NO_RETURN;
}

int64_t sys_restart_syscall(struct task *t, const struct sysargs *a)
{
	(void)t;
	(void)a;
	return -EINTR; /* restarts happen inside the sentry: nothing is ever left to resume */
}

int64_t sys_sigaltstack(struct task *t, const struct sysargs *a)
{
	struct linux_stack new, old = { .ss_sp = t->altstack_sp, .ss_size = t->altstack_size };
	uaddr_t unew = ARG_PTR(a, 0), uold = ARG_PTR(a, 1);
	struct gregs regs = { 0 };
	int r = 0;

	if (unew && copy_in(t, unew, &new, sizeof(new)) < 0)
		return -EFAULT;
	/* The registers cost a round trip: they matter only while there is a stack to be on. */
	if (t->altstack_size && kernel.plat->ctx_regs_get(t->ctx, 0, &regs) < 0)
		return -EINTR;
	old.ss_flags = (int)((uint32_t)t->altstack_flags & LINUX_SS_AUTODISARM);
	if (!t->altstack_size)
		old.ss_flags |= LINUX_SS_DISABLE;
	else if (sigframe_on_altstack(t, regs.rsp))
		old.ss_flags |= LINUX_SS_ONSTACK;
	if (unew)
		r = sigframe_set_altstack(t, &new, regs.rsp);
	if (!r && uold)
		r = copy_out(t, uold, &old, sizeof(old));
	return r;
}

int64_t sys_kill(struct task *t, const struct sysargs *a)
{
	return sig_kill(t, ARG_INT(a, 0), ARG_INT(a, 1), NULL);
}

int64_t sys_tkill(struct task *t, const struct sysargs *a)
{
	return ARG_INT(a, 0) <= 0 ? -EINVAL
				  : sig_kill_thread(t, 0, ARG_INT(a, 0), ARG_INT(a, 1), NULL);
}

int64_t sys_tgkill(struct task *t, const struct sysargs *a)
{
	if (ARG_INT(a, 0) <= 0 || ARG_INT(a, 1) <= 0)
		return -EINVAL;
	return sig_kill_thread(t, ARG_INT(a, 0), ARG_INT(a, 1), ARG_INT(a, 2), NULL);
}

static int64_t do_signalfd(struct task *t, int fd, uaddr_t umask, uint64_t size, int flags)
{
	struct file *f;
	uint64_t mask;
	int r;

	if (size != SIGSET_SIZE || (flags & ~(O_CLOEXEC | O_NONBLOCK)))
		return -EINVAL;
	if (copy_in(t, umask, &mask, sizeof(mask)) < 0)
		return -EFAULT;
	if (fd == -1) {
		r = signalfd_create_file(t, mask, (uint32_t)(O_RDWR | (flags & O_NONBLOCK)), &f);
		return r < 0 ? r : fd_install(t, f, 0, flags & O_CLOEXEC);
	}
	r = fd_get(t, fd, &f);
	if (r < 0)
		return r;
	r = signalfd_set_mask(f, mask);
	file_put(f);
	return r < 0 ? r : fd;
}

int64_t sys_signalfd(struct task *t, const struct sysargs *a)
{
	return do_signalfd(t, ARG_INT(a, 0), ARG_PTR(a, 1), ARG_U64(a, 2), 0);
}

int64_t sys_signalfd4(struct task *t, const struct sysargs *a)
{
	return do_signalfd(t, ARG_INT(a, 0), ARG_PTR(a, 1), ARG_U64(a, 2), ARG_INT(a, 3));
}
