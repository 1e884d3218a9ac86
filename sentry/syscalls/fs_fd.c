/* SPDX-License-Identifier: Apache-2.0 */
#include "sentry/syscalls/fs_fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "sentry/fs/memfd.h"
#include "sentry/kernel/sig.h"
#include "sentry/kernel/task.h"
#include "sentry/kernel/uaccess.h"
#include "sentry/vfs/fdtable.h"
#include "sentry/vfs/locks.h"
#include "sentry/vfs/perm.h"
#include "sentry/vfs/pipe.h"
#include "sentry/vfs/vfs.h"

#define SETFL_MASK ((uint32_t)(O_APPEND | O_NONBLOCK | O_DIRECT | O_NOATIME | O_ASYNC))

int64_t sys_dup(struct task *t, const struct sysargs *a)
{
	struct file *f;
	int err = fd_get_opath(t, ARG_INT(a, 0), &f);

	return err ? err : fd_install(t, f, 0, false);
}

static int64_t do_dup(struct task *t, int old, int new, bool cloexec)
{
	struct file *f;
	int err = new < 0 || (uint64_t)new >= task_rlimit(t, RLIMIT_NOFILE) ? -EBADF : fd_get_opath(t, old, &f);

	return err ? err : fd_install_at(t, f, new, cloexec);
}

int64_t sys_dup2(struct task *t, const struct sysargs *a)
{
	struct file *f;
	int fd = ARG_INT(a, 0), err;

	if (fd != ARG_INT(a, 1))
		return do_dup(t, fd, ARG_INT(a, 1), false);
	err = fd_get_opath(t, fd, &f);
	if (err)
		return err;
	file_put(f);
	return fd;
}

int64_t sys_dup3(struct task *t, const struct sysargs *a)
{
	if ((ARG_INT(a, 2) & ~O_CLOEXEC) || ARG_INT(a, 0) == ARG_INT(a, 1))
		return -EINVAL;
	return do_dup(t, ARG_INT(a, 0), ARG_INT(a, 1), ARG_INT(a, 2) & O_CLOEXEC);
}

/* Consumes @f. */
static int64_t fcntl_dup(struct task *t, struct file *f, uint64_t min, bool cloexec)
{
	if (min >= task_rlimit(t, RLIMIT_NOFILE) || min > INT32_MAX) {
		file_put(f);
		return -EINVAL;
	}
	return fd_install(t, f, (int)min, cloexec);
}

static int64_t fcntl_setfl(struct task *t, struct file *f, uint32_t flags)
{
	if ((flags & ~f->flags & O_NOATIME) && !inode_owner_or_cap(t->cred, f->inode))
		return -EPERM;
	f->flags = (f->flags & ~SETFL_MASK) | (flags & SETFL_MASK);
	return 0;
}

struct owner_ex {
	int32_t type, pid;
};

static int64_t fcntl_setown_ex(struct task *t, struct file *f, uaddr_t arg)
{
	struct owner_ex ex;

	if (copy_in(t, arg, &ex, sizeof(ex)))
		return -EFAULT;
	if (ex.type != F_OWNER_TID && ex.type != F_OWNER_PID && ex.type != F_OWNER_PGRP)
		return -EINVAL;
	if (ex.pid < 0)
		return -ESRCH;
	f->owner_pid = ex.type == F_OWNER_PGRP ? -ex.pid : ex.pid;
	return 0;
}

static int64_t fcntl_getown_ex(struct task *t, struct file *f, uaddr_t arg)
{
	bool pgrp = f->owner_pid < 0;
	struct owner_ex ex = {
		.type = pgrp ? F_OWNER_PGRP : F_OWNER_PID,
		.pid = pgrp ? -f->owner_pid : f->owner_pid,
	};

	return copy_out(t, arg, &ex, sizeof(ex));
}

static int64_t fcntl_owner(struct task *t, struct file *f, int cmd, uint64_t arg)
{
	switch (cmd) {
	case F_SETOWN:
		if ((int32_t)arg == INT32_MIN)
			return -EINVAL;
		f->owner_pid = (int32_t)arg;
		return 0;
	case F_GETOWN:
		return f->owner_pid;
	case F_SETOWN_EX:
		return fcntl_setown_ex(t, f, arg);
	case F_GETOWN_EX:
		return fcntl_getown_ex(t, f, arg);
	case F_SETSIG:
		if (arg > NSIG_LINUX)
			return -EINVAL;
		f->owner_sig = (int)arg;
		return 0;
	default: /* F_GETSIG */
		return f->owner_sig;
	}
}

