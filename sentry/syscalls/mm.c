/* SPDX-License-Identifier: Apache-2.0 */
#include "sentry/syscalls/mm.h"

#include <errno.h>
#include <linux/mman.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>

#include "sentry/kernel/task.h"
#include "sentry/kernel/uaccess.h"
#include "sentry/mm/mm.h"
#include "sentry/vfs/dentry.h"
#include "sentry/vfs/fdtable.h"
#include "sentry/vfs/file.h"

#define MMAP_KNOWN_FLAGS                                                                           \
	(MAP_SHARED_VALIDATE | MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS | MAP_32BIT |               \
	 MAP_GROWSDOWN | MAP_DENYWRITE | MAP_EXECUTABLE | MAP_LOCKED | MAP_NORESERVE |             \
	 MAP_POPULATE | MAP_NONBLOCK | MAP_STACK | MAP_FIXED_NOREPLACE)

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

/* personality(2) READ_IMPLIES_EXEC; a file on a noexec mount is excepted. */
static int effective_prot(const struct task *t, int prot, const struct file *f)
{
	bool noexec = f && f->mnt && (f->mnt->flags & MNT_NOEXEC);

	return (prot & PROT_READ) && (t->personality & READ_IMPLIES_EXEC) && !noexec
	               ? prot | PROT_EXEC
	               : prot;
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
	args.prot = effective_prot(t, args.prot, args.file);
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
		rc = mm_map(t, &args, task_may_resume(t));
	file_put(args.file);
	return rc;
}

int64_t sys_munmap(struct task *t, const struct sysargs *a)
{
	return mm_unmap(t, ARG_PTR(a, 0), ARG_U64(a, 1), task_may_resume(t));
}

int64_t sys_mprotect(struct task *t, const struct sysargs *a)
{
	return mm_protect(t, ARG_PTR(a, 0), ARG_U64(a, 1),
	                  effective_prot(t, (int)ARG_U64(a, 2), NULL), task_may_resume(t));
}

int64_t sys_brk(struct task *t, const struct sysargs *a)
{
	return mm_brk(t, ARG_PTR(a, 0));
}

int64_t sys_mremap(struct task *t, const struct sysargs *a)
{
	return mm_remap(t, ARG_PTR(a, 0), ARG_U64(a, 1), ARG_U64(a, 2),
	                ARG_U64(a, 3) > UINT32_MAX ? UINT32_MAX : ARG_U32(a, 3), ARG_PTR(a, 4));
}

int64_t sys_remap_file_pages(struct task *t, const struct sysargs *a)
{
	if (ARG_U64(a, 2)) /* prot */
		return -EINVAL;
	return mm_remap_file_pages(t, ARG_PTR(a, 0), ARG_U64(a, 1), ARG_U64(a, 3));
}

int64_t sys_madvise(struct task *t, const struct sysargs *a)
{
	return mm_advise(t, ARG_PTR(a, 0), ARG_U64(a, 1), ARG_INT(a, 2), task_may_resume(t));
}

int64_t sys_msync(struct task *t, const struct sysargs *a)
{
	return mm_sync(t, ARG_PTR(a, 0), ARG_U64(a, 1), ARG_INT(a, 2));
}

/* What is mapped is told to be resident: the host alone knows better. */
int64_t sys_mincore(struct task *t, const struct sysargs *a)
{
	uaddr_t start = ARG_PTR(a, 0), vec = ARG_PTR(a, 2), end, hole;
	uint64_t len = ARG_U64(a, 1);
	uint8_t ones[PAGE_SIZE];

	if (start % PAGE_SIZE)
		return -EINVAL;
	if (start > GUEST_TASK_SIZE || len > GUEST_TASK_SIZE - start)
		return -ENOMEM;
	end = ROUND_UP(start + len, PAGE_SIZE);
	hole = mm_mapped_until(t->mm, start, end);
	memset(ones, 1, sizeof(ones));
	for (uint64_t left = (hole - start) / PAGE_SIZE; left;) {
		uint64_t n = MIN(left, sizeof(ones));

		if (copy_out(t, vec, ones, n) < 0)
			return -EFAULT;
		left -= n;
		vec += n;
	}
	return hole < end ? -ENOMEM : 0;
}

int64_t sys_mlock(struct task *t, const struct sysargs *a)
{
	return mm_lock(t, ARG_PTR(a, 0), ARG_U64(a, 1));
}

int64_t sys_mlock2(struct task *t, const struct sysargs *a)
{
	if (ARG_INT(a, 2) & ~MLOCK_ONFAULT)
		return -EINVAL;
	return mm_lock(t, ARG_PTR(a, 0), ARG_U64(a, 1));
}

int64_t sys_munlock(struct task *t, const struct sysargs *a)
{
	return mm_unlock(t, ARG_PTR(a, 0), ARG_U64(a, 1));
}

int64_t sys_mlockall(struct task *t, const struct sysargs *a)
{
	int flags = ARG_INT(a, 0);

	if (!flags || (flags & ~(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT)) || flags == MCL_ONFAULT)
		return -EINVAL;
	return mm_lock_all(t, flags);
}

int64_t sys_munlockall(struct task *t, const struct sysargs *a)
{
	return mm_lock_all(t, 0);
}

/* As on a processor without protection keys: only the key -1 ("none") exists. */
int64_t sys_pkey_mprotect(struct task *t, const struct sysargs *a)
{
	if (ARG_INT(a, 3) != -1)
		return -EINVAL;
	return mm_protect(t, ARG_PTR(a, 0), ARG_U64(a, 1),
	                  effective_prot(t, (int)ARG_U64(a, 2), NULL), task_may_resume(t));
}

int64_t sys_pkey_alloc(struct task *t, const struct sysargs *a)
{
	/* No flags, and PKEY_DISABLE_ACCESS | PKEY_DISABLE_WRITE as rights. */
	return ARG_U64(a, 0) || (ARG_U64(a, 1) & ~3ull) ? -EINVAL : -ENOSPC;
}

int64_t sys_pkey_free(struct task *t, const struct sysargs *a)
{
	return -EINVAL;
}

int64_t sys_userfaultfd(struct task *t, const struct sysargs *a)
{
	return -EPERM;
}
