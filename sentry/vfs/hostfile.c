/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The caller's stdin, stdout and stderr as guest files, on donated host fds. The host description may be shared with
 * other processes, so its flags are never changed. Reads and writes must not block the leader: RWF_NOWAIT where the
 * host file takes it, else poll first and move at most PIPE_BUF bytes, which a pipe that polls ready always takes.
 *
 * A terminal is not shown as one: no ioctl passes, so the guest has no controlling terminal and cannot push input.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "base/host/file.h"
#include "base/host/hostio.h"
#include "sentry/kernel/event.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/uaccess.h"
#include "sentry/kernel/waitq.h"
#include "sentry/vfs/file.h"
#include "sentry/vfs/uio.h"
#include "sentry/vfs/vfs.h"

#define SAFE_CHUNK 4096u /* PIPE_BUF of the host */

uint64_t vfs_host_reads;
void (*vfs_settle)(void);
void (*vfs_drop_ahead)(void);

struct hostnode {
	struct inode in;
	int fd;
	bool seekable;     /* a regular file or block device: never blocks, has a position (shared with the caller) */
	bool no_nowait;    /* RWF_NOWAIT was refused */
	uint32_t refused;  /* POLLIN, POLLOUT: an attempt found nothing to do since the last poll */
	struct waitq wq;
	struct hostfd_watch watch;
};

static struct hostnode *node_of(const struct file *f)
{
	return container_of(f->inode, struct hostnode, in);
}

static void watch_ready(struct hostfd_watch *w, uint32_t events)
{
	struct hostnode *n = container_of(w, struct hostnode, watch);

	/* EPOLL* and POLL* have the same values. */
	waitq_wake_n(&n->wq, events, WAITQ_WAKE_ALL);
}

static uint32_t hostfile_poll(struct file *f, struct waitq **q)
{
	struct hostnode *n = node_of(f);
	uint32_t want = (file_readable(f) ? POLLIN : 0) | (file_writable(f) ? POLLOUT : 0), ev;
	uint32_t refused = n->refused & want;

	*q = &n->wq;
	n->refused = 0;
	if (n->seekable)
		return want;
	ev = host_poll_now(n->fd, want);
	/* A call that was refused waits whatever is said here: when the other end was quicker it needs a wake-up. */
	if (!refused && ((ev & want) == want || (ev & (POLLHUP | POLLERR))))
		return ev;
	n->watch.events = (want & ~ev) | refused;
	if (hostfd_watch_arm(&n->watch))
		return ev | POLLERR;
	if ((want & ~ev & POLLIN) && kernel.current)
		kernel_note_input_wait(kernel.current, true);
	return ev;
}

static ssize_t nowait_io(struct hostnode *n, void *buf, size_t len, bool out)
{
	ssize_t r;

	if (!n->no_nowait) {
		r = out ? host_write_nowait(n->fd, buf, len) : host_read_nowait(n->fd, buf, len);
		if (r != -EOPNOTSUPP && r != -ENOSYS && r != -ESPIPE)
			return r;
		n->no_nowait = true;
	}
	if (!(host_poll_now(n->fd, out ? POLLOUT : POLLIN) & ((out ? POLLOUT : POLLIN) | POLLHUP | POLLERR)))
		return -EAGAIN;
	len = MIN(len, (size_t)SAFE_CHUNK);
	return out ? host_write(n->fd, buf, len) : host_read(n->fd, buf, len);
}

/* One attempt that does not block: bytes or -errno. */
static ssize_t try_io(struct hostnode *n, void *buf, size_t len, bool out)
{
	ssize_t r = nowait_io(n, buf, len, out);

	if (r == -EAGAIN)
		n->refused |= out ? POLLOUT : POLLIN;
	return r;
}

static ssize_t seek_io(struct hostnode *n, struct file *f, void *buf, size_t len, uint64_t *pos, bool out)
{
	ssize_t r;

	if (pos == &f->pos || (out && (f->flags & O_APPEND)))
		r = out ? host_write(n->fd, buf, len) : host_read(n->fd, buf, len);
	else
		r = out ? host_pwrite(n->fd, buf, len, (off_t)*pos) : host_pread(n->fd, buf, len, (off_t)*pos);
	if (r > 0 && pos)
		*pos += (uint64_t)r;
	return r;
}

static ssize_t hostfile_read(struct file *f, struct uio *u, uint64_t *pos)
{
	struct hostnode *n = node_of(f);
	size_t len = (size_t)MIN(u->resid, (uint64_t)UIO_BOUNCE_SIZE);
	void *buf = uio_bounce();
	ssize_t r, moved;

	if (!len)
		return 0;
	r = n->seekable ? seek_io(n, f, buf, len, pos, false) : try_io(n, buf, len, false);
	vfs_host_reads++;
	if (r <= 0)
		return r;
	moved = uio_copy_to(u, buf, (size_t)r);
	return moved;
}

