/* SPDX-License-Identifier: Apache-2.0 */
#include "sentry/syscalls/fs_rw.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sentry/kernel/task.h"
#include "sentry/vfs/fdtable.h"
#include "sentry/vfs/rw.h"
#include "sentry/vfs/uio.h"
#include "sentry/vfs/vfs.h"

#define GUEST_END 0x7ffffffff000ull /* the end of user addresses */

/* A buffer that no address space can hold is refused before anything is done. Linux: access_ok. */
static bool user_range_ok(uaddr_t buf, uint64_t n)
{
	return n <= GUEST_END && buf <= GUEST_END - n;
}

int64_t sys_read(struct task *t, const struct sysargs *a)
{
	uint64_t n = ARG_U64(a, 2);
	struct uio_seg seg;
	struct file *f;
	struct uio u;
	int64_t r;

	r = rw_file_get(t, ARG_INT(a, 0), &f);
	if (r)
		return r;
	uio_init_user(&u, t, &seg, ARG_PTR(a, 1), n);
	r = file_readable(f) ? -EFAULT : -EBADF;
	if (user_range_ok(ARG_PTR(a, 1), n))
		r = vfs_read_call(t, f, &u, NULL);
	file_put(f);
	return r;
}

int64_t sys_write(struct task *t, const struct sysargs *a)
{
	uint64_t n = ARG_U64(a, 2);
	struct uio_seg seg;
	struct file *f;
	struct uio u;
	int64_t r;

	r = rw_file_get(t, ARG_INT(a, 0), &f);
	if (r)
		return r;
	uio_init_user(&u, t, &seg, ARG_PTR(a, 1), n);
	r = file_writable(f) ? -EFAULT : -EBADF;
	if (user_range_ok(ARG_PTR(a, 1), n))
		r = vfs_write_call(t, f, &u, NULL);
	file_put(f);
	return r;
}

/* pread64 and pwrite64 */
static int64_t do_prw(struct task *t, const struct sysargs *a, bool out)
{
	uint64_t n = ARG_U64(a, 2), pos = ARG_U64(a, 3);
	struct uio_seg seg;
	struct file *f;
	struct uio u;
	int64_t r;

	if (ARG_I64(a, 3) < 0)
		return -EINVAL;
	r = rw_file_get(t, ARG_INT(a, 0), &f);
	if (r)
		return r;
	uio_init_user(&u, t, &seg, ARG_PTR(a, 1), n);
	if (!file_seekable(f))
		r = -ESPIPE;
	else if (!user_range_ok(ARG_PTR(a, 1), n))
		r = (out ? file_writable(f) : file_readable(f)) ? -EFAULT : -EBADF;
	else
		r = out ? vfs_write_call(t, f, &u, &pos) : vfs_read_call(t, f, &u, &pos);
	file_put(f);
	return r;
}

int64_t sys_pread64(struct task *t, const struct sysargs *a)
{
	return do_prw(t, a, false);
}

int64_t sys_pwrite64(struct task *t, const struct sysargs *a)
{
	return do_prw(t, a, true);
}

struct vec_call {
	int fd;
	uaddr_t iov;
	uint64_t n;
	bool out;
	bool has_pos;
	uint64_t pos;
	uint32_t rwf; /* RWF_* */
};

#ifndef RWF_NOAPPEND
#define RWF_NOAPPEND 0x20
#endif
#define RWF_KNOWN (RWF_HIPRI | RWF_DSYNC | RWF_SYNC | RWF_NOWAIT | RWF_APPEND | RWF_NOAPPEND)

static int check_rwf(const struct vec_call *c)
{
	if (c->rwf & ~(uint32_t)RWF_KNOWN)
		return -EOPNOTSUPP;
	if ((c->rwf & RWF_APPEND) && (c->rwf & RWF_NOAPPEND))
		return -EINVAL;
	return 0;
}

