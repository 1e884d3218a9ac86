/* SPDX-License-Identifier: Apache-2.0 */
/* prctl(2) as a table of options; arch_prctl(2). */
#include "sentry/syscalls/prctl.h"

#include <asm/prctl.h>
#include <errno.h>
#include <linux/capability.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <string.h>

#include "sentry/kernel/cred.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/restart.h"
#include "sentry/kernel/sig.h"
#include "sentry/kernel/task.h"
#include "sentry/kernel/uaccess.h"
#include "sentry/syscalls/ids.h"

#ifndef PR_SET_VMA
#define PR_SET_VMA           0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif
#ifndef PR_SET_MDWE
#define PR_SET_MDWE 65
#define PR_GET_MDWE 66
#endif
#ifndef PR_GET_AUXV
#define PR_GET_AUXV 0x41555856
#endif
#ifndef ARCH_REQ_XCOMP_PERM
#define ARCH_GET_XCOMP_SUPP 0x1021
#define ARCH_GET_XCOMP_PERM 0x1022
#define ARCH_REQ_XCOMP_PERM 0x1023
#endif

/* State components that every processor here gives: x87, SSE, AVX, MPX-free AVX-512, PKRU. AMX is not given. */
#define XFEATURES_DEFAULT 0x2e7ull

typedef int64_t (*prctl_fn)(struct task *t, const struct sysargs *a);

static int64_t pr_set_pdeathsig(struct task *t, const struct sysargs *a)
{
	if (ARG_U64(a, 1) > NSIG_LINUX)
		return -EINVAL;
	t->pdeath_signal = ARG_INT(a, 1);
	return 0;
}

static int64_t pr_get_pdeathsig(struct task *t, const struct sysargs *a)
{
	int32_t v = t->pdeath_signal;

	return copy_out(t, ARG_PTR(a, 1), &v, sizeof(v));
}

static int64_t pr_get_dumpable(struct task *t, const struct sysargs *a)
{
	(void)a;
	return t->tg->dumpable;
}

static int64_t pr_set_dumpable(struct task *t, const struct sysargs *a)
{
	if (ARG_U64(a, 1) > 1)
		return -EINVAL;
	t->tg->dumpable = ARG_U64(a, 1);
	return 0;
}

static int64_t pr_set_name(struct task *t, const struct sysargs *a)
{
	char name[TASK_COMM_LEN];
	ssize_t n = copy_in_str(t, ARG_PTR(a, 1), name, sizeof(name));

	if (n == -EFAULT)
		return n;
	if (n < 0)
		n = TASK_COMM_LEN - 1; /* longer: cut, without an error */
	memset(t->comm, 0, sizeof(t->comm));
	memcpy(t->comm, name, (size_t)n);
	return 0;
}

static int64_t pr_get_name(struct task *t, const struct sysargs *a)
{
	return copy_out(t, ARG_PTR(a, 1), t->comm, sizeof(t->comm));
}

/* Replaces the securebits of the caller. */
static int64_t set_securebits(struct task *t, uint32_t bits)
{
	struct cred *c = cred_copy(t->cred);

	if (!c)
		return -ENOMEM;
	c->securebits = bits;
	task_commit_cred(t, c);
	return 0;
}

static int64_t pr_get_keepcaps(struct task *t, const struct sysargs *a)
{
	(void)a;
	return !!(t->cred->securebits & SECBIT_KEEP_CAPS);
}

static int64_t pr_set_keepcaps(struct task *t, const struct sysargs *a)
{
	uint32_t b = t->cred->securebits;

	if (ARG_U64(a, 1) > 1)
		return -EINVAL;
	if (b & SECBIT_KEEP_CAPS << 1)
		return -EPERM;
	return set_securebits(t, ARG_U64(a, 1) ? b | SECBIT_KEEP_CAPS : b & ~SECBIT_KEEP_CAPS);
}

static int64_t pr_get_securebits(struct task *t, const struct sysargs *a)
{
	(void)a;
	return t->cred->securebits;
}

