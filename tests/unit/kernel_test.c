/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the kernel that need no task: wait queues, timers, numbers, credentials, events. */
#include <errno.h>
#include <linux/capability.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sentry/kernel/cred.h"
#include "sentry/kernel/event.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/pid.h"
#include "sentry/kernel/timer.h"
#include "sentry/kernel/waitq.h"
#include "tests/lib/fake_platform.h"
#include "tests/lib/tap.h"

struct test_waiter {
	struct waiter w;
	unsigned wakes;
	bool removes_itself;
};

static void test_wake(struct waiter *w, uint32_t events)
{
	struct test_waiter *tw = container_of(w, struct test_waiter, w);

	(void)events;
	tw->wakes++;
	if (tw->removes_itself)
		waitq_remove(w);
}

static void test_waitq(void)
{
	struct test_waiter in = { { .events = POLLIN, .wake = test_wake }, 0, false };
	struct test_waiter out = { { .events = POLLOUT, .wake = test_wake }, 0, true };
	struct test_waiter ex[3];
	struct waitq q;

	waitq_init(&q);
	waitq_add(&q, &in.w);
	waitq_add(&q, &out.w);
	waitq_wake(&q, POLLIN);
	tap_ok(in.wakes == 1 && out.wakes == 0, "a wake reaches who waits for the event");
	waitq_wake(&q, POLLHUP);
	tap_ok(in.wakes == 2 && out.wakes == 1, "POLLHUP reaches all");
	waitq_wake(&q, POLLOUT);
	tap_eq(out.wakes, 1, "a waiter may remove itself when woken");
	for (int i = 0; i < 3; i++) {
		ex[i] = (struct test_waiter){ { .events = POLLIN, .exclusive = true, .wake = test_wake }, 0, false };
		waitq_add(&q, &ex[i].w);
	}
	tap_eq(waitq_wake_n(&q, POLLIN, 2), 3, "a wake of two reaches the shared waiter and two exclusive ones");
	tap_ok(ex[0].wakes == 1 && ex[1].wakes == 1 && ex[2].wakes == 0, "exclusive ones in their order");
	waitq_wake_n(&q, POLLIN, WAITQ_WAKE_ALL);
	tap_eq(ex[2].wakes, 1, "a wake of all reaches all");
	waitq_remove(&in.w);
	waitq_remove(&in.w);
	for (int i = 0; i < 3; i++)
		waitq_remove(&ex[i].w);
	waitq_fini(&q);
}

struct test_timer {
	struct ktimer kt;
	uint64_t rearm;
	unsigned fired;
};

static uint64_t last_when;
static bool order_ok;

static void timer_note(struct ktimer *kt)
{
	struct test_timer *tt = container_of(kt, struct test_timer, kt);

	tt->fired++;
	order_ok = order_ok && kt->when >= last_when;
	last_when = kt->when;
	if (tt->rearm && ktimer_arm(kt, tt->rearm) < 0)
		order_ok = false;
}

static void test_timers(void)
{
	enum { N = 500 };
	static struct test_timer tt[N];
	unsigned fired = 0, seed = 1, failures = 0;

	order_ok = true;
	for (int i = 0; i < N; i++) {
		ktimer_init(&tt[i].kt, timer_note);
		failures += ktimer_arm(&tt[i].kt, 1 + (unsigned)rand_r(&seed) % 1000) != 0;
	}
	for (int i = 0; i < N; i += 3)
		ktimer_cancel(&tt[i].kt);
	for (int i = 1; i < N; i += 3)
		failures += ktimer_arm(&tt[i].kt, 1 + (unsigned)rand_r(&seed) % 1000) != 0;
	tap_eq(failures, 0, "timers are armed");
	ktimer_run(500);
	tap_ok(ktimer_next() > 500 && ktimer_next() != UINT64_MAX, "what is due at 500 has run, the rest has not");
	ktimer_run(2000);
	for (int i = 0; i < N; i++)
		fired += tt[i].fired;
	tap_eq(fired, N - (N + 2) / 3, "each armed timer fires once, a cancelled one never");
	tap_ok(order_ok, "in the order of their deadlines");
	tap_ok(ktimer_next() == UINT64_MAX && kernel.counters.ktimers == 0, "and none is left");
	last_when = 0;
	tt[0] = (struct test_timer){ .rearm = 5 };
	ktimer_init(&tt[0].kt, timer_note);
	tap_eq(ktimer_arm(&tt[0].kt, 5), 0, "arm");
	ktimer_run(100);
	tap_eq(tt[0].fired, 1, "a timer that arms itself for the past does not hold up the leader");
	ktimer_cancel(&tt[0].kt);
	ktimer_cancel(&tt[0].kt);
}

