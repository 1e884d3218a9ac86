/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A platform of stubs under a tiny kernel of its own (stub_kernel.c), with guest programs that are
 * friendly, clumsy and hostile (stub_guest.c). The suite runs with and without namespaces, as root and
 * as an ordinary user.
 */
#include "tests/unit/stub_suite.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/tap.h"
#include "tests/unit/stub_guest.h"
#include "tests/unit/stub_kernel.h"
#include "tests/unit/stub_programs.h"

#define MAX_PIDS 256

static struct platform_info info;
static bool shim_reports; /* the platform listens to what the shim says, so that a lie matters */

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

/* -1: no such process, or it has ended and was not yet waited for. */
static int parent_of(int pid)
{
	char path[40], line[256], state = 0;
	int ppid = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "State: %c", &state) != 1 && sscanf(line, "PPid: %d", &ppid) == 1)
			break;
	if (f)
		fclose(f);
	return state == 'Z' ? -1 : ppid;
}

/* All our descendants. */
static int descendants(int *pids)
{
	int n = 1, me = getpid();
	FILE *f = popen("exec ps -A -o pid= --sort=start_time,pid", "r");
	int pid;

	pids[0] = me;
	while (f && fscanf(f, "%d", &pid) == 1) {
		int parent = parent_of(pid);

		for (int i = 0; i < n && n < MAX_PIDS; i++)
			if (parent == pids[i]) {
				pids[n++] = pid;
				break;
			}
	}
	if (f)
		pclose(f);
	return n;
}

static int base_pids[MAX_PIDS], n_base; /* init and zygote */

/* A stub: any descendant that was not there after the start (nor the ps that looked). */
static int find_stub(void)
{
	int pids[MAX_PIDS], n = descendants(pids);

	for (int i = 1; i < n; i++) {
		bool base = false;

		for (int k = 0; k < n_base; k++)
			base |= base_pids[k] == pids[i];
		if (!base && kill(pids[i], 0) == 0)
			return pids[i];
	}
	return 0;
}

static bool start(bool no_userns)
{
	struct platform_config cfg = {
		.stub_fd = -1, .proc_fd = -1, .max_contexts = MAX_TASKS, .no_userns = no_userns
	};
	struct sbx_err err;
	uint64_t t0 = now_ns();

	tk_reset();
	if (!tap_ok(ops->start(&cfg, &tk_up, NULL, &tk.plat, &err) == 0, "%s: starts", tk.mode)) {
		printf("# %s\n", err.msg);
		return false;
	}
	ops->info(tk.plat, &info);
	printf("# note %s: start %llu us, userns %d pidns %d netns %d sync %d vdso %#llx '%s'\n", tk.mode,
	       (unsigned long long)(now_ns() - t0) / 1000, info.userns, info.pidns, info.netns, info.sync_wakeup,
	       (unsigned long long)ops->vdso(tk.plat), info.note);
	n_base = descendants(base_pids);
	return true;
}

static void finish(void)
{
	int pids[MAX_PIDS], n = descendants(pids), left = 0;

	ops->destroy(tk.plat);
	for (int tries = 0; tries < 200; tries++) {
		left = 0;
		for (int i = 1; i < n; i++)
			left += parent_of(pids[i]) > 0;
		if (!left)
			break;
		usleep(10000);
	}
	tap_ok(n > 2 && left == 0, "%s: destroy leaves no process", tk.mode);
}

static void test_death(void)
{
	tk_run(G_DIE, 0);
	tap_eq(tk.n_exited, 1, "%s: the death of a stub is told", tk.mode);
}

static void alive(void)
{
	tk_run(G_HELLO, 0);
	tap_eq(tk.results[0], 1, "%s: the sandbox is alive", tk.mode);
}

