/* SPDX-License-Identifier: Apache-2.0 */
/*
 * splice, tee and vmsplice. There are no pages to move: they copy through a buffer of the sentry. One call moves at
 * most one buffer, as it may move less than asked. Bytes leave a pipe only when they have arrived, and are read from
 * elsewhere only when the pipe has room: nothing is lost when a call has to wait.
 */
#include "sentry/syscalls/fs_splice.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>

#include "sentry/kernel/restart.h"
#include "sentry/kernel/sig.h"
#include "sentry/kernel/task.h"
#include "sentry/kernel/uaccess.h"
#include "sentry/vfs/fdtable.h"
#include "sentry/vfs/pipe.h"
#include "sentry/vfs/rw.h"
#include "sentry/vfs/uio.h"
#include "sentry/vfs/vfs.h"

#define SPLICE_FLAGS (SPLICE_F_MOVE | SPLICE_F_NONBLOCK | SPLICE_F_MORE | SPLICE_F_GIFT)
#define SPLICE_CHUNK 65536u

static uint8_t chunk[SPLICE_CHUNK];

struct splice {
	struct file *in, *out;
	uint64_t in_pos, out_pos;
	uint64_t *ppos_in, *ppos_out; /* NULL: the file's own position, or none */
	size_t len;
	bool nonblock;
};

static int64_t wait_for(struct task *t, const struct splice *s, struct file *f, uint32_t events)
{
	return s->nonblock ? -EAGAIN : rw_block(t, f, events);
}

/* From a pipe to whatever can be written; @keep leaves the bytes in the pipe. */
static int64_t from_pipe(struct task *t, const struct splice *s, bool keep)
{
	struct uio_seg seg;
	struct uio u;
	ssize_t n = pipe_peek(s->in, chunk, s->len), put;

	if (n == -EAGAIN)
		return wait_for(t, s, s->in, POLLIN | POLLRDNORM);
	if (n > 0 && file_is_pipe(s->out)) {
		ssize_t room = pipe_room(s->out);

		if (!room)
			return wait_for(t, s, s->out, POLLOUT | POLLWRNORM);
		n = room < 0 ? room : MIN(n, room);
	}
	if (n <= 0)
		return n;
	uio_init_kernel(&u, &seg, chunk, (size_t)n);
	put = vfs_write(t, s->out, &u, s->ppos_out);
	if (put == -EAGAIN)
		return s->out->flags & O_NONBLOCK ? -EAGAIN : wait_for(t, s, s->out, POLLOUT | POLLWRNORM);
	if (put > 0 && !keep)
		pipe_consume(s->in, (size_t)put);
	return put;
}

static int64_t to_pipe(struct task *t, const struct splice *s)
{
	ssize_t room = pipe_room(s->out), got;
	struct uio_seg seg;
	struct uio u;

	if (room < 0)
		return room;
	if (!room)
		return wait_for(t, s, s->out, POLLOUT | POLLWRNORM);
	uio_init_kernel(&u, &seg, chunk, MIN(s->len, (size_t)room));
	got = vfs_read(s->in, &u, s->ppos_in);
	if (got == -EAGAIN)
		return s->in->flags & O_NONBLOCK ? -EAGAIN : wait_for(t, s, s->in, POLLIN | POLLRDNORM);
	if (got <= 0)
		return got;
	uio_init_kernel(&u, &seg, chunk, (size_t)got);
	return vfs_write(t, s->out, &u, NULL);
}

/* Linux: do_splice. */
static int check_splice(const struct splice *s, uaddr_t uin, uaddr_t uout)
{
	bool ip = file_is_pipe(s->in), op = file_is_pipe(s->out);

	if (!file_readable(s->in) || !file_writable(s->out))
		return -EBADF;
	if ((ip && uin) || (op && uout))
		return -ESPIPE;
	if (ip && op)
		return pipe_same(s->in, s->out) ? -EINVAL : 0;
	if (!ip && !op)
		return -EINVAL;
	if (ip)
		return (uout && !file_seekable(s->out)) || (s->out->flags & O_APPEND) ? -EINVAL : 0;
	return uin && !file_seekable(s->in) ? -EINVAL : 0;
}

static int get_pos(struct task *t, uaddr_t uaddr, uint64_t *pos, uint64_t **ppos)
{
	if (!uaddr)
		return 0;
	*ppos = pos;
	if (copy_in(t, uaddr, pos, sizeof(*pos)))
		return -EFAULT;
	return (int64_t)*pos < 0 ? -EINVAL : 0;
}

