/* SPDX-License-Identifier: Apache-2.0 */
#include "sentry/syscalls/fs_open.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/openat2.h>
#include <string.h>

#include "sentry/kernel/task.h"
#include "sentry/kernel/uaccess.h"
#include "sentry/syscalls/pathin.h"
#include "sentry/vfs/fdtable.h"
#include "sentry/vfs/open.h"
#include "sentry/vfs/vfs.h"

#define O_KNOWN                                                                                                        \
	(O_ACCMODE | O_CREAT | O_EXCL | O_NOCTTY | O_TRUNC | O_APPEND | O_NONBLOCK | O_SYNC | O_ASYNC | O_DIRECT |     \
	 0100000 | O_DIRECTORY | O_NOFOLLOW | O_NOATIME | O_CLOEXEC | O_PATH | O_TMPFILE)
#define RESOLVE_KNOWN                                                                                                  \
	(RESOLVE_NO_XDEV | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH | RESOLVE_IN_ROOT |           \
	 RESOLVE_CACHED)

/* @flags and @mode are checked. */
static int64_t do_open(struct task *t, int dirfd, uaddr_t path, uint32_t flags, uint32_t mode, unsigned walk_flags)
{
	struct pathbuf p;
	struct file *f;
	int r;

	if (t->op.restarted && t->op.data) {
		r = open_resume(t, &f);
		return r ? r : fd_install(t, f, 0, flags & O_CLOEXEC);
	}
	r = vfs_open_flags(&flags, &mode);
	if (!r)
		r = path_in(t, path, &p);
	if (r)
		return r;
	/* Without a free descriptor nothing may be created or truncated. */
	r = fd_reserve(t, 0);
	if (r < 0)
		return r;
	r = vfs_open(t, dirfd, p.s, flags, mode, walk_flags, &f);
	return r ? r : fd_install(t, f, 0, flags & O_CLOEXEC);
}

int64_t sys_open(struct task *t, const struct sysargs *a)
{
	return do_open(t, AT_FDCWD, ARG_PTR(a, 0), ARG_U32(a, 1) & O_KNOWN, ARG_U32(a, 2), 0);
}

int64_t sys_openat(struct task *t, const struct sysargs *a)
{
	return do_open(t, ARG_INT(a, 0), ARG_PTR(a, 1), ARG_U32(a, 2) & O_KNOWN, ARG_U32(a, 3), 0);
}

int64_t sys_creat(struct task *t, const struct sysargs *a)
{
	return do_open(t, AT_FDCWD, ARG_PTR(a, 0), O_CREAT | O_WRONLY | O_TRUNC, ARG_U32(a, 1), 0);
}

/* A struct that may be shorter or longer than ours: what we do not know must be zero. Linux: copy_struct_from_user. */
static int copy_in_how(struct task *t, uaddr_t src, uint64_t size, struct open_how *how)
{
	uint8_t more[256];
	int err;

	if (size < sizeof(*how))
		return -EINVAL;
	if (size > PAGE_SIZE)
		return -E2BIG;
	err = copy_in(t, src, how, sizeof(*how));
	for (uint64_t at = sizeof(*how); !err && at < size;) {
		size_t n = (size_t)MIN(size - at, (uint64_t)sizeof(more));

		err = copy_in(t, src + at, more, n);
		for (size_t i = 0; !err && i < n; i++)
			err = more[i] ? -E2BIG : 0;
		at += n;
	}
	return err;
}

static int check_how(const struct open_how *how)
{
	bool will_create = how->flags & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY));

	if ((how->flags & ~(uint64_t)O_KNOWN) || (how->resolve & ~(uint64_t)RESOLVE_KNOWN))
		return -EINVAL;
	if ((how->resolve & RESOLVE_BENEATH) && (how->resolve & RESOLVE_IN_ROOT))
		return -EINVAL;
	if (will_create ? how->mode & ~07777ull : how->mode)
		return -EINVAL;
	if ((how->flags & O_PATH) && (how->flags & ~(uint64_t)(O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)))
		return -EINVAL;
	/* openat2(2): EAGAIN is always a right answer, and the caller must be ready for it. */
	if (how->resolve & RESOLVE_CACHED)
		return -EAGAIN;
	return 0;
}

int64_t sys_openat2(struct task *t, const struct sysargs *a)
{
	struct open_how how;
	unsigned wf = 0;
	int err = copy_in_how(t, ARG_PTR(a, 2), ARG_U64(a, 3), &how);

	if (!err)
		err = check_how(&how);
	if (err)
		return err;
	if (how.resolve & RESOLVE_NO_XDEV)
		wf |= WALK_NO_XDEV;
	if (how.resolve & RESOLVE_NO_MAGICLINKS)
		wf |= WALK_NO_MAGIC;
	if (how.resolve & RESOLVE_NO_SYMLINKS)
		wf |= WALK_NO_SYMLINK;
	if (how.resolve & RESOLVE_BENEATH)
		wf |= WALK_BENEATH;
	if (how.resolve & RESOLVE_IN_ROOT)
		wf |= WALK_IN_ROOT;
	return do_open(t, ARG_INT(a, 0), ARG_PTR(a, 1), (uint32_t)how.flags, (uint32_t)how.mode, wf);
}

int64_t sys_close(struct task *t, const struct sysargs *a)
{
	return fd_close(t, ARG_INT(a, 0));
}

int64_t sys_close_range(struct task *t, const struct sysargs *a)
{
	uint32_t first = ARG_U32(a, 0), last = ARG_U32(a, 1), flags = ARG_U32(a, 2);
	int err;

	if ((flags & ~(CLOSE_RANGE_UNSHARE | CLOSE_RANGE_CLOEXEC)) || first > last)
		return -EINVAL;
	if (flags & CLOSE_RANGE_UNSHARE) {
		err = fd_unshare(t);
		if (err)
			return err;
	}
	return fd_close_range(t, first, last, flags & CLOSE_RANGE_CLOEXEC);
}
