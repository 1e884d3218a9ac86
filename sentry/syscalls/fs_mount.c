/* SPDX-License-Identifier: Apache-2.0 */
#include "sentry/syscalls/fs_mount.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>

#include "sentry/kernel/cred.h"
#include "sentry/kernel/task.h"
#include "sentry/kernel/uaccess.h"
#include "sentry/syscalls/pathin.h"

/* The tree of mounts is the policy's: the guest gets what a process without CAP_SYS_ADMIN gets. */
int64_t sys_mount(struct task *t, const struct sysargs *a)
{
	return -EPERM;
}

int64_t sys_umount2(struct task *t, const struct sysargs *a)
{
	if (ARG_INT(a, 1) & ~0xf) /* MNT_FORCE, MNT_DETACH, MNT_EXPIRE, UMOUNT_NOFOLLOW */
		return -EINVAL;
	return -EPERM;
}

int64_t sys_pivot_root(struct task *t, const struct sysargs *a)
{
	return -EPERM;
}

/* No file system here can be exported: what Linux answers for one that cannot. */
int64_t sys_name_to_handle_at(struct task *t, const struct sysargs *a)
{
	int flags = ARG_INT(a, 4), err;
	struct path p;

	if (flags & ~(AT_SYMLINK_FOLLOW | AT_EMPTY_PATH))
		return -EINVAL;
	err = path_walk_user(t, ARG_INT(a, 0), ARG_PTR(a, 1), flags, false, &p);
	if (err)
		return err;
	path_put(&p);
	return -EOPNOTSUPP;
}

int64_t sys_open_by_handle_at(struct task *t, const struct sysargs *a)
{
	uint32_t handle_bytes;

	if (!cred_has_cap(t->cred, CAP_DAC_READ_SEARCH))
		return -EPERM;
	if (copy_in(t, ARG_PTR(a, 1), &handle_bytes, sizeof(handle_bytes)))
		return -EFAULT;
	return handle_bytes == 0 || handle_bytes > 128 ? -EINVAL : -ESTALE;
}
