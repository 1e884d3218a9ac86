/* SPDX-License-Identifier: Apache-2.0 */
#include "sentry/syscalls/memfd.h"

#include <errno.h>
#include <sys/mman.h>

#include "sentry/fs/memfd.h"
#include "sentry/kernel/task.h"
#include "sentry/kernel/uaccess.h"
#include "sentry/syscalls/sysargs.h"
#include "sentry/vfs/fdtable.h"

/* memfd_create(2) */
int64_t sys_memfd_create(struct task *t, const struct sysargs *a)
{
	unsigned flags = ARG_U32(a, 1);
	char name[MEMFD_NAME_MAX + 1];
	struct file *f;
	int64_t r = memfd_check_flags(flags);

	if (r < 0)
		return r;
	r = copy_in_str(t, ARG_PTR(a, 0), name, sizeof(name));
	if (r < 0)
		return r == -ENAMETOOLONG ? -EINVAL : r;
	r = memfd_create_file(t->cred, name, flags, &f);
	return r < 0 ? r : fd_install(t, f, 0, flags & MFD_CLOEXEC);
}
