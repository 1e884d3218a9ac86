/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mbind(2), set_mempolicy(2), get_mempolicy(2) on a machine of one node: every policy that Linux
 * would accept there has the same effect, none. So policies are checked and not kept:
 * get_mempolicy() tells MPOL_DEFAULT.
 */
#include "sentry/syscalls/mempolicy.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/mempolicy.h>
#include <stdbool.h>

#include "sentry/kernel/cred.h"
#include "sentry/kernel/task.h"
#include "sentry/kernel/uaccess.h"
#include "sentry/mm/mm.h"

#define NODES_WORD 64
#define MODE_FLAGS                                                                                 \
	(MPOL_F_STATIC_NODES | MPOL_F_RELATIVE_NODES |                                             \
	 (1 << 13)) /* 1 << 13: MPOL_F_NUMA_BALANCING */
#define MODE_MAX 6  /* MPOL_WEIGHTED_INTERLEAVE */

/* Linux's get_nodes(): *any tells whether node 0, the only one that may be there, is. */
static int read_nodes(struct task *t, uaddr_t mask, uint64_t maxnode, bool *any)
{
	*any = false;
	if (!mask || maxnode <= 1)
		return 0;
	maxnode--;
	if (maxnode > PAGE_SIZE * 8)
		return -EINVAL;
	for (uint64_t bit = 0; bit < maxnode; bit += NODES_WORD) {
		uint64_t word, n = maxnode - bit;

		if (copy_in(t, mask + bit / 8, &word, sizeof(word)) < 0)
			return -EFAULT;
		if (n < NODES_WORD)
			word &= (1ull << n) - 1;
		if (bit == 0) {
			*any = word & 1;
			word &= ~1ull;
		}
		if (word)
			return -EINVAL;
	}
	return 0;
}

static int check_policy(int mode_and_flags, bool any)
{
	int mode = mode_and_flags & ~MODE_FLAGS, flags = mode_and_flags & MODE_FLAGS;

	if (mode < 0 || mode > MODE_MAX)
		return -EINVAL;
	if ((flags & MPOL_F_STATIC_NODES) && (flags & MPOL_F_RELATIVE_NODES))
		return -EINVAL;
	if ((flags & (1 << 13)) && mode != MPOL_BIND)
		return -EINVAL;
	switch (mode) {
	case MPOL_DEFAULT:
		return any ? -EINVAL : 0;
	case MPOL_LOCAL:
		return any || flags ? -EINVAL : 0;
	case MPOL_PREFERRED:
		return !any && flags ? -EINVAL : 0;
	default:
		return any ? 0 : -EINVAL;
	}
}

int64_t sys_set_mempolicy(struct task *t, const struct sysargs *a)
{
	bool any;
	int rc = read_nodes(t, ARG_PTR(a, 1), ARG_U64(a, 2), &any);

	return rc < 0 ? rc : check_policy(ARG_INT(a, 0), any);
}

int64_t sys_mbind(struct task *t, const struct sysargs *a)
{
	uaddr_t start = ARG_PTR(a, 0), end;
	uint64_t len = ARG_U64(a, 1);
	uint32_t flags = ARG_U32(a, 5);
	bool any;
	int rc = read_nodes(t, ARG_PTR(a, 3), ARG_U64(a, 4), &any);

	if (rc < 0)
		return rc;
	if (flags & ~(uint32_t)(MPOL_MF_STRICT | MPOL_MF_MOVE | MPOL_MF_MOVE_ALL))
		return -EINVAL;
	if ((flags & MPOL_MF_MOVE_ALL) && !cred_has_cap(t->cred, CAP_SYS_NICE))
		return -EPERM;
	if (start % PAGE_SIZE || len > UINT64_MAX - PAGE_SIZE ||
	    __builtin_add_overflow(start, ROUND_UP(len, PAGE_SIZE), &end))
		return -EINVAL;
	if (start == end)
		return 0;
	rc = check_policy(ARG_INT(a, 2), any);
	if (rc < 0)
		return rc;
	return mm_mapped_until(t->mm, start, end) == end ? 0 : -EFAULT;
}

/* Linux's copy_nodes_to_user(). */
static int write_nodes(struct task *t, uaddr_t mask, uint64_t maxnode, uint64_t nodes)
{
	uint64_t n = ROUND_UP(maxnode - 1, NODES_WORD) / 8;

	if (n > sizeof(nodes)) {
		if (n > PAGE_SIZE)
			return -EINVAL;
		if (clear_user(t, mask + sizeof(nodes), n - sizeof(nodes)) < 0)
			return -EFAULT;
		n = sizeof(nodes);
	}
	return copy_out(t, mask, &nodes, n);
}

int64_t sys_get_mempolicy(struct task *t, const struct sysargs *a)
{
	uaddr_t policy = ARG_PTR(a, 0), mask = ARG_PTR(a, 1), addr = ARG_PTR(a, 3);
	uint64_t maxnode = ARG_U64(a, 2), flags = ARG_U64(a, 4);
	int32_t value = MPOL_DEFAULT; /* and node 0 is 0 too */

	if ((mask && maxnode < 1) ||
	    (flags & ~(uint64_t)(MPOL_F_NODE | MPOL_F_ADDR | MPOL_F_MEMS_ALLOWED)))
		return -EINVAL;
	if (flags & MPOL_F_MEMS_ALLOWED) {
		if (flags & (MPOL_F_NODE | MPOL_F_ADDR))
			return -EINVAL;
	} else if (flags & MPOL_F_ADDR) {
		if (mm_prot_at(t->mm, addr) < 0)
			return -EFAULT;
	} else if (addr || (flags & MPOL_F_NODE)) {
		return -EINVAL; /* the node to allocate from next has a meaning with MPOL_INTERLEAVE
		                   only */
	}
	if (policy && copy_out(t, policy, &value, sizeof(value)) < 0)
		return -EFAULT;
	return mask ? write_nodes(t, mask, maxnode, flags & MPOL_F_MEMS_ALLOWED ? 1 : 0) : 0;
}
