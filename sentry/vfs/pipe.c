/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pipe is a byte ring. It hangs on inode->ipc while any description is open and is freed with the last one; so a
 * FIFO's bytes do not outlive its users, as in Linux. The ring starts small and doubles up to the pipe's size, so an
 * idle pipe costs little.
 *
 * Writes of at most PIPE_ATOMIC bytes go in whole or not at all; vfs_write_call() continues longer ones.
 */
#include "sentry/vfs/pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "sentry/kernel/cred.h"
#include "sentry/kernel/restart.h"
#include "sentry/kernel/task.h"
#include "sentry/kernel/uaccess.h"
#include "sentry/kernel/waitq.h"
#include "sentry/vfs/file.h"
#include "sentry/vfs/uio.h"

#define RING_START 4096u

struct pipe {
	struct waitq wq;
	unsigned readers, writers;       /* open descriptions */
	unsigned r_opens, w_opens;       /* ever: a blocked FIFO open waits for the other to move */
	uint32_t limit;                  /* F_SETPIPE_SZ */
	uint32_t cap, head, len;         /* the ring: cap is a power of two, or 0 */
	uint8_t *ring;
};

static struct pipe *pipe_of(const struct file *f)
{
	return f->inode->ipc;
}

static struct pipe *pipe_new(void)
{
	struct pipe *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	waitq_init(&p->wq);
	p->limit = PIPE_DEFAULT_SIZE;
	return p;
}

static void pipe_free(struct pipe *p)
{
	waitq_fini(&p->wq);
	free(p->ring);
	free(p);
}

/* Makes room for @want bytes in all, within the limit. */
static int ring_reserve(struct pipe *p, uint32_t want)
{
	uint32_t cap = p->cap ? p->cap : RING_START, first;
	uint8_t *ring;

	while (cap < want)
		cap *= 2;
	if (cap <= p->cap)
		return 0;
	ring = malloc(cap);
	if (!ring)
		return -ENOMEM;
	first = MIN(p->len, p->cap - p->head);
	if (p->len) {
		memcpy(ring, p->ring + p->head, first);
		memcpy(ring + first, p->ring, p->len - first);
	}
	free(p->ring);
	p->ring = ring;
	p->cap = cap;
	p->head = 0;
	return 0;
}

static ssize_t pipe_read(struct file *f, struct uio *u, uint64_t *pos)
{
	struct pipe *p = pipe_of(f);
	ssize_t total = 0;

	if (!p->len)
		return p->writers ? -EAGAIN : 0;
	while (p->len && u->resid) {
		uint32_t run = MIN(p->len, p->cap - p->head);
		ssize_t n = uio_copy_to(u, p->ring + p->head, run);

		if (n <= 0) {
			total = total ? total : n;
			break;
		}
		p->head = (p->head + (uint32_t)n) & (p->cap - 1);
		p->len -= (uint32_t)n;
		total += n;
	}
	if (!p->len)
		p->head = 0;
	if (total > 0)
		waitq_wake(&p->wq, POLLOUT | POLLWRNORM);
	return total;
}

static ssize_t pipe_write(struct file *f, struct uio *u, uint64_t *pos)
{
	struct pipe *p = pipe_of(f);
	uint32_t room = p->limit > p->len ? p->limit - p->len : 0;
	uint64_t want = MIN(u->resid, (uint64_t)room);
	ssize_t total = 0;

	if (!p->readers)
		return -EPIPE;
	if (!u->resid)
		return 0;
	if (!room || (u->resid <= PIPE_ATOMIC && room < u->resid))
		return -EAGAIN;
	if (ring_reserve(p, p->len + (uint32_t)want))
		return -ENOMEM;
	while (want) {
		uint32_t tail = (p->head + p->len) & (p->cap - 1);
		uint32_t run = MIN((uint32_t)want, p->cap - tail);
		ssize_t n = uio_copy_from(u, p->ring + tail, run);

		if (n <= 0) {
			total = total ? total : n;
			break;
		}
		p->len += (uint32_t)n;
		want -= (uint64_t)n;
		total += n;
	}
	if (total > 0)
		waitq_wake(&p->wq, POLLIN | POLLRDNORM);
	return total;
}

