/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The unotify platform's own structures. Host process = hostproc, host thread = uctx, host mm = aspace.
 * All of it is changed by the leader alone; what other threads touch is marked atomic.
 *
 * States of a uctx, by what the leader knows of the host thread:
 *   NEW      its clone was ordered, the first report (with the token) has not come
 *   GUEST    was told to run guest code
 *   CALL     stopped in a notification of its own ("class A"); uctx.id
 *   SHIM     stopped in a notification of the shim ("class B"), its context in a frame in its slot; uctx.id
 *   KICKED   its class-A call was answered, a pending kick brings it into the shim before it runs guest code
 *   ORDERED  carries out uctx.orders
 *   ASLEEP   demoted: sleeps in an ordered rt_sigtimedwait, no notification outstanding
 *   DEAD     gone, or about to by SIGKILL; never received from again
 * From NEW, KICKED, ORDERED and ASLEEP the way leads to SHIM; uctx.goal then says what to do there (uctx_in_shim()).
 * Any notification that does not fit the state kills the host process (violation()).
 */
#ifndef SBX_PLATFORM_UNOTIFY_PRIV_H
#define SBX_PLATFORM_UNOTIFY_PRIV_H

#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/host/thread.h"
#include "base/list.h"
#include "base/ref.h"
#include "platform/platform.h"
#include "platform/stub/fpu.h"
#include "platform/stub/hframe.h"
#include "platform/stub/layout.h"
#include "platform/stub/leader.h"
#include "platform/stub/mem.h"
#include "platform/stub/mmop.h"
#include "platform/stub/spawn.h"

#define TID_BUCKETS 1024u

enum uctx_state {
	UCTX_NEW,
	UCTX_GUEST,
	UCTX_CALL,
	UCTX_SHIM,
	UCTX_KICKED,
	UCTX_ORDERED,
	UCTX_ASLEEP,
	UCTX_DEAD,
};

enum uctx_goal {
	GOAL_STOP,   /* stay: somebody waits for it, or the kernel will say */
	GOAL_SLEEP,  /* demote */
	GOAL_RESUME, /* go on with uctx.reply */
	GOAL_EXIT,   /* the context was destroyed: exit(2) */
};

static_assert(sizeof(struct order) == ORDER_SIZE, "the shim reads it");

struct order_batch {
	unsigned n;
	struct order o[ORDERS_MAX];
};

struct hostproc {
	struct platform *p;
	unsigned idx;      /* in platform.procs, the key of the death watch */
	pid_t pid;         /* in our namespace; 0 until the first report */
	int pidfd;         /* -1: not watched */
	struct list ctxs;  /* by proc_node: all but DEAD ones */
	unsigned n_owned;  /* of them, not yet destroyed by the kernel */
};

struct aspace {
	struct ref ref;
	struct platform *p;
	struct list ctxs;     /* by as_node: born, alive, not destroyed */
	unsigned n_threads;   /* host threads in it, those on their way out too */
	uint64_t *used;       /* slots: bitmaps of slot_words words */
	uint64_t *mapped;
	unsigned slot_words;
};

struct uctx {
	struct vcpu_ctx base;
	struct platform *p;
	struct aspace *as;      /* counted */
	struct hostproc *proc;  /* NULL once DEAD */
	struct list proc_node, as_node;
	struct uctx *tid_next;
	pid_t tid;
	enum uctx_state state;
	enum uctx_goal goal;
	uint64_t id;            /* of the outstanding notification: CALL, SHIM */
	uint64_t frame;         /* guest address of the host's signal frame: SHIM and on */
	uint32_t slot;
	bool owned;             /* ctx_destroy() has not been called */
	bool interrupt;         /* ctx_interrupt() asked, and not yet stopped since */
	bool set_rax;           /* ctx_resume() is to use the frame with rax = 0 (a clone's child) */
	bool cloning;           /* GUEST: tail is of the clone of a thread, and clone_order() waits */
	bool tail;              /* GUEST, but the last order of an answer-and-go-on batch may still report an error */
	bool sleep_order;       /* ORDERED: it is the demotion's */
	bool frame_valid;       /* fr is what is in the slot, or */
	bool frame_dirty;       /* what is to be written there before the thread goes on */
	bool untouched;         /* SHIM: as uctx_spawn() made it, nothing mapped */
	bool bases_zero;        /* SHIM: fs_base and gs_base are known to be 0 */
	uint8_t ghost_ticks;    /* watchdog ticks since destroyed */
	uint64_t token;         /* NEW: single use */
	const struct order *orders;
	unsigned n_orders, i_order, order_cmd;
	struct order own_orders[2]; /* of batches that nobody waits for */
	int64_t result;         /* of the last order */
	bool reply_rax;         /* GOAL_RESUME: with reply in rax */
	int64_t reply;
	struct list trap_node;  /* on platform.traps; also platform.ghosts once destroyed */
	struct list park_node;  /* on platform.parked */
	struct trap trap;
	struct hframe fr;
};

