/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <sys/eventfd.h>

#include "sentry/kernel/task.h"
#include "sentry/kernel/uaccess.h"
#include "sentry/syscalls/poll.h"
#include "sentry/vfs/eventfd.h"
#include "sentry/vfs/fdtable.h"
#include "sentry/vfs/file.h"
#include "sentry/vfs/pipe.h"

static int64_t do_pipe(struct task *t, uaddr_t out, int flags)
{
	struct file *rd, *wr;
	int fds[2], err;

	if (flags & ~(O_CLOEXEC | O_NONBLOCK))
		return -EINVAL; /* O_DIRECT: packet mode is not there */
	err = pipe_create((uint32_t)flags & O_NONBLOCK, &rd, &wr);
	if (err)
		return err;
	fds[0] = fd_install(t, rd, 0, flags & O_CLOEXEC);
	if (fds[0] < 0) {
		file_put(wr);
		return fds[0];
	}
	fds[1] = fd_install(t, wr, 0, flags & O_CLOEXEC);
	err = fds[1];
	if (fds[1] >= 0) {
		err = copy_out(t, out, fds, sizeof(fds));
		if (!err)
			return 0;
		DISCARD(fd_close(t, fds[1])); /* our own: cannot fail */
	}
	DISCARD(fd_close(t, fds[0]));
	return err;
}

int64_t sys_pipe(struct task *t, const struct sysargs *a)
{
	return do_pipe(t, ARG_PTR(a, 0), 0);
}

int64_t sys_pipe2(struct task *t, const struct sysargs *a)
{
	return do_pipe(t, ARG_PTR(a, 0), ARG_INT(a, 1));
}

static int64_t do_eventfd(struct task *t, uint32_t initial, int flags)
{
	struct file *f;
	int err;

	if (flags & ~(EFD_SEMAPHORE | EFD_CLOEXEC | EFD_NONBLOCK))
		return -EINVAL;
	err = eventfd_create(initial, flags & EFD_SEMAPHORE, (uint32_t)flags & O_NONBLOCK, &f);
	return err ? err : fd_install(t, f, 0, flags & EFD_CLOEXEC);
}

int64_t sys_eventfd(struct task *t, const struct sysargs *a)
{
	return do_eventfd(t, ARG_U32(a, 0), 0);
}

int64_t sys_eventfd2(struct task *t, const struct sysargs *a)
{
	return do_eventfd(t, ARG_U32(a, 0), ARG_INT(a, 1));
}