static uint32_t pipe_poll(struct file *f, struct waitq **q)
{
	struct pipe *p = pipe_of(f);
	uint32_t ev = 0;

	*q = &p->wq;
	if (file_readable(f)) {
		if (p->len)
			ev |= POLLIN | POLLRDNORM;
		/* A FIFO that no writer has joined since this open is not hung up. */
		if (!p->writers && f->writers_seen != p->w_opens)
			ev |= POLLHUP;
	}
	if (file_writable(f)) {
		if (p->len < p->limit && p->limit - p->len >= PIPE_ATOMIC)
			ev |= POLLOUT | POLLWRNORM;
		if (!p->readers)
			ev |= POLLERR;
	}
	return ev;
}

static int64_t pipe_ioctl(struct file *f, struct task *t, uint32_t cmd, uint64_t arg)
{
	int n = (int)pipe_of(f)->len;

	if (cmd != FIONREAD)
		return -ENOTTY;
	return copy_out(t, arg, &n, sizeof(n));
}

static void pipe_join(struct pipe *p, struct file *f)
{
	f->writers_seen = p->w_opens;
	if (file_readable(f)) {
		p->readers++;
		p->r_opens++;
	}
	if (file_writable(f)) {
		p->writers++;
		p->w_opens++;
	}
	waitq_wake_n(&p->wq, POLLIN | POLLOUT, WAITQ_WAKE_ALL);
}

static void pipe_release(struct file *f)
{
	struct pipe *p = pipe_of(f);

	if (!p)
		return; /* an open that never joined */
	p->readers -= file_readable(f);
	p->writers -= file_writable(f);
	if (!p->readers && !p->writers) {
		f->inode->ipc = NULL;
		pipe_free(p);
		return;
	}
	waitq_wake_n(&p->wq, POLLIN | POLLOUT | POLLHUP | POLLERR, WAITQ_WAKE_ALL);
}

const struct file_ops fifo_file_ops = {
	.read = pipe_read,
	.write = pipe_write,
	.poll = pipe_poll,
	.ioctl = pipe_ioctl,
	.release = pipe_release,
};

/* A pipe opened again by /proc/PID/fd/N is a new description of the same pipe; it never waits for the other end. */
static int pipe_inode_open(struct inode *in, struct file *f)
{
	if (!in->ipc)
		return -ENXIO;
	pipe_join(in->ipc, f);
	return 0;
}

static void pipe_inode_destroy(struct inode *in)
{
	BUG_ON(in->ipc);
	free(in);
}

static const struct inode_ops pipe_inode_ops = {
	.open = pipe_inode_open,
	.destroy = pipe_inode_destroy,
};

static struct file *pipe_end(struct inode *in, uint32_t flags)
{
	struct file *f = file_create(&fifo_file_ops, in, flags);

	if (!f)
		return NULL;
	f->anon_name = "pipe";
	pipe_join(in->ipc, f);
	return f;
}

int pipe_create(uint32_t flags, struct file **rd, struct file **wr)
{
	struct inode *in;
	struct file *r, *w;
	int err = -ENOMEM;

	in = anon_inode_create(S_IFIFO | 0600);
	if (!in)
		return -ENOMEM;
	in->ops = &pipe_inode_ops;
	in->fops = &fifo_file_ops;
	in->ipc = pipe_new();
	if (!in->ipc)
		goto out;
	err = -ENFILE;
	r = pipe_end(in, O_RDONLY | (flags & O_NONBLOCK));
	if (!r) {
		pipe_free(in->ipc);
		in->ipc = NULL;
		goto out;
	}
	w = pipe_end(in, O_WRONLY | (flags & O_NONBLOCK));
	if (!w) {
		file_put(r);
		goto out;
	}
	*rd = r;
	*wr = w;
	err = 0;
out:
	inode_put(in); /* the files hold it */
	return err;
}

