/* SPDX-License-Identifier: Apache-2.0 */
#include "platform/stub/mem.h"

#include <errno.h>
#include <sys/uio.h>

#include "platform/platform.h"
#include "platform/stub/hostcall.h"

int mem_clip(uint64_t addr, size_t *n)
{
	uint64_t end;

	if (addr >= GUEST_TASK_SIZE)
		return -EFAULT;
	if (__builtin_add_overflow(addr, (uint64_t)*n, &end) || end > GUEST_TASK_SIZE)
		*n = GUEST_TASK_SIZE - addr;
	return 0;
}

static ssize_t vm_copy(long nr, pid_t tid, uint64_t addr, void *buf, size_t n)
{
	struct iovec local = { buf, n }, remote = { (void *)addr, n };
	ssize_t r = HOSTCALL(nr, tid, &local, 1, &remote, 1, 0);

	return r < 0 && r != -ESRCH ? -EFAULT : r;
}

ssize_t mem_read(pid_t tid, uint64_t addr, void *buf, size_t n)
{
	return vm_copy(SYS_process_vm_readv, tid, addr, buf, n);
}

ssize_t mem_write(pid_t tid, uint64_t addr, const void *buf, size_t n)
{
	return vm_copy(SYS_process_vm_writev, tid, addr, (void *)buf, n);
}

static int exact(ssize_t r, size_t n)
{
	if (r == (ssize_t)n)
		return 0;
	return r == -ESRCH ? -ESRCH : -EFAULT;
}

int mem_peek(pid_t tid, uint64_t addr, void *buf, size_t n)
{
	return exact(mem_read(tid, addr, buf, n), n);
}

int mem_poke(pid_t tid, uint64_t addr, const void *buf, size_t n)
{
	return exact(mem_write(tid, addr, buf, n), n);
}
