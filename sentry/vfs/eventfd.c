/* SPDX-License-Identifier: Apache-2.0 */
#include "sentry/vfs/eventfd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>

#include "sentry/kernel/waitq.h"
#include "sentry/vfs/file.h"
#include "sentry/vfs/uio.h"

struct eventfd {
	struct file file;
	struct waitq wq;
	uint64_t count;
	bool semaphore;
};

static struct eventfd *eventfd_of(struct file *f)
{
	return container_of(f, struct eventfd, file);
}

static ssize_t eventfd_read(struct file *f, struct uio *u, uint64_t *pos)
{
	struct eventfd *e = eventfd_of(f);
	uint64_t v;
	ssize_t n;

	if (u->resid < sizeof(v))
		return -EINVAL;
	if (!e->count)
		return -EAGAIN;
	v = e->semaphore ? 1 : e->count;
	n = uio_copy_to(u, &v, sizeof(v));
	if (n != sizeof(v))
		return -EFAULT;
	e->count -= v;
	waitq_wake(&e->wq, POLLOUT);
	return n;
}

static ssize_t eventfd_write(struct file *f, struct uio *u, uint64_t *pos)
{
	struct eventfd *e = eventfd_of(f);
	uint64_t v;

	if (u->resid != sizeof(v)) /* since Linux 6.9 */
		return -EINVAL;
	if (uio_copy_from(u, &v, sizeof(v)) != sizeof(v))
		return -EFAULT;
	if (v == UINT64_MAX)
		return -EINVAL;
	if (v > UINT64_MAX - 1 - e->count) {
		uio_revert(u, sizeof(v));
		return -EAGAIN;
	}
	e->count += v;
	if (v)
		waitq_wake(&e->wq, POLLIN);
	return sizeof(v);
}

static uint32_t eventfd_poll(struct file *f, struct waitq **q)
{
	struct eventfd *e = eventfd_of(f);

	*q = &e->wq;
	return (e->count ? POLLIN : 0) | (e->count < UINT64_MAX - 1 ? POLLOUT : 0);
}

static void eventfd_release(struct file *f)
{
	waitq_fini(&eventfd_of(f)->wq);
}

static const struct file_ops eventfd_file_ops = {
	.file_size = sizeof(struct eventfd),
	.read = eventfd_read,
	.write = eventfd_write,
	.poll = eventfd_poll,
	.release = eventfd_release,
};

int eventfd_create(uint32_t initial, bool semaphore, uint32_t flags, struct file **ret)
{
	struct inode *in = anon_inode_create(0600);
	struct file *f;
	struct eventfd *e;

	if (!in)
		return -ENOMEM;
	f = file_create(&eventfd_file_ops, in, O_RDWR | (flags & O_NONBLOCK));
	inode_put(in);
	if (!f)
		return -ENFILE;
	e = eventfd_of(f);
	waitq_init(&e->wq);
	e->count = initial;
	e->semaphore = semaphore;
	f->anon_name = "anon_inode:[eventfd]";
	*ret = f;
	return 0;
}
