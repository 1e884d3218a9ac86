/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starting the machine, and its end. Init and zygote start as on every platform of stubs (platform/stub/spawn.c). After
 * its report the zygote installs the filter; we take its listener by pidfd_getfd(2), receive its first notification and
 * order it to drop what is left of boot code, stack and fds.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/host/notif.h"
#include "platform/stub/hostcall.h"
#include "platform/unotify/unotify_priv.h"

#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, __u64)
#endif
#define NOTIF_SYNC_WAKE_UP 1ul

#define PARK_LIMIT     32
#define CONTEXTS_MAX   16384u /* a slot each, and a bit in the death watch */
#define LISTENER_SPINS 2000   /* it takes 100 to 200 us; the zygote may have our processor */
#define LISTENER_TRIES 100000 /* of 100 us */

/* Why the host gives us no listener. */
static int unavailable(struct sbx_err *err, int code)
{
	if (code == -EBUSY)
		sbx_fail(err, 0, "another supervisor already has a seccomp listener here");
	else if (code == -EINVAL)
		sbx_fail(err, 0, "the kernel has no killable seccomp notification (Linux 5.19)");
	else
		sbx_fail(err, code, "seccomp listener");
	return err->code = PLATFORM_UNAVAILABLE;
}

/* The zygote reports once more, and ends, when it gets no listener. */
static bool refused(struct stubs *s, struct sbx_err *err)
{
	return stubs_report(s, 0, err) == 0 && s->report.listener_err;
}

static int take_listener(struct platform *p, struct sbx_err *err)
{
	struct stubs *s = &p->stubs;
	struct hostproc *proc = p->zygote->proc;
	long fd = -EBADF;
	int r = proc_born(proc, s->zygote_pid);

	if (r < 0)
		return refused(s, err) ? unavailable(err, s->report.listener_err) : sbx_fail(err, r, "zygote");
	/* The zygote wrote its report just before seccomp(2); it gets number BOOT_LISTENER. */
	for (int i = 0; i < LISTENER_TRIES; i++) {
		fd = HOSTCALL(SYS_pidfd_getfd, proc->pidfd, BOOT_LISTENER, 0);
		if (fd != -EBADF || (i % 64 == 63 && refused(s, err)))
			break;
		if (i < LISTENER_SPINS)
			sched_yield();
		else
			usleep(100);
	}
	if (fd < 0 && (s->report.listener_err || refused(s, err)))
		return unavailable(err, s->report.listener_err);
	if (fd == -EPERM || fd == -ENOSYS)
		return unavailable(err, (int)fd);
	if (fd < 0)
		return sbx_fail(err, (int)fd, "pidfd_getfd");
	p->listener = (int)fd;
	fcntl(p->listener, F_SETFD, FD_CLOEXEC);
	p->info.sync_wakeup =
		HOSTCALL(SYS_ioctl, p->listener, SECCOMP_IOCTL_NOTIF_SET_FLAGS, NOTIF_SYNC_WAKE_UP) == 0;
	return 0;
}

/* The zygote's first notification, and the last of what the guest is not to find. */
static int prepare_zygote(struct platform *p, struct sbx_err *err)
{
	struct uctx *z = p->zygote;
	struct order_batch batch = { .n = 0 };
	int64_t result = 0;
	int r;

	/* It comes as a birth, with token 0 that no other can have: it is the only thread so far. */
	z->state = UCTX_ORDERED;
	z->i_order = 1;
	z->order_cmd = SHIM_ORDER;
	z->tid = p->stubs.zygote_pid;
	p->tids[(unsigned)z->tid % TID_BUCKETS] = z;
	r = event_wait_shim(z);
	if (r < 0)
		return sbx_fail(err, r, "zygote");
	aspace_add_clear_orders(p, &batch);
	order_add(&batch, SYS_munmap, BOOT_BASE, VDSO_BASE - BOOT_BASE, 0, 0, 0, 0);
	order_add(&batch, SYS_close_range, 0, ~0u, 0, 0, 0, 0);
	r = order_run(z, &batch, &result);
	if (r != (int)batch.n)
		return sbx_fail(err, r < 0 ? r : (int)result, "zygote order %d", r);
	return 0;
}

