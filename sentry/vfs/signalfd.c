/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All open signalfds are on one list; a signal that is queued anywhere wakes those whose mask has
 * it, and they look again. A wake-up for another process is spurious and harmless; the list is
 * short, and empty in most sandboxes.
 *
 * As on Linux the signals are those of the task that reads or polls, not of the creator. Where
 * there is no such task (an epoll that is looked at from a wake-up) the creator's process stands
 * in.
 */
#include "sentry/vfs/signalfd.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>

#include "base/list.h"
#include "sentry/abi/signal.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/sig_deliver.h"
#include "sentry/kernel/task.h"
#include "sentry/kernel/waitq.h"
#include "sentry/vfs/file.h"
#include "sentry/vfs/uio.h"

struct signalfd {
	struct file file;
	struct list node; /* on all_signalfds */
	struct waitq wq;
	uint64_t mask;
	struct tgroup *creator; /* counted */
};

static struct list all_signalfds = LIST_INIT(all_signalfds);

static struct signalfd *to_signalfd(struct file *f)
{
	return container_of(f, struct signalfd, file);
}

void signalfd_notify(struct tgroup *tg, int sig)
{
	struct signalfd *sf;

	(void)tg;
	list_for_each_entry(sf, &all_signalfds, node)
		if (sf->mask & SIG_BIT(sig))
			waitq_wake(&sf->wq, POLLIN);
}

/* Which member of the union an info has: siginfo_layout() of Linux. */
enum layout { LAYOUT_KILL, LAYOUT_TIMER, LAYOUT_POLL, LAYOUT_FAULT, LAYOUT_CHLD, LAYOUT_RT };

static enum layout info_layout(int sig, int code)
{
	if (code > LINUX_SI_USER && code < LINUX_SI_KERNEL) {
		switch (sig) {
		case SIGILL:
		case SIGFPE:
		case SIGSEGV:
		case SIGBUS:
		case SIGTRAP:
		case SIGSYS:
			return LAYOUT_FAULT;
		case SIGCHLD:
			return LAYOUT_CHLD;
		default:
			return LAYOUT_POLL;
		}
	}
	if (code == LINUX_SI_TIMER)
		return LAYOUT_TIMER;
	return code < 0 && code != LINUX_SI_TKILL ? LAYOUT_RT : LAYOUT_KILL;
}

static void fill_siginfo(struct linux_signalfd_siginfo *o, const struct linux_siginfo *i)
{
	memset(o, 0, sizeof(*o));
	o->signo = (uint32_t)i->si_signo;
	o->err = i->si_errno;
	o->code = i->si_code;
	switch (info_layout(i->si_signo, i->si_code)) {
	case LAYOUT_CHLD:
		o->status = i->kill_chld.status;
		o->utime = (uint64_t)i->kill_chld.utime;
		o->stime = (uint64_t)i->kill_chld.stime;
		o->pid = (uint32_t)i->kill_chld.pid;
		o->uid = i->kill_chld.uid;
		break;
	case LAYOUT_KILL:
		o->pid = (uint32_t)i->kill_chld.pid;
		o->uid = i->kill_chld.uid;
		break;
	case LAYOUT_TIMER:
		o->tid = (uint32_t)i->timer.timerid;
		o->overrun = (uint32_t)i->timer.overrun;
		o->ptr = i->timer.value;
		o->int_value = (int32_t)i->timer.value;
		break;
	case LAYOUT_POLL:
		o->band = (uint32_t)i->poll.band;
		o->fd = i->poll.fd;
		break;
	case LAYOUT_FAULT:
		o->addr = i->fault.addr;
		break;
	case LAYOUT_RT:
		o->pid = (uint32_t)i->rt.pid;
		o->uid = i->rt.uid;
		o->ptr = i->rt.value;
		o->int_value = (int32_t)i->rt.value;
		break;
	}
}

static ssize_t signalfd_read(struct file *f, struct uio *u, uint64_t *pos)
{
	struct signalfd *sf = to_signalfd(f);
	struct linux_signalfd_siginfo out;
	struct linux_siginfo info;
	ssize_t done = 0, n;

	(void)pos;
	if (u->resid < sizeof(out) || !u->task)
		return -EINVAL;
	while (u->resid >= sizeof(out)) {
		if (!sig_dequeue(u->task, sf->mask, &info))
			return done ? done : -EAGAIN;
		fill_siginfo(&out, &info);
		n = uio_copy_to(u, &out, sizeof(out));
		if (n != (ssize_t)sizeof(out))
			return done ? done : -EFAULT; /* the signal is lost, as on Linux */
		done += n;
	}
	return done;
}

static uint32_t signalfd_poll(struct file *f, struct waitq **q)
{
	struct signalfd *sf = to_signalfd(f);
	uint64_t pending = 0;

	*q = &sf->wq;
	if (kernel.current)
		pending = sig_pending_set(kernel.current);
	else if (sf->creator->shared_pending && sf->creator->leader)
		pending = sig_pending_set(sf->creator->leader);
	return pending & sf->mask ? POLLIN : 0;
}

static void signalfd_release(struct file *f)
{
	struct signalfd *sf = to_signalfd(f);

	list_del(&sf->node);
	waitq_fini(&sf->wq);
	tgroup_put(sf->creator);
}

static const struct file_ops signalfd_file_ops = {
	.file_size = sizeof(struct signalfd),
	.read = signalfd_read,
	.poll = signalfd_poll,
	.release = signalfd_release,
};

static uint64_t valid_mask(uint64_t mask)
{
	return mask & ~(SIG_BIT(SIGKILL) | SIG_BIT(SIGSTOP));
}

int signalfd_create_file(struct task *t, uint64_t mask, uint32_t flags, struct file **ret)
{
	struct inode *in = anon_inode_create(0600);
	struct signalfd *sf;
	struct file *f;

	if (!in)
		return -ENOMEM;
	f = file_create(&signalfd_file_ops, in, flags);
	inode_put(in);
	if (!f)
		return -ENFILE;
	f->anon_name = "anon_inode:[signalfd]";
	sf = to_signalfd(f);
	sf->mask = valid_mask(mask);
	sf->creator = tgroup_get(t->tg);
	waitq_init(&sf->wq);
	list_add_tail(&all_signalfds, &sf->node);
	*ret = f;
	return 0;
}

int signalfd_set_mask(struct file *f, uint64_t mask)
{
	struct signalfd *sf = to_signalfd(f);

	if (f->ops != &signalfd_file_ops)
		return -EINVAL;
	sf->mask = valid_mask(mask);
	waitq_wake(&sf->wq, POLLIN);
	return 0;
}
