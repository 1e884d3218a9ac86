/* SPDX-License-Identifier: Apache-2.0 */
/* One task with files, for unit tests that call sys_* functions: paths and buffers are host pointers. */
#ifndef SBX_TESTS_LIB_FAKE_TASK_H
#define SBX_TESTS_LIB_FAKE_TASK_H

#include <stdint.h>

#include "sentry/kernel/cred.h"
#include "sentry/kernel/task.h"
#include "sentry/syscalls/sysargs.h"
#include "sentry/vfs/dentry.h"
#include "sentry/vfs/fdtable.h"
#include "tests/lib/fake_kernel.h"

struct fake_task {
	struct task t;
	struct tgroup tg;
	struct cred cred;
};

static inline void fake_task_init(struct fake_task *ft, uid_t uid)
{
	*ft = (struct fake_task){ 0 };
	ft->t.tg = &ft->tg;
	ft->t.cred = &ft->cred;
	ft->t.fdt = fdtable_create();
	ft->t.fs = fs_ctx_create();
	ft->cred.uid = ft->cred.euid = ft->cred.fsuid = uid;
	ft->cred.gid = ft->cred.egid = ft->cred.fsgid = uid;
	ft->cred.cap_effective = ft->cred.cap_permitted = uid ? 0 : ~0ull;
	for (int i = 0; i < RLIMIT_COUNT; i++)
		ft->tg.rlim[i] = (struct rlimit_pair){ UINT64_MAX, UINT64_MAX };
	ft->tg.rlim[7].cur = 1024; /* RLIMIT_NOFILE */
}

static inline void fake_task_fini(struct fake_task *ft)
{
	fake_op_end(&ft->t);
	fdtable_put(ft->t.fdt);
	fs_ctx_put(ft->t.fs);
}

static inline int64_t fake_call(struct fake_task *ft, sys_fn fn, const uint64_t *args)
{
	struct sysargs a;
	int64_t r;

	for (int i = 0; i < 6; i++)
		a.a[i] = args[i];
	r = fn(&ft->t, &a);
	fake_op_end(&ft->t);
	return r;
}

/* SYS(ft, sys_open, "/x", O_RDONLY): pointers are cast by the caller with P(). */
#define P(ptr) ((uint64_t)(uintptr_t)(ptr))
#define SYS(ft, fn, ...) fake_call(ft, fn, (const uint64_t[6]){ __VA_ARGS__ })

#endif
