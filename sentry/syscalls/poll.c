/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting for files. A run of poll or select asks every file once; when none is ready it registers on all their queues
 * and blocks. The set of files is held in task->op over the wait, so that a close by another thread cannot free a queue
 * that is waited on.
 */
#include "sentry/syscalls/poll.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <time.h>

#include "sentry/kernel/restart.h"
#include "sentry/kernel/sig.h"
#include "sentry/kernel/task.h"
#include "sentry/kernel/uaccess.h"
#include "sentry/kernel/waitq.h"
#include "sentry/vfs/epoll.h"
#include "sentry/vfs/fdtable.h"
#include "sentry/vfs/file.h"
#include "sentry/vfs/vfs.h"

#define SELECT_IN  (POLLIN | POLLRDNORM | POLLRDBAND | POLLHUP | POLLERR)
#define SELECT_OUT (POLLOUT | POLLWRNORM | POLLWRBAND | POLLERR)
#define SELECT_EX  POLLPRI
#define EPOLL_MAX_EVENTS ((int)(INT32_MAX / sizeof(struct linux_epoll_event)))
#define EPOLL_BATCH 128u
#define FD_SETS_MAX (1 << 20) /* fds of one select: NR_OPEN */

struct linux_pollfd {
	int32_t fd;
	int16_t events, revents;
};

/* The files of one wait. */
struct poll_set {
	unsigned n;
	struct file *files[];
};

static void poll_set_free(void *data)
{
	struct poll_set *s = data;

	for (unsigned i = 0; i < s->n; i++)
		file_put(s->files[i]);
	free(s);
}

static struct poll_set *poll_set_create(unsigned cap)
{
	struct poll_set *s = malloc(sizeof(*s) + cap * sizeof(s->files[0]));

	if (s)
		s->n = 0;
	return s;
}

/* A timeout that is relative to now, as an absolute deadline. */
static uint64_t deadline_after(int64_t sec, int64_t nsec)
{
	uint64_t ns;

	if (__builtin_mul_overflow((uint64_t)sec, NSEC_PER_SEC, &ns) ||
	    __builtin_add_overflow(ns, (uint64_t)nsec, &ns) || __builtin_add_overflow(ns, clock_mono_ns(), &ns))
		return UINT64_MAX;
	return ns;
}

static bool timespec_valid(const struct timespec *ts)
{
	return ts->tv_sec >= 0 && ts->tv_nsec >= 0 && ts->tv_nsec < (int64_t)NSEC_PER_SEC;
}

/* Reads a struct timespec argument: 0 with *has false for a null pointer. */
static int timeout_in(struct task *t, uaddr_t p, bool *has, struct timespec *ts)
{
	*has = p != 0;
	if (!p)
		return 0;
	if (copy_in(t, p, ts, sizeof(*ts)))
		return -EFAULT;
	return timespec_valid(ts) ? 0 : -EINVAL;
}

/* Writes what is left of the deadline, as ppoll and pselect6 do; a fault is ignored like in Linux. */
static void timeout_out(struct task *t, uaddr_t p)
{
	uint64_t now = clock_mono_ns(), left = 0;
	struct timespec ts;

	if (!p || !t->op.has_deadline)
		return;
	if (t->op.timer.when > now && !t->op.timed_out)
		left = t->op.timer.when - now;
	ts = (struct timespec){ (time_t)(left / NSEC_PER_SEC), (long)(left % NSEC_PER_SEC) };
	DISCARD(copy_out(t, p, &ts, sizeof(ts)));
}

static int sigmask_in(struct task *t, uaddr_t p, uint64_t size)
{
	uint64_t mask;

	if (t->op.restarted || !p)
		return 0;
	if (size != sizeof(mask))
		return -EINVAL;
	if (copy_in(t, p, &mask, sizeof(mask)))
		return -EFAULT;
	sig_mask_push(t, mask);
	return 0;
}

/* Asks one descriptor; registers @t on its queue when @wait. Keeps the file in @set. */
static uint32_t ask(struct task *t, struct poll_set *set, int fd, uint32_t events, bool wait, int *err)
{
	struct file *f = fd_lookup(t->fdt, fd);
	struct waitq *q = NULL;
	uint32_t got;

	if (!f)
		return POLLNVAL;
	if (f->flags & FILE_OPATH) {
		file_put(f);
		return POLLNVAL;
	}
	set->files[set->n++] = f;
	got = vfs_poll(f, &q) & (events | POLLERR | POLLHUP);
	if (!got && wait && q && !*err)
		*err = task_wait_on(t, q, events | POLLERR | POLLHUP);
	return got;
}

