/* SPDX-License-Identifier: Apache-2.0 */
/* Copies from file to file through a buffer of the sentry. */
#include "sentry/syscalls/fs_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "sentry/kernel/restart.h"
#include "sentry/kernel/sig.h"
#include "sentry/kernel/task.h"
#include "sentry/kernel/uaccess.h"
#include "sentry/vfs/fdtable.h"
#include "sentry/vfs/rw.h"
#include "sentry/vfs/uio.h"
#include "sentry/vfs/vfs.h"

#define COPY_CHUNK (128u * 1024)

static uint8_t chunk[COPY_CHUNK];

/*
 * One chunk of at most @n bytes from @in at *in_pos to @out at *out_pos (NULL: its own position). Advances by what was
 * written: bytes, 0 at the end of @in, or -errno.
 */
static ssize_t copy_chunk(struct task *t, struct file *in, uint64_t *in_pos, struct file *out, uint64_t *out_pos,
			  uint64_t n)
{
	uint64_t pos = *in_pos;
	struct uio_seg seg;
	struct uio u;
	ssize_t got, put;

	uio_init_kernel(&u, &seg, chunk, (size_t)MIN(n, (uint64_t)sizeof(chunk)));
	got = vfs_read(in, &u, &pos);
	if (got <= 0)
		return got;
	uio_init_kernel(&u, &seg, chunk, (size_t)got);
	put = vfs_write(t, out, &u, out_pos);
	if (put > 0)
		*in_pos += (uint64_t)put;
	return put;
}

static int check_sendfile(const struct file *in, const struct file *out)
{
	if (!file_readable(in) || !file_writable(out))
		return -EBADF;
	if (!file_seekable(in) || !in->ops || !in->ops->read || S_ISDIR(in->inode->mode))
		return -EINVAL;
	return out->flags & O_APPEND ? -EINVAL : 0;
}

/*
 * Blocks as write does; what is done so far is in t->op.progress, and the positions are only moved at the end. Returns
 * the bytes sent in all, or an error or SYS_BLOCKED.
 */
static int64_t send_all(struct task *t, struct file *in, uint64_t pos, struct file *out, uint64_t n)
{
	uint64_t done = t->op.progress;
	int64_t r = 0;

	pos += done;
	while (done < n) {
		r = copy_chunk(t, in, &pos, out, NULL, n - done);
		if (r <= 0)
			break;
		done += (uint64_t)r;
	}
	if (r == -EPIPE)
		sig_send_self(t, SIGPIPE);
	if (r == -EAGAIN && !(out->flags & O_NONBLOCK)) {
		t->op.progress = done;
		r = rw_block(t, out, POLLOUT | POLLWRNORM);
		if (r == SYS_BLOCKED)
			return r;
	}
	return done ? (int64_t)done : r;
}

/* The position of a description: that of the caller's own files is the host's, shared with whoever else has them open.
 */
static int64_t pos_get(struct file *f, uint64_t *pos)
{
	int64_t r = vfs_llseek(f, 0, SEEK_CUR);

	*pos = (uint64_t)r;
	return r < 0 ? r : 0;
}

static void pos_set(struct file *f, uint64_t pos)
{
	(void)vfs_llseek(f, (int64_t)pos, SEEK_SET); /* where the copy has just been */
}

static int64_t sendfile(struct task *t, struct file *in, struct file *out, uaddr_t uoff, uint64_t n)
{
	uint64_t pos;
	int64_t r;

	if (file_readable(in) && uoff && !file_seekable(in))
		return -ESPIPE;
	r = check_sendfile(in, out);
	if (!r)
		r = pos_get(in, &pos);
	if (r)
		return r;
	if (uoff && copy_in(t, uoff, &pos, sizeof(pos)))
		return -EFAULT;
	if ((int64_t)pos < 0)
		return -EINVAL;
	r = send_all(t, in, pos, out, MIN(n, (uint64_t)UIO_MAX_BYTES));
	if (r <= 0)
		return r;
	pos += (uint64_t)r;
	if (!uoff)
		pos_set(in, pos);
	else if (copy_out(t, uoff, &pos, sizeof(pos)))
		return -EFAULT;
	return r;
}

