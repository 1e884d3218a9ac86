/* SPDX-License-Identifier: Apache-2.0 */
#include "sentry/syscalls/futex.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/futex.h>
#include <time.h>

#include "sentry/abi/time.h"
#include "sentry/kernel/clock.h"
#include "sentry/kernel/cred.h"
#include "sentry/kernel/futex.h"
#include "sentry/kernel/task.h"
#include "sentry/kernel/timer.h"
#include "sentry/kernel/uaccess.h"

#ifndef FUTEX_LOCK_PI2
#define FUTEX_LOCK_PI2 13
#endif
#define WAITV_SIZE_U32     2u
#define WAITV_PRIVATE      128u
#define ROBUST_HEAD_SIZE   24u

/* struct futex_waitv */
struct linux_futex_waitv {
	uint64_t val, uaddr;
	uint32_t flags, reserved;
};
static_assert(sizeof(struct linux_futex_waitv) == 24, "struct futex_waitv");

/* The fourth argument of the operations that wait: a time on CLOCK_MONOTONIC in *deadline. */
static int get_deadline(struct task *t, uaddr_t uts, int cmd, bool real_clock, uint64_t *deadline)
{
	struct linux_timespec ts;
	uint64_t ns;

	*deadline = UINT64_MAX;
	if (!uts)
		return 0;
	if (copy_in(t, uts, &ts, sizeof(ts)) < 0)
		return -EFAULT;
	if (timespec_to_ns(&ts, &ns) < 0)
		return -EINVAL;
	if (cmd == FUTEX_WAIT)
		*deadline = ns_add_sat(clock_mono_ns(), ns);
	else
		*deadline = clock_to_mono(real_clock ? CLOCK_REALTIME : CLOCK_MONOTONIC, ns);
	return 0;
}

static int64_t wait_call(struct task *t, const struct sysargs *a, int cmd, bool shared,
			 uint64_t deadline)
{
	const struct futex_wait_arg arg = {
		.addr = ARG_PTR(a, 0),
		.val = ARG_U32(a, 2),
		.bitset = cmd == FUTEX_WAIT ? FUTEX_BITSET_MATCH_ANY : ARG_U32(a, 5),
		.shared = shared,
	};

	return futex_wait(t, &arg, deadline);
}

static int64_t requeue_call(struct task *t, const struct sysargs *a, int cmd, bool shared)
{
	const struct futex_requeue_arg arg = {
		.from = ARG_PTR(a, 0),
		.to = ARG_PTR(a, 4),
		.n_wake = ARG_INT(a, 2),
		.n_requeue = ARG_INT(a, 3),
		.shared = shared,
		.compare = cmd == FUTEX_CMP_REQUEUE,
		.val = ARG_U32(a, 5),
	};

	return futex_requeue(t, &arg);
}

int64_t sys_futex(struct task *t, const struct sysargs *a)
{
	int op = ARG_INT(a, 1), cmd = op & FUTEX_CMD_MASK;
	bool shared = !(op & FUTEX_PRIVATE_FLAG), real_clock = op & FUTEX_CLOCK_REALTIME;
	uint64_t deadline = UINT64_MAX;
	int r;

	if (cmd == FUTEX_WAIT || cmd == FUTEX_WAIT_BITSET || cmd == FUTEX_LOCK_PI ||
	    cmd == FUTEX_LOCK_PI2) {
		r = get_deadline(t, ARG_PTR(a, 3), cmd, real_clock || cmd == FUTEX_LOCK_PI,
				 &deadline);
		if (r < 0)
			return r;
	}
	if (real_clock && cmd != FUTEX_WAIT_BITSET && cmd != FUTEX_LOCK_PI2)
		return -ENOSYS;
	switch (cmd) {
	case FUTEX_WAIT:
	case FUTEX_WAIT_BITSET:
		return wait_call(t, a, cmd, shared, deadline);
	case FUTEX_WAKE:
		return futex_wake_bitset(t, ARG_PTR(a, 0), shared, ARG_INT(a, 2),
					 FUTEX_BITSET_MATCH_ANY);
	case FUTEX_WAKE_BITSET:
		return futex_wake_bitset(t, ARG_PTR(a, 0), shared, ARG_INT(a, 2), ARG_U32(a, 5));
	case FUTEX_REQUEUE:
	case FUTEX_CMP_REQUEUE:
		return requeue_call(t, a, cmd, shared);
	case FUTEX_WAKE_OP:
		return futex_wake_op(t, ARG_PTR(a, 0), ARG_PTR(a, 4), shared, ARG_INT(a, 2),
				     ARG_INT(a, 3), ARG_U32(a, 5));
	case FUTEX_LOCK_PI:
	case FUTEX_LOCK_PI2:
		return futex_lock_pi(t, ARG_PTR(a, 0), shared, false, deadline);
	case FUTEX_TRYLOCK_PI:
		return futex_lock_pi(t, ARG_PTR(a, 0), shared, true, UINT64_MAX);
	case FUTEX_UNLOCK_PI:
		return futex_unlock_pi(t, ARG_PTR(a, 0), shared);
	default:
		return -ENOSYS;
	}
}