static int poll_pass(struct task *t, struct linux_pollfd *fds, unsigned n, struct poll_set *set, bool wait, int *err)
{
	int ready = 0;

	for (unsigned i = 0; i < n; i++) {
		uint32_t got = 0;

		if (fds[i].fd >= 0)
			got = ask(t, set, fds[i].fd, (uint16_t)fds[i].events, wait && !ready, err);
		fds[i].revents = (int16_t)got;
		ready += got != 0;
	}
	return ready;
}

/* One run of poll. zero: the timeout is zero. */
static int64_t do_poll(struct task *t, uaddr_t ufds, uint32_t n, bool zero)
{
	struct linux_pollfd small[16], *fds = small;
	struct poll_set *set;
	int64_t r = -ENOMEM;
	int ready, err = 0;
	bool wait = !zero && !task_timed_out(t);

	if (n > task_rlimit(t, RLIMIT_NOFILE))
		return -EINVAL;
	if (n > ARRAY_SIZE(small))
		fds = malloc(n * sizeof(*fds));
	set = poll_set_create(n);
	if (!fds || !set) {
		free(set);
		goto out;
	}
	r = -EFAULT;
	if (copy_in(t, ufds, fds, n * sizeof(*fds))) {
		free(set);
		goto out;
	}
	ready = poll_pass(t, fds, n, set, wait, &err);
	if (!ready && wait && !err) {
		task_op_hold(t, set, poll_set_free);
		r = task_block(t, -ERESTART_BLOCK);
		goto out;
	}
	poll_set_free(set);
	r = err && !ready ? err : ready;
	for (unsigned i = 0; i < n && r >= 0; i++) {
		if (copy_out(t, ufds + i * sizeof(*fds) + offsetof(struct linux_pollfd, revents), &fds[i].revents,
			     sizeof(fds[i].revents)))
			r = -EFAULT;
	}
out:
	if (fds != small)
		free(fds);
	return r;
}

int64_t sys_poll(struct task *t, const struct sysargs *a)
{
	int ms = ARG_INT(a, 2);

	if (ms > 0 && !t->op.has_deadline)
		task_deadline(t, deadline_after(ms / 1000, (int64_t)(ms % 1000) * 1000000));
	return do_poll(t, ARG_PTR(a, 0), ARG_U32(a, 1), ms == 0);
}

/* Arms a timeout once; *zero when it is zero. */
static int arm_timeout(struct task *t, uaddr_t p, bool *zero)
{
	struct timespec ts;
	bool has;
	int err;

	*zero = false;
	if (t->op.restarted)
		return 0;
	err = timeout_in(t, p, &has, &ts);
	if (err || !has)
		return err;
	*zero = !ts.tv_sec && !ts.tv_nsec;
	if (!*zero)
		task_deadline(t, deadline_after(ts.tv_sec, ts.tv_nsec));
	return 0;
}

static int64_t nohand(int64_t r)
{
	return r == -ERESTART_BLOCK ? -ERESTARTNOHAND : r;
}

int64_t sys_ppoll(struct task *t, const struct sysargs *a)
{
	bool zero;
	int64_t r;
	int err = arm_timeout(t, ARG_PTR(a, 2), &zero);

	if (!err)
		err = sigmask_in(t, ARG_PTR(a, 3), ARG_U64(a, 4));
	if (err)
		return err;
	r = nohand(do_poll(t, ARG_PTR(a, 0), ARG_U32(a, 1), zero));
	if (r != SYS_BLOCKED)
		timeout_out(t, ARG_PTR(a, 2));
	return r;
}

/* The three sets of select, n bits each, as longs. */
struct fd_sets {
	unsigned longs;
	uint64_t *in[3], *out[3];
	uint64_t mem[];
};

static struct fd_sets *fd_sets_in(struct task *t, int n, const uaddr_t p[3], int *err)
{
	unsigned longs = ((unsigned)n + 63) / 64;
	struct fd_sets *s = calloc(1, sizeof(*s) + 6u * longs * 8u);

