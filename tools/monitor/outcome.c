/* SPDX-License-Identifier: Apache-2.0 */
/* What the run ends with, from what was seen; the table of exit codes is in tools/sbx/help.c. */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "tools/monitor/monitor_priv.h"

static void PRINTF(4, 5)
	outcome(struct run *r, enum run_status status, int code, const char *fmt, ...)
{
	va_list ap;

	r->res->status = status;
	r->res->exit_code = code;
	va_start(ap, fmt);
	vsnprintf(r->res->message, sizeof(r->res->message), fmt, ap);
	va_end(ap);
}

/* "60", "0.5" */
static const char *seconds(uint64_t ms, char *buf, size_t cap)
{
	if (ms % 1000)
		snprintf(buf, cap, "%g", (double)ms / 1000);
	else
		snprintf(buf, cap, "%llu", (unsigned long long)ms / 1000);
	return buf;
}

static void sentry_died(struct run *r)
{
	int st = r->sentry.status;

	if (WIFSIGNALED(st) && WTERMSIG(st) == SIGSYS)
		outcome(r, RUN_POLICY_KILLED, EXIT_SBX,
		        "sbx-sentry made a host call that its filter forbids");
	else if (WIFSIGNALED(st))
		outcome(r, RUN_INTERNAL_ERROR, EXIT_SBX, "sbx-sentry died of signal %d (%s)",
		        WTERMSIG(st), strsignal(WTERMSIG(st)));
	else
		outcome(r, RUN_INTERNAL_ERROR, EXIT_SBX,
		        "sbx-sentry ended with status %d before its guest", WEXITSTATUS(st));
}

static void stopped(struct run *r)
{
	const struct policy *p = r->spec->policy;
	char s[32];

	switch (r->stop) {
	case STOP_TIMEOUT:
		outcome(r, RUN_TIMEOUT, EXIT_TIMEOUT, "Execution Timed Out after %s seconds.",
		        seconds(p->timeout_ms, s, sizeof(s)));
		break;
	case STOP_IDLE:
		outcome(r, RUN_IDLE_TIMEOUT, EXIT_TIMEOUT,
		        "Execution Timed Out after %s seconds without output.",
		        seconds(p->idle_timeout_ms, s, sizeof(s)));
		break;
	case STOP_OOM:
		outcome(r, RUN_OOM, 128 + SIGKILL, "Memory limit of %llu bytes reached.",
		        (unsigned long long)p->limits[LIMIT_MEMORY]);
		break;
	case STOP_CPU:
		outcome(r, RUN_TIMEOUT, EXIT_TIMEOUT, "CPU time limit of %s seconds reached.",
		        seconds(p->limits[LIMIT_CPU], s, sizeof(s)));
		break;
	case STOP_SIGNAL:
		outcome(r, RUN_SIGNALED, 128 + r->stop_signo, "stopped by signal %d",
		        r->stop_signo);
		r->res->signo = r->stop_signo;
		break;
	case STOP_FAILED:
		outcome(r, RUN_INTERNAL_ERROR, EXIT_SBX, "%s", r->failure);
		break;
	case STOP_NONE:
		break;
	}
}

/* A limit that the program ran into is its status when it failed; a program that coped has simply
 * exited. */
static void exited(struct run *r)
{
	int st = r->wait_status;
	bool failed = st != 0;

	r->res->message[0] = '\0';
	if (WIFSIGNALED(st)) {
		r->res->signo = WTERMSIG(st);
		r->res->exit_code = 128 + WTERMSIG(st);
		r->res->status = RUN_SIGNALED;
	} else {
		r->res->exit_code = WEXITSTATUS(st);
		r->res->status = RUN_EXITED;
	}
	if (r->banned && WIFEXITED(st) && WEXITSTATUS(st) == EXIT_REFUSED)
		outcome(r, RUN_BANNED, EXIT_REFUSED, "%s", RUN_BAN_MESSAGE);
	else if (failed && r->hit_memory)
		r->res->status = RUN_OOM;
	else if (failed && r->hit_cpu)
		outcome(r, RUN_TIMEOUT, EXIT_TIMEOUT, "CPU time limit reached.");
	else if (failed && r->hit_tasks)
		r->res->status = RUN_TASK_LIMIT;
	else if (failed && r->hit_disk)
		r->res->status = RUN_DISK_LIMIT;
}

/* The host's own count is exact; the sentry's is an estimate; a killed guest has what was last seen. */
static void set_usage(struct run *r)
{
	struct run_usage *u = &r->res->usage;

	if (r->cgroup.kind != CGROUP_NONE)
		u->max_rss = r->counted.memory_peak;
	else
		u->max_rss = MAX(u->max_rss, r->usage.memory_peak);
	if (r->counted.cpu_known) {
		u->cpu_user_ms = r->counted.cpu_user_us / 1000;
		u->cpu_sys_ms = r->counted.cpu_sys_us / 1000;
	} else if (r->stop != STOP_NONE && !u->cpu_user_ms && !u->cpu_sys_ms) {
		u->cpu_user_ms = r->usage.cpu_ms;
	}
}

/* The host kills where it is out of room, be it the guest's process or one of ours: none of these is the cause. */
static void blame_memory(struct run *r)
{
	bool failed = !r->exited || r->wait_status != 0;

	if (r->counted.oom_kills && failed && (r->stop == STOP_NONE || r->stop == STOP_FAILED)) {
		r->stop = STOP_OOM;
		r->exited = false;
	}
}

/* The list of changes would be taken for complete. */
static void say_unknown(struct run *r)
{
	size_t n = strlen(r->res->message);
	bool sentence = !n || r->res->message[n - 1] == '.';

	snprintf(r->res->message + n, sizeof(r->res->message) - n, "%s", sentence ? &" What it changed is not known."[!n] :
		 "; what it changed is not known");
}

void run_outcome(struct run *r)
{
	set_usage(r);
	blame_memory(r);
	if (r->exited && r->stop != STOP_FAILED)
		exited(r);
	else if (r->stop != STOP_NONE)
		stopped(r);
	else if (r->start_failed)
		r->res->status = !strcmp(r->res->message, RUN_BAN_MESSAGE) ? RUN_BANNED
		                 : r->res->exit_code == EXIT_SBX           ? RUN_INTERNAL_ERROR
		                                                           : RUN_EXITED;
	else
		sentry_died(r);
	if (r->started && !r->start_failed && !r->reported)
		say_unknown(r);
}
