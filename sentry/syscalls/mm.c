/* SPDX-License-Identifier: Apache-2.0 */
#include "sentry/syscalls/mm.h"

#include <errno.h>
#include <linux/mman.h>
#include <sys/mman.h>

#include "sentry/kernel/task.h"
#include "sentry/mm/mm.h"
#include "sentry/vfs/fdtable.h"
#include "sentry/vfs/file.h"

#define MMAP_KNOWN_FLAGS \
	(MAP_SHARED_VALIDATE | MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS | MAP_32BIT | MAP_GROWSDOWN | MAP_DENYWRITE | \
	 MAP_EXECUTABLE | MAP_LOCKED | MAP_NORESERVE | MAP_POPULATE | MAP_NONBLOCK | MAP_STACK | MAP_FIXED_NOREPLACE)

/* MAP_* to MM_MAP_*, the type apart. */
static unsigned map_flags(int flags)
{
	static const struct {
		int linux_flag;
		unsigned mm_flag;
	} table[] = {
		{ MAP_FIXED, MM_MAP_FIXED },
		{ MAP_FIXED_NOREPLACE, MM_MAP_FIXED | MM_MAP_NOREPLACE },
		{ MAP_GROWSDOWN, MM_MAP_GROWSDOWN },
		{ MAP_NORESERVE, MM_MAP_NORESERVE },
		{ MAP_STACK, MM_MAP_STACK },
		{ MAP_32BIT, MM_MAP_32BIT },
		{ MAP_LOCKED, MM_MAP_LOCKED | MM_MAP_POPULATE },
	};
	unsigned r = 0;

	for (unsigned i = 0; i < ARRAY_SIZE(table); i++) {
		if (flags & table[i].linux_flag)
			r |= table[i].mm_flag;
	}
	if ((flags & (MAP_POPULATE | MAP_NONBLOCK)) == MAP_POPULATE)
		r |= MM_MAP_POPULATE;
	return r;
}

int64_t sys_mmap(struct task *t, const struct sysargs *a)
{
	int flags = ARG_INT(a, 3);
	struct mm_map_args args = {
		.addr = ARG_PTR(a, 0),
		.len = ARG_U64(a, 1),
		.prot = (int)ARG_U64(a, 2),
		.flags = map_flags(flags),
		.offset = ARG_U64(a, 5),
	};
	int64_t rc;

	if (args.offset % PAGE_SIZE)
		return -EINVAL;
	if (!(flags & MAP_ANONYMOUS)) {
		rc = fd_get(t, ARG_INT(a, 4), &args.file);
		if (rc < 0)
			return rc;
	}
	if (flags & MAP_HUGETLB) /* there is no pool of huge pages */
		rc = args.file ? -EINVAL : -ENOMEM;
	else if ((flags & MAP_TYPE) == MAP_SHARED_VALIDATE && (flags & ~MMAP_KNOWN_FLAGS))
		rc = -EOPNOTSUPP;
	else
		rc = 0;
	switch (flags & MAP_TYPE) {
	case MAP_SHARED:
	case MAP_SHARED_VALIDATE:
		args.flags |= MM_MAP_SHARED;
		break;
	case MAP_PRIVATE:
		break;
	default:
		rc = -EINVAL;
	}
	if (rc == 0)
		rc = mm_map(t, &args, t->op.may_resume);
	file_put(args.file);
	return rc;
}

int64_t sys_munmap(struct task *t, const struct sysargs *a)
{
	return mm_unmap(t, ARG_PTR(a, 0), ARG_U64(a, 1), t->op.may_resume);
}

int64_t sys_mprotect(struct task *t, const struct sysargs *a)
{
	return mm_protect(t, ARG_PTR(a, 0), ARG_U64(a, 1), (int)ARG_U64(a, 2), t->op.may_resume);
}

int64_t sys_brk(struct task *t, const struct sysargs *a)
{
	return mm_brk(t, ARG_PTR(a, 0));
}