static int64_t pr_set_securebits(struct task *t, const struct sysargs *a)
{
	uint32_t old = t->cred->securebits;
	uint64_t new = ARG_U64(a, 1);
	uint32_t locked = (old & SECURE_ALL_LOCKS) >> 1;

	/* capabilities(7): locked bits stay, locks stay, no unknown bits, and CAP_SETPCAP. */
	if ((locked & (old ^ new)) || (old & SECURE_ALL_LOCKS & ~new) ||
	    (new & ~(SECURE_ALL_BITS | SECURE_ALL_LOCKS)) || !cred_has_cap(t->cred, CAP_SETPCAP))
		return -EPERM;
	return set_securebits(t, (uint32_t)new);
}

static int64_t pr_capbset_read(struct task *t, const struct sysargs *a)
{
	if (ARG_U64(a, 1) > CAP_LAST)
		return -EINVAL;
	return !!(t->cred->cap_bounding & CAP_BIT(ARG_U64(a, 1)));
}

static int64_t pr_capbset_drop(struct task *t, const struct sysargs *a)
{
	struct cred *c;

	if (!cred_has_cap(t->cred, CAP_SETPCAP))
		return -EPERM;
	if (ARG_U64(a, 1) > CAP_LAST)
		return -EINVAL;
	c = cred_copy(t->cred);
	if (!c)
		return -ENOMEM;
	c->cap_bounding &= ~CAP_BIT(ARG_U64(a, 1));
	task_commit_cred(t, c);
	return 0;
}

static int64_t pr_cap_ambient(struct task *t, const struct sysargs *a)
{
	uint64_t cap = ARG_U64(a, 2), bit;
	struct cred *c;

	if (ARG_U64(a, 3) || ARG_U64(a, 4))
		return -EINVAL;
	if (ARG_U64(a, 1) == PR_CAP_AMBIENT_CLEAR_ALL ? cap != 0 : cap > CAP_LAST)
		return -EINVAL;
	bit = CAP_BIT(cap);
	if (ARG_U64(a, 1) == PR_CAP_AMBIENT_IS_SET)
		return !!(t->cred->cap_ambient & bit);
	if (ARG_U64(a, 1) == PR_CAP_AMBIENT_RAISE && (!(t->cred->cap_permitted & t->cred->cap_inheritable & bit) ||
	                                              (t->cred->securebits & SECBIT_NO_CAP_AMBIENT_RAISE)))
		return -EPERM;
	c = cred_copy(t->cred);
	if (!c)
		return -ENOMEM;
	switch (ARG_U64(a, 1)) {
	case PR_CAP_AMBIENT_RAISE:
		c->cap_ambient |= bit;
		break;
	case PR_CAP_AMBIENT_LOWER:
		c->cap_ambient &= ~bit;
		break;
	case PR_CAP_AMBIENT_CLEAR_ALL:
		c->cap_ambient = 0;
		break;
	default:
		cred_put(c);
		return -EINVAL;
	}
	task_commit_cred(t, c);
	return 0;
}

static bool rest_zero(const struct sysargs *a, unsigned from)
{
	for (unsigned i = from; i < 5; i++) {
		if (ARG_U64(a, i))
			return false;
	}
	return true;
}

static int64_t pr_set_no_new_privs(struct task *t, const struct sysargs *a)
{
	struct cred *c;

	if (ARG_U64(a, 1) != 1 || !rest_zero(a, 2))
		return -EINVAL;
	c = cred_copy(t->cred);
	if (!c)
		return -ENOMEM;
	c->no_new_privs = true;
	task_commit_cred(t, c);
	return 0;
}

static int64_t pr_get_no_new_privs(struct task *t, const struct sysargs *a)
{
	return rest_zero(a, 1) ? t->cred->no_new_privs : -EINVAL;
}

static void mark_subreaper_below(struct tgroup *tg)
{
	struct tgroup *child, *top = tg;

	/* All descendants, by the tree's own links: no recursion, whose depth the guest would choose. */
	for (;;) {
		if (!list_empty(&tg->children)) {
			tg = list_first_entry(&tg->children, struct tgroup, sibling);
			tg->has_subreaper = true;
			continue;
		}
		while (tg != top && tg->sibling.next == &tg->parent->children)
			tg = tg->parent;
		if (tg == top)
			return;
		child = list_entry(tg->sibling.next, struct tgroup, sibling);
		child->has_subreaper = true;
		tg = child;
	}
}

static int64_t pr_set_child_subreaper(struct task *t, const struct sysargs *a)
{
	t->tg->is_subreaper = ARG_U64(a, 1) != 0;
	if (t->tg->is_subreaper)
		mark_subreaper_below(t->tg);
	return 0;
}

