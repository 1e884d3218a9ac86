/* SPDX-License-Identifier: Apache-2.0 */
#include "sentry/kernel/pidfd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "sentry/kernel/task.h"
#include "sentry/vfs/fdtable.h"
#include "sentry/vfs/file.h"

struct pidfd {
	struct file file;
	struct tgroup *tg; /* counted */
};

static uint32_t pidfd_poll(struct file *f, struct waitq **q)
{
	struct tgroup *tg = container_of(f, struct pidfd, file)->tg;

	*q = &tg->exit_wq;
	if (tg->reaped)
		return PIDFD_WAKE_REAPED;
	return tg->dead ? PIDFD_WAKE_EXIT : 0;
}

static void pidfd_release(struct file *f)
{
	tgroup_put(container_of(f, struct pidfd, file)->tg);
}

static const struct file_ops pidfd_file_ops = {
	.file_size = sizeof(struct pidfd),
	.poll = pidfd_poll,
	.release = pidfd_release,
};

int pidfd_create(struct tgroup *tg, uint32_t flags, struct file **ret)
{
	struct inode *in = anon_inode_create(S_IRUSR | S_IWUSR);
	struct file *f;

	if (!in)
		return -ENOMEM;
	f = file_create(&pidfd_file_ops, in, O_RDWR | flags);
	inode_put(in);
	if (!f)
		return -ENFILE;
	f->anon_name = "anon_inode:[pidfd]";
	container_of(f, struct pidfd, file)->tg = tgroup_get(tg);
	*ret = f;
	return 0;
}

struct tgroup *pidfd_peek(const struct file *f)
{
	return f->ops == &pidfd_file_ops ? container_of(f, struct pidfd, file)->tg : NULL;
}

int pidfd_tgroup(struct task *t, int fd, struct tgroup **ret, bool *nonblock)
{
	struct tgroup *tg;
	struct file *f;
	int r = fd_get(t, fd, &f);

	if (r < 0)
		return r;
	tg = pidfd_peek(f);
	if (tg) {
		*ret = tgroup_get(tg);
		if (nonblock)
			*nonblock = f->flags & O_NONBLOCK;
	}
	file_put(f);
	return tg ? 0 : -EBADF;
}
