/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ptrace platform's own structures. Host process = hostproc, host thread = pctx, host mm = aspace. All of it
 * belongs to the leader, the one tracer; what other threads touch is marked atomic.
 *
 * States of a pctx, by what the leader knows of the host thread:
 *   BORN     its creator's event named it, its first stop was not seen yet
 *   RUN      was told to run guest code, under PTRACE_SYSEMU: its system calls stop and are not executed
 *   STOP     stopped, and that was seen; pctx.regs are the guest's registers
 *   ORDER    carries out one ordered host call (order.c), or the probe of a fault (fault.c)
 *   DEAD     gone, or about to by SIGKILL
 * From BORN and ORDER the way leads to STOP without the guest's help.
 *
 * File descriptors. All stubs share one table of host fds (CLONE_FILES), because only the zygote, whose memory no guest
 * ever sees, can take an fd from a message without another thread changing the message's header meanwhile. The table
 * holds the zygote's end of the socket by which fds come (STUB_SOCK), and for the time of an ordered mmap(2) the files
 * to be mapped. No guest code can reach them: it makes no host call at all, PTRACE_SYSEMU stops every one, and our
 * orders name fd numbers that were read from the zygote.
 */
#ifndef SBX_PLATFORM_PTRACE_PRIV_H
#define SBX_PLATFORM_PTRACE_PRIV_H

#include <assert.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/host/thread.h"
#include "base/list.h"
#include "base/ref.h"
#include "platform/platform.h"
#include "platform/stub/fpu.h"
#include "platform/stub/layout.h"
#include "platform/stub/leader.h"
#include "platform/stub/mem.h"
#include "platform/stub/mmop.h"
#include "platform/stub/spawn.h"

#define TID_BUCKETS 1024u
#define STUB_SOCK   31 /* in the stubs' fd table; injected files get lower numbers */
#define INJECT_MAX  8u /* files at a time */
#define PTRACE_SOCK_FD 99 /* our end; the system call filter knows the number (policy/seccomp/sentry.c) */

#define USER_CS 0x33
#define USER_SS 0x2b
#define EFLAGS_USER  0x244dd5ull /* AC ID OF DF TF and the arithmetic ones, NT */
#define EFLAGS_FIXED 0x202ull

#define SI_KERNEL_CODE 0x80 /* si_code SI_KERNEL */

/* What PTRACE_GETREGS gives: struct user_regs_struct of <sys/user.h>, which has a PAGE_SIZE of its own. */
struct host_regs {
	uint64_t r15, r14, r13, r12, rbp, rbx, r11, r10, r9, r8, rax, rcx, rdx, rsi, rdi, orig_rax;
	uint64_t rip, cs, eflags, rsp, ss, fs_base, gs_base, ds, es, fs, gs;
};
static_assert(sizeof(struct host_regs) == 216, "layout of user_regs_struct");

enum pctx_state {
	PCTX_BORN,
	PCTX_RUN,
	PCTX_STOP,
	PCTX_ORDER,
	PCTX_DEAD,
};

struct hostproc {
	struct platform *p;
	struct list node;    /* on platform.procs */
	pid_t pid;           /* 0 until its first thread is known */
	struct list ctxs;    /* by proc_node: all but DEAD ones */
	unsigned n_threads;  /* of them */
	unsigned n_owned;    /* of them, not yet destroyed by the kernel */
};

struct aspace {
	struct ref ref;
	struct platform *p;
	struct list ctxs;     /* by as_node: alive, not destroyed */
	unsigned n_threads;   /* host threads in it, those on their way out too */
};