static int64_t pr_get_child_subreaper(struct task *t, const struct sysargs *a)
{
	int32_t v = t->tg->is_subreaper;

	return copy_out(t, ARG_PTR(a, 1), &v, sizeof(v));
}

#define TIMER_SLACK_DEFAULT 50000u

static int64_t pr_set_timerslack(struct task *t, const struct sysargs *a)
{
	t->timer_slack_ns = (int64_t)ARG_U64(a, 1) <= 0 ? TIMER_SLACK_DEFAULT : ARG_U64(a, 1);
	return 0;
}

static int64_t pr_get_timerslack(struct task *t, const struct sysargs *a)
{
	(void)a;
	return (int64_t)t->timer_slack_ns;
}

/* Huge pages are the host's choice; the switch is taken and reported as off. */
static int64_t pr_thp_disable_set(struct task *t, const struct sysargs *a)
{
	(void)t;
	return rest_zero(a, 2) ? 0 : -EINVAL;
}

static int64_t pr_thp_disable_get(struct task *t, const struct sysargs *a)
{
	(void)t;
	return rest_zero(a, 1) ? 0 : -EINVAL;
}

/* The name of an anonymous mapping, shown only in /proc: as with CONFIG_ANON_VMA_NAME unset. */
static int64_t pr_set_vma(struct task *t, const struct sysargs *a)
{
	(void)t;
	(void)a;
	return -EINVAL;
}

static int64_t pr_set_mm(struct task *t, const struct sysargs *a)
{
	(void)t;
	(void)a;
	return -EPERM;
}

static int64_t pr_get_seccomp(struct task *t, const struct sysargs *a)
{
	(void)t;
	(void)a;
	return SECCOMP_MODE_DISABLED;
}

static int64_t pr_get_tid_address(struct task *t, const struct sysargs *a)
{
	uint64_t v = t->clear_tid;

	return copy_out(t, ARG_PTR(a, 1), &v, sizeof(v));
}

static int64_t pr_set_timing(struct task *t, const struct sysargs *a)
{
	(void)t;
	return ARG_U64(a, 1) == PR_TIMING_STATISTICAL ? 0 : -EINVAL;
}

static int64_t pr_zero(struct task *t, const struct sysargs *a)
{
	(void)t;
	(void)a;
	return 0;
}

static int64_t pr_get_tsc(struct task *t, const struct sysargs *a)
{
	int32_t v = PR_TSC_ENABLE;

	return copy_out(t, ARG_PTR(a, 1), &v, sizeof(v));
}

static int64_t pr_set_tsc(struct task *t, const struct sysargs *a)
{
	(void)t;
	return ARG_U64(a, 1) == PR_TSC_ENABLE ? 0 : -EINVAL;
}

/* Early or late: pages lost to hardware errors are the host's matter; the default policy. */
static int64_t pr_mce_kill_get(struct task *t, const struct sysargs *a)
{
	(void)t;
	return rest_zero(a, 1) ? PR_MCE_KILL_DEFAULT : -EINVAL;
}

static const struct {
	uint32_t option;
	prctl_fn fn;
} prctl_table[] = {
	{ PR_SET_PDEATHSIG, pr_set_pdeathsig },
	{ PR_GET_PDEATHSIG, pr_get_pdeathsig },
	{ PR_GET_DUMPABLE, pr_get_dumpable },
	{ PR_SET_DUMPABLE, pr_set_dumpable },
	{ PR_GET_KEEPCAPS, pr_get_keepcaps },
	{ PR_SET_KEEPCAPS, pr_set_keepcaps },
	{ PR_GET_TIMING, pr_zero },
	{ PR_SET_TIMING, pr_set_timing },
	{ PR_SET_NAME, pr_set_name },
	{ PR_GET_NAME, pr_get_name },
	{ PR_GET_SECCOMP, pr_get_seccomp },
	{ PR_CAPBSET_READ, pr_capbset_read },
	{ PR_CAPBSET_DROP, pr_capbset_drop },
	{ PR_GET_TSC, pr_get_tsc },
	{ PR_SET_TSC, pr_set_tsc },
	{ PR_GET_SECUREBITS, pr_get_securebits },
	{ PR_SET_SECUREBITS, pr_set_securebits },
	{ PR_SET_TIMERSLACK, pr_set_timerslack },
	{ PR_GET_TIMERSLACK, pr_get_timerslack },
	{ PR_MCE_KILL_GET, pr_mce_kill_get },
	{ PR_SET_MM, pr_set_mm },
	{ PR_SET_PTRACER, pr_zero },
	{ PR_SET_CHILD_SUBREAPER, pr_set_child_subreaper },
	{ PR_GET_CHILD_SUBREAPER, pr_get_child_subreaper },
	{ PR_SET_NO_NEW_PRIVS, pr_set_no_new_privs },
	{ PR_GET_NO_NEW_PRIVS, pr_get_no_new_privs },
	{ PR_GET_TID_ADDRESS, pr_get_tid_address },
	{ PR_SET_THP_DISABLE, pr_thp_disable_set },
	{ PR_GET_THP_DISABLE, pr_thp_disable_get },
	{ PR_CAP_AMBIENT, pr_cap_ambient },
	{ PR_SET_VMA, pr_set_vma },
};