static void test_pids(void)
{
	static struct task *const some = (struct task *)0x1000;
	pid_t a, b;

	pid_set_last(100);
	a = pid_alloc();
	pid_set_task(a, some);
	b = pid_alloc();
	tap_ok(a == 101 && b == 102, "numbers go up");
	pid_set_task(a, NULL);
	tap_eq(pid_alloc(), 103, "a free number is not reused at once");
	pid_set_last(PID_MAX - 2);
	tap_eq(pid_alloc(), PID_MAX - 1, "up to the end");
	tap_eq(pid_alloc(), 300, "then from 300 on");
	pid_pgrp_add(301, 1);
	pid_session_add(302, 1);
	tap_eq(pid_alloc(), 303, "numbers of groups and sessions are not handed out");
	tap_ok(pid_is_pgrp(301) && !pid_is_pgrp(302) && pid_is_session(302), "which is which");
	pid_pgrp_add(301, -1);
	pid_session_add(302, -1);
	for (pid_t p = 1; p < PID_MAX; p++)
		pid_set_task(p, some);
	tap_eq(pid_alloc(), -EAGAIN, "EAGAIN when all are taken");
	for (pid_t p = 1; p < PID_MAX; p++)
		pid_set_task(p, NULL);
}

#define N1 ((uint32_t)-1)
#define CAPS_SETID (CAP_BIT(CAP_SETUID) | CAP_BIT(CAP_KILL))

enum cred_op { SETUID, SETREUID, SETRESUID, SETFSUID };

static const struct {
	const char *what;
	uint32_t before[4]; /* r e s fs */
	uint64_t permitted, effective;
	uint32_t securebits;
	enum cred_op op;
	uint32_t args[3];
	int r;
	uint32_t after[4];
	uint64_t permitted_after, effective_after;
} cred_cases[] = {
	{ "root's setuid sets all", { 0, 0, 0, 0 }, CAP_ALL, CAP_ALL, 0, SETUID, { 5 }, 0, { 5, 5, 5, 5 }, 0, 0 },
	{ "keepcaps keeps the permitted set", { 0, 0, 0, 0 }, CAP_ALL, CAP_ALL, SECBIT_KEEP_CAPS, SETUID, { 5 }, 0,
	  { 5, 5, 5, 5 }, CAP_ALL, 0 },
	{ "no fixup keeps both", { 0, 0, 0, 0 }, CAP_ALL, CAP_ALL, SECBIT_NO_SETUID_FIXUP, SETUID, { 5 }, 0,
	  { 5, 5, 5, 5 }, CAP_ALL, CAP_ALL },
	{ "a user cannot become another", { 5, 5, 5, 5 }, 0, 0, 0, SETUID, { 6 }, -EPERM, { 5, 5, 5, 5 }, 0, 0 },
	{ "a user may return to the saved id", { 5, 5, 0, 5 }, 0, 0, 0, SETUID, { 0 }, 0, { 5, 0, 0, 0 }, 0, 0 },
	{ "-1 is no id", { 0, 0, 0, 0 }, CAP_ALL, CAP_ALL, 0, SETUID, { N1 }, -EINVAL, { 0, 0, 0, 0 }, CAP_ALL,
	  CAP_ALL },
	{ "seteuid away from root clears the effective set", { 0, 0, 0, 0 }, CAP_ALL, CAP_ALL, 0, SETRESUID,
	  { N1, 5, N1 }, 0, { 0, 5, 0, 5 }, CAP_ALL, 0 },
	{ "and back raises it", { 0, 5, 0, 5 }, CAP_ALL, 0, 0, SETRESUID, { N1, 0, N1 }, 0, { 0, 0, 0, 0 }, CAP_ALL,
	  CAP_ALL },
	{ "setreuid swaps", { 5, 6, 6, 6 }, 0, 0, 0, SETREUID, { 6, 5 }, 0, { 6, 5, 5, 5 }, 0, 0 },
	{ "setreuid(-1, real) leaves the saved id", { 5, 6, 6, 6 }, 0, 0, 0, SETREUID, { N1, 5 }, 0, { 5, 5, 6, 5 }, 0,
	  0 },
	{ "the real id cannot become the saved one by setreuid", { 5, 6, 7, 6 }, 0, 0, 0, SETREUID, { 7, N1 }, -EPERM,
	  { 5, 6, 7, 6 }, 0, 0 },
	{ "but the effective one can", { 5, 6, 7, 6 }, 0, 0, 0, SETREUID, { N1, 7 }, 0, { 5, 7, 7, 7 }, 0, 0 },
	{ "setresuid takes any of the three", { 5, 6, 7, 6 }, 0, 0, 0, SETRESUID, { 7, 5, 6 }, 0, { 7, 5, 6, 5 }, 0,
	  0 },
	{ "and no other", { 5, 6, 7, 6 }, 0, 0, 0, SETRESUID, { 5, 8, N1 }, -EPERM, { 5, 6, 7, 6 }, 0, 0 },
	{ "CAP_SETUID is enough", { 5, 5, 5, 5 }, CAPS_SETID, CAPS_SETID, 0, SETRESUID, { 8, 9, 10 }, 0,
	  { 8, 9, 10, 9 }, CAPS_SETID, CAPS_SETID },
	{ "setfsuid away from root drops file capabilities only", { 0, 0, 5, 0 },
	  CAP_BIT(CAP_CHOWN) | CAP_BIT(CAP_KILL), CAP_BIT(CAP_CHOWN) | CAP_BIT(CAP_KILL), 0, SETFSUID, { 5 }, 0,
	  { 0, 0, 5, 5 }, CAP_BIT(CAP_CHOWN) | CAP_BIT(CAP_KILL), CAP_BIT(CAP_KILL) },
	{ "setfsuid to a foreign id does nothing", { 5, 5, 5, 5 }, 0, 0, 0, SETFSUID, { 6 }, 5, { 5, 5, 5, 5 }, 0, 0 },
};