struct pctx {
	struct vcpu_ctx base;
	struct platform *p;
	struct aspace *as;      /* counted */
	struct hostproc *proc;  /* NULL once DEAD */
	struct list proc_node, as_node;
	struct pctx *tid_next;
	pid_t tid;              /* 0: not known yet */
	enum pctx_state state;
	bool owned;             /* ctx_destroy() has not been called */
	bool interrupt;         /* ctx_interrupt() asked, and not yet stopped since */
	bool dirty;             /* regs are not what the host thread has */
	bool exiting;           /* ORDER: exit(2) */
	bool probing;           /* ORDER: no host call, the probe of fault.c */
	bool raw_fault;         /* trap is a fault whose error code is not known yet */
	int64_t result;         /* of the last order */
	struct list trap_node;  /* on platform.traps; also platform.ghosts once destroyed */
	struct trap trap;

	/* affinity.c */
	int cpu;                /* to which it is bound, -1: to none */
	bool free;              /* it computes: let it run anywhere */
	uint8_t quick;          /* short runs in a row while free */
	uint32_t n_runs, tick_runs;
	uint64_t since;         /* free: when it was resumed, ns */

	struct host_regs regs; /* orig_rax is always -1 */
};

#define WAKE_TICK 2u /* the ticker */

struct platform {
	const struct platform_up *up;
	void *up_arg;
	struct platform_config cfg;
	struct platform_info info;
	struct stubs stubs;
	struct fpu_layout fpu;
	size_t xstate_len;    /* what NT_X86_XSTATE wants */
	uint8_t *xstate_init; /* the state of a fresh program, xstate_len bytes */
	int sock;             /* to the zygote, -1: none */

	int broken; /* -errno: no machine any more */
	struct pctx *zygote;
	struct pctx *birth;   /* whose creator is just carrying out the clone */
	pid_t early;          /* an unknown thread that stopped meanwhile: the child, most likely */

	struct pctx *tids[TID_BUCKETS];
	struct list procs;
	unsigned n_ctxs, n_run;
	struct pctx *last_run; /* the last that was resumed; NULL once it is DEAD */
	struct list traps;    /* to be delivered by run(), by trap_node */
	struct list ghosts;   /* destroyed, host thread not yet gone, by trap_node */
	bool ghosts_new;      /* some of them have not been told */

	struct leader leader; /* wake_bits: WAKE_* */

	/* affinity.c */
	bool one_cpu;         /* nothing to do */
	int cpu;              /* to which the leader is bound, -1: none */
	bool ticking;
	int timerfd;
	struct host_thread ticker;
	bool ticker_up;
	uint32_t quit;        /* atomic: the ticker is to end */
};

static inline struct pctx *pctx_of(struct vcpu_ctx *ctx)
{
	return container_of(ctx, struct pctx, base);
}

/* start.c */
int pt_start(const struct platform_config *cfg, const struct platform_up *up, void *arg, struct platform **ret,
	     struct sbx_err *err);
void pt_destroy(struct platform *p);

/* event.c: what a stop means */
/* Waits for one stop or wake-up and handles it; queues traps. @c: that context is what we wait for, or NULL. 0, or
 * -errno: no machine any more. */
int pt_pump(struct platform *p, const struct pctx *c);
/* Pumps until @c has stopped: 0, or -ESRCH when it died. */
int pt_wait_stop(struct pctx *c);
/* Takes what is to be had without waiting: the deaths that a wait for one thread passes over. */
void pt_sweep(struct platform *p);
void pt_raise(struct pctx *c, enum trap_kind kind);
/* Enters @c, whose tid has become known. */
void pt_tid_add(struct pctx *c);

/* tracee.c: single ptrace(2) requests */
long pt_req(long request, pid_t tid, unsigned long addr, const void *data);
int pt_get_regs(struct pctx *c, struct host_regs *regs);
/* Lets a stopped context run guest code with its regs. 0 or -ESRCH. */
int pt_go(struct pctx *c);
void pt_set_state(struct pctx *c, enum pctx_state state);
int pt_xstate_get(struct pctx *c, uint8_t *buf, size_t *len);
int pt_xstate_set(struct pctx *c, const uint8_t *buf);

