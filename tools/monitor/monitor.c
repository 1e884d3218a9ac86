/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of one sandbox, seen from outside:
 *
 *   starting   gofer and sentry are spawned and get their configuration; they boot side by side
 *   running    one poll loop: messages, output, signals, deadlines, samples of memory and CPU time
 *   stopping   the sentry was killed (deadline, limit, second signal, a broken helper), or reported
 * the end of the program and has a moment to leave by itself gone       the sentry is reaped; the
 * gofer is killed, leftovers are killed and reaped, output is drained
 *
 * Nothing in this file trusts the sentry: it can lie about its guest's status, and no more.
 * Deadlines and limits are kept with our own clock and our own readings; whatever dies or talks
 * nonsense ends the sandbox.
 */
#include "tools/monitor/monitor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/host/file.h"
#include "base/host/spawn.h"
#include "base/log.h"
#include "policy/roles.h"
#include "tools/monitor/config.h"
#include "tools/monitor/monitor_priv.h"
#include "tools/monitor/result.h"
#include "tools/monitor/store_disk.h"

#define NSEC_PER_MSEC  1000000ull
#define EXIT_GRACE_NS  (2 * NSEC_PER_SEC)      /* for the sentry to leave after its report */
#define STOP_GRACE_NS  (500 * NSEC_PER_MSEC)   /* for it to report when we end its guest */
#define OOM_GRACE_NS   (100 * NSEC_PER_MSEC)   /* the same, while nothing but us keeps the guest from taking more */
#define SAMPLE_NS      (50 * NSEC_PER_MSEC)
#define SAMPLE_SHARE   20                      /* a sample takes at most one part in this many of the time */
#define FLUSH_GRACE_NS NSEC_PER_SEC            /* for our reader to take the last output of a stopped sandbox */

uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec;
}

static bool send_signal(struct run *r, int signo)
{
	Sbx__Control__Message m = SBX__CONTROL__MESSAGE__INIT;
	Sbx__Control__Signal s = SBX__CONTROL__SIGNAL__INIT;

	s.signo = signo;
	m.m_case = SBX__CONTROL__MESSAGE__M_SIGNAL;
	m.signal = &s;
	return control_send(r->sentry.control, &m, NULL, 0) == 0;
}

/* How long the sentry has for its report. */
static uint64_t stop_grace(const struct run *r, enum stop_reason why)
{
	if (!r->started || r->reported)
		return 0;
	switch (why) {
	case STOP_TIMEOUT:
	case STOP_IDLE:
	case STOP_CPU:
		return STOP_GRACE_NS;
	case STOP_OOM:
		return r->cgroup.kind != CGROUP_NONE ? STOP_GRACE_NS : OOM_GRACE_NS;
	default:
		return 0;
	}
}

void run_stop(struct run *r, enum stop_reason why)
{
	uint64_t grace = stop_grace(r, why);

	if (r->stop != STOP_NONE && grace)
		return; /* it is being stopped */
	if (r->stop == STOP_NONE)
		r->stop = why;
	if (grace && send_signal(r, 0))
		r->t_grace = now_ns() + grace;
	else
		helper_kill(&r->sentry);
}

void run_fail(struct run *r, const char *failure)
{
	if (r->stop == STOP_NONE)
		r->failure = failure;
	run_stop(r, STOP_FAILED);
}

/* The signals that end sbx go to the guest first. */
static int open_signals(struct run *r, struct sbx_err *err)
{
	static const int ends[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	struct sigaction old;
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		/* What the caller has us ignore (nohup) stays ignored; once blocked it would be
		 * queued. */
		if (sigaction(ends[i], NULL, &old) < 0 || old.sa_handler != SIG_IGN)
			sigaddset(&set, ends[i]);
	}
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	r->sigfd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return r->sigfd < 0 ? sbx_fail(err, -errno, "signalfd") : 0;
}

static int start_helpers(struct run *r, struct sbx_err *err)
{
	int null = host_open("/dev/null", O_RDWR, 0), sv[2], ret;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) < 0) {
		host_close(null);
		return sbx_fail(err, -errno, "socket of sentry and gofer");
	}
	/* The sentry first: it has more to do before it needs the other. */
	ret = helper_start(&r->sentry, sv[0], null, err);
	if (!ret)
		ret = helper_start(&r->gofer, sv[1], null, err);
	host_close(sv[0]);
	host_close(sv[1]);
	host_close(null);
	return ret;
}

