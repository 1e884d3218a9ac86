/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that act on another process: by pidfd, or with ptrace's right to look into it. */
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <signal.h>

#include "sentry/kernel/cred.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/pidfd.h"
#include "sentry/kernel/sig_deliver.h"
#include "sentry/kernel/task.h"
#include "sentry/kernel/uaccess.h"
#include "sentry/mm/mm.h"
#include "sentry/syscalls/process.h"
#include "sentry/vfs/fdtable.h"
#include "sentry/vfs/file.h"
#include "sentry/vfs/uio.h"

int64_t sys_pidfd_open(struct task *t, const struct sysargs *a)
{
	pid_t pid = ARG_INT(a, 0);
	struct task *p;
	struct file *f;
	int r;

	if (ARG_U32(a, 1) & ~(uint32_t)O_NONBLOCK) /* PIDFD_NONBLOCK */
		return -EINVAL;
	if (pid <= 0)
		return -EINVAL;
	p = task_lookup(pid);
	if (!p)
		return -ESRCH;
	/* A thread that leads no group: EINVAL until Linux 6.8, as PIDFD_THREAD is not known here. */
	r = p->tid != p->tg->tgid ? -EINVAL : pidfd_create(p->tg, ARG_U32(a, 1), &f);
	task_put(p);
	return r < 0 ? r : fd_install(t, f, 0, true);
}

static int pidfd_info(struct task *t, struct tgroup *tg, int sig, uaddr_t uinfo, struct linux_siginfo *info)
{
	int r;

	if (!uinfo) {
		sig_info_user(info, t, sig, SI_USER);
		return 0;
	}
	r = copy_in(t, uinfo, info, sizeof(*info));
	if (r < 0)
		return r;
	if (info->si_signo != sig)
		return -EINVAL;
	/* Only to oneself with a code that looks like the kernel's or kill()'s. */
	if (tg != t->tg && (info->si_code >= 0 || info->si_code == SI_TKILL))
		return -EPERM;
	return 0;
}

int64_t sys_pidfd_send_signal(struct task *t, const struct sysargs *a)
{
	struct linux_siginfo info;
	int sig = ARG_INT(a, 1), r;
	struct tgroup *tg;

	if (ARG_U32(a, 3))
		return -EINVAL;
	r = pidfd_tgroup(t, ARG_INT(a, 0), &tg, NULL);
	if (r < 0)
		return r;
	if (sig < 0 || sig > NSIG_LINUX)
		r = -EINVAL;
	else
		r = pidfd_info(t, tg, sig, ARG_PTR(a, 2), &info);
	if (r == 0 && tg->reaped)
		r = -ESRCH;
	if (r == 0)
		r = sig_may_kill(t, tg->leader, sig);
	if (r == 0 && sig)
		r = sig_send_tgroup(tg, sig, &info);
	tgroup_put(tg);
	return r;
}

static bool may_look(const struct task *t, const struct task *p)
{
	return t->tg == p->tg || cred_may_ptrace(t->cred, p->cred, p->tg->dumpable);
}

int64_t sys_pidfd_getfd(struct task *t, const struct sysargs *a)
{
	struct file *f = NULL;
	struct tgroup *tg;
	struct task *p;
	int r;

	if (ARG_U32(a, 2))
		return -EINVAL;
	r = pidfd_tgroup(t, ARG_INT(a, 0), &tg, NULL);
	if (r < 0)
		return r;
	p = list_empty(&tg->tasks) ? NULL : list_first_entry(&tg->tasks, struct task, tg_node);
	if (!p)
		r = -ESRCH;
	else if (!may_look(t, p))
		r = -EPERM;
	else if (!(f = fd_lookup(p->fdt, ARG_INT(a, 1))))
		r = -EBADF;
	tgroup_put(tg);
	return r < 0 ? r : fd_install(t, f, 0, true);
}

/* An order of kernel objects that tells nothing of their addresses. */
static int64_t compare(const void *x, const void *y)
{
	uint64_t a, b;

	if (x == y)
		return 0;
	a = ((uint64_t)(uintptr_t)x ^ kernel.hash_key.k0) * (kernel.hash_key.k1 | 1);
	b = ((uint64_t)(uintptr_t)y ^ kernel.hash_key.k0) * (kernel.hash_key.k1 | 1);
	return a < b ? 1 : 2;
}

static int64_t kcmp_files(struct task *p, struct task *q, int fd1, int fd2)
{
	struct file *f = fd_lookup(p->fdt, fd1), *g = fd_lookup(q->fdt, fd2);
	int64_t r = f && g ? compare(f, g) : -EBADF;

	file_put(f);
	file_put(g);
	return r;
}