/* order.c: host calls by a stopped context, at the one system call instruction of the shim page that is for orders */
int64_t pt_order(struct pctx *c, const struct order *o);
/* Gives an order and does not wait. 0 or -ESRCH. */
int pt_order_start(struct pctx *c, const struct order *o);
/* Makes the thread exit(2); nobody waits. */
void pt_order_exit(struct pctx *c);
/* Removes every guest mapping. 0 or -errno. */
int pt_order_clear(struct pctx *c);

/* fault.c */
/* Fills in what ptrace(2) does not tell of the fault in c->trap. May find that @c dies. */
void pt_fault_details(struct pctx *c);

/* fds.c: files in the stubs' fd table */
int pt_fds_inject(struct platform *p, const int *fds, unsigned n, int *numbers);
int pt_fds_drop(struct platform *p);

/* proc.c */
struct hostproc *pt_proc_alloc(struct platform *p);
void pt_proc_free(struct hostproc *proc);
/* SIGKILL, and all its contexts become DEAD with a TRAP_EXITED of @status. Frees @proc. */
void pt_proc_kill(struct hostproc *proc, int status);
/* As pt_proc_kill() of a process that has ended by itself. */
void pt_proc_died(struct hostproc *proc, int status);
struct pctx *pt_ctx_alloc(struct platform *p, struct aspace *as, struct hostproc *proc);
void pt_ctx_free(struct pctx *c);
/* The host thread is gone (or will never come back): takes it off all tables. A ghost is freed. */
void pt_ctx_gone(struct pctx *c);

/* ctx.c */
int pt_ctx_create(struct platform *p, struct aspace **as, struct vcpu_ctx **ctx);
int pt_ctx_clone(struct vcpu_ctx *ctx, const struct ctx_clone_args *args, struct aspace **as, struct vcpu_ctx **child);
int pt_ctx_exec(struct vcpu_ctx *ctx, bool alone, struct aspace **as, struct vcpu_ctx **new_ctx);

/* run.c: answering, interrupting, ending */
int pt_ctx_return(struct vcpu_ctx *ctx, int64_t result);
int pt_ctx_resume(struct vcpu_ctx *ctx);
void pt_ctx_interrupt(struct vcpu_ctx *ctx);
void pt_ctx_parked(struct vcpu_ctx *ctx);
void pt_ctx_destroy(struct vcpu_ctx *ctx);
void pt_tell_ghosts(struct platform *p); /* makes destroyed contexts exit */

/* regs.c */
int pt_ctx_regs_get(struct vcpu_ctx *ctx, unsigned flags, struct gregs *regs);
int pt_ctx_regs_set(struct vcpu_ctx *ctx, unsigned flags, const struct gregs *regs);
int pt_ctx_fpu_get(struct vcpu_ctx *ctx, void *buf, size_t *len);
int pt_ctx_fpu_set(struct vcpu_ctx *ctx, const void *buf, size_t len);
int pt_ctx_arch_prctl(struct vcpu_ctx *ctx, int code, uint64_t value);
/* Registers of a program that starts: all 0. */
void pt_regs_fresh(struct pctx *c);

/* aspace.c */
struct aspace *pt_aspace_alloc(struct platform *p);
struct aspace *pt_aspace_get(struct aspace *as);
void pt_aspace_put(struct aspace *as);
int64_t pt_aspace_apply(struct vcpu_ctx *ctx, const struct aspace_op *ops, unsigned n, bool may_resume,
			unsigned *done);
ssize_t pt_read(struct aspace *as, uaddr_t addr, void *buf, size_t n);
ssize_t pt_write(struct aspace *as, uaddr_t addr, const void *buf, size_t n);

/* affinity.c: tracer and tracee on one CPU */
int pt_affinity_start(struct platform *p);
void pt_affinity_stop(struct platform *p);
/* The leader is not bound, or @c is bound elsewhere than it should be. */
void pt_affinity_follow(struct pctx *c);
/* A free context stopped. */
void pt_affinity_stopped(struct pctx *c);
void pt_affinity_tick(struct platform *p);

#endif
