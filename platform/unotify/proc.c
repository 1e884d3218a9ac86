/* SPDX-License-Identifier: Apache-2.0 */
/* Host processes of stubs. Children of init, reaped by the kernel; known by pidfd as long as a context lives in them.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "platform/stub/hostcall.h"
#include "platform/unotify/unotify_priv.h"

struct hostproc *proc_alloc(struct platform *p)
{
	struct hostproc *proc;
	unsigned i;

	if (p->n_procs == p->max_procs)
		return NULL;
	proc = calloc(1, sizeof(*proc));
	if (!proc)
		return NULL;
	for (i = p->proc_hint; p->procs[i]; i = (i + 1) % p->max_procs)
		;
	p->proc_hint = (i + 1) % p->max_procs;
	p->procs[i] = proc;
	p->n_procs++;
	proc->p = p;
	proc->idx = i;
	proc->pidfd = -1;
	list_init(&proc->ctxs);
	return proc;
}

int proc_born(struct hostproc *proc, pid_t pid)
{
	long fd = HOSTCALL(SYS_pidfd_open, pid, 0);
	int r;

	if (fd < 0)
		return (int)fd;
	proc->pid = pid;
	proc->pidfd = (int)fd;
	r = deathwatch_add(proc->p, proc->pidfd, proc->idx);
	return r;
}

void proc_free(struct hostproc *proc)
{
	struct platform *p;

	if (!proc)
		return;
	p = proc->p;
	if (proc->pidfd >= 0)
		HOSTCALL(SYS_close, proc->pidfd); /* leaves the death watch too */
	p->procs[proc->idx] = NULL;
	p->n_procs--;
	free(proc);
}

void proc_died(struct hostproc *proc, int status)
{
	struct platform *p = proc->p;
	struct uctx *c, *tmp;

	list_for_each_entry_safe(c, tmp, &proc->ctxs, proc_node) {
		bool owned = c->owned;

		if (c == p->zygote)
			p->broken = -EIO; /* no fresh stubs any more */
		uctx_gone(c);
		if (owned) {
			c->trap.exit_status = status;
			trap_raise(c, TRAP_EXITED);
		}
	}
	proc_free(proc);
}

void proc_kill(struct hostproc *proc, int status)
{
	if (proc->pidfd >= 0)
		HOSTCALL(SYS_pidfd_send_signal, proc->pidfd, SIGKILL, NULL, 0);
	proc_died(proc, status);
}

bool proc_check_dead(struct hostproc *proc)
{
	struct pollfd pf = { .fd = proc->pidfd, .events = POLLIN };

	if (pf.fd < 0 || HOSTCALL(SYS_poll, &pf, 1, 0) != 1)
		return false;
	/* The exit code is init's to know; nothing but a signal ends a stub by itself. */
	proc_died(proc, SIGKILL);
	return true;
}