static void test_hostile(void)
{
	static const char *const what[] = {
		"a call at the site of orders",
		"a forged end of orders",
		"a forged signal report",
		"a report from the wrong site",
		"hiding from kicks",
		"a write to the shim",
		"scribbling over the signal stack",
		"rsp in the signal stack",
		"a call at the free site",
		"a forged trap",
		"a forged failure of a clone",
	};

	for (long i = 0; i < (long)ARRAY_SIZE(what); i++) {
		uint64_t t0 = now_ns();

		tk_run(G_HOSTILE, i);
		if (!shim_reports && i != 5 && i != 6)
			tap_eq(tk.n_exited, 0, "%s: only a guest's matter: %s", tk.mode, what[i]);
		else if (i < 5 || i == 8)
			tap_eq(tk.n_exited, 1, "%s: killed for %s", tk.mode, what[i]);
		else if (i == 5)
			tap_eq(tk.n_faults, 1, "%s: a fault for %s", tk.mode, what[i]);
		else if (i == 10) /* by whether the report or the child comes first */
			tap_ok(tk.n_exited + tk.n_faults > 0, "%s: ended by %s", tk.mode, what[i]);
		else if (i == 6)
			tap_eq(tk.results[3], 1, "%s: no harm by %s", tk.mode, what[i]);
		printf("# note %s: exited %d faults %d, %llu ms\n", what[i], tk.n_exited, tk.n_faults,
		       (unsigned long long)(now_ns() - t0) / 1000000);
		if (i == 4 && shim_reports)
			tap_ok(tk.results[20] == -ESRCH && now_ns() - t0 < 4 * NSEC_PER_SEC, "after a deadline");
		alive();
	}
	tk_run(G_RACE_ORDER, 1000);
	tap_ok((tk.n_exited == 2 && shim_reports) || tk.results[4] == 1, "%s: the race on the order block is noticed or lost", tk.mode);
	printf("# note race on orders: exited %d\n", tk.n_exited);
	alive();
	tk_run(G_RACE_CONTINUE, 1000);
	alive();
}

/* Each wake-up must be followed by an idle call, whatever the leader does. */
static uint64_t wake_rounds;

static void *waker_main(void *arg)
{
	uint64_t lost = 0;

	for (uint64_t i = 1; i <= wake_rounds && !lost; i++) {
		uint64_t t0 = now_ns();

		__atomic_store_n(&tk.idle_posted, i, __ATOMIC_SEQ_CST);
		ops->wake(tk.plat);
		/* Every few rounds without a wait, so that wake-ups overlap. */
		while (i % 4 == 0 && __atomic_load_n(&tk.idle_seen, __ATOMIC_SEQ_CST) < i && !lost) {
			sched_yield();
			lost = now_ns() - t0 > 3 * NSEC_PER_SEC ? i : 0;
		}
	}
	if (arg)
		kill((pid_t)(intptr_t)arg, SIGKILL); /* the guest has done its part */
	return (void *)lost;
}

static void test_wake(long program, const char *what)
{
	pthread_t th;
	void *lost;
	int stub;

	tap_eq(tk_load(program, 1 << 30), 0, "%s: load", tk.mode);
	stub = find_stub();
	tk.idle_seen = tk.idle_posted = 0;
	wake_rounds = 50000;
	pthread_create(&th, NULL, waker_main, (void *)(intptr_t)stub);
	tap_eq(ops->run(tk.plat), 0, "%s: run", tk.mode);
	pthread_join(th, &lost);
	tap_ok(!lost, "%s: no wake-up is lost with %s", tk.mode, what);
}

/* A sentry that is killed takes its stubs along, tk.spinning ones too. */
static void test_orphans(bool no_userns)
{
	int pids[MAX_PIDS], n, left = 0;
	pid_t sentry;

	fflush(stdout);
	sentry = fork();
	if (sentry == 0) {
		tap_mute();
		if (!freopen("/dev/null", "w", stdout) || !start(no_userns))
			_exit(1);
		tk_run(G_ORPHANS, 0);
		_exit(0);
	}
	do {
		usleep(20000);
		n = descendants(pids);
	} while (n < 7 && waitpid(sentry, NULL, WNOHANG) == 0);
	kill(sentry, SIGKILL);
	waitpid(sentry, NULL, 0);
	for (int tries = 0; tries < 200; tries++) {
		left = 0;
		for (int i = 2; i < n; i++)
			left += parent_of(pids[i]) > 0;
		if (!left)
			break;
		usleep(10000);
	}
	tap_ok(n >= 7 && left == 0, "%s: a killed sentry leaves no stub", tk.mode);
}

