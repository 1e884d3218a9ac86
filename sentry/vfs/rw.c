/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read(2) and write(2). vfs_read() and vfs_write() are one attempt; vfs_read_call() and vfs_write_call() are the whole
 * system call: they wait by the protocol of kernel/waitq.h. A blocked call holds its file in task->op.data, so that a
 * close by another thread neither frees the wait queue under it nor changes which file it is about, and keeps the
 * number of bytes written in task->op.progress.
 */
#include "sentry/vfs/rw.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sentry/kernel/cred.h"
#include "sentry/kernel/restart.h"
#include "sentry/kernel/sig.h"
#include "sentry/kernel/task.h"
#include "sentry/kernel/waitq.h"
#include "sentry/vfs/fdtable.h"
#include "sentry/vfs/perm.h"
#include "sentry/vfs/uio.h"
#include "sentry/vfs/vfs.h"

static void put_file(void *f)
{
	file_put(f);
}

int rw_file_get(struct task *t, int fd, struct file **ret)
{
	if (t->op.restarted && t->op.data && t->op.data_free == put_file) {
		*ret = file_get(t->op.data);
		return 0;
	}
	return fd_get(t, fd, ret);
}

int64_t rw_block(struct task *t, struct file *f, uint32_t events)
{
	struct waitq *q;

	(void)vfs_poll(f, &q);
	if (!q)
		return -EAGAIN;
	if (t->op.data != f)
		task_op_hold(t, file_get(f), put_file);
	if (task_wait_on(t, q, events))
		return -ENOMEM;
	return task_block(t, -ERESTARTSYS);
}

ssize_t vfs_read(struct file *f, struct uio *u, uint64_t *pos)
{
	if (!file_readable(f))
		return -EBADF;
	if (S_ISDIR(f->inode->mode))
		return -EISDIR;
	if (!f->ops || !f->ops->read)
		return -EINVAL;
	if (!file_seekable(f))
		pos = NULL;
	else if (!pos)
		pos = &f->pos;
	if (pos && (int64_t)(*pos + u->resid) < 0)
		return -EINVAL;
	if (!u->resid && (S_ISREG(f->inode->mode) || S_ISFIFO(f->inode->mode)))
		return 0;
	return f->ops->read(f, u, pos);
}

int64_t vfs_read_call(struct task *t, struct file *f, struct uio *u, uint64_t *pos)
{
	ssize_t n = vfs_read(f, u, pos);

	if (n != -EAGAIN || (f->flags & O_NONBLOCK))
		return n;
	return rw_block(t, f, POLLIN | POLLRDNORM);
}

ssize_t vfs_read_kernel(struct file *f, void *buf, size_t n, uint64_t pos)
{
	struct uio_seg seg;
	struct uio u;

	uio_init_kernel(&u, &seg, buf, n);
	while (u.resid) {
		ssize_t got = vfs_read(f, &u, &pos);

		if (got < 0)
			return got;
		if (!got)
			break;
	}
	return (ssize_t)(n - u.resid);
}

/*
 * The bytes that RLIMIT_FSIZE and the largest offset leave of a write of @n at @pos; -EFBIG, with SIGXFSZ for the
 * limit. setrlimit(2): only regular files.
 */
static int64_t write_room(struct task *t, const struct file *f, uint64_t pos, uint64_t n)
{
	uint64_t limit = t ? task_rlimit(t, RLIMIT_FSIZE) : UINT64_MAX;

	if (f->flags & O_APPEND)
		pos = f->inode->size;
	if (n && pos >= limit) {
		sig_send_self(t, SIGXFSZ);
		return -EFBIG;
	}
	limit = MIN(limit, (uint64_t)INT64_MAX);
	if (n && pos >= limit)
		return -EFBIG;
	return (int64_t)MIN(n, limit - pos);
}

/* A write takes the set-user-ID and set-group-ID bits away unless the writer has CAP_FSETID. */
static void drop_suid(struct task *t, struct inode *in)
{
	struct iattr attr = { .valid = ATTR_MODE };

	if (likely(!(in->mode & (S_ISUID | S_ISGID))) || (t && cred_has_cap(t->cred, CAP_FSETID)))
		return;
	attr.mode = inode_mode_without_suid(in);
	if (attr.mode != (in->mode & 07777) && in->ops->setattr)
		(void)in->ops->setattr(in, &attr); /* the write itself has succeeded */
}

static ssize_t write_regular(struct task *t, struct file *f, struct uio *u, uint64_t *pos)
{
	int64_t room = write_room(t, f, *pos, u->resid);
	uint64_t cut;
	ssize_t n;

	if (room < 0)
		return room;
	if (!u->resid)
		return 0;
	cut = u->resid - (uint64_t)room;
	u->resid -= cut;
	n = f->ops->write(f, u, pos);
	u->resid += cut;
	if (n > 0)
		drop_suid(t, f->inode);
	return n;
}

ssize_t vfs_write(struct task *t, struct file *f, struct uio *u, uint64_t *pos)
{
	if (!file_writable(f))
		return -EBADF;
	if (!f->ops || !f->ops->write)
		return -EINVAL;
	if (!file_seekable(f))
		pos = NULL;
	else if (!pos)
		pos = &f->pos;
	if (pos && (int64_t)(*pos + u->resid) < 0)
		return -EINVAL;
	if (pos && S_ISREG(f->inode->mode))
		return write_regular(t, f, u, pos);
	if (!u->resid && S_ISFIFO(f->inode->mode))
		return 0;
	return f->ops->write(f, u, pos);
}

/* A write to one of these goes on until all is written. */
static bool is_stream(const struct file *f)
{
	return !S_ISREG(f->inode->mode) && !S_ISBLK(f->inode->mode);
}

int64_t vfs_write_call(struct task *t, struct file *f, struct uio *u, uint64_t *pos)
{
	uint64_t done = t->op.progress;
	int64_t r = 0;

	if (done)
		uio_skip(u, done);
	do {
		r = vfs_write(t, f, u, pos);
		if (r <= 0)
			break;
		done += (uint64_t)r;
	} while (u->resid && is_stream(f));
	if (r == -EPIPE)
		sig_send_self(t, SIGPIPE);
	if (r == -EAGAIN && !(f->flags & O_NONBLOCK)) {
		t->op.progress = done;
		r = rw_block(t, f, POLLOUT | POLLWRNORM);
		if (r == SYS_BLOCKED)
			return r;
	}
	return done ? (int64_t)done : r;
}

int64_t vfs_llseek(struct file *f, int64_t off, int whence)
{
	int64_t r;

	if (!file_seekable(f))
		return -ESPIPE;
	if (f->ops && f->ops->llseek)
		return f->ops->llseek(f, off, whence);
	if (f->inode->ops->refresh) {
		r = f->inode->ops->refresh(f->inode);
		if (r)
			return r;
	}
	return file_seek(f, off, whence, f->inode->size);
}
