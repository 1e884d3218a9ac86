/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starting the machine, and its end. Init and zygote start as on every platform of stubs (platform/stub/spawn.c). Then
 * we attach to the zygote, which waits in pause(2), stop it and order it to drop what is left of boot code, stack and
 * fds. From then on the host kernel attaches its clones to us by itself; no other process is ever attached to, so the
 * system call filter can forbid it. The end of this thread, however it comes, is the end of every stub
 * (PTRACE_O_EXITKILL).
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/ptrace.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "platform/ptrace/ptrace_priv.h"
#include "platform/stub/hostcall.h"

#ifndef __WALL
#define __WALL 0x40000000
#endif

#define CONTEXTS_MAX 16384u
#define OPTIONS (PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | \
		 PTRACE_O_TRACECLONE)
#define REAP_TRIES 2000 /* of a millisecond */

static int take_socket(struct platform *p, struct sbx_err *err)
{
	p->sock = fcntl(p->stubs.sock[0], F_DUPFD_CLOEXEC, PTRACE_SOCK_FD);
	if (p->sock < 0)
		return sbx_fail(err, -errno, "socket of the stubs");
	if (p->sock != PTRACE_SOCK_FD)
		return sbx_fail(err, -EBUSY, "file descriptor %d", PTRACE_SOCK_FD);
	return 0;
}

static int make_zygote(struct platform *p)
{
	struct aspace *as = pt_aspace_alloc(p);
	struct hostproc *proc = as ? pt_proc_alloc(p) : NULL;

	p->zygote = proc ? pt_ctx_alloc(p, as, proc) : NULL;
	pt_aspace_put(as);
	if (!p->zygote) {
		pt_proc_free(proc);
		return -ENOMEM;
	}
	p->zygote->tid = proc->pid = p->stubs.zygote_pid;
	pt_tid_add(p->zygote);
	return 0;
}

static int attach(struct platform *p, struct sbx_err *err)
{
	struct pctx *z = p->zygote;
	long r = pt_req(PTRACE_SEIZE, z->tid, 0, (const void *)OPTIONS);

	if (r == 0)
		r = pt_req(PTRACE_INTERRUPT, z->tid, 0, NULL);
	if (r < 0)
		return sbx_fail(err, (int)r, "attach to the zygote");
	r = pt_wait_stop(z);
	if (r == 0)
		r = pt_get_regs(z, &z->regs);
	return r < 0 ? sbx_fail(err, (int)r, "zygote") : 0;
}

static int prepare_zygote(struct platform *p, struct sbx_err *err)
{
	static const struct order orders[] = {
		{ SYS_munmap, { BOOT_BASE, VDSO_BASE - BOOT_BASE } },
		{ SYS_dup3, { BOOT_SOCK, STUB_SOCK, O_CLOEXEC } },
		{ SYS_close_range, { 0, STUB_SOCK - 1 } },
		{ SYS_close_range, { STUB_SOCK + 1, ~0u } },
	};
	struct pctx *z = p->zygote;
	int64_t r;

	p->xstate_init = malloc(FPU_STATE_MAX);
	if (!p->xstate_init)
		return sbx_fail(err, -ENOMEM, "zygote");
	r = pt_xstate_get(z, p->xstate_init, &p->xstate_len);
	if (r < 0 || p->xstate_len < p->fpu.size)
		return sbx_fail(err, r < 0 ? (int)r : -ENOTSUP, "extended state of the zygote");
	r = pt_order_clear(z);
	for (unsigned i = 0; i < ARRAY_SIZE(orders) && r >= 0; i++)
		r = pt_order(z, &orders[i]);
	return r < 0 ? sbx_fail(err, (int)r, "zygote order") : 0;
}

static int bring_up(struct platform *p, struct sbx_err *err)
{
	int r = leader_init(&p->leader, &p->fpu);

	if (r < 0)
		return sbx_fail(err, r, "leader");
	r = stubs_start(&p->stubs, &p->cfg, BOOT_PTRACE, err);
	if (r == 0 && p->cfg.meanwhile)
		p->cfg.meanwhile();
	if (r == 0)
		r = stubs_ready(&p->stubs, err);
	if (r == 0)
		r = take_socket(p, err);
	if (r < 0)
		return r;
	r = pt_affinity_start(p);
	if (r == 0)
		r = make_zygote(p);
	if (r < 0)
		return sbx_fail(err, r, "platform");
	r = attach(p, err);
	return r < 0 ? r : prepare_zygote(p, err);
}

int pt_start(const struct platform_config *cfg, const struct platform_up *up, void *arg, struct platform **ret,
	     struct sbx_err *err)
{
	struct platform *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return sbx_fail(err, -ENOMEM, "platform");
	p->cfg = *cfg;
	p->cfg.max_contexts = MIN(MAX(cfg->max_contexts, 16u), CONTEXTS_MAX);
	p->up = up;
	p->up_arg = arg;
	p->sock = p->timerfd = p->cpu = -1;
	stubs_init(&p->stubs);
	list_init(&p->procs);
	list_init(&p->traps);
	list_init(&p->ghosts);
	r = bring_up(p, err);
	stubs_started(&p->stubs);
	if (r < 0) {
		pt_destroy(p);
		return sbx_fail_in(err, "ptrace");
	}
	p->info.name = "ptrace";
	stubs_info(&p->stubs, "", &p->info);
	*ret = p;
	return 0;
}

/* Our tracees must be waited for: init, whose end in turn waits for all of its pid namespace, ends only after them. */
static void reap(struct platform *p)
{
	int status;

	for (int tries = 0; tries < REAP_TRIES;) {
		long pid = HOSTCALL(SYS_wait4, -1, &status, __WALL | WNOHANG, NULL);

		if (pid == -ECHILD)
			break;
		if (pid > 0 && WIFSTOPPED(status))
			HOSTCALL(SYS_kill, pid, SIGKILL);
		if (pid == p->stubs.init_pid)
			p->stubs.init_pid = 0;
		if (pid > 0)
			continue;
		usleep(1000);
		tries++;
	}
}

void pt_destroy(struct platform *p)
{
	struct hostproc *proc, *tmp;
	struct pctx *c, *next;

	if (!p)
		return;
	list_for_each_entry_safe(proc, tmp, &p->procs, node)
		pt_proc_kill(proc, SIGKILL);
	/* Contexts of which the kernel still waited to hear that they died; those it holds in its hand are its own. */
	list_for_each_entry_safe(c, next, &p->traps, trap_node)
		pt_ctx_free(c);
	if (p->stubs.init_pidfd >= 0)
		HOSTCALL(SYS_pidfd_send_signal, p->stubs.init_pidfd, SIGKILL, NULL, 0);
	reap(p);
	stubs_kill(&p->stubs);
	pt_affinity_stop(p);
	if (p->sock >= 0)
		HOSTCALL(SYS_close, p->sock);
	free(p->xstate_init);
	free(p);
}