	*err = -ENOMEM;
	if (!s)
		return NULL;
	s->longs = longs;
	for (unsigned i = 0; i < 3; i++) {
		s->in[i] = s->mem + (size_t)i * longs;
		s->out[i] = s->mem + (size_t)(3 + i) * longs;
		*err = -EFAULT;
		if (p[i] && copy_in(t, p[i], s->in[i], longs * 8u)) {
			free(s);
			return NULL;
		}
	}
	*err = 0;
	return s;
}

static bool bit_get(const uint64_t *m, int i)
{
	return m[i / 64] >> (i % 64) & 1;
}

static const uint32_t select_events[3] = { SELECT_IN, SELECT_OUT, SELECT_EX };

static int select_pass(struct task *t, struct fd_sets *s, int n, struct poll_set *set, bool wait, int *err)
{
	int ready = 0;

	for (int fd = 0; fd < n; fd++) {
		uint32_t events = 0, got;

		for (int k = 0; k < 3; k++)
			events |= bit_get(s->in[k], fd) ? select_events[k] : 0;
		if (!events)
			continue;
		got = ask(t, set, fd, events, wait && !ready, err);
		if (got & POLLNVAL)
			return -EBADF;
		for (int k = 0; k < 3; k++) {
			if (bit_get(s->in[k], fd) && (got & select_events[k])) {
				s->out[k][fd / 64] |= 1ull << (fd % 64);
				ready++;
			}
		}
	}
	return ready;
}

static int64_t do_select(struct task *t, int n, const uaddr_t p[3], bool zero)
{
	bool wait = !zero && !task_timed_out(t);
	struct fd_sets *s;
	struct poll_set *set;
	int err, ready;
	int64_t r;

	if (n < 0)
		return -EINVAL;
	n = (int)MIN((uint64_t)n, task_rlimit(t, RLIMIT_NOFILE));
	n = MIN(n, FD_SETS_MAX);
	s = fd_sets_in(t, n, p, &err);
	if (!s)
		return err;
	set = poll_set_create((unsigned)n);
	if (!set) {
		free(s);
		return -ENOMEM;
	}
	ready = select_pass(t, s, n, set, wait, &err);
	if (!ready && wait && !err) {
		task_op_hold(t, set, poll_set_free);
		free(s);
		return task_block(t, -ERESTARTNOHAND);
	}
	poll_set_free(set);
	r = ready ? ready : err;
	for (int k = 0; k < 3 && r >= 0; k++) {
		if (p[k] && copy_out(t, p[k], s->out[k], s->longs * 8u))
			r = -EFAULT;
	}
	free(s);
	return r;
}

static void select_timeval_out(struct task *t, uaddr_t p)
{
	uint64_t now = clock_mono_ns(), left = 0;
	int64_t tv[2];

	if (!p || !t->op.has_deadline)
		return;
	if (t->op.timer.when > now && !t->op.timed_out)
		left = t->op.timer.when - now;
	tv[0] = (int64_t)(left / NSEC_PER_SEC);
	tv[1] = (int64_t)(left % NSEC_PER_SEC / 1000);
	DISCARD(copy_out(t, p, tv, sizeof(tv))); /* as in Linux */
}

int64_t sys_select(struct task *t, const struct sysargs *a)
{
	const uaddr_t p[3] = { ARG_PTR(a, 1), ARG_PTR(a, 2), ARG_PTR(a, 3) };
	bool zero = false;
	int64_t tv[2], r;

	if (ARG_PTR(a, 4) && !t->op.restarted) {
		if (copy_in(t, ARG_PTR(a, 4), tv, sizeof(tv)))
			return -EFAULT;
		if (tv[0] < 0 || tv[1] < 0 || __builtin_add_overflow(tv[0], tv[1] / 1000000, &tv[0]))
			return -EINVAL;
		zero = !tv[0] && !tv[1];
		if (!zero)
			task_deadline(t, deadline_after(tv[0], tv[1] % 1000000 * 1000));
	}
	r = do_select(t, ARG_INT(a, 0), p, zero);
	if (r != SYS_BLOCKED)
		select_timeval_out(t, ARG_PTR(a, 4));
	return r;
}