int64_t sys_prctl(struct task *t, const struct sysargs *a)
{
	for (unsigned i = 0; i < ARRAY_SIZE(prctl_table); i++) {
		if (prctl_table[i].option == ARG_U32(a, 0))
			return prctl_table[i].fn(t, a);
	}
	return -EINVAL;
}

/* The segment bases by way of the register file: right on every platform. */
static int64_t base_get(struct task *t, uaddr_t where, bool fs)
{
	struct gregs regs;
	int r = kernel.plat->ctx_regs_get(t->ctx, CTX_REGS_BASES, &regs);

	return r < 0 ? r : copy_out(t, where, fs ? &regs.fs_base : &regs.gs_base, sizeof(uint64_t));
}

static int64_t base_set(struct task *t, uint64_t v, bool fs)
{
	struct gregs regs;
	int r;

	r = kernel.plat->ctx_regs_get(t->ctx, CTX_REGS_BASES, &regs);
	if (r < 0)
		return r;
	if (fs)
		regs.fs_base = v;
	else
		regs.gs_base = v;
	regs.rax = 0;
	r = kernel.plat->ctx_regs_set(t->ctx, CTX_REGS_BASES, &regs);
	if (r < 0)
		return r;
	/* A register file that was set is answered by a resume; -ESRCH: TRAP_EXITED follows. */
	(void)kernel.plat->ctx_resume(t->ctx);
	return SYS_NO_RETURN;
}

/* Segment bases: the platform may have a cheap way that also resumes the task. */
static int64_t base_call(struct task *t, int code, uint64_t v)
{
	bool set = code == ARCH_SET_FS || code == ARCH_SET_GS, fs = code == ARCH_SET_FS || code == ARCH_GET_FS;

	if (set && v >= GUEST_TASK_SIZE)
		return -EPERM;
	if (kernel.plat->ctx_arch_prctl && kernel.plat->ctx_arch_prctl(t->ctx, code, v) == 0)
		return SYS_NO_RETURN;
	return set ? base_set(t, v, fs) : base_get(t, v, fs);
}

int64_t sys_arch_prctl(struct task *t, const struct sysargs *a)
{
	uint64_t features = XFEATURES_DEFAULT;

	switch (ARG_INT(a, 0)) {
	case ARCH_SET_FS:
	case ARCH_SET_GS:
	case ARCH_GET_FS:
	case ARCH_GET_GS:
		return base_call(t, ARG_INT(a, 0), ARG_U64(a, 1));
	case ARCH_GET_CPUID:
		return 1; /* the instruction is allowed */
	case ARCH_SET_CPUID:
		return ARG_U64(a, 1) ? 0 : -ENODEV;
	case ARCH_GET_XCOMP_SUPP:
	case ARCH_GET_XCOMP_PERM:
		return copy_out(t, ARG_PTR(a, 1), &features, sizeof(features));
	case ARCH_REQ_XCOMP_PERM:
		return ARG_U64(a, 1) < 64 && (features & 1ull << ARG_U64(a, 1)) ? 0 : -EOPNOTSUPP;
	default:
		return -EINVAL; /* shadow stacks and all else: as a processor or a kernel without them */
	}
}