/* fifo(7): an open for reading waits for a writer and the other way round; O_RDWR never waits. */
int64_t fifo_open(struct task *t, struct inode *in, struct file *f)
{
	struct pipe *p = in->ipc;
	bool rd = file_readable(f), wr = file_writable(f);

	if (!t->op.data) {
		if (!p) {
			p = pipe_new();
			if (!p)
				return -ENOMEM;
			in->ipc = p;
		}
		if (wr && !rd && (f->flags & O_NONBLOCK) && !p->readers) {
			if (!p->writers) {
				in->ipc = NULL;
				pipe_free(p);
			}
			return -ENXIO;
		}
		pipe_join(p, f);
		/* What the other side's count must move past, should it be closed again before we run. */
		t->op.scratch[3] = rd ? p->w_opens : p->r_opens;
		if ((rd && wr) || (f->flags & O_NONBLOCK))
			return 0;
	}
	if (rd && wr)
		return 0;
	if (rd ? (p->writers || p->w_opens != t->op.scratch[3]) : (p->readers || p->r_opens != t->op.scratch[3]))
		return 0;
	if (!t->op.data)
		task_op_hold(t, file_get(f), file_put_held);
	if (task_wait_on(t, &p->wq, POLLIN | POLLOUT))
		return -ENOMEM;
	return task_block(t, -ERESTARTSYS);
}

static int64_t pipe_resize(struct task *t, struct pipe *p, uint64_t arg)
{
	uint32_t size = PIPE_ATOMIC;

	if (arg > INT32_MAX)
		return -EINVAL;
	if (arg > PIPE_MAX_SIZE && !cred_has_cap(t->cred, CAP_SYS_RESOURCE))
		return -EPERM;
	if (arg > PIPE_MAX_SIZE)
		return -ENOMEM;
	while (size < arg)
		size *= 2;
	if (size < p->len)
		return -EBUSY;
	p->limit = size;
	waitq_wake(&p->wq, POLLOUT | POLLWRNORM);
	return size;
}

int64_t pipe_fcntl(struct task *t, struct file *f, int cmd, uint64_t arg)
{
	if (f->ops != &fifo_file_ops || !pipe_of(f))
		return -EBADF;
	return cmd == F_GETPIPE_SZ ? (int64_t)pipe_of(f)->limit : pipe_resize(t, pipe_of(f), arg);
}

bool file_is_pipe(const struct file *f)
{
	return f->ops == &fifo_file_ops && pipe_of(f);
}

bool pipe_same(const struct file *a, const struct file *b)
{
	return pipe_of(a) == pipe_of(b);
}

ssize_t pipe_peek(struct file *f, void *buf, size_t n)
{
	struct pipe *p = pipe_of(f);
	size_t first;

	if (!p->len)
		return p->writers ? -EAGAIN : 0;
	n = MIN(n, (size_t)p->len);
	first = MIN(n, (size_t)(p->cap - p->head));
	memcpy(buf, p->ring + p->head, first);
	memcpy((uint8_t *)buf + first, p->ring, n - first);
	return (ssize_t)n;
}

void pipe_consume(struct file *f, size_t n)
{
	struct pipe *p = pipe_of(f);

	p->head = (p->head + (uint32_t)n) & (p->cap - 1);
	p->len -= (uint32_t)n;
	if (!p->len)
		p->head = 0;
	waitq_wake(&p->wq, POLLOUT | POLLWRNORM);
}

ssize_t pipe_room(struct file *f)
{
	const struct pipe *p = pipe_of(f);

	if (!p->readers)
		return -EPIPE;
	return p->limit > p->len ? p->limit - p->len : 0;
}