static int waitv_deadline(struct task *t, uaddr_t uts, int clock, uint64_t *deadline)
{
	if (!uts) {
		*deadline = UINT64_MAX;
		return 0;
	}
	if (clock != CLOCK_MONOTONIC && clock != CLOCK_REALTIME)
		return -EINVAL;
	return get_deadline(t, uts, FUTEX_WAIT_BITSET, clock == CLOCK_REALTIME, deadline);
}

int64_t sys_futex_waitv(struct task *t, const struct sysargs *a)
{
	struct linux_futex_waitv in[FUTEX_WAITV_MAX_WORDS];
	struct futex_wait_arg args[FUTEX_WAITV_MAX_WORDS];
	unsigned n = ARG_U32(a, 1);
	uint64_t deadline;
	int r;

	if (ARG_U32(a, 2) || !n || n > FUTEX_WAITV_MAX_WORDS || !ARG_PTR(a, 0))
		return -EINVAL;
	r = waitv_deadline(t, ARG_PTR(a, 3), ARG_INT(a, 4), &deadline);
	if (r < 0)
		return r;
	if (copy_in(t, ARG_PTR(a, 0), in, n * sizeof(in[0])) < 0)
		return -EFAULT;
	for (unsigned i = 0; i < n; i++) {
		if ((in[i].flags & ~WAITV_PRIVATE) != WAITV_SIZE_U32 || in[i].reserved)
			return -EINVAL;
		args[i] = (struct futex_wait_arg){
			.addr = in[i].uaddr,
			.val = (uint32_t)in[i].val,
			.bitset = FUTEX_BITSET_MATCH_ANY,
			.shared = !(in[i].flags & WAITV_PRIVATE),
		};
	}
	return futex_wait_many(t, args, n, deadline);
}

int64_t sys_set_robust_list(struct task *t, const struct sysargs *a)
{
	if (ARG_U64(a, 1) != ROBUST_HEAD_SIZE)
		return -EINVAL;
	t->robust_list = ARG_PTR(a, 0);
	t->robust_len = ARG_U64(a, 1);
	return 0;
}

/* As ptrace access by real ids: get_robust_list(2) "EPERM". */
static bool may_read(const struct task *t, const struct task *u)
{
	const struct cred *c = t->cred, *o = u->cred;

	if (t->tg == u->tg)
		return true;
	if (!o)
		return false;
	return (c->uid == o->euid && c->uid == o->suid && c->uid == o->uid && c->gid == o->egid &&
		c->gid == o->sgid && c->gid == o->gid) ||
	       cred_has_cap(c, CAP_SYS_PTRACE);
}

int64_t sys_get_robust_list(struct task *t, const struct sysargs *a)
{
	struct task *u = ARG_INT(a, 0) ? task_lookup(ARG_INT(a, 0)) : task_get(t);
	const uint64_t len = ROBUST_HEAD_SIZE;
	uint64_t head;
	bool allowed;

	if (!u)
		return -ESRCH;
	allowed = may_read(t, u);
	head = u->robust_list;
	task_put(u);
	if (!allowed)
		return -EPERM;
	if (copy_out(t, ARG_PTR(a, 2), &len, sizeof(len)) < 0 ||
	    copy_out(t, ARG_PTR(a, 1), &head, sizeof(head)) < 0)
		return -EFAULT;
	return 0;
}
