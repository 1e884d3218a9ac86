/* SPDX-License-Identifier: Apache-2.0 */
#include "sentry/syscalls/misc.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/random.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <string.h>

#include "sentry/abi/process.h"
#include "sentry/kernel/cred.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/sig.h"
#include "sentry/kernel/task.h"
#include "sentry/kernel/uaccess.h"
#include "sentry/vfs/dentry.h"
#include "sentry/vfs/fdtable.h"
#include "sentry/vfs/file.h"
#include "sentry/vfs/uio.h"

/* What the guest is told: features are probed for, but some programs want a version. */
#define UTS_RELEASE  "6.12.0"
#define UTS_VERSION  "#1 SMP PREEMPT_DYNAMIC sbx"
#define UNAME26      0x0020000u

/* Of one call, as getrandom(2) says: the leader is busy that long. */
#define GETRANDOM_MAX ((1ull << 25) - 1)

int64_t sys_uname(struct task *t, const struct sysargs *a)
{
	struct linux_utsname u;

	memset(&u, 0, sizeof(u));
	memcpy(u.sysname, "Linux", sizeof("Linux"));
	memcpy(u.nodename, kernel.hostname, sizeof(u.nodename));
	/* personality(2) UNAME26: 6.x is shown as 2.6.(60+x). */
	if (t->personality & UNAME26)
		memcpy(u.release, "2.6.72", sizeof("2.6.72"));
	else
		memcpy(u.release, UTS_RELEASE, sizeof(UTS_RELEASE));
	memcpy(u.version, UTS_VERSION, sizeof(UTS_VERSION));
	memcpy(u.machine, "x86_64", sizeof("x86_64"));
	memcpy(u.domainname, kernel.domainname, sizeof(u.domainname));
	return copy_out(t, ARG_PTR(a, 0), &u, sizeof(u));
}

static int64_t set_name(struct task *t, const struct sysargs *a, char dst[LINUX_UTS_LEN])
{
	char name[LINUX_UTS_LEN] = { 0 };
	int len = ARG_INT(a, 1), r;

	if (!cred_has_cap(t->cred, CAP_SYS_ADMIN))
		return -EPERM;
	if (len < 0 || len >= LINUX_UTS_LEN)
		return -EINVAL;
	r = copy_in(t, ARG_PTR(a, 0), name, (size_t)len);
	if (r == 0)
		memcpy(dst, name, LINUX_UTS_LEN);
	return r;
}

int64_t sys_sethostname(struct task *t, const struct sysargs *a)
{
	return set_name(t, a, kernel.hostname);
}

int64_t sys_setdomainname(struct task *t, const struct sysargs *a)
{
	return set_name(t, a, kernel.domainname);
}

int64_t sys_getrandom(struct task *t, const struct sysargs *a)
{
	unsigned flags = ARG_U32(a, 2);
	uint64_t n = MIN(ARG_U64(a, 1), GETRANDOM_MAX), done = 0;
	/* A small request, as most are, needs no large buffer. */
	char small[256];

	if (flags & ~(GRND_NONBLOCK | GRND_RANDOM | GRND_INSECURE) ||
	    (flags & (GRND_RANDOM | GRND_INSECURE)) == (GRND_RANDOM | GRND_INSECURE))
		return -EINVAL;
	while (done < n) {
		bool fits = n - done <= sizeof(small);
		size_t k = fits ? n - done : MIN((size_t)(n - done), (size_t)UIO_BOUNCE_SIZE);
		void *buf = fits ? small : uio_bounce();
		ssize_t r;

		kernel_random(buf, k);
		r = copy_out_part(t, ARG_PTR(a, 0) + done, buf, k);
		if (r < 0)
			return done ? (int64_t)done : r;
		done += (uint64_t)r;
	}
	return (int64_t)done;
}

int64_t sys_personality(struct task *t, const struct sysargs *a)
{
	uint32_t old = t->personality;

	/* Only Linux's own: other domains would change system call semantics. */
	if (ARG_U32(a, 0) != UINT32_MAX) {
		if (ARG_U32(a, 0) & 0xff)
			return -EINVAL;
		t->personality = ARG_U32(a, 0);
	}
	return old;
}

#define SYSLOG_ACTION_MAX         10
#define SYSLOG_ACTION_READ_ALL    3
#define SYSLOG_ACTION_SIZE_BUFFER 10

int64_t sys_syslog(struct task *t, const struct sysargs *a)
{
	int type = ARG_INT(a, 0);

	/* dmesg_restrict=1; with the capability the log is empty. */
	if (!cred_has_cap(t->cred, CAP_SYSLOG) && !cred_has_cap(t->cred, CAP_SYS_ADMIN))
		return -EPERM;
	if (type < 0 || type > SYSLOG_ACTION_MAX)
		return -EINVAL;
	return 0;
}

int64_t sys_unshare(struct task *t, const struct sysargs *a)
{
	const uint64_t ns = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |
			    CLONE_NEWNET | 0x80;
	const uint64_t flags = ARG_U64(a, 0), group = CLONE_THREAD | CLONE_SIGHAND | CLONE_VM;
	struct fdtable *fdt = NULL;
	struct fs_ctx *fs;

	if (flags & ~(ns | group | CLONE_FS | CLONE_FILES | CLONE_SYSVSEM))
		return -EINVAL;
	if (flags & ns)
		return -EPERM;
	/* unshare(2): these three are only accepted where there is nothing to be undone. */
	if ((flags & group) && (t->tg->n_tasks > 1 || ref_count(&t->sighand->ref) > 1))
		return -EINVAL;
	if (flags & CLONE_FILES) {
		fdt = fdtable_copy(t->fdt);
		if (!fdt)
			return -ENOMEM;
	}
	if (flags & CLONE_FS) {
		fs = fs_ctx_copy(t->fs);
		if (!fs) {
			fdtable_put(fdt);
			return -ENOMEM;
		}
		fs_ctx_put(t->fs);
		t->fs = fs;
	}
	if (fdt) {
		fdtable_put(t->fdt);
		t->fdt = fdt;
	}
	return 0;
}

int64_t sys_setns(struct task *t, const struct sysargs *a)
{
	struct file *f;
	int r = fd_get(t, ARG_INT(a, 0), &f);

	if (r < 0)
		return r;
	file_put(f);
	return -EINVAL; /* no descriptor here is a namespace */
}

int64_t sys_seccomp(struct task *t, const struct sysargs *a)
{
	(void)t;
	(void)a;
	/* As a kernel without CONFIG_SECCOMP_FILTER: programs go on without a filter of their own. */
	return ARG_U32(a, 0) == SECCOMP_SET_MODE_STRICT && (ARG_U32(a, 1) || ARG_PTR(a, 2)) ? -EINVAL : -ENOSYS;
}

int64_t sys_refuse_eperm(struct task *t, const struct sysargs *a)
{
	(void)t;
	(void)a;
	return -EPERM;
}

int64_t sys_refuse_enosys(struct task *t, const struct sysargs *a)
{
	(void)t;
	(void)a;
	return -ENOSYS;
}

int64_t sys_refuse_eopnotsupp(struct task *t, const struct sysargs *a)
{
	(void)t;
	(void)a;
	return -EOPNOTSUPP;
}