#define WAKE_DEATH 2u /* dead_bits has news */
#define WAKE_TICK  4u /* the watchdog's second has passed */

struct platform {
	const struct platform_up *up;
	void *up_arg;
	struct platform_config cfg;
	struct platform_info info;
	struct stubs stubs;
	struct fpu_layout fpu;
	unsigned park_limit;
	struct uctx *fpu_owner; /* of fpu_area, see regs.c */
	bool fpu_dirty;
	uint8_t *fpu_area;      /* fpu.ext_size bytes */

	int listener;
	int broken; /* -errno: no machine any more */
	struct uctx *zygote;

	struct uctx *tids[TID_BUCKETS];
	struct hostproc **procs;
	unsigned n_procs, max_procs, proc_hint;
	unsigned n_ctxs;
	struct list births;       /* NEW contexts, by as_node */
	struct list traps;        /* to be delivered by run(), by trap_node */
	struct list ghosts;       /* destroyed, host thread not yet gone, by trap_node */
	bool ghosts_new;          /* some of them have not been told */
	struct list parked;       /* ctx_parked() with a notification outstanding, oldest first */
	unsigned n_parked;
	unsigned wait_ticks;

	struct leader leader;     /* wake_bits: WAKE_* */
	uint32_t timer_armed;     /* atomic */
	uint32_t quit;            /* atomic: the death watch is to end */
	uint64_t *dead_bits;      /* atomic words: procs whose pidfd became readable */
	int epfd, timerfd;
	struct host_thread watcher;
	bool watcher_up;
};

static inline struct uctx *uctx_of(struct vcpu_ctx *ctx)
{
	return container_of(ctx, struct uctx, base);
}

static inline uint64_t slot_base(uint32_t slot)
{
	return SLOT_BASE + (uint64_t)slot * SLOT_SIZE;
}

static inline bool uctx_stopped(const struct uctx *c)
{
	return c->state == UCTX_CALL || c->state == UCTX_SHIM ||
	       (c->goal == GOAL_SLEEP && c->state >= UCTX_KICKED && c->state <= UCTX_ASLEEP);
}

/* start.c */
int unotify_start(const struct platform_config *cfg, const struct platform_up *up, void *arg,
		  struct platform **ret, struct sbx_err *err);
void unotify_destroy(struct platform *p);
void unotify_abandon(struct platform *p);

/* listener.c: the notification fd */
/* Receives one notification: 0, -EINTR after a wake-up, -ENOENT for one that vanished, -ENOTCONN when no stub is left.
 */
int listener_recv(struct platform *p, struct seccomp_notif *n);
int listener_send(struct platform *p, uint64_t id, int64_t val);
int listener_continue(struct platform *p, uint64_t id);
int listener_addfd(struct platform *p, uint64_t id, int fd, int at);
bool listener_id_valid(struct platform *p, uint64_t id);

/* event.c: what a notification means */
void event_handle(struct platform *p, const struct seccomp_notif *n);
/* Receives and handles one notification, or what a wake-up was for. Queues traps. 0, or -errno: no machine any more. */
int event_pump(struct platform *p);
/* Pumps until @c is in the shim: 0, or -ESRCH when it died or did not answer in time (then its process is killed). */
int event_wait_shim(struct uctx *c);
/* The same for @child, of which @parent's own report may tell that it will never come: -EAGAIN. */
int event_wait_birth(struct uctx *child, const struct uctx *parent);
void trap_raise(struct uctx *c, enum trap_kind kind);
/* @c has arrived in the shim: go on with its goal. */
void uctx_in_shim(struct uctx *c);

/* order.c */
static inline void order_add(struct order_batch *b, uint64_t nr, uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3,
			     uint64_t a4, uint64_t a5)
{
	b->o[b->n++] = (struct order){ nr, { a0, a1, a2, a3, a4, a5 } };
}
/* Hands @n orders to @c (SHIM) with a SHIM_ORDER* command and returns at once; @orders must live until it is done.
 * @rax: also put into the frame (for SHIM_ORDER_KEEP and _CLONE), or NULL. 0 or -ESRCH. */
int order_send(struct uctx *c, const struct order *orders, unsigned n, unsigned cmd, const uint64_t *rax);
/* Executes @b and waits. Returns the number of orders that succeeded, *result is of the last one executed; or -ESRCH.
 */
int order_run(struct uctx *c, const struct order_batch *b, int64_t *result);
/* A single order: its result, or -ESRCH. */
int64_t order_run1(struct uctx *c, const struct order *o);
/* Orders that nobody waits for. When they cannot be given the process is killed, and a destroyed context freed. */
int order_sleep(struct uctx *c);
int order_exit(struct uctx *c);