/* Commands that an O_PATH descriptor does not take. */
static int64_t fcntl_file(struct task *t, struct file *f, int cmd, uint64_t arg)
{
	switch (cmd) {
	case F_SETFL:
		return fcntl_setfl(t, f, (uint32_t)arg);
	case F_GETLK:
	case F_SETLK:
	case F_SETLKW:
	case F_OFD_GETLK:
	case F_OFD_SETLK:
	case F_OFD_SETLKW:
		return locks_fcntl(t, f, cmd, arg);
	case F_SETOWN:
	case F_GETOWN:
	case F_SETOWN_EX:
	case F_GETOWN_EX:
	case F_SETSIG:
	case F_GETSIG:
		return fcntl_owner(t, f, cmd, arg);
	case F_GETPIPE_SZ:
	case F_SETPIPE_SZ:
		return pipe_fcntl(t, f, cmd, arg);
	case F_ADD_SEALS:
	case F_GET_SEALS:
		return memfd_fcntl(t, f, cmd, arg);
	case F_GETLEASE:
		return F_UNLCK;
	default: /* F_SETLEASE, F_NOTIFY: as a kernel without CONFIG_FILE_LOCKING's leases and dnotify */
		return -EINVAL;
	}
}

int64_t sys_fcntl(struct task *t, const struct sysargs *a)
{
	int fd = ARG_INT(a, 0), cmd = ARG_INT(a, 1);
	uint64_t arg = ARG_U64(a, 2);
	struct file *f;
	int64_t r = fd_get_opath(t, fd, &f);

	if (r)
		return r;
	switch (cmd) {
	case F_DUPFD:
		return fcntl_dup(t, f, arg, false);
	case F_DUPFD_CLOEXEC:
		return fcntl_dup(t, f, arg, true);
	case F_GETFD:
		r = fd_get_flags(t->fdt, fd);
		break;
	case F_SETFD:
		r = fd_set_flags(t->fdt, fd, (int)arg);
		break;
	case F_GETFL:
		r = (int64_t)f->flags;
		break;
	default:
		r = f->flags & FILE_OPATH ? -EBADF : fcntl_file(t, f, cmd, arg);
		break;
	}
	file_put(f);
	return r;
}

/* FIONBIO, FIOASYNC: an int that turns a flag on or off. */
static int64_t ioctl_flag(struct task *t, struct file *f, uaddr_t arg, uint32_t flag)
{
	int on;

	if (copy_in(t, arg, &on, sizeof(on)))
		return -EFAULT;
	f->flags = on ? f->flags | flag : f->flags & ~flag;
	return 0;
}

static int64_t ioctl_qsize(struct task *t, struct file *f, uaddr_t arg)
{
	uint32_t mode = f->inode->mode;

	if (!S_ISREG(mode) && !S_ISDIR(mode) && !S_ISLNK(mode))
		return -ENOTTY;
	return copy_out(t, arg, &f->inode->size, sizeof(f->inode->size));
}

static int64_t ioctl_regular(struct task *t, struct file *f, uint32_t cmd, uaddr_t arg)
{
	int left;

	switch (cmd) {
	case FIONREAD: {
		int64_t n = (int64_t)(f->inode->size - f->pos);

		left = (int)n;
		return copy_out(t, arg, &left, sizeof(left));
	}
	case FICLONE:
	case FICLONERANGE:
	case FIDEDUPERANGE:
	case FS_IOC_FIEMAP:
		return -EOPNOTSUPP;
	default:
		return -ENOTTY;
	}
}

int64_t sys_ioctl(struct task *t, const struct sysargs *a)
{
	uint32_t cmd = ARG_U32(a, 1);
	uint64_t arg = ARG_U64(a, 2);
	struct file *f;
	int64_t r = fd_get(t, ARG_INT(a, 0), &f);

	if (r)
		return r;
	switch (cmd) {
	case FIOCLEX:
		r = fd_set_flags(t->fdt, ARG_INT(a, 0), FD_CLOEXEC);
		break;
	case FIONCLEX:
		r = fd_set_flags(t->fdt, ARG_INT(a, 0), 0);
		break;
	case FIONBIO:
		r = ioctl_flag(t, f, arg, O_NONBLOCK);
		break;
	case FIOASYNC:
		r = ioctl_flag(t, f, arg, O_ASYNC);
		break;
	case FIOQSIZE:
		r = ioctl_qsize(t, f, arg);
		break;
	default:
		r = f->ops && f->ops->ioctl ? f->ops->ioctl(f, t, cmd, arg) : -ENOTTY;
		if (r == -ENOTTY && S_ISREG(f->inode->mode))
			r = ioctl_regular(t, f, cmd, arg);
		break;
	}
	file_put(f);
	return r;
}

int64_t sys_flock(struct task *t, const struct sysargs *a)
{
	struct file *f;
	int64_t r = fd_get(t, ARG_INT(a, 0), &f);

	if (r)
		return r;
	r = locks_flock(t, f, ARG_INT(a, 1));
	file_put(f);
	return r;
}
