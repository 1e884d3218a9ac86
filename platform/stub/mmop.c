/* SPDX-License-Identifier: Apache-2.0 */
#include "platform/stub/mmop.h"

#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>

bool mmop_range_ok(uaddr_t addr, uint64_t len)
{
	uint64_t end;

	if (len == 0 || ((addr | len) & (PAGE_SIZE - 1)) || __builtin_add_overflow(addr, len, &end))
		return false;
	return end <= GUEST_TASK_SIZE && (end <= PLATFORM_RESERVED_START || addr >= PLATFORM_RESERVED_END);
}

bool mmop_ok(const struct aspace_op *op)
{
	/* A remap of length 0 duplicates shared memory, as mremap(2) does. */
	bool dup = op->op == ASPACE_REMAP && op->len == 0;

	if (!mmop_range_ok(op->addr, dup ? PAGE_SIZE : op->len) || (op->prot & ~(PROT_READ | PROT_WRITE | PROT_EXEC)))
		return false;
	switch (op->op) {
	case ASPACE_MAP:
		return op->fd < 0 || !(op->offset & (PAGE_SIZE - 1));
	case ASPACE_REMAP:
		return mmop_range_ok(op->new_addr, op->new_len);
	case ASPACE_UNMAP:
	case ASPACE_PROTECT:
	case ASPACE_ADVISE:
		return true;
	}
	return false;
}

static uint64_t map_flags(const struct aspace_op *op)
{
	return MAP_FIXED | (op->flags & ASPACE_SHARED ? MAP_SHARED : MAP_PRIVATE) | (op->fd < 0 ? MAP_ANONYMOUS : 0) |
	       (op->flags & ASPACE_NORESERVE ? MAP_NORESERVE : 0) | (op->flags & ASPACE_LOCKED ? MAP_POPULATE : 0);
}

struct order mmop_order(const struct aspace_op *op, int fd)
{
	switch (op->op) {
	case ASPACE_MAP:
		return (struct order){ SYS_mmap, { op->addr, op->len, (uint64_t)op->prot, map_flags(op),
						   (uint64_t)(int64_t)fd, fd < 0 ? 0 : op->offset } };
	case ASPACE_UNMAP:
		return (struct order){ SYS_munmap, { op->addr, op->len } };
	case ASPACE_PROTECT:
		return (struct order){ SYS_mprotect, { op->addr, op->len, (uint64_t)op->prot } };
	case ASPACE_REMAP:
		if (op->new_addr == op->addr) /* grows in place, or not at all */
			return (struct order){ SYS_mremap, { op->addr, op->len, op->new_len, 0, 0 } };
		return (struct order){ SYS_mremap,
				       { op->addr, op->len, op->new_len,
					 MREMAP_MAYMOVE | MREMAP_FIXED |
						 (op->flags & ASPACE_DONTUNMAP ? MREMAP_DONTUNMAP : 0),
					 op->new_addr } };
	case ASPACE_ADVISE:
		break;
	}
	return (struct order){ SYS_madvise, { op->addr, op->len, (uint64_t)op->advice } };
}
