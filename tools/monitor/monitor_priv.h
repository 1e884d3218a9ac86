/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the monitor. */
#ifndef SBX_TOOLS_MONITOR_MONITOR_PRIV_H
#define SBX_TOOLS_MONITOR_MONITOR_PRIV_H

#include <limits.h>

#include "sentry/control/channel.h"
#include "tools/monitor/cgroup.h"
#include "tools/monitor/events.h"
#include "tools/monitor/helper.h"
#include "tools/monitor/monitor.h"
#include "tools/monitor/usage.h"

#define NEVER UINT64_MAX
#define STREAM_CHUNK (64u * 1024) /* what a pipe holds: one wake-up of ours for each */

/*
 * One output stream that goes through us: guest -> pipe -> keep and pass on. Reading stops while
 * something waits to be passed on, so a slow reader slows the guest and not us.
 */
struct stream {
	int from;            /* read end; -1: none or at end of file */
	int to;              /* our stdout or stderr; -1: not passed on */
	struct output *keep; /* NULL: not kept */
	const char *name;
	bool nowait;         /* @to takes writes that do not block */
	size_t step;         /* else this many bytes never block once poll said ready */
	uint8_t *pending;    /* STREAM_CHUNK bytes; NULL: no stream */
	size_t at, len;      /* of pending */
};

enum stop_reason {
	STOP_NONE,
	STOP_TIMEOUT,
	STOP_IDLE,
	STOP_OOM,
	STOP_CPU,
	STOP_SIGNAL,
	STOP_FAILED
};

/* What a helper may still write to the audit log (messages.c). */
struct audit_budget {
	uint64_t at_ns; /* filled up to this time */
	uint32_t left;
};

struct run {
	const struct run_spec *spec;
	struct run_result *res;
	struct helper gofer, sentry;
	int sigfd;
	int guest_stdio[3];  /* what the sentry gets; -1 once sent */
	bool guest_owned[3]; /* and is ours to close */
	struct stream streams[2];
	struct audit_budget audit_budget[2]; /* of the gofer and of the sentry */
	struct events events;
	struct usage usage;   /* without a control group */
	struct cgroup cgroup;
	struct cgroup_usage counted; /* what that says */
	pid_t *earlier_children; /* of the process before we became its program; not ours to kill;
	                            ends with 0 */
	unsigned signals_seen;
	enum stop_reason stop;
	int stop_signo;
	const char *failure; /* of STOP_FAILED; lives as long as this */
	char gofer_error[300];
	bool started;      /* the sentry said so */
	bool start_failed; /* with res->exit_code and message set */
	bool exited;       /* the sentry reported the program's end, before we stopped it */
	bool reported;     /* the sentry made its last report, of either */
	size_t change_bytes; /* kept so far */
	int wait_status;
	bool hit_tasks, hit_disk, hit_memory, hit_cpu, banned;
	uint64_t t_start, t_wall, t_idle, t_sample, t_grace; /* monotonic ns; NEVER */
};

uint64_t now_ns(void);

/*
 * Stops the sandbox; the first reason counts. For a deadline or a limit the sentry gets a moment to
 * kill its guest and report what that changed; else, and after that, it is killed, and everything
 * else follows.
 */
void run_stop(struct run *r, enum stop_reason why);
void run_fail(struct run *r, const char *failure); /* @failure is borrowed */

/* Takes the numbers of the control group, if there is one. */
void run_read_cgroup(struct run *r);

/* messages.c: takes one message of a helper without blocking. Returns false when there was none;
 * the connection is closed at its end, and when the helper sent nonsense, which also stops the
 * sandbox. */
bool run_receive(struct run *r, struct helper *h);

/* streams.c */
MUST_CHECK int streams_open(struct run *r, struct sbx_err *err);
void stream_read(struct run *r, struct stream *s);
void stream_write(struct run *r, struct stream *s);
void stream_close(struct stream *s); /* at end of file */
void stream_fini(struct stream *s);

/* reap.c */
MUST_CHECK int reap_prepare(struct run *r, struct sbx_err *err);
/* Kills and reaps until no descendant is left. Both helpers must have been killed. */
void reap_all(struct run *r);

/* outcome.c: status, exit code and message from what was seen. */
void run_outcome(struct run *r);

/* audit records of the monitor itself; nothing without a log */
void run_audit(struct run *r, const char *class, const char *op, const char *object,
               const char *verdict, const char *rule, const char *reason);

#endif