static int64_t kcmp(struct task *p, struct task *q, int type, const struct sysargs *a)
{
	switch (type) {
	case KCMP_FILE:
		return kcmp_files(p, q, ARG_INT(a, 3), ARG_INT(a, 4));
	case KCMP_VM:
		return compare(p->mm, q->mm);
	case KCMP_FILES:
		return compare(p->fdt, q->fdt);
	case KCMP_FS:
		return compare(p->fs, q->fs);
	case KCMP_SIGHAND:
		return compare(p->sighand, q->sighand);
	case KCMP_IO:
	case KCMP_SYSVSEM:
		return compare(p->tg, q->tg);
	case KCMP_EPOLL_TFD:
		return -EOPNOTSUPP;
	default:
		return -EINVAL;
	}
}

int64_t sys_kcmp(struct task *t, const struct sysargs *a)
{
	struct task *p = task_lookup(ARG_INT(a, 0)), *q = task_lookup(ARG_INT(a, 1));
	int64_t r;

	if (!p || !q)
		r = -ESRCH;
	else if (!may_look(t, p) || !may_look(t, q))
		r = -EPERM;
	else if (!p->mm || !q->mm)
		r = -ESRCH;
	else
		r = kcmp(p, q, ARG_INT(a, 2), a);
	task_put(p);
	task_put(q);
	return r;
}

/* The remote side of process_vm_readv(2): a list of pieces with a place in it. */
struct remote {
	struct task *task;
	struct uio_seg *segs;
	unsigned n;
	uint64_t off; /* in segs[0] */
};

/* Moves up to @n bytes between @buf and one remote piece: bytes moved, 0 at the end, -EFAULT. */
static ssize_t remote_move(struct remote *m, void *buf, size_t n, bool write)
{
	ssize_t r;

	while (m->n && m->off == m->segs[0].len) {
		m->segs++;
		m->n--;
		m->off = 0;
	}
	if (!m->n)
		return 0;
	n = MIN(n, (size_t)(m->segs[0].len - m->off));
	if (write)
		r = copy_out_part(m->task, m->segs[0].base + m->off, buf, n);
	else
		r = copy_in_part(m->task, m->segs[0].base + m->off, buf, n);
	if (r > 0)
		m->off += (uint64_t)r;
	return r;
}

/* One piece. What could not be stored on the far side counts as not moved. */
static ssize_t vm_step(struct uio *local, struct remote *m, char *buf, size_t cap, bool write)
{
	ssize_t n, k;

	if (!write) {
		n = remote_move(m, buf, MIN(cap, local->resid), false);
		return n <= 0 ? n : uio_copy_to(local, buf, (size_t)n);
	}
	while (m->n && m->off == m->segs[0].len) {
		m->segs++;
		m->n--;
		m->off = 0;
	}
	if (!m->n)
		return 0;
	n = uio_copy_from(local, buf, MIN(cap, (size_t)(m->segs[0].len - m->off)));
	if (n <= 0)
		return n;
	k = remote_move(m, buf, (size_t)n, true);
	if (k < n)
		uio_revert(local, (size_t)(n - (k > 0 ? k : 0)));
	return k;
}

static int64_t vm_move(struct uio *local, struct remote *m, bool write)
{
	char *buf = uio_bounce();
	int64_t done = 0;

	while (local->resid) {
		ssize_t r = vm_step(local, m, buf, UIO_BOUNCE_SIZE, write);

		if (r < 0)
			return done ? done : r;
		if (r == 0)
			break;
		done += r;
	}
	return done;
}

static int64_t process_vm(struct task *t, const struct sysargs *a, bool write)
{
	static struct uio_seg lsegs[UIO_MAX_IOV], rsegs[UIO_MAX_IOV];
	struct uio local, far;
	struct remote m = { 0 };
	int64_t r;

	if (ARG_U64(a, 5))
		return -EINVAL;
	r = uio_init_iov(&local, t, lsegs, UIO_MAX_IOV, ARG_PTR(a, 1), ARG_U64(a, 2));
	if (r == 0 && local.resid)
		r = uio_init_iov(&far, t, rsegs, UIO_MAX_IOV, ARG_PTR(a, 3), ARG_U64(a, 4));
	if (r < 0 || !local.resid)
		return r;
	m.task = task_lookup(ARG_INT(a, 0));
	if (!m.task || !m.task->mm)
		r = -ESRCH;
	else if (!may_look(t, m.task))
		r = -EPERM;
	if (r == 0) {
		m.segs = rsegs;
		m.n = far.n_segs;
		r = vm_move(&local, &m, write);
	}
	task_put(m.task);
	return r;
}

int64_t sys_process_vm_readv(struct task *t, const struct sysargs *a)
{
	return process_vm(t, a, false);
}

int64_t sys_process_vm_writev(struct task *t, const struct sysargs *a)
{
	return process_vm(t, a, true);
}