/* ctx.c */
struct uctx *uctx_alloc(struct platform *p, struct aspace *as, struct hostproc *proc);
void uctx_free(struct uctx *c);
/* Brings a stopped context into the shim: 0 or -ESRCH, -EBUSY when it is not stopped. */
int uctx_to_shim(struct uctx *c);
void uctx_kick(struct uctx *c);
void uctx_unpark(struct uctx *c);
/* Lets a context in SHIM run, with its frame as it is, or with @val in rax. */
int uctx_go(struct uctx *c, bool set_rax, int64_t val);
/* The host thread is gone (or will never come back): takes it off all tables. A ghost is freed. */
void uctx_gone(struct uctx *c);
/* What the zygote is told to clone: a child that waits in the shim at the zygote's frame. */
int uctx_spawn(struct platform *p, struct uctx **ret);
int unotify_ctx_create(struct platform *p, struct aspace **as, struct vcpu_ctx **ctx);
int unotify_ctx_clone(struct vcpu_ctx *ctx, const struct ctx_clone_args *args, struct aspace **as,
		      struct vcpu_ctx **child);
int unotify_ctx_exec(struct vcpu_ctx *ctx, bool alone, struct aspace **as, struct vcpu_ctx **new_ctx);

/* run.c: answering, interrupting, parking, ending */
void uctx_tell_ghosts(struct platform *p); /* makes destroyed contexts exit */
/* Answers a class-A call with a kick pending, so that the thread comes to the shim. */
int uctx_escalate(struct uctx *c);
void unotify_ctx_destroy(struct vcpu_ctx *ctx);
int unotify_ctx_return(struct vcpu_ctx *ctx, int64_t result);
int unotify_ctx_resume(struct vcpu_ctx *ctx);
void unotify_ctx_interrupt(struct vcpu_ctx *ctx);
void unotify_ctx_parked(struct vcpu_ctx *ctx);

/* regs.c */
int unotify_ctx_regs_get(struct vcpu_ctx *ctx, unsigned flags, struct gregs *regs);
int unotify_ctx_regs_set(struct vcpu_ctx *ctx, unsigned flags, const struct gregs *regs);
int unotify_ctx_fpu_get(struct vcpu_ctx *ctx, void *buf, size_t *len);
int unotify_ctx_fpu_set(struct vcpu_ctx *ctx, const void *buf, size_t len);
int unotify_ctx_arch_prctl(struct vcpu_ctx *ctx, int code, uint64_t value);
/* Reads uctx.fr if it is not valid. @fpu: the caller will want the FPU state as well. */
int frame_load(struct uctx *c, bool fpu);
/* uctx.fr is to be the frame. It is written when the thread goes on, or by frame_flush(): 0, -EFAULT, -ESRCH. */
void frame_changed(struct uctx *c);
int frame_flush(struct uctx *c);
/* The thread has run: what we know of the frame is old. */
void frame_forget(struct uctx *c);
/* A frame that starts a program: no FPU state, all registers 0. */
void frame_init_fresh(struct uctx *c);
/* Copies @c's frame with its FPU state into @child's slot (same aspace); rax = 0. Sets child->frame. */
int frame_copy(struct uctx *c, struct uctx *child, uint64_t rsp);

/* aspace.c */
struct aspace *aspace_alloc(struct platform *p);
struct aspace *aspace_dup(const struct aspace *as, uint32_t keep_slot);
struct aspace *unotify_aspace_get(struct aspace *as);
void unotify_aspace_put(struct aspace *as);
int64_t unotify_aspace_apply(struct vcpu_ctx *ctx, const struct aspace_op *ops, unsigned n, bool may_resume,
			     unsigned *done);
/* Takes a free slot, mapping more of them by orders to @c: its number or -errno. */
int aspace_slot_get(struct aspace *as, struct uctx *c);
void aspace_slot_put(struct aspace *as, uint32_t slot);
/* Orders that remove every guest mapping. */
void aspace_add_clear_orders(const struct platform *p, struct order_batch *b);

/* mem.c */
ssize_t unotify_read(struct aspace *as, uaddr_t addr, void *buf, size_t n);
ssize_t unotify_write(struct aspace *as, uaddr_t addr, const void *buf, size_t n);

/* proc.c */
struct hostproc *proc_alloc(struct platform *p);
/* Its first thread reported. 0 or -errno. */
int proc_born(struct hostproc *proc, pid_t pid);
void proc_free(struct hostproc *proc);
/* SIGKILL, and all its contexts become DEAD with a TRAP_EXITED of @status. Frees @proc. */
void proc_kill(struct hostproc *proc, int status);
/* Whether it has ended by itself; then its contexts are DEAD and it is freed. */
bool proc_check_dead(struct hostproc *proc);
/* It has ended by itself: as proc_kill() without the signal. */
void proc_died(struct hostproc *proc, int status);

/* deathwatch.c: the helper thread */
int deathwatch_start(struct platform *p);
void deathwatch_stop(struct platform *p);
int deathwatch_add(struct platform *p, int pidfd, unsigned idx);
void deathwatch_collect(struct platform *p); /* leader: WAKE_DEATH */
void watchdog_arm(struct platform *p);       /* leader: a WAKE_TICK within a second */
void watchdog_tick(struct platform *p);      /* leader: WAKE_TICK */

#endif