static int64_t do_splice(struct task *t, struct splice *s, uaddr_t uin, uaddr_t uout)
{
	int64_t r = check_splice(s, uin, uout);

	if (!r)
		r = get_pos(t, uin, &s->in_pos, &s->ppos_in);
	if (!r)
		r = get_pos(t, uout, &s->out_pos, &s->ppos_out);
	if (r)
		return r;
	if (file_is_pipe(s->in))
		r = from_pipe(t, s, false);
	else
		r = to_pipe(t, s);
	if (r == -EPIPE)
		sig_send_self(t, SIGPIPE);
	if (r > 0 && ((uin && copy_out(t, uin, &s->in_pos, sizeof(s->in_pos))) ||
		      (uout && copy_out(t, uout, &s->out_pos, sizeof(s->out_pos)))))
		return -EFAULT;
	return r;
}

/* Both descriptors of a call: counted in @s. */
static int get_files(struct task *t, int in, int out, uint64_t len, uint32_t flags, struct splice *s)
{
	int err;

	if (flags & ~(uint32_t)SPLICE_FLAGS)
		return -EINVAL;
	err = fd_get(t, in, &s->in);
	if (err)
		return err;
	err = fd_get(t, out, &s->out);
	if (err) {
		file_put(s->in);
		return err;
	}
	s->len = (size_t)MIN(len, (uint64_t)SPLICE_CHUNK);
	s->nonblock = (flags & SPLICE_F_NONBLOCK) || (file_is_pipe(s->in) && (s->in->flags & O_NONBLOCK)) ||
		      (file_is_pipe(s->out) && (s->out->flags & O_NONBLOCK));
	return 0;
}

int64_t sys_splice(struct task *t, const struct sysargs *a)
{
	struct splice s = { .in = NULL };
	int64_t r;

	if (!ARG_U64(a, 4))
		return 0;
	r = get_files(t, ARG_INT(a, 0), ARG_INT(a, 2), ARG_U64(a, 4), ARG_U32(a, 5), &s);
	if (r)
		return r;
	r = do_splice(t, &s, ARG_PTR(a, 1), ARG_PTR(a, 3));
	file_put(s.in);
	file_put(s.out);
	return r;
}

int64_t sys_tee(struct task *t, const struct sysargs *a)
{
	struct splice s = { .in = NULL };
	int64_t r;

	if (ARG_U32(a, 3) & ~(uint32_t)SPLICE_FLAGS)
		return -EINVAL;
	if (!ARG_U64(a, 2))
		return 0;
	r = get_files(t, ARG_INT(a, 0), ARG_INT(a, 1), ARG_U64(a, 2), ARG_U32(a, 3), &s);
	if (r)
		return r;
	if (!file_readable(s.in) || !file_writable(s.out))
		r = -EBADF;
	else if (!file_is_pipe(s.in) || !file_is_pipe(s.out) || pipe_same(s.in, s.out))
		r = -EINVAL;
	else
		r = from_pipe(t, &s, true);
	if (r == -EPIPE)
		sig_send_self(t, SIGPIPE);
	file_put(s.in);
	file_put(s.out);
	return r;
}

static int64_t do_vmsplice(struct task *t, struct file *f, struct uio *u, bool nonblock)
{
	bool out = file_writable(f);
	int64_t r;

	if (!u->resid)
		return 0;
	if (!file_is_pipe(f))
		return -EBADF;
	r = out ? vfs_write(t, f, u, NULL) : vfs_read(f, u, NULL);
	if (r == -EPIPE)
		sig_send_self(t, SIGPIPE);
	if (r == -EAGAIN && !nonblock && !(f->flags & O_NONBLOCK))
		return rw_block(t, f, out ? POLLOUT | POLLWRNORM : POLLIN | POLLRDNORM);
	return r;
}

int64_t sys_vmsplice(struct task *t, const struct sysargs *a)
{
	struct uio_seg segs[UIO_MAX_IOV];
	uint32_t flags = ARG_U32(a, 3);
	struct file *f;
	struct uio u;
	int64_t r;

	if (flags & ~(uint32_t)SPLICE_FLAGS)
		return -EINVAL;
	r = fd_get(t, ARG_INT(a, 0), &f);
	if (r)
		return r;
	if (!file_readable(f) && !file_writable(f))
		r = -EBADF;
	else
		r = uio_init_iov(&u, t, segs, ARRAY_SIZE(segs), ARG_PTR(a, 1), ARG_U64(a, 2));
	if (!r)
		r = do_vmsplice(t, f, &u, flags & SPLICE_F_NONBLOCK);
	file_put(f);
	return r;
}