static int make_zygote(struct platform *p)
{
	struct aspace *as = aspace_alloc(p);
	struct hostproc *proc = as ? proc_alloc(p) : NULL;

	p->zygote = proc ? uctx_alloc(p, as, proc) : NULL;
	unotify_aspace_put(as);
	if (!p->zygote)
		return -ENOMEM;
	p->zygote->frame = slot_base(0) + SLOT_FRAME;
	return 0;
}

static int platform_alloc(const struct platform_config *cfg, struct platform **ret)
{
	struct platform *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->cfg = *cfg;
	p->cfg.max_contexts = MIN(MAX(cfg->max_contexts, 16u), CONTEXTS_MAX);
	p->max_procs = p->cfg.max_contexts + 2;
	p->park_limit = PARK_LIMIT;
	p->listener = p->epfd = p->timerfd = -1;
	stubs_init(&p->stubs);
	list_init(&p->births);
	list_init(&p->traps);
	list_init(&p->ghosts);
	list_init(&p->parked);
	p->procs = calloc(p->max_procs, sizeof(struct hostproc *));
	p->dead_bits = calloc((p->max_procs + 63) / 64, sizeof(uint64_t));
	*ret = p;
	return p->procs && p->dead_bits ? 0 : -ENOMEM;
}

static int bring_up(struct platform *p, struct sbx_err *err)
{
	int r = leader_init(&p->leader, &p->fpu);

	if (r < 0)
		return sbx_fail(err, r, "leader");
	p->fpu_area = malloc(p->fpu.ext_size);
	if (!p->fpu_area)
		return sbx_fail(err, -ENOMEM, "platform");
	r = stubs_start(&p->stubs, &p->cfg, 0, err);
	if (r < 0)
		return r;
	if (p->cfg.meanwhile)
		p->cfg.meanwhile();
	r = deathwatch_start(p);
	if (r == 0)
		r = make_zygote(p);
	if (r < 0)
		return sbx_fail(err, r, "platform");
	r = stubs_ready(&p->stubs, err);
	if (r == 0)
		r = take_listener(p, err);
	return r < 0 ? r : prepare_zygote(p, err);
}

static int refuse_race(struct sbx_err *err)
{
	char why[128];

	if (!host_notif_race(why, sizeof(why)))
		return 0;
	sbx_fail(err, 0, "%s", why);
	return err->code = PLATFORM_UNAVAILABLE;
}

int unotify_start(const struct platform_config *cfg, const struct platform_up *up, void *arg,
		  struct platform **ret, struct sbx_err *err)
{
	struct platform *p = NULL;
	int r = platform_alloc(cfg, &p);

	if (r < 0) {
		unotify_destroy(p);
		return sbx_fail(err, r, "platform");
	}
	p->up = up;
	p->up_arg = arg;
	r = cfg->automatic ? refuse_race(err) : 0;
	if (r == 0)
		r = bring_up(p, err);
	stubs_started(&p->stubs);
	if (r < 0) {
		unotify_destroy(p);
		return sbx_fail_in(err, "unotify");
	}
	p->info.name = "unotify";
	stubs_info(&p->stubs, p->info.sync_wakeup ? "" : "no synchronous wake-up (Linux 6.6); ", &p->info);
	*ret = p;
	return 0;
}

static void kill_all(struct platform *p)
{
	for (unsigned i = 0; p->procs && i < p->max_procs; i++)
		if (p->procs[i] && p->procs[i]->pidfd >= 0)
			HOSTCALL(SYS_pidfd_send_signal, p->procs[i]->pidfd, SIGKILL, NULL, 0);
	stubs_kill(&p->stubs);
}

/* With init its pid namespace dies; without one our own end takes the stubs along. */
void unotify_abandon(struct platform *p)
{
	stubs_abandon(&p->stubs);
}

void unotify_destroy(struct platform *p)
{
	struct uctx *c, *tmp;

	if (!p)
		return;
	kill_all(p);
	deathwatch_stop(p);
	for (unsigned i = 0; p->procs && i < p->max_procs; i++)
		if (p->procs[i])
			proc_died(p->procs[i], SIGKILL);
	/* Contexts of which the kernel still waited to hear that they died; those it holds in its hand are its own. */
	list_for_each_entry_safe(c, tmp, &p->traps, trap_node)
		uctx_free(c);
	if (p->listener >= 0)
		close(p->listener);
	free(p->fpu_area);
	free(p->dead_bits);
	free(p->procs);
	free(p);
}
