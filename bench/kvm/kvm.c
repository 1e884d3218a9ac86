/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kvm platform costs, beside the least that KVM itself does: `make bench-kvm`. Where a clock tick is an
 * instruction (tests/kvm-svm/run --machine=vmx) it counts instructions.
 * Usage: kvm [--mips=N] SBX MICRO. MICRO is bench/micro/micro; --mips: the machine executes so many million
 * instructions in what its clock takes for a second.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench/kvm/bare.h"

#define BUDGET_CALL   1.15        /* of a bare exit */
#define BUDGET_MEMORY (8u * 1024) /* KiB beside the guest's own */
#define STARTS        5
#define BLOCK         (2ull << 20) /* of the window: its mappings begin at such */
#define WINDOW_LEAST  (1ull << 30)

static uint64_t mips;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

static void row(const char *what, uint64_t ns, uint64_t bare)
{
	printf("%-30s %12" PRIu64 " ns", what, ns);
	if (mips)
		printf(" %12" PRIu64 " instructions", ns * mips / 1000);
	if (bare)
		printf(" %9.3f x the bare exit", (double)ns / (double)bare);
	putchar('\n');
}

static pid_t spawn(const char *const argv[], int out)
{
	pid_t pid = fork();

	if (pid == 0) {
		if (out >= 0)
			dup2(out, 1);
		execv(argv[0], (char *const *)argv); /* which it does not change */
		_exit(127);
	}
	return pid;
}

static int finish(pid_t pid)
{
	int status = 0;

	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return status;
}

/* Runs MICRO in sbx, prints its lines. The ns of getppid, or 0. */
static uint64_t operations(const char *sbx, const char *micro, uint64_t bare)
{
	const char *argv[] = { sbx, "exec", "--platform", "kvm", "--", micro, "getppid", "signal_self",
			 "thread_create_join", "fork_exit_wait", "vfork_exec_wait", "first_touch", NULL };
	char line[256], name[64];
	uint64_t ns, getppid_ns = 0;
	int fds[2];
	FILE *in;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC))
		return 0;
	pid = spawn(argv, fds[1]);
	close(fds[1]);
	in = fdopen(fds[0], "r");
	while (in && fgets(line, sizeof(line), in)) {
		if (sscanf(line, "%63s %" SCNu64, name, &ns) != 2)
			continue;
		row(name, ns, bare);
		if (!strcmp(name, "getppid"))
			getppid_ns = ns;
	}
	if (in)
		fclose(in);
	return finish(pid) == 0 ? getppid_ns : 0;
}

static int cmp(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static uint64_t median_start(const char *const argv[])
{
	uint64_t t[STARTS];

	for (int i = 0; i < STARTS; i++) {
		t[i] = now_ns();
		if (finish(spawn(argv, -1)))
			return 0;
		t[i] = now_ns() - t[i];
	}
	qsort(t, STARTS, sizeof(t[0]), cmp);
	return t[STARTS / 2];
}

/* In a child, for what it does to itself. */
static int measure_bare(struct bare_costs *c)
{
	struct sbx_err err;
	int fds[2];
	ssize_t n;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC))
		return -1;
	pid = fork();
	if (pid == 0) {
		if (bare_measure(c, &err) == 0) {
			n = write(fds[1], c, sizeof(*c));
			_exit(n != sizeof(*c));
		}
		fprintf(stderr, "bench-kvm: %s\n", err.msg);
		_exit(1);
	}
	close(fds[1]);
	n = read(fds[0], c, sizeof(*c));
	close(fds[0]);
	return finish(pid) == 0 && n == sizeof(*c) ? 0 : -1;
}

struct memory { /* KiB, proportional */
	uint64_t all, window;
};

/*
 * The window of the guest's memory is a chain of mappings that touch, each at a block's begin, the last a reservation
 * without access. It holds the guest's pages and what it needs to find them: page tables, the monitor.
 */