static int cred_run(struct cred *c, enum cred_op op, const uint32_t a[3])
{
	switch (op) {
	case SETUID:
		return cred_setuid(c, a[0]);
	case SETREUID:
		return cred_setreuid(c, a[0], a[1]);
	case SETRESUID:
		return cred_setresuid(c, a[0], a[1], a[2]);
	case SETFSUID:
		return (int)cred_setfsuid(c, a[0]);
	}
	return -1;
}

static void test_cred(void)
{
	for (unsigned i = 0; i < ARRAY_SIZE(cred_cases); i++) {
		struct cred c = { .uid = cred_cases[i].before[0], .euid = cred_cases[i].before[1],
				  .suid = cred_cases[i].before[2], .fsuid = cred_cases[i].before[3],
				  .cap_permitted = cred_cases[i].permitted, .cap_effective = cred_cases[i].effective,
				  .cap_bounding = CAP_ALL, .securebits = cred_cases[i].securebits };
		int r = cred_run(&c, cred_cases[i].op, cred_cases[i].args);
		const uint32_t *w = cred_cases[i].after;

		if (!tap_ok(r == cred_cases[i].r && c.uid == w[0] && c.euid == w[1] && c.suid == w[2] &&
			    c.fsuid == w[3] && c.cap_permitted == cred_cases[i].permitted_after &&
			    c.cap_effective == cred_cases[i].effective_after, "%s", cred_cases[i].what))
			printf("# %d: %u %u %u %u p %llx e %llx\n", r, c.uid, c.euid, c.suid, c.fsuid,
			       (unsigned long long)c.cap_permitted, (unsigned long long)c.cap_effective);
	}
}

