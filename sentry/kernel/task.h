/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks and thread groups. Linux vocabulary: a task is a thread, a tgroup a process.
 *
 * Run states of a task and who moves them:
 *   TASK_RUNNING   guest code runs, or a trap of it is being handled by the leader
 *   TASK_BLOCKED   its call returned SYS_BLOCKED; on wait queues (waitq_wake or its timer moves it to RUNNABLE)
 *   TASK_RUNNABLE  on kernel.runq; the leader runs its call again
 *   TASK_STOPPED   job control stop, its trap unanswered (SIGCONT or SIGKILL moves it)
 *   TASK_ZOMBIE    exited; a leader stays until waited for
 */
#ifndef SBX_SENTRY_KERNEL_TASK_H
#define SBX_SENTRY_KERNEL_TASK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/list.h"
#include "base/ref.h"
#include "platform/platform.h"
#include "sentry/kernel/timer.h"
#include "sentry/kernel/waitq.h"
#include "sentry/syscalls/sysargs.h"

struct aspace;
struct cred;
struct fdtable;
struct file;
struct fs_ctx;
struct mm;
struct sighand;
struct sigqueue;
struct tgroup;
struct vcpu_ctx;

enum task_state { TASK_RUNNING, TASK_BLOCKED, TASK_RUNNABLE, TASK_STOPPED, TASK_ZOMBIE };

#define TASK_WAITERS_INLINE 2

struct task_waiter {
	struct waiter w;
	struct task *task;
};

/* The system call in progress; kept over its runs, cleared when it ends. */
struct sysop {
	uint64_t nr;
	struct sysargs args;
	bool restarted;      /* this is not the first run */
	bool timed_out;
	bool woken;          /* a wait queue fired before the call blocked */
	bool input_wait;     /* counted in kernel.input_waiters */
	uint64_t progress;   /* bytes done so far, for the call's own use */
	uint64_t scratch[4]; /* for the call's own use */
	void *data;          /* owned; freed by data_free when the call ends */
	void (*data_free)(void *data);
	struct ktimer timer; /* the deadline */
	bool has_deadline;
	struct task_waiter inline_waiters[TASK_WAITERS_INLINE];
	struct task_waiter *more_waiters; /* array, for poll */
	unsigned n_waiters, cap_more;
};

#define TASK_COMM_LEN  16
#define TASK_CPU_WORDS 2 /* of affinity masks: 128 processors */

struct task {
	struct ref ref;
	pid_t tid;
	struct tgroup *tg;       /* counted */
	struct vcpu_ctx *ctx;    /* owned; NULL once dead */
	struct list tg_node;     /* on tg->tasks */

	enum task_state state;
	bool in_syscall;         /* stopped in a system call (op is valid) */
	struct list runq_node;
	struct sysop op;

	struct mm *mm;           /* counted; NULL once exited */
	struct fdtable *fdt;     /* counted, may be shared (CLONE_FILES) */
	struct fs_ctx *fs;       /* counted, cwd root umask, may be shared (CLONE_FS) */
	struct cred *cred;       /* counted */
	struct sighand *sighand; /* counted, may be shared (CLONE_SIGHAND) */

	/* Signals (kernel/sig.h). Bit n-1 is signal n. */
	uint64_t sig_blocked;
	uint64_t sig_saved_mask; /* of sigsuspend, ppoll: restored when no handler ran */
	bool sig_restore_mask;
	struct sigqueue *sig_pending; /* this thread's */
	uaddr_t altstack_sp;
	uint64_t altstack_size;
	int altstack_flags;

	uaddr_t clear_tid;       /* set_tid_address(2) */
	uaddr_t robust_list;     /* get_robust_list(2) */
	uint64_t robust_len;
	char comm[TASK_COMM_LEN];
	int pdeath_signal;
	int exit_code;           /* wait(2) status */
	bool exiting;
	uint64_t start_ns;       /* CLOCK_MONOTONIC */
	uint64_t utime_ns, stime_ns; /* of ended accounting periods; read by task_times() */
	uint64_t stamp;          /* cputime_now() when the present period began */
	struct task *vfork_parent; /* counted: waits until we exec or exit */
	bool vfork_waiting;      /* it does */

	/* Scheduling attributes: kept and reported, without effect on the host. */
	int nice, sched_policy, sched_prio;
	bool sched_reset_on_fork;
	uint64_t affinity[TASK_CPU_WORDS];
	uint64_t timer_slack_ns;
	uint32_t personality;
};