/* The transfer, with the flags of the call as those of the description while it lasts. */
static int64_t vec_transfer(struct task *t, struct file *f, const struct vec_call *c, struct uio *u)
{
	uint32_t saved = f->flags;
	uint64_t pos = c->pos, *ppos = c->has_pos ? &pos : NULL;
	int64_t r;

	if (c->rwf & RWF_NOWAIT)
		f->flags |= O_NONBLOCK;
	if (c->rwf & RWF_APPEND)
		f->flags |= O_APPEND;
	if (c->rwf & RWF_NOAPPEND)
		f->flags &= ~(uint32_t)O_APPEND;
	r = c->out ? vfs_write_call(t, f, u, ppos) : vfs_read_call(t, f, u, ppos);
	f->flags = saved;
	if (r > 0 && c->out && (c->rwf & (RWF_DSYNC | RWF_SYNC)) && f->ops->fsync) {
		int err = f->ops->fsync(f, !(c->rwf & RWF_SYNC));

		if (err)
			return err;
	}
	return r;
}

static int64_t do_vec(struct task *t, const struct vec_call *c)
{
	struct uio_seg segs[UIO_MAX_IOV];
	struct file *f;
	struct uio u;
	int64_t r;

	if (c->has_pos && (int64_t)c->pos < 0)
		return -EINVAL;
	r = rw_file_get(t, c->fd, &f);
	if (r)
		return r;
	if (c->has_pos && !file_seekable(f))
		r = -ESPIPE;
	else
		r = uio_init_iov(&u, t, segs, ARRAY_SIZE(segs), c->iov, c->n);
	if (!r)
		r = check_rwf(c);
	if (!r)
		r = vec_transfer(t, f, c, &u);
	file_put(f);
	return r;
}

int64_t sys_readv(struct task *t, const struct sysargs *a)
{
	return do_vec(t, &(struct vec_call){ .fd = ARG_INT(a, 0), .iov = ARG_PTR(a, 1), .n = ARG_U64(a, 2) });
}

int64_t sys_writev(struct task *t, const struct sysargs *a)
{
	return do_vec(t,
	              &(struct vec_call){ .fd = ARG_INT(a, 0), .iov = ARG_PTR(a, 1), .n = ARG_U64(a, 2), .out = true });
}

/* The high half of the position, the fifth argument, is shifted out on a 64-bit machine. */
static struct vec_call vec_at(const struct sysargs *a, bool out)
{
	return (struct vec_call){
		.fd = ARG_INT(a, 0),
		.iov = ARG_PTR(a, 1),
		.n = ARG_U64(a, 2),
		.out = out,
		.has_pos = true,
		.pos = ARG_U64(a, 3),
	};
}

int64_t sys_preadv(struct task *t, const struct sysargs *a)
{
	struct vec_call c = vec_at(a, false);

	return do_vec(t, &c);
}

int64_t sys_pwritev(struct task *t, const struct sysargs *a)
{
	struct vec_call c = vec_at(a, true);

	return do_vec(t, &c);
}

static int64_t do_vec2(struct task *t, const struct sysargs *a, bool out)
{
	struct vec_call c = vec_at(a, out);

	c.rwf = ARG_U32(a, 5);
	c.has_pos = c.pos != UINT64_MAX; /* -1: the position of the description */
	return do_vec(t, &c);
}

int64_t sys_preadv2(struct task *t, const struct sysargs *a)
{
	return do_vec2(t, a, false);
}

int64_t sys_pwritev2(struct task *t, const struct sysargs *a)
{
	return do_vec2(t, a, true);
}

int64_t sys_lseek(struct task *t, const struct sysargs *a)
{
	struct file *f;
	int64_t r = fd_get(t, ARG_INT(a, 0), &f);

	if (r)
		return r;
	r = ARG_U32(a, 2) > SEEK_HOLE ? -EINVAL : vfs_llseek(f, ARG_I64(a, 1), ARG_INT(a, 2));
	file_put(f);
	return r;
}
