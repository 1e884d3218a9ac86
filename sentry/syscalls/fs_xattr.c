/* SPDX-License-Identifier: Apache-2.0 */
#include "sentry/syscalls/fs_xattr.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/xattr.h>
#include <stdbool.h>

#include "sentry/kernel/task.h"
#include "sentry/kernel/uaccess.h"
#include "sentry/syscalls/pathin.h"
#include "sentry/vfs/fdtable.h"
#include "sentry/vfs/file.h"
#include "sentry/vfs/xattr.h"

/* Which of the three forms a call has. */
enum xattr_on { ON_PATH, ON_LINK, ON_FD };

struct xattr_name {
	char s[XATTR_NAME_MAX_LINUX + 1];
};

/* Values and lists pass through here. */
static char value_buf[XATTR_SIZE_MAX_LINUX];

static int place(struct task *t, const struct sysargs *a, enum xattr_on on, struct path *p)
{
	struct file *f;
	int err;

	if (on != ON_FD)
		return path_walk_user(t, AT_FDCWD, ARG_PTR(a, 0), 0, on == ON_PATH, p);
	err = fd_get(t, ARG_INT(a, 0), &f);
	if (err)
		return err;
	err = file_place(f, &p->dentry, &p->mnt);
	file_put(f);
	return err;
}

static int name_in(struct task *t, uaddr_t src, struct xattr_name *name)
{
	ssize_t n = copy_in_str(t, src, name->s, sizeof(name->s));

	if (n == 0 || n == -ENAMETOOLONG)
		return -ERANGE;
	return n < 0 ? (int)n : 0;
}

/* The answer of a get or list: @n bytes of value_buf for a guest buffer of @size. */
static int64_t value_out(struct task *t, uaddr_t dst, uint64_t size, ssize_t n)
{
	if (n == -ERANGE && size >= XATTR_SIZE_MAX_LINUX)
		return -E2BIG;
	if (n > 0 && size && copy_out(t, dst, value_buf, (size_t)n))
		return -EFAULT;
	return n;
}

static int64_t do_get(struct task *t, const struct sysargs *a, enum xattr_on on)
{
	uint64_t size = ARG_U64(a, 3);
	struct xattr_name name;
	struct path p;
	ssize_t n;
	int err = place(t, a, on, &p);

	if (err)
		return err;
	n = name_in(t, ARG_PTR(a, 1), &name);
	if (!n)
		n = vfs_getxattr(t, &p, name.s, value_buf, (size_t)MIN(size, (uint64_t)sizeof(value_buf)));
	path_put(&p);
	return value_out(t, ARG_PTR(a, 2), size, n);
}

int64_t sys_getxattr(struct task *t, const struct sysargs *a)
{
	return do_get(t, a, ON_PATH);
}

int64_t sys_lgetxattr(struct task *t, const struct sysargs *a)
{
	return do_get(t, a, ON_LINK);
}

int64_t sys_fgetxattr(struct task *t, const struct sysargs *a)
{
	return do_get(t, a, ON_FD);
}

static int64_t do_set(struct task *t, const struct sysargs *a, enum xattr_on on)
{
	uint64_t size = ARG_U64(a, 3);
	int flags = ARG_INT(a, 4), err;
	struct xattr_name name;
	struct path p;

	if (flags & ~(XATTR_CREATE | XATTR_REPLACE))
		return -EINVAL;
	err = name_in(t, ARG_PTR(a, 1), &name);
	if (!err && size > XATTR_SIZE_MAX_LINUX)
		err = -E2BIG;
	if (!err)
		err = copy_in(t, ARG_PTR(a, 2), value_buf, (size_t)size);
	if (!err)
		err = place(t, a, on, &p);
	if (err)
		return err;
	err = vfs_setxattr(t, &p, name.s, value_buf, (size_t)size, flags);
	path_put(&p);
	return err;
}

int64_t sys_setxattr(struct task *t, const struct sysargs *a)
{
	return do_set(t, a, ON_PATH);
}

int64_t sys_lsetxattr(struct task *t, const struct sysargs *a)
{
	return do_set(t, a, ON_LINK);
}

int64_t sys_fsetxattr(struct task *t, const struct sysargs *a)
{
	return do_set(t, a, ON_FD);
}

static int64_t do_list(struct task *t, const struct sysargs *a, enum xattr_on on)
{
	uint64_t size = ARG_U64(a, 2);
	struct path p;
	ssize_t n;
	int err = place(t, a, on, &p);

	if (err)
		return err;
	n = vfs_listxattr(t, &p, value_buf, (size_t)MIN(size, (uint64_t)sizeof(value_buf)));
	path_put(&p);
	return value_out(t, ARG_PTR(a, 1), size, n);
}

int64_t sys_listxattr(struct task *t, const struct sysargs *a)
{
	return do_list(t, a, ON_PATH);
}

int64_t sys_llistxattr(struct task *t, const struct sysargs *a)
{
	return do_list(t, a, ON_LINK);
}

int64_t sys_flistxattr(struct task *t, const struct sysargs *a)
{
	return do_list(t, a, ON_FD);
}

static int64_t do_remove(struct task *t, const struct sysargs *a, enum xattr_on on)
{
	struct xattr_name name;
	struct path p;
	int err = name_in(t, ARG_PTR(a, 1), &name);

	if (!err)
		err = place(t, a, on, &p);
	if (err)
		return err;
	err = vfs_removexattr(t, &p, name.s);
	path_put(&p);
	return err;
}

int64_t sys_removexattr(struct task *t, const struct sysargs *a)
{
	return do_remove(t, a, ON_PATH);
}

int64_t sys_lremovexattr(struct task *t, const struct sysargs *a)
{
	return do_remove(t, a, ON_LINK);
}

int64_t sys_fremovexattr(struct task *t, const struct sysargs *a)
{
	return do_remove(t, a, ON_FD);
}
