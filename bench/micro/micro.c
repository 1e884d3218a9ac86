/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Costs of single operations, in the guest: prints "NAME NANOSECONDS", the median over rounds. Run the same static
 * binary natively and in each sandbox (bench/run). Usage: micro [NAME...]
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 9
#define PARKED 1000
#define TOUCH  (4u << 20)

extern char **environ;
static int data_fd, pipe_fds[2];

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

static void op_getppid(void)
{
	syscall(SYS_getppid);
}

static void op_stat(void)
{
	struct stat st;

	if (stat("bench.data", &st))
		abort();
}

static void op_open_close(void)
{
	int fd = open("bench.data", O_RDONLY);

	if (fd < 0)
		abort();
	close(fd);
}

static void op_pread(void)
{
	char buf[1024];

	if (pread(data_fd, buf, sizeof(buf), 0) != sizeof(buf))
		abort();
}

static void op_pipe(void)
{
	char c = 'x';

	if (write(pipe_fds[1], &c, 1) != 1 || read(pipe_fds[0], &c, 1) != 1)
		abort();
}

/* A page of fresh memory, one after the other; the mappings are left behind, so it comes last. */
static void op_touch(void)
{
	static char *at, *end;

	if (at == end) {
		at = mmap(NULL, TOUCH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (at == MAP_FAILED)
			abort();
		madvise(at, TOUCH, MADV_NOHUGEPAGE);
		end = at + TOUCH;
	}
	*at = 1;
	at += 4096;
}

static void op_fork(void)
{
	pid_t pid = fork();
	int st;

	if (pid == 0)
		_exit(0);
	if (pid < 0 || waitpid(pid, &st, 0) != pid)
		abort();
}

static void op_vfork_exec(void)
{
	static char *const argv[] = { "true", NULL };
	pid_t pid;
	int st;

	if (posix_spawn(&pid, "/bin/true", NULL, NULL, argv, environ) || waitpid(pid, &st, 0) != pid || st)
		abort();
}

static void *thread_fn(void *p)
{
	return p;
}

static void op_thread(void)
{
	pthread_t th;

	if (pthread_create(&th, NULL, thread_fn, NULL) || pthread_join(th, NULL))
		abort();
}

static void on_signal(int sig)
{
	(void)sig;
}

static void op_signal(void)
{
	kill(getpid(), SIGUSR1);
}

static void *parked_fn(void *p)
{
	int *fds = p;
	char c;

	if (read(fds[0], &c, 1) < 0)
		abort();
	return NULL;
}

static int cmp(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static uint64_t measure(void (*op)(void), unsigned n)
{
	uint64_t t[ROUNDS];

	for (int r = 0; r < ROUNDS; r++) {
		uint64_t t0 = now_ns();

		for (unsigned i = 0; i < n; i++)
			op();
		t[r] = (now_ns() - t0) / n;
	}
	qsort(t, ROUNDS, sizeof(t[0]), cmp);
	return t[ROUNDS / 2];
}

static const struct {
	const char *name;
	void (*op)(void);
	unsigned n;
} ops[] = {
	{ "getppid", op_getppid, 5000 },
	{ "stat", op_stat, 3000 },
	{ "open_close", op_open_close, 2000 },
	{ "pread_1k", op_pread, 3000 },
	{ "pipe_write_read", op_pipe, 2000 },
	{ "signal_self", op_signal, 500 },
	{ "thread_create_join", op_thread, 200 },
	{ "fork_exit_wait", op_fork, 100 },
	{ "vfork_exec_wait", op_vfork_exec, 30 },
	{ "first_touch", op_touch, TOUCH / 4096 },
};

static int wanted(int argc, char **argv, const char *name)
{
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], name))
			return 1;
	}
	return argc == 1;
}

static void parked_getppid(void)
{
	static pthread_t th[PARKED];
	static int fds[2];
	pthread_attr_t attr;
	int n = 0;

	if (pipe(fds))
		abort();
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 65536);
	while (n < PARKED && pthread_create(&th[n], &attr, parked_fn, fds) == 0)
		n++;
	usleep(300000);
	printf("getppid_%d_parked %llu\n", n, (unsigned long long)measure(op_getppid, 2000));
	for (int i = 0; i < n; i++) {
		if (write(fds[1], "x", 1) != 1)
			abort();
	}
	for (int i = 0; i < n; i++)
		pthread_join(th[i], NULL);
}

int main(int argc, char **argv)
{
	char block[4096] = "data";

	setvbuf(stdout, NULL, _IOLBF, 0);
	data_fd = open("bench.data", O_RDWR | O_CREAT | O_TRUNC, 0644);
	if (data_fd < 0 || write(data_fd, block, sizeof(block)) != sizeof(block) || pipe(pipe_fds))
		return 1;
	signal(SIGUSR1, on_signal);
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		if (wanted(argc, argv, ops[i].name))
			printf("%s %llu\n", ops[i].name, (unsigned long long)measure(ops[i].op, ops[i].n));
	}
	if (wanted(argc, argv, "getppid_parked"))
		parked_getppid();
	unlink("bench.data");
	return 0;
}