int64_t sys_pselect6(struct task *t, const struct sysargs *a)
{
	const uaddr_t p[3] = { ARG_PTR(a, 1), ARG_PTR(a, 2), ARG_PTR(a, 3) };
	uint64_t sig[2] = { 0, 0 };
	bool zero;
	int64_t r;
	int err;

	if (ARG_PTR(a, 5) && !t->op.restarted && copy_in(t, ARG_PTR(a, 5), sig, sizeof(sig)))
		return -EFAULT;
	err = arm_timeout(t, ARG_PTR(a, 4), &zero);
	if (!err)
		err = sigmask_in(t, sig[0], sig[1]);
	if (err)
		return err;
	r = do_select(t, ARG_INT(a, 0), p, zero);
	if (r != SYS_BLOCKED)
		timeout_out(t, ARG_PTR(a, 4));
	return r;
}

static int64_t install(struct task *t, struct file *f, bool cloexec)
{
	return fd_install(t, f, 0, cloexec);
}

int64_t sys_epoll_create1(struct task *t, const struct sysargs *a)
{
	int flags = ARG_INT(a, 0), err;
	struct file *f;

	if (flags & ~EPOLL_CLOEXEC)
		return -EINVAL;
	err = epoll_create_file(&f);
	return err ? err : install(t, f, flags & EPOLL_CLOEXEC);
}

int64_t sys_epoll_create(struct task *t, const struct sysargs *a)
{
	const struct sysargs none = { { 0 } };

	return ARG_INT(a, 0) <= 0 ? -EINVAL : sys_epoll_create1(t, &none);
}

int64_t sys_epoll_ctl(struct task *t, const struct sysargs *a)
{
	struct linux_epoll_event ev = { 0, 0 };
	struct file *ep, *target;
	int err;

	if (ARG_INT(a, 1) != EPOLL_CTL_DEL && copy_in(t, ARG_PTR(a, 3), &ev, sizeof(ev)))
		return -EFAULT;
	err = fd_get(t, ARG_INT(a, 0), &ep);
	if (err)
		return err;
	err = fd_get(t, ARG_INT(a, 2), &target);
	if (!err) {
		err = epoll_ctl_file(ep, ARG_INT(a, 1), ARG_INT(a, 2), target, &ev);
		file_put(target);
	}
	file_put(ep);
	return err;
}

static int64_t do_epoll_wait(struct task *t, const struct sysargs *a, bool zero)
{
	struct linux_epoll_event ev[EPOLL_BATCH];
	int max = ARG_INT(a, 2), n;
	struct waitq *q = NULL;
	struct file *ep;
	int64_t r;

	if (max <= 0 || max > EPOLL_MAX_EVENTS)
		return -EINVAL;
	r = fd_get(t, ARG_INT(a, 0), &ep);
	if (r)
		return r;
	n = epoll_collect(ep, ev, (unsigned)MIN(max, (int)EPOLL_BATCH));
	if (n) {
		r = n;
		if (n > 0 && copy_out(t, ARG_PTR(a, 1), ev, (size_t)n * sizeof(ev[0])))
			r = -EFAULT;
	} else if (!zero && !task_timed_out(t)) {
		(void)vfs_poll(ep, &q);
		r = task_wait_on(t, q, POLLIN);
		if (!r) {
			if (t->op.data != ep)
				task_op_hold(t, file_get(ep), file_put_held);
			r = task_block(t, -EINTR);
		}
	}
	file_put(ep);
	return r;
}

static int64_t epoll_wait_ms(struct task *t, const struct sysargs *a)
{
	int ms = ARG_INT(a, 3);

	if (ms > 0 && !t->op.has_deadline)
		task_deadline(t, deadline_after(ms / 1000, (int64_t)(ms % 1000) * 1000000));
	return do_epoll_wait(t, a, ms == 0);
}

int64_t sys_epoll_wait(struct task *t, const struct sysargs *a)
{
	return epoll_wait_ms(t, a);
}

int64_t sys_epoll_pwait(struct task *t, const struct sysargs *a)
{
	int err = sigmask_in(t, ARG_PTR(a, 4), ARG_U64(a, 5));

	return err ? err : epoll_wait_ms(t, a);
}

int64_t sys_epoll_pwait2(struct task *t, const struct sysargs *a)
{
	bool zero;
	int err = arm_timeout(t, ARG_PTR(a, 3), &zero);

	if (!err)
		err = sigmask_in(t, ARG_PTR(a, 4), ARG_U64(a, 5));
	return err ? err : do_epoll_wait(t, a, zero);
}
