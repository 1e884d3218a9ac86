/* SPDX-License-Identifier: Apache-2.0 */
/* What the files sig*.c, itimer.c and posix_timer.c share; nobody else looks in here. */
#ifndef SBX_SENTRY_KERNEL_SIG_PRIV_H
#define SBX_SENTRY_KERNEL_SIG_PRIV_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "sentry/kernel/sig.h"
#include "sentry/kernel/task.h"
#include "sentry/kernel/timer.h"

#define SIG_RTMIN 32

/* Queued signals with siginfo in the whole sandbox, however high its root user sets RLIMIT_SIGPENDING. */
#define SIG_ENTRIES_MAX 65536ull

#define SIG_UNBLOCKABLE (SIG_BIT(SIGKILL) | SIG_BIT(SIGSTOP))
#define SIG_STOP_SET    (SIG_BIT(SIGSTOP) | SIG_BIT(SIGTSTP) | SIG_BIT(SIGTTIN) | SIG_BIT(SIGTTOU))
#define SIG_IGNORE_SET  (SIG_BIT(SIGCONT) | SIG_BIT(SIGCHLD) | SIG_BIT(SIGWINCH) | SIG_BIT(SIGURG))
#define SIG_CORE_SET                                                                               \
	(SIG_BIT(SIGQUIT) | SIG_BIT(SIGILL) | SIG_BIT(SIGTRAP) | SIG_BIT(SIGABRT) |                \
	 SIG_BIT(SIGFPE) | SIG_BIT(SIGSEGV) | SIG_BIT(SIGBUS) | SIG_BIT(SIGSYS) |                  \
	 SIG_BIT(SIGXCPU) | SIG_BIT(SIGXFSZ))
#define SIG_SYNC_SET                                                                               \
	(SIG_BIT(SIGSEGV) | SIG_BIT(SIGBUS) | SIG_BIT(SIGILL) | SIG_BIT(SIGTRAP) |                 \
	 SIG_BIT(SIGFPE) | SIG_BIT(SIGSYS))

/*
 * A queued signal with its siginfo. The set of a queue may hold a signal without an entry: when its
 * siginfo could not be kept (memory, limit), as Linux does; it is then told as SI_USER from nobody.
 */
struct sig_entry {
	struct list node; /* on sigqueue.entries, in order of arrival; alone while not queued */
	struct linux_siginfo info;
	/* Embedded in a POSIX timer: not freed. Called when it is taken off to be delivered. NULL:
	 * heap, counted. */
	void (*taken)(struct sig_entry *e, struct linux_siginfo *info);
	struct sigqueue *q; /* while queued */
};

struct sigqueue {
	uint64_t set;
	struct list entries;
};

/* Of a task: task.sig_pending points to its first member. */
struct sig_thread {
	struct sigqueue q;
	uint64_t wait_set;  /* sigtimedwait(2) in progress: these wake the call though blocked */
	bool stop_pending;  /* a group stop waits for this thread */
	bool parked;        /* TASK_STOPPED by sig_deliver(), or on its way back from there */
	bool frozen;        /* parked by futex_freeze.c, not by a stop */
	bool parked_regs;   /* and handlers' frames were pushed before */
	int64_t parked_result;
	uint64_t err, trapno, cr2; /* of the last exception, for the frame */
};

/* CPU-time interval timers: ITIMER_VIRTUAL (user), ITIMER_PROF (both). */
struct cpu_itimer {
	uint64_t expires, interval; /* ns of the group's CPU time; expires 0: off */
};

/* Of a tgroup: tgroup.shared_pending points to its first member. */
struct sig_group {
	struct sigqueue q;
	struct tgroup *tg;
	unsigned stop_count;      /* threads that a group stop still waits for */
	int stop_signo;
	struct ktimer kill_timer; /* the end of our patience with a SIGKILLed group that does not
				     stop by itself */
	struct cpu_itimer virt, prof;
	struct ktimer cpu_tick;   /* samples CPU time while virt or prof is armed */
	int next_timer_id;
	unsigned n_timers;
};

static inline struct sig_thread *sig_thread(const struct task *t)
{
	return t->sig_pending ? container_of(t->sig_pending, struct sig_thread, q) : NULL;
}

static inline struct sig_group *sig_group(const struct tgroup *tg)
{
	return tg->shared_pending ? container_of(tg->shared_pending, struct sig_group, q) : NULL;
}

/* sig_queue.c */
void sigqueue_init(struct sigqueue *q);
void sigqueue_flush(struct sigqueue *q, uint64_t set); /* drops the signals of @set */
/* Adds @sig; @info is copied. @limit bounds heap entries of the whole sandbox. Returns -EAGAIN for
 * a real-time signal from sigqueue(3) that finds no room; else 0, with or without an entry. */
int sigqueue_add(struct sigqueue *q, int sig, const struct linux_siginfo *info, uint64_t limit);
void sigqueue_add_entry(struct sigqueue *q, int sig, struct sig_entry *e);
void sigqueue_remove_entry(struct sig_entry *e); /* undelivered; harmless when not queued */
/* The next of @set: synchronous ones first, then the lowest number; 0: none. */
int sigqueue_take(struct sigqueue *q, uint64_t set, struct linux_siginfo *info);
/* A queued processor exception (si_code > 0): before anything else. */
int sigqueue_take_fault(struct sigqueue *q, uint64_t set, struct linux_siginfo *info);
unsigned sigqueue_count(void); /* heap entries in all queues */

/* sig.c */
bool sig_is_ignored(const struct task *t, int sig);
/* As sig_send_*, with an entry that the caller owns; @t NULL: the group. Returns false when the
 * signal was ignored (not queued) and true when it is queued now. */
bool sig_send_entry(struct tgroup *tg, struct task *t, int sig, struct sig_entry *e);
/* Makes @t look at its signals soon. */
void sig_kick(struct task *t);
struct task *sig_any_task(
	const struct tgroup *tg); /* the leader while it lives, else some live thread, else NULL */
void sig_unshare_stop(struct task *t); /* a thread leaves a group stop under way */

/* sig_deliver.c */
void sig_stop_complete(struct tgroup *tg); /* the last thread has stopped */

#endif