static ssize_t hostfile_write(struct file *f, struct uio *u, uint64_t *pos)
{
	struct hostnode *n = node_of(f);
	size_t len = (size_t)MIN(u->resid, (uint64_t)UIO_BOUNCE_SIZE);
	void *buf = uio_bounce();
	ssize_t got, r;

	if (!len)
		return 0;
	if (unlikely(vfs_settle))
		vfs_settle();
	got = uio_copy_from(u, buf, len);
	if (got <= 0)
		return got;
	r = n->seekable ? seek_io(n, f, buf, (size_t)got, pos, true) : try_io(n, buf, (size_t)got, true);
	uio_revert(u, (size_t)(got - (r > 0 ? r : 0)));
	return r;
}

static int64_t hostfile_ioctl(struct file *f, struct task *t, uint32_t cmd, uint64_t arg)
{
	int n;

	if (cmd != FIONREAD)
		return -ENOTTY;
	n = host_fionread(node_of(f)->fd);
	return n < 0 ? n : copy_out(t, arg, &n, sizeof(n));
}

static int64_t hostfile_llseek(struct file *f, int64_t off, int whence)
{
	struct hostnode *n = node_of(f);
	int64_t r;

	if (!n->seekable)
		return -ESPIPE;
	r = host_lseek(n->fd, off, whence);
	if (r >= 0)
		f->pos = (uint64_t)r;
	return r;
}

static int hostfile_mmap(struct file *f, int prot, bool shared, struct file_map *map)
{
	if (!S_ISREG(f->inode->mode))
		return -ENODEV;
	map->fd = node_of(f)->fd;
	map->offset = 0;
	return 0;
}

static int hostfile_fsync(struct file *f, bool data_only)
{
	return S_ISREG(f->inode->mode) ? host_fsync(node_of(f)->fd, data_only) : -EINVAL;
}

static const struct file_ops hostfile_ops = {
	.read = hostfile_read,
	.write = hostfile_write,
	.poll = hostfile_poll,
	.llseek = hostfile_llseek,
	.ioctl = hostfile_ioctl,
	.mmap = hostfile_mmap,
	.fsync = hostfile_fsync,
};

static int hostnode_refresh(struct inode *in)
{
	struct hostnode *n = container_of(in, struct hostnode, in);
	struct stat st;
	int err = host_fstat(n->fd, &st);

	if (err)
		return err;
	in->size = (uint64_t)st.st_size;
	in->blocks = (uint64_t)st.st_blocks;
	in->mtime = (struct ktime){ st.st_mtim.tv_sec, (uint32_t)st.st_mtim.tv_nsec };
	in->atime = (struct ktime){ st.st_atim.tv_sec, (uint32_t)st.st_atim.tv_nsec };
	in->ctime = (struct ktime){ st.st_ctim.tv_sec, (uint32_t)st.st_ctim.tv_nsec };
	return 0;
}

static int hostnode_setattr(struct inode *in, const struct iattr *attr)
{
	struct hostnode *n = container_of(in, struct hostnode, in);

	if ((attr->valid & ATTR_SIZE) && S_ISREG(in->mode))
		return host_ftruncate(n->fd, (off_t)attr->size);
	return (attr->valid & (ATTR_MODE | ATTR_UID | ATTR_GID | ATTR_SIZE)) ? -EPERM : 0;
}

static void hostnode_destroy(struct inode *in)
{
	struct hostnode *n = container_of(in, struct hostnode, in);

	hostfd_watch_cancel(&n->watch);
	waitq_fini(&n->wq);
	host_close(n->fd);
	free(n);
}

static const struct inode_ops hostnode_ops = {
	.refresh = hostnode_refresh,
	.setattr = hostnode_setattr,
	.destroy = hostnode_destroy,
};

int hostfile_create(int host_fd, uint32_t flags, struct file **ret)
{
	struct hostnode *n;
	struct stat st;
	struct file *f;
	int err = host_fstat(host_fd, &st);

	if (err)
		goto fail;
	err = -ENOMEM;
	n = calloc(1, sizeof(*n));
	if (!n)
		goto fail;
	anon_inode_init(&n->in, st.st_mode & (S_IFMT | 0777));
	n->in.ops = &hostnode_ops;
	n->in.fops = &hostfile_ops;
	n->in.rdev = st.st_rdev;
	n->in.nlink = 1;
	n->fd = host_fd;
	n->seekable = S_ISREG(st.st_mode) || S_ISBLK(st.st_mode);
	waitq_init(&n->wq);
	n->watch = (struct hostfd_watch){ .fd = host_fd, .ready = watch_ready };
	f = file_create(&hostfile_ops, &n->in, flags);
	inode_put(&n->in); /* the file holds it; without one this closes host_fd */
	if (!f)
		return -ENFILE;
	f->anon_name = "host";
	*ret = f;
	return 0;
fail:
	host_close(host_fd);
	return err;
}
