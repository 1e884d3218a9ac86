/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel as unit tests of vfs need it. It stands in for the real one, which a test links as well (LDFLAGS_FAKES).
 * Guest addresses are host addresses; those of the page at fake_fault_page fault.
 */
#include "tests/lib/fake_kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "sentry/fs/memfd.h"
#include "sentry/kernel/cred.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/restart.h"
#include "sentry/kernel/sig.h"
#include "sentry/kernel/task.h"
#include "sentry/kernel/timer.h"
#include "sentry/kernel/uaccess.h"
#include "sentry/mm/mm.h"
#include "sentry/vfs/epoll.h"
#include "sentry/vfs/file.h"
#include "sentry/vfs/locks.h"
#include "sentry/vfs/pipe.h"

struct kernel kernel;
uint64_t fake_fault_page = UINT64_MAX;
int fake_signal;
bool fake_signal_pending;
unsigned fake_blocked;

uint64_t clock_real_ns(void)
{
	return 1700000000ull * NSEC_PER_SEC;
}

/* The part of [at, at+n) that can be reached. */
static size_t reach(uaddr_t at, size_t n)
{
	if (at < 4096 || (at >= fake_fault_page && at - fake_fault_page < 4096))
		return 0;
	return at < fake_fault_page ? MIN(n, (size_t)(fake_fault_page - at)) : n;
}

ssize_t copy_in_part(struct task *t, uaddr_t src, void *dst, size_t n)
{
	size_t can = reach(src, n);

	if (can)
		memcpy(dst, (void *)(uintptr_t)src, can);
	return can || !n ? (ssize_t)can : -EFAULT;
}

ssize_t copy_out_part(struct task *t, uaddr_t dst, const void *src, size_t n)
{
	size_t can = reach(dst, n);

	if (can)
		memcpy((void *)(uintptr_t)dst, src, can);
	return can || !n ? (ssize_t)can : -EFAULT;
}

int copy_in(struct task *t, uaddr_t src, void *dst, size_t n)
{
	return copy_in_part(t, src, dst, n) == (ssize_t)n ? 0 : -EFAULT;
}

int copy_out(struct task *t, uaddr_t dst, const void *src, size_t n)
{
	return copy_out_part(t, dst, src, n) == (ssize_t)n ? 0 : -EFAULT;
}

ssize_t copy_in_str(struct task *t, uaddr_t src, char *dst, size_t cap)
{
	for (size_t i = 0; i < cap; i++) {
		if (!reach(src + i, 1))
			return -EFAULT;
		dst[i] = *(char *)(uintptr_t)(src + i);
		if (!dst[i])
			return (ssize_t)i;
	}
	return -ENAMETOOLONG;
}

bool cred_has_cap(const struct cred *c, int cap)
{
	return c->cap_effective >> cap & 1;
}

bool cred_in_group(const struct cred *c, gid_t gid)
{
	for (unsigned i = 0; i < c->n_groups; i++)
		if (c->groups[i] == gid)
			return true;
	return c->fsgid == gid;
}

uint64_t task_rlimit(const struct task *t, unsigned resource)
{
	return t->tg->rlim[resource].cur;
}

void sig_send_self(struct task *t, int sig)
{
	fake_signal = sig;
}

int task_wait_on(struct task *t, struct waitq *q, uint32_t events)
{
	return 0;
}

int64_t task_block(struct task *t, int64_t intr)
{
	fake_blocked++;
	return fake_signal_pending ? intr : SYS_BLOCKED;
}

void task_op_hold(struct task *t, void *data, void (*data_free)(void *data))
{
	if (t->op.data)
		t->op.data_free(t->op.data);
	t->op.data = data;
	t->op.data_free = data_free;
}

void epoll_file_gone(struct file *f)
{
}

void locks_file_gone(struct file *f)
{
}

void locks_fd_closed(struct file *f, struct fdtable *owner)
{
}

void locks_inode_gone(struct inode *in)
{
}

int64_t locks_fcntl(struct task *t, struct file *f, int cmd, uint64_t arg)
{
	return -ENOLCK;
}

int64_t locks_flock(struct task *t, struct file *f, int op)
{
	return 0;
}

const struct file_ops fifo_file_ops;

int64_t fifo_open(struct task *t, struct inode *in, struct file *f)
{
	return 0;
}

void mm_file_cut(const struct inode *in, uint64_t size)
{
}

int64_t memfd_fcntl(struct task *t, struct file *f, int cmd, uint64_t arg)
{
	return -EINVAL;
}

int64_t pipe_fcntl(struct task *t, struct file *f, int cmd, uint64_t arg)
{
	return -EBADF;
}

void fake_op_end(struct task *t)
{
	if (t->op.data)
		t->op.data_free(t->op.data);
	t->op = (struct sysop){ 0 };
}