/* The helpers wait for their configuration: they have no children yet, and no guest runs. */
static int join_cgroup(struct run *r, struct sbx_err *err)
{
	const struct policy *p = r->spec->policy;
	const struct cgroup_limits l = { p->limits[LIMIT_MEMORY], p->limits[LIMIT_TASKS] };
	const char *where = r->spec->cgroup ? r->spec->cgroup : "auto";
	int ret = cgroup_create(&r->cgroup, where, &l, err);

	if (ret)
		return ret;
	ret = cgroup_add(&r->cgroup, r->sentry.pid);
	if (ret && !strcmp(where, "auto")) {
		/* A group may be made there, but no process moved: the common ancestor's cgroup.procs is not ours. */
		log_dbg(CH_MONITOR, "control group: %s", strerror(-ret));
		cgroup_fini(&r->cgroup);
		return 0;
	}
	if (!ret)
		ret = cgroup_add(&r->cgroup, r->gofer.pid);
	return ret ? sbx_fail(err, ret, "put the sandbox into its control group") : 0;
}

static void close_guest_stdio(struct run *r)
{
	for (int i = 0; i < 3; i++) {
		if (r->guest_owned[i])
			host_close(r->guest_stdio[i]);
		r->guest_owned[i] = false;
		r->guest_stdio[i] = -1;
	}
}

static int send_configs(struct run *r, struct sbx_err *err)
{
	struct config_fds fds = { .disk = -1 };
	int ret;

	memcpy(fds.stdio, r->guest_stdio, sizeof(fds.stdio));
	fds.disk = store_disk_open(r->spec->policy, &fds.store_memory);
	ret = config_send_sentry(r->sentry.control, r->spec, &fds);
	host_close(fds.disk);
	if (ret)
		return sbx_fail(err, ret, "configure sbx-sentry");
	close_guest_stdio(r);
	ret = config_send_gofer(r->gofer.control, r->spec);
	if (ret)
		return sbx_fail(err, ret, "configure sbx-gofer");
	/* From here on no helper can make us wait. */
	if (fcntl(r->sentry.control, F_SETFL, O_NONBLOCK) < 0 ||
	    fcntl(r->gofer.control, F_SETFL, O_NONBLOCK) < 0)
		return sbx_fail(err, -errno, "control sockets");
	return 0;
}

static void set_deadlines(struct run *r)
{
	const struct policy *p = r->spec->policy;

	r->t_start = now_ns();
	r->t_wall = p->timeout_ms ? r->t_start + p->timeout_ms * NSEC_PER_MSEC : NEVER;
	r->t_idle = p->idle_timeout_ms ? r->t_start + p->idle_timeout_ms * NSEC_PER_MSEC : NEVER;
	r->t_sample = r->t_start + SAMPLE_NS;
	r->t_grace = NEVER;
}

static void on_signal(struct run *r)
{
	struct signalfd_siginfo si;

	while (read(r->sigfd, &si, sizeof(si)) == sizeof(si)) {
		r->stop_signo = (int)si.ssi_signo;
		if (r->signals_seen++ || !r->started || !send_signal(r, r->stop_signo))
			run_stop(r, STOP_SIGNAL);
	}
}

void run_read_cgroup(struct run *r)
{
	struct cgroup_usage *u = &r->counted, before = *u;

	if (r->cgroup.kind == CGROUP_NONE)
		return;
	cgroup_read(&r->cgroup, u);
	u->memory_peak = MAX(u->memory_peak, before.memory_peak);
	u->oom_kills = MAX(u->oom_kills, before.oom_kills);
}

