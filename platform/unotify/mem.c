/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Guest memory by process_vm_readv(2), through any living thread of the address space. Contexts leave aspace.ctxs
 * before their thread may end by itself, so the tid is not another process's unless the host killed the thread (its
 * number can come back only after a whole round of the host's pid space, long after the death watch has reported it).
 */
#include <errno.h>

#include "platform/stub/hostcall.h"
#include "platform/unotify/unotify_priv.h"

ssize_t unotify_read(struct aspace *as, uaddr_t addr, void *buf, size_t n)
{
	struct uctx *c;

	if (n == 0)
		return 0;
	if (mem_clip(addr, &n) < 0)
		return -EFAULT;
	list_for_each_entry(c, &as->ctxs, as_node) {
		ssize_t r = mem_read(c->tid, addr, buf, n);

		if (r != -ESRCH)
			return r;
	}
	return -ESRCH;
}

ssize_t unotify_write(struct aspace *as, uaddr_t addr, const void *buf, size_t n)
{
	struct uctx *c;

	if (n == 0)
		return 0;
	if (mem_clip(addr, &n) < 0)
		return -EFAULT;
	list_for_each_entry(c, &as->ctxs, as_node) {
		ssize_t r = mem_write(c->tid, addr, buf, n);

		if (r != -ESRCH)
			return r;
	}
	return -ESRCH;
}