int64_t sys_sendfile(struct task *t, const struct sysargs *a)
{
	struct file *in, *out;
	int64_t r = fd_get(t, ARG_INT(a, 1), &in);

	if (r)
		return r;
	r = fd_get(t, ARG_INT(a, 0), &out);
	if (!r) {
		r = sendfile(t, in, out, ARG_PTR(a, 2), ARG_U64(a, 3));
		file_put(out);
	}
	file_put(in);
	return r;
}

struct copy_range {
	struct file *in, *out;
	uint64_t in_pos, out_pos, len;
};

static int check_copy_range(const struct copy_range *c)
{
	uint32_t im = c->in->inode->mode, om = c->out->inode->mode;
	uint64_t end;

	if (S_ISDIR(im) || S_ISDIR(om))
		return -EISDIR;
	if (!S_ISREG(im) || !S_ISREG(om))
		return -EINVAL;
	if (!file_readable(c->in) || !file_writable(c->out) || (c->out->flags & O_APPEND))
		return -EBADF;
	if ((int64_t)c->in_pos < 0 || (int64_t)c->out_pos < 0)
		return -EINVAL;
	if (__builtin_add_overflow(c->in_pos, c->len, &end) || __builtin_add_overflow(c->out_pos, c->len, &end))
		return -EOVERFLOW;
	if (c->in->inode == c->out->inode && c->in_pos < c->out_pos + c->len && c->out_pos < c->in_pos + c->len)
		return -EINVAL;
	return 0;
}

static int64_t copy_range(struct task *t, struct copy_range *c)
{
	uint64_t left = MIN(c->len, (uint64_t)UIO_MAX_BYTES), done = 0;

	while (left) {
		ssize_t n = copy_chunk(t, c->in, &c->in_pos, c->out, &c->out_pos, left);

		if (n < 0 && !done)
			return n;
		if (n <= 0)
			break;
		done += (uint64_t)n;
		left -= (uint64_t)n;
	}
	return (int64_t)done;
}

static int64_t do_copy_range(struct task *t, const struct sysargs *a, struct copy_range *c)
{
	uaddr_t uin = ARG_PTR(a, 1), uout = ARG_PTR(a, 3);
	int64_t r = 0;

	c->in_pos = c->out_pos = 0;
	c->len = ARG_U64(a, 4);
	if (!uin && S_ISREG(c->in->inode->mode))
		r = pos_get(c->in, &c->in_pos);
	if (!r && !uout && S_ISREG(c->out->inode->mode))
		r = pos_get(c->out, &c->out_pos);
	if (r)
		return r;
	if ((uin && copy_in(t, uin, &c->in_pos, sizeof(c->in_pos))) ||
	    (uout && copy_in(t, uout, &c->out_pos, sizeof(c->out_pos))))
		return -EFAULT;
	r = ARG_U32(a, 5) ? -EINVAL : check_copy_range(c);
	if (!r)
		r = copy_range(t, c);
	if (r <= 0)
		return r;
	if (!uin)
		pos_set(c->in, c->in_pos);
	else if (copy_out(t, uin, &c->in_pos, sizeof(c->in_pos)))
		return -EFAULT;
	if (!uout)
		pos_set(c->out, c->out_pos);
	else if (copy_out(t, uout, &c->out_pos, sizeof(c->out_pos)))
		return -EFAULT;
	return r;
}

int64_t sys_copy_file_range(struct task *t, const struct sysargs *a)
{
	struct copy_range c;
	int64_t r = fd_get(t, ARG_INT(a, 0), &c.in);

	if (r)
		return r;
	r = fd_get(t, ARG_INT(a, 2), &c.out);
	if (!r) {
		r = do_copy_range(t, a, &c);
		file_put(c.out);
	}
	file_put(c.in);
	return r;
}