/* As the sentry will after the start. */
static void drop_capabilities(void)
{
	struct __user_cap_header_struct hdr = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2];

	memset(none, 0, sizeof(none));
	tap_eq(syscall(SYS_capset, &hdr, none), 0, "%s: capabilities are given up", tk.mode);
}

static void suite(const char *name, bool no_userns, bool hostile)
{
	tk.mode = name;
	test_orphans(no_userns);
	if (!start(no_userns))
		return;
	drop_capabilities();
	tk_programs(500);
	test_death();
	if (hostile)
		test_hostile();
	finish();
}

static double tsc_per_ns(void)
{
	uint64_t t0 = now_ns(), c0 = __builtin_ia32_rdtsc();

	while (now_ns() - t0 < 10000000)
		;
	return (double)(__builtin_ia32_rdtsc() - c0) / (double)(now_ns() - t0);
}

static void bench(void)
{
	static const char *const what[] = { "getppid", "mmap", "munmap", "fork, exit and wait", "thread, exit and join",
					    "fork, exec, exit and wait", "getppid with 1000 parked" };
	double rate = tsc_per_ns();
	long r[ARRAY_SIZE(what)];
	cpu_set_t all, one;

	tk.mode = "pinned";
	sched_getaffinity(0, sizeof(all), &all);
	CPU_ZERO(&one);
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &all) && !CPU_COUNT(&one))
			CPU_SET(i, &one);
	sched_setaffinity(0, sizeof(one), &one);
	if (start(false)) {
		tk.quiet = true;
		tk_run(G_BENCH, 0);
		memcpy(r, tk.results + 30, sizeof(r));
		tk_run(G_BENCH_PARKED, 0);
		tk.quiet = false;
		r[ARRAY_SIZE(what) - 1] = tk.results[36];
		for (unsigned i = 0; i < ARRAY_SIZE(what); i++)
			printf("# note %s: %.0f ns\n", what[i], (double)r[i] / rate);
		finish();
	}
	sched_setaffinity(0, sizeof(all), &all);
}

/* Runs @fn in a child process of its own, its TAP lines counted here. */
static void in_child(void (*fn)(void), bool as_user)
{
	pid_t pid;
	int status;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		if (as_user && geteuid() == 0 &&
		    (setgroups(0, NULL) || setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534)))
			_exit(1);
		fn();
		fflush(stdout);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	tap_ok(status == 0, "the suite ends");
}

static void root_suite(void)
{
	suite("root", false, true);
}

static void root_no_userns_suite(void)
{
	suite("root without user namespace", true, false);
}

static void user_suite(void)
{
	suite("user", false, true);
}

static void user_no_userns_suite(void)
{
	suite("user without namespaces", true, false);
}

int stub_suite(const struct platform_ops *platform, int argc, char **argv)
{
	ops = platform;
	shim_reports = platform == &unotify_platform_ops;
	tk.find_stub = find_stub;
	if (!tk_files())
		return 1;
	if (argc > 1 && !strcmp(argv[1], "bench")) {
		bench();
		return tap_done();
	}
	if (geteuid() == 0) {
		in_child(root_suite, false);
		in_child(root_no_userns_suite, false);
	}
	in_child(user_suite, true);
	in_child(user_no_userns_suite, true);
	tk.mode = "wake";
	if (start(false)) {
		test_wake(G_NOP, "a busy leader");
		test_wake(G_SLEEP, "a sleeping leader");
		finish();
	}
	bench();
	return tap_done();
}