static void sample(struct run *r, uint64_t now)
{
	const struct policy *p = r->spec->policy;

	bool grouped = r->cgroup.kind != CGROUP_NONE;
	uint64_t cpu_ms;

	run_read_cgroup(r);
	if (!grouped || (p->limits[LIMIT_CPU] && !r->counted.cpu_known))
		usage_sample(&r->usage, r->sentry.pid, p->limits[LIMIT_MEMORY]);
	/* Reading /proc of many processes takes its time: a small share of it all. */
	r->t_sample = now + MAX(SAMPLE_NS, SAMPLE_SHARE * (now_ns() - now));
	if (grouped ? r->counted.oom_kills : r->usage.memory > p->limits[LIMIT_MEMORY])
		run_stop(r, STOP_OOM);
	cpu_ms = r->counted.cpu_known ? (r->counted.cpu_user_us + r->counted.cpu_sys_us) / 1000 : r->usage.cpu_ms;
	if (p->limits[LIMIT_CPU] && cpu_ms > p->limits[LIMIT_CPU])
		run_stop(r, STOP_CPU);
}

static void check_clock(struct run *r)
{
	uint64_t now = now_ns();

	if (now >= r->t_wall) {
		r->t_wall = NEVER;
		run_stop(r, STOP_TIMEOUT);
	}
	if (now >= r->t_idle) {
		r->t_idle = NEVER;
		run_stop(r, STOP_IDLE);
	}
	if (now >= r->t_grace) {
		r->t_grace = NEVER;
		helper_kill(&r->sentry);
	}
	if (now >= r->t_sample && r->sentry.pid)
		sample(r, now);
}

static int poll_timeout(const struct run *r)
{
	uint64_t t = MIN(r->t_wall, r->t_idle), now = now_ns();

	t = MIN(t, r->t_sample);
	t = MIN(t, r->t_grace);
	if (t == NEVER)
		return -1;
	if (t <= now)
		return 0;
	return (int)MIN((t - now) / NSEC_PER_MSEC + 1, 60000ull);
}

enum {
	P_SIGNALS,
	P_SENTRY,
	P_GOFER,
	P_SENTRY_PID,
	P_GOFER_PID,
	P_OUT0,
	P_OUT1,
	P_TO0,
	P_TO1,
	P_EVENTS,
	P_COUNT
};

/* One turn: waits until something is to be done, and does it. */
static void turn(struct run *r, int timeout)
{
	struct pollfd p[P_COUNT] = {
		[P_SIGNALS] = { r->sigfd, POLLIN },
		[P_SENTRY] = { r->sentry.control, POLLIN },
		[P_GOFER] = { r->gofer.control, POLLIN },
		[P_SENTRY_PID] = { r->sentry.pid ? r->sentry.pidfd : -1, POLLIN },
		[P_GOFER_PID] = { r->gofer.pid ? r->gofer.pidfd : -1, POLLIN },
		[P_EVENTS] = { r->events.len ? r->events.fd : -1, POLLOUT },
	};

	for (int i = 0; i < 2; i++) {
		struct stream *s = &r->streams[i];

		p[P_OUT0 + i] = (struct pollfd){ s->len ? -1 : s->from, POLLIN };
		p[P_TO0 + i] = (struct pollfd){ s->len ? s->to : -1, POLLOUT };
	}
	if (poll(p, P_COUNT, timeout) < 0)
		return; /* EINTR */
	if (p[P_SIGNALS].revents)
		on_signal(r);
	for (int i = 0; i < 2; i++) {
		if (p[P_TO0 + i].revents)
			stream_write(r, &r->streams[i]);
		if (p[P_OUT0 + i].revents)
			stream_read(r, &r->streams[i]);
	}
	if (p[P_EVENTS].revents)
		events_flush(&r->events);
	if (p[P_SENTRY].revents)
		(void)run_receive(r, &r->sentry); /* poll tells when there is more */
	if (p[P_GOFER].revents)
		(void)run_receive(r, &r->gofer);
	if (p[P_GOFER_PID].revents && helper_reap(&r->gofer)) {
		/* It ends when the sentry has: what that had to say may still lie in its socket. */
		while (run_receive(r, &r->sentry))
			;
		if (r->sentry.pid && !r->reported && !r->start_failed)
			run_fail(r, "sbx-gofer ended before the sandbox");
	}
	if (p[P_SENTRY_PID].revents)
		(void)helper_reap(&r->sentry); /* the loop looks */
}

