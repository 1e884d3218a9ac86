/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Guest memory by process_vm_readv(2), through any living thread of the address space. Contexts leave aspace.ctxs
 * before their thread may end by itself, so the tid is not another process's unless the host killed the thread (its
 * number can come back only after a whole round of the host's pid space, long after the death watch has reported it).
 */
#include <errno.h>
#include <sys/uio.h>

#include "platform/stub/hostcall.h"
#include "platform/unotify/unotify_priv.h"

static ssize_t vm_copy(long nr, pid_t tid, uint64_t addr, void *buf, size_t n)
{
	struct iovec local = { buf, n }, remote = { (void *)addr, n };

	return HOSTCALL(nr, tid, &local, 1, &remote, 1, 0);
}

static ssize_t aspace_copy(struct aspace *as, long nr, uaddr_t addr, void *buf, size_t n)
{
	uint64_t end;
	struct uctx *c;

	if (n == 0)
		return 0;
	if (addr >= GUEST_TASK_SIZE)
		return -EFAULT;
	if (__builtin_add_overflow(addr, (uint64_t)n, &end) || end > GUEST_TASK_SIZE)
		n = GUEST_TASK_SIZE - addr;
	list_for_each_entry(c, &as->ctxs, as_node) {
		ssize_t r = vm_copy(nr, c->tid, addr, buf, n);

		if (r != -ESRCH)
			return r < 0 ? -EFAULT : r;
	}
	return -ESRCH;
}

ssize_t unotify_read(struct aspace *as, uaddr_t addr, void *buf, size_t n)
{
	return aspace_copy(as, SYS_process_vm_readv, addr, buf, n);
}

ssize_t unotify_write(struct aspace *as, uaddr_t addr, const void *buf, size_t n)
{
	return aspace_copy(as, SYS_process_vm_writev, addr, (void *)buf, n);
}

static int exact(ssize_t r, size_t n)
{
	if (r == (ssize_t)n)
		return 0;
	return r == -ESRCH ? -ESRCH : -EFAULT;
}

int mem_peek(pid_t tid, uint64_t addr, void *buf, size_t n)
{
	return exact(vm_copy(SYS_process_vm_readv, tid, addr, buf, n), n);
}

int mem_poke(pid_t tid, uint64_t addr, const void *buf, size_t n)
{
	return exact(vm_copy(SYS_process_vm_writev, tid, addr, (void *)buf, n), n);
}