/* The limits of getrlimit(2), in the order of RLIMIT_*. */
struct rlimit_pair {
	uint64_t cur, max;
};
#define RLIMIT_COUNT 16

struct tgroup {
	struct ref ref;
	pid_t tgid, pgid, sid;
	struct task *leader;     /* counted; NULL once reaped; after exec of another thread that thread */
	struct list tasks;       /* live tasks */
	unsigned n_tasks;
	struct tgroup *parent;   /* borrowed; reparented before it goes. NULL: the init process */
	pid_t parent_tid;        /* the thread of it that is our parent (__WNOTHREAD, PR_SET_PDEATHSIG) */
	struct list children;    /* by sibling */
	struct list sibling;
	struct list all_node;    /* on kernel.tgroups */
	struct waitq child_wq;   /* wait4(2): child events */
	struct waitq exit_wq;    /* pidfd: POLLIN once dead */
	struct sigqueue *shared_pending;

	bool execed;             /* setpgid(2) by the parent is then EACCES */
	bool is_subreaper;
	bool has_subreaper;      /* an ancestor is one */
	bool group_exit;
	int group_exit_code;     /* wait(2) status */
	bool stopped;            /* job control */
	int stop_signal;         /* reported by WUNTRACED when not yet waited for */
	bool stop_reported, continued; /* the stop was waited for; a SIGCONT was not yet */
	bool dead;               /* zombie: no task left */
	bool reaped;             /* and waited for: no number any more */
	int exit_signal;         /* to the parent; 0: none */

	struct rlimit_pair rlim[RLIMIT_COUNT];
	struct ktimer itimer_real;
	uint64_t itimer_real_interval;
	struct list posix_timers;
	uint64_t utime_ns, stime_ns, child_utime_ns, child_stime_ns; /* of ended threads; of waited-for children */
	uint64_t max_rss_kib, child_max_rss_kib;
	char *exe_path;          /* owned; the absolute guest path of the program, for /proc and the audit */
	uint32_t oom_score_adj;
	bool dumpable;
};

struct task *task_get(struct task *t);
void task_put(struct task *t);

/* By number in the sandbox's pid namespace; counted, or NULL. Zombies that wait for their parent are found. */
struct task *task_lookup(pid_t tid);
struct tgroup *tgroup_lookup(pid_t tgid);
struct tgroup *tgroup_get(struct tgroup *tg);
void tgroup_put(struct tgroup *tg);
/* Is @pgid in use as a process group (of session *sid), or @sid as a session? */
bool pgrp_exists(pid_t pgid, pid_t *sid);

/* For the call in progress: no signal or other exit work is pending, so that ASPACE_RESUMED is allowed. */
bool task_may_resume(const struct task *t);
/* Keeps @data until the current call ends (it may run again before); replaces what was held. */
void task_op_hold(struct task *t, void *data, void (*data_free)(void *data));

/* Ends the thread (or the group with @status as of wait(2)). The caller returns SYS_NO_RETURN at once. Both also work
 * on other tasks than the caller, in any state: the host threads are gone on return. */
void task_exit(struct task *t, int status);
void tgroup_exit(struct tgroup *tg, int status);

/* For the default action of SIGTSTP, SIGTTIN and SIGTTOU, which an orphaned process group does not take. */
bool pgrp_is_orphaned(pid_t pgid);

uint64_t task_rlimit(const struct task *t, unsigned resource); /* the soft limit; RLIM_INFINITY as UINT64_MAX */

/* CPU time so far, ns, the present period included; an estimate (kernel/cputime.h). */
void task_times(const struct task *t, uint64_t *utime_ns, uint64_t *stime_ns);
void tgroup_times(const struct tgroup *tg, uint64_t *utime_ns, uint64_t *stime_ns);

/* Called by execve once the new image is in place: closes CLOEXEC fds, resets handlers, ends the other threads,
 * releases a vfork parent, applies comm and exe_path (consumed). */
void task_exec_done(struct task *t, const char *comm, char *exe_path);

/*
 * The first process (pid 2; pid 1 is the kernel's own reaper): a context from the platform in an empty address space,
 * STOPPED: the caller opens the program and calls exec_load(). References are taken; the result is the caller's.
 * NULL with *err (-errno) on failure.
 */
struct task *task_create_first(struct cred *cred, struct fs_ctx *fs, struct fdtable *fdt, int *err);

#endif