/* The pipes' writers are dead: takes what is left in them, and hands on what our reader takes in
 * time. */
static void drain(struct run *r)
{
	uint64_t end = r->stop ? now_ns() + FLUSH_GRACE_NS : NEVER;
	unsigned seen = r->signals_seen;

	while (r->streams[0].from >= 0 || r->streams[1].from >= 0 || r->streams[0].len ||
	       r->streams[1].len) {
		turn(r, end == NEVER ? 60000 : (int)(FLUSH_GRACE_NS / NSEC_PER_MSEC));
		if (now_ns() >= end || r->signals_seen != seen)
			break;
	}
	for (int i = 0; i < 2; i++)
		stream_close(&r->streams[i]);
}

static void run_loop(struct run *r)
{
	while (r->sentry.pid) {
		bool reported = r->reported;

		turn(r, poll_timeout(r));
		check_clock(r);
		if (r->reported && !reported)
			r->t_grace = now_ns() + EXIT_GRACE_NS;
	}
	/* Its last messages are still in the socket. */
	while (run_receive(r, &r->sentry))
		;
	helper_kill(&r->gofer);
	while (r->gofer.pid)
		turn(r, 1000);
	while (run_receive(r, &r->gofer))
		;
	cgroup_kill(&r->cgroup);
	reap_all(r);
	run_read_cgroup(r);
	drain(r);
}

/* Both helpers run: what is left needs few host calls. */
static int confine(struct run *r, struct sbx_err *err)
{
	const struct policy_options o = { .log_filter = r->spec->debug_channels != NULL };

	policy_set_options(&o);
	return policy_enter(ROLE_SBX, STAGE_STEADY, err);
}

static const struct run_step {
	const char *name;
	int (*fn)(struct run *r, struct sbx_err *err);
} start_steps[] = {
	{ "signals", open_signals },       { "children", reap_prepare },
	{ "streams", streams_open },       { "helpers", start_helpers },
	{ "control group", join_cgroup },  { "configuration", send_configs },
	{ "confine", confine },
};

static void run_init(struct run *r, const struct run_spec *spec, struct run_result *res)
{
	*r = (struct run){
		.spec = spec,
		.res = res,
		.gofer = HELPER_INIT("sbx-gofer"),
		.sentry = HELPER_INIT("sbx-sentry"),
		.sigfd = -1,
		.guest_stdio = { -1, -1, -1 },
		.streams = { { .from = -1, .to = -1 }, { .from = -1, .to = -1 } },
	};
	events_init(&r->events, spec->events_fd);
	usage_init(&r->usage);
	cgroup_init(&r->cgroup);
}

static void run_fini(struct run *r)
{
	close_guest_stdio(r);
	for (int i = 0; i < 2; i++)
		stream_fini(&r->streams[i]);
	helper_fini(&r->sentry);
	helper_fini(&r->gofer);
	host_close(r->sigfd);
	events_fini(&r->events);
	usage_fini(&r->usage);
	cgroup_fini(&r->cgroup);
	free(r->earlier_children);
}

int monitor_run(const struct run_spec *spec, struct run_result *res, struct sbx_err *err)
{
	struct run r;
	int ret = 0;

	*res = (struct run_result){ .status = RUN_INTERNAL_ERROR, .exit_code = EXIT_SBX };
	result_new_id(res->id);
	run_init(&r, spec, res);
	set_deadlines(&r);
	for (size_t i = 0; !ret && i < ARRAY_SIZE(start_steps); i++) {
		log_dbg(CH_MONITOR, "start: %s", start_steps[i].name);
		ret = start_steps[i].fn(&r, err);
	}
	if (ret) {
		helper_kill(&r.sentry);
		helper_kill(&r.gofer);
		reap_all(&r);
	} else {
		run_audit(&r, "lifecycle", "start", spec->argv[0], "allow", "", "");
		run_loop(&r);
		res->duration_ms = (now_ns() - r.t_start) / NSEC_PER_MSEC;
		run_outcome(&r);
		run_audit(&r, "lifecycle", "end", spec->argv[0], "allow", "", res->message);
		events_end(&r.events, res);
	}
	run_fini(&r);
	return ret;
}