static void process_memory(FILE *smaps, struct memory *m)
{
	uint64_t start, end, last_end = 0, kib, chain = 0, chain_of = 0;
	char line[512], prot[5] = "";

	while (fgets(line, sizeof(line), smaps)) {
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s", &start, &end, prot) == 3) {
			chain = start == last_end ? chain : 0;
			chain_of = start % BLOCK ? 0 : 1;
			last_end = end;
			if (!strncmp(prot, "---", 3) && end - start >= WINDOW_LEAST)
				m->window += chain;
		} else if (sscanf(line, "Pss: %" SCNu64, &kib) == 1) {
			m->all += kib;
			chain += chain_of ? kib : 0;
		}
	}
}

static void tree_memory(pid_t pid, struct memory *m)
{
	struct memory one = { 0 };
	char path[64], comm[32] = "?";
	DIR *tasks;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	f = fopen(path, "r");
	if (f && fgets(comm, sizeof(comm), f))
		comm[strcspn(comm, "\n")] = 0;
	if (f)
		fclose(f);
	snprintf(path, sizeof(path), "/proc/%d/smaps", (int)pid);
	f = fopen(path, "r");
	if (f) {
		process_memory(f, &one);
		fclose(f);
	}
	printf("memory of %-20s %12" PRIu64 " KiB, in the guest's window %" PRIu64 " KiB\n", comm, one.all, one.window);
	m->all += one.all;
	m->window += one.window;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	tasks = opendir(path);
	for (struct dirent *d; tasks && (d = readdir(tasks));) {
		int child;

		snprintf(path, sizeof(path), "/proc/%d/task/%.16s/children", (int)pid, d->d_name);
		f = d->d_name[0] == '.' ? NULL : fopen(path, "r");
		while (f && fscanf(f, "%d", &child) == 1)
			tree_memory(child, m);
		if (f)
			fclose(f);
	}
	if (tasks)
		closedir(tasks);
}

static int memory(const char *sbx)
{
	const char *argv[] = { sbx, "exec", "--platform", "kvm", "--", "/bin/sleep", "3", NULL };
	struct memory m = { 0 };
	pid_t pid = spawn(argv, -1);
	uint64_t beside;

	sleep(2);
	tree_memory(pid, &m);
	if (finish(pid) || !m.window)
		return -1;
	beside = m.all - m.window;
	printf("memory beside the guest's      %12" PRIu64 " KiB, budget %u KiB: %s\n", beside, BUDGET_MEMORY,
	       beside <= BUDGET_MEMORY ? "met" : "NOT MET");
	return 0;
}

int main(int argc, char **argv)
{
	struct bare_costs c;
	uint64_t call, start;
	const char *sbx, *micro;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc > 1 && !strncmp(argv[1], "--mips=", 7)) {
		mips = strtoull(argv[1] + 7, NULL, 10);
		argv++;
		argc--;
	}
	if (argc != 3) {
		fprintf(stderr, "usage: kvm [--mips=N] SBX MICRO\n");
		return 2;
	}
	sbx = argv[1];
	micro = argv[2];
	if (measure_bare(&c) < 0)
		return 1;
	row("bare exit: syscall", c.syscall, c.syscall);
	row("bare exit: page fault", c.fault, c.syscall);
	row("bare exit, host calls filtered", c.filtered, c.syscall);
	row("a call without a kernel", c.call, c.syscall);
	row("start of the platform", c.start, 0);
	call = operations(sbx, micro, c.syscall);
	start = median_start((const char *[]){ sbx, "exec", "--platform", "kvm", "--", "/bin/true", NULL });
	if (!call || !start) {
		fprintf(stderr, "bench-kvm: the guest ended badly\n");
		return 1;
	}
	row("start, /bin/true, end", start, 0);
	if (memory(sbx) < 0) {
		fprintf(stderr, "bench-kvm: the guest's memory was not found\n");
		return 1;
	}
	printf("a system call is %.3f x the bare exit, budget %.2f: %s\n", (double)call / (double)c.syscall, BUDGET_CALL,
	       (double)call <= BUDGET_CALL * (double)c.syscall ? "met" : "NOT MET");
	return 0;
}