static void test_cred_exec(void)
{
	struct cred *user = cred_create(5, 5, NULL, 0), *root = cred_create(0, 0, NULL, 0), *c;
	bool secure;

	c = cred_exec(user, 0755, 0, 0, false, &secure);
	tap_ok(c && !secure && c->euid == 5 && !c->cap_permitted, "a user's exec changes nothing");
	cred_put(c);
	c = cred_exec(user, 04755, 0, 0, false, &secure);
	tap_ok(c && secure && c->euid == 0 && c->uid == 5 && c->suid == 0 && c->cap_effective == CAP_ALL,
	       "a set-user-ID root program has all capabilities");
	cred_put(c);
	c = cred_exec(user, 04755, 0, 0, true, &secure);
	tap_ok(c && !secure && c->euid == 5, "not on nosuid");
	cred_put(c);
	user->no_new_privs = true;
	c = cred_exec(user, 04755, 0, 0, false, &secure);
	tap_ok(c && !secure && c->euid == 5 && !c->cap_permitted, "not with no_new_privs");
	cred_put(c);
	user->no_new_privs = false;
	c = cred_exec(user, 02745, 0, 7, false, &secure);
	tap_ok(c && c->egid == 5, "set-group-ID without group execution is mandatory locking");
	cred_put(c);
	root->cap_bounding = CAP_BIT(CAP_KILL);
	c = cred_exec(root, 0755, 0, 0, false, &secure);
	tap_ok(c && c->cap_permitted == CAP_BIT(CAP_KILL), "the bounding set holds for root");
	cred_put(c);
	user->cap_permitted = user->cap_inheritable = user->cap_ambient = CAP_BIT(CAP_KILL);
	c = cred_exec(user, 0755, 0, 0, false, &secure);
	tap_ok(c && c->cap_effective == CAP_BIT(CAP_KILL) && !secure, "ambient capabilities survive");
	cred_put(c);
	tap_eq(cred_capset(user, 0, 0, CAP_BIT(CAP_CHOWN)), -EPERM, "no inheritable capability out of nothing");
	tap_eq(cred_capset(user, CAP_BIT(CAP_KILL), 0, 0), -EPERM, "effective must be permitted");
	tap_ok(cred_capset(user, 0, 0, 0) == 0 && !user->cap_ambient, "ambient ones go with permitted ones");
	cred_put(user);
	cred_put(root);
}

struct test_watch {
	struct hostfd_watch w;
	unsigned hits;
	uint32_t events;
};

static void watch_ready(struct hostfd_watch *w, uint32_t events)
{
	struct test_watch *tw = container_of(w, struct test_watch, w);

	tw->hits++;
	tw->events = events;
}

/* As the leader does, for at most two seconds. */
static void run_until(const unsigned *counter, unsigned want)
{
	for (int i = 0; i < 2000 && *counter < want; i++) {
		event_run();
		usleep(1000);
	}
}

static void test_events(void)
{
	struct test_watch tw = { .w = { .events = EPOLLIN, .ready = watch_ready } };
	struct test_timer tt = { .rearm = 0 };
	struct sbx_err err = { 0 };
	int p[2];

	kernel.plat = &fake_platform_ops;
	kernel.platform = (struct platform *)&fake_stopped;
	tap_eq(event_init(&err), 0, "the event thread starts");
	tap_eq(pipe(p), 0, "pipe");
	tw.w.fd = p[0];
	tap_eq(hostfd_watch_arm(&tw.w), 0, "a watch is armed");
	usleep(20000);
	event_run();
	tap_eq(tw.hits, 0, "nothing to read, no callback");
	tap_eq(write(p[1], "x", 1), 1, "write");
	run_until(&tw.hits, 1);
	tap_ok(tw.hits == 1 && (tw.events & EPOLLIN), "a callback when there is");
	usleep(20000);
	event_run();
	tap_eq(tw.hits, 1, "one-shot");
	tap_eq(hostfd_watch_arm(&tw.w), 0, "armed again");
	run_until(&tw.hits, 2);
	tap_eq(tw.hits, 2, "it comes again");
	tap_eq(hostfd_watch_arm(&tw.w), 0, "and again");
	usleep(20000);
	hostfd_watch_cancel(&tw.w);
	event_run();
	tap_eq(tw.hits, 2, "no callback after a cancel, even when noted before");
	ktimer_init(&tt.kt, timer_note);
	last_when = 0;
	tap_eq(ktimer_arm(&tt.kt, clock_mono_ns() + 10 * 1000000), 0, "a timer in 10 ms");
	event_run();
	tap_eq(tt.fired, 0, "not before");
	run_until(&tt.fired, 1);
	tap_eq(tt.fired, 1, "fires by the event thread");
	tap_ok(__atomic_load_n(&fake_wakes, __ATOMIC_RELAXED) > 0, "the leader was woken");
	tw.w.fd = fileno(tmpfile());
	tap_eq(hostfd_watch_arm(&tw.w), 0, "a file that cannot be polled");
	event_run();
	tap_eq(tw.hits, 3, "is ready at once");
	hostfd_watch_cancel(&tw.w);
	event_fini();
}

static void test_random(void)
{
	uint8_t a[64] = { 0 }, b[64] = { 0 }, zero[64] = { 0 };

	kernel_random(a, sizeof(a));
	kernel_random(b, sizeof(b));
	tap_ok(memcmp(a, b, 64) && memcmp(a, zero, 64), "random bytes differ");
}

int main(void)
{
	test_waitq();
	test_timers();
	test_pids();
	test_cred();
	test_cred_exec();
	test_random();
	test_events();
	return tap_done();
}
