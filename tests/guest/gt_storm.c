/* SPDX-License-Identifier: Apache-2.0 */
/* Short storms: what races when many things begin, end, stop and are killed at once. At most five seconds each. */
#include <pthread.h>
#include <sys/resource.h>
#include <sys/time.h>

#include "gt_child.h"

#define SECONDS 3 /* at most; rounds bound it on a fast machine */

static volatile sig_atomic_t hits;

static void count(int sig)
{
	hits++;
}

static unsigned seed = 1;

static unsigned rnd(unsigned n)
{
	seed = seed * 1103515245 + 12345;
	return (seed >> 16) % n;
}

static bool go_on(int64_t start, int round, int rounds)
{
	return round < rounds && gt_now_ms() - start < SECONDS * 1000;
}

static void victim(int kind)
{
	char c;
	int p[2];

	switch (kind) {
	case 0:
		for (;;)
			__asm__ volatile("pause");
	case 1:
		for (;;)
			pause();
	case 2:
		if (pipe(p))
			_exit(1);
		for (;;)
			if (read(p[0], &c, 1) > 0)
				_exit(1);
	case 3:
		for (;;)
			getppid();
	case 4:
		for (;;)
			gt_sleep_ms(1);
	default:
		for (;;) {
			pid_t pid = fork();

			if (!pid)
				_exit(0);
			waitpid(pid, NULL, 0);
		}
	}
}

static void signal_storm(void)
{
	const int sigs[] = { SIGUSR1, SIGUSR2, SIGSTOP, SIGCONT, SIGWINCH, SIGRTMIN, SIGCHLD };
	int64_t start = gt_now_ms();
	pid_t pids[12];

	gt_handle(SIGUSR1, count, SA_RESTART);
	gt_handle(SIGUSR2, count, 0);
	gt_handle(SIGRTMIN, count, SA_NODEFER);
	for (int i = 0; i < 12; i++)
		pids[i] = CHILD(victim(i % 6));
	for (int i = 0; go_on(start, i, 3000); i++)
		CHECK_OK(kill(pids[rnd(12)], sigs[rnd(7)]));
	for (int i = 0; i < 12; i++)
		CHECK_OK(kill(pids[i], SIGKILL));
	for (int i = 0; i < 12; i++)
		CHECK_KILLED(pids[i], SIGKILL);
}

static void kill_young(void)
{
	/* At each moment of their youth. */
	int64_t start = gt_now_ms();

	for (int i = 0; go_on(start, i, 150); i++) {
		pid_t pid = CHILD({
			if (i & 1)
				execl("/bin/true", "true", (char *)NULL);
			(void)!fork();
			_exit(0);
		});
		for (volatile unsigned k = rnd(200000); k; k--)
			;
		kill(pid, SIGKILL);
		gt_status(pid);
	}
}

static void *thread_body(void *arg)
{
	if ((long)arg % 3 == 0)
		sched_yield();
	return arg;
}

static void thread_churn(void)
{
	int64_t start = gt_now_ms();

	for (int i = 0; go_on(start, i, 150); i++) {
		pthread_t t[6];

		for (long k = 0; k < 6; k++)
			CHECK_EQ(pthread_create(&t[k], NULL, thread_body, (void *)k), 0);
		for (long k = 0; k < 6; k++) {
			void *r;

			CHECK_EQ(pthread_join(t[k], &r), 0);
			CHECK_EQ((long)r, k);
		}
	}
}

static void *thread_victim(void *arg)
{
	victim((long)arg);
	return NULL;
}

static void exit_with_threads(void)
{
	int64_t start = gt_now_ms();

	for (int i = 0; go_on(start, i, 40); i++) {
		pid_t pid = CHILD({
			pthread_t t;
			for (long k = 0; k < 6; k++)
				CHECK_EQ(pthread_create(&t, NULL, thread_victim, (void *)(k % 5)), 0);
			for (volatile unsigned k = rnd(100000); k; k--)
				;
			if (i % 4 == 1)
				execl("/bin/sh", "sh", "-c", "exit 9", (char *)NULL);
			if (i % 4 == 2)
				syscall(SYS_tgkill, getpid(), gettid(), SIGKILL);
			_exit(9);
		});
		int st = gt_status(pid);

		if (i % 4 == 2)
			CHECK(WIFSIGNALED(st) && WTERMSIG(st) == SIGKILL);
		else
			CHECK(WIFEXITED(st) && WEXITSTATUS(st) == 9);
	}
}

static void *exec_racer(void *arg)
{
	execl("/bin/sh", "sh", "-c", "exit 9", (char *)NULL);
	return NULL;
}

static void exec_race(void)
{
	/* Several threads exec at once: one wins. */
	int64_t start = gt_now_ms();

	for (int i = 0; go_on(start, i, 15); i++) {
		CHECK_EXIT(CHILD({
			pthread_t t;
			for (int k = 0; k < 4; k++)
				pthread_create(&t, NULL, exec_racer, NULL);
			for (;;)
				pause();
		}), 9);
	}
}

static void *exit_racer(void *arg)
{
	syscall(SYS_exit_group, 20 + (long)arg);
	return NULL;
}

static void exit_race(void)
{
	int64_t start = gt_now_ms();

	for (int i = 0; go_on(start, i, 40); i++) {
		int st = gt_status(CHILD({
			pthread_t t;
			for (long k = 0; k < 4; k++)
				pthread_create(&t, NULL, exit_racer, (void *)k);
			syscall(SYS_exit, 0);
		}));

		if (!WIFEXITED(st) || WEXITSTATUS(st) < 20 || WEXITSTATUS(st) >= 24)
			gt_fail(__FILE__, __LINE__, "child ended with %#x", st);
	}
}

static void interrupted_births(void)
{
	/* A fast timer hits fork, vfork, thread creation and exec. */
	int64_t start = gt_now_ms();
	struct itimerval v = { { 0, 2000 }, { 0, 2000 } };

	gt_handle(SIGALRM, count, SA_RESTART);
	CHECK_OK(setitimer(ITIMER_REAL, &v, NULL));
	for (int i = 0; go_on(start, i, 60); i++) {
		pthread_t t;
		pid_t pid = fork();

		CHECK(pid >= 0);
		if (!pid)
			_exit(i % 50);
		CHECK_EXIT(pid, i % 50);
		pid = vfork();
		CHECK(pid >= 0);
		if (!pid)
			_exit(3);
		CHECK_EXIT(pid, 3);
		CHECK_EQ(pthread_create(&t, NULL, thread_body, NULL), 0);
		CHECK_EQ(pthread_join(t, NULL), 0);
	}
	CHECK(hits > 0);
	v = (struct itimerval){ { 0, 0 }, { 0, 0 } };
	setitimer(ITIMER_REAL, &v, NULL);
}

static void killed_in_vfork(void)
{
	int64_t start = gt_now_ms();

	for (int i = 0; go_on(start, i, 20); i++) {
		volatile int *w = gt_shared(4096);
		pid_t pid = CHILD({
			pid_t c = vfork();
			if (!c) {
				w[0] = 1;
				WAIT_FOR(w[1]);
				w[0] = 2;
				_exit(0);
			}
		});

		WAIT_FOR(w[0]);
		CHECK_OK(kill(pid, SIGKILL));
		CHECK_KILLED(pid, SIGKILL);
		w[1] = 1; /* the child goes on */
		WAIT_FOR(w[0] == 2);
		munmap((void *)w, 4096);
	}
}

static void *fork_worker(void *arg)
{
	for (int i = 0; i < 10; i++) {
		pid_t pid = fork();
		int st;

		if (!pid)
			_exit(7);
		if (pid < 0 || waitpid(pid, &st, 0) != pid || st != 7 << 8)
			return (void *)1;
	}
	return NULL;
}

static void forks_from_threads(void)
{
	pthread_t t[6];

	for (int i = 0; i < 6; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, fork_worker, NULL), 0);
	for (int i = 0; i < 6; i++) {
		void *r;

		CHECK_EQ(pthread_join(t[i], &r), 0);
		CHECK(!r);
	}
}

static void *map_worker(void *arg)
{
	for (long i = 0; i < 150; i++) {
		size_t n = 4096 * (1 + i % 7);
		long *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *q;

		if (p == MAP_FAILED || p[0] || p[n / 8 - 1])
			return (void *)1;
		p[0] = (long)arg;
		q = mremap(p, n, 2 * n, MREMAP_MAYMOVE);
		if (q == MAP_FAILED || q[0] != (long)arg || mprotect(q, n, PROT_READ) || madvise(q, n, MADV_DONTNEED) ||
		    q[0] || munmap(q, 2 * n))
			return (void *)2;
	}
	return NULL;
}

static void maps_from_threads(void)
{
	pthread_t t[6];

	for (long i = 0; i < 6; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, map_worker, (void *)(i + 5)), 0);
	for (int i = 0; i < 6; i++) {
		void *r;

		CHECK_EQ(pthread_join(t[i], &r), 0);
		CHECK_EQ((long)r, 0);
	}
}

static void fork_to_the_limit(void)
{
	/* A user's own limit, again and again: EAGAIN, no harm, and all of it again once they are gone. */
	if (geteuid())
		_exit(GT_SKIP);
	CHECK_EXIT(CHILD({
		struct rlimit rl = { 60, 60 };
		int first = -1;
		CHECK_OK(setresuid(54322, 54322, 54322));
		CHECK_OK(setrlimit(RLIMIT_NPROC, &rl));
		for (int round = 0; round < 3; round++) {
			static pid_t pids[100];
			int n = 0;
			while (n < 100) {
				pids[n] = fork();
				if (pids[n] == 0)
					victim(1);
				if (pids[n] < 0)
					break;
				n++;
			}
			CHECK_EQ(errno, EAGAIN);
			if (first < 0)
				first = n;
			CHECK_EQ(n, first);
			CHECK(n > 50 && n < 61);
			for (int i = 0; i < n; i++)
				CHECK_OK(kill(pids[i], SIGKILL));
			for (int i = 0; i < n; i++)
				CHECK_KILLED(pids[i], SIGKILL);
		}
	}), 0);
}

static void fork_bomb(void)
{
	/* Each child forks again until there is no more; all are in one group that is killed at once. */
	if (geteuid())
		_exit(GT_SKIP);
	CHECK_EXIT(CHILD({
		struct rlimit rl = { 80, 80 };
		pid_t bomb;
		CHECK_OK(setresuid(54323, 54323, 54323));
		CHECK_OK(setrlimit(RLIMIT_NPROC, &rl));
		bomb = CHILD({
			setpgid(0, 0);
			for (;;)
				if (fork() < 0)
					gt_sleep_ms(1);
		});
		setpgid(bomb, bomb);
		gt_sleep_ms(500);
		for (int i = 0; i < 200 && kill(-bomb, SIGKILL) == 0; i++)
			gt_sleep_ms(5);
		CHECK_KILLED(bomb, SIGKILL);
		WAIT_FOR(kill(-bomb, SIGKILL) < 0); /* zombies count until init has seen them */
	}), 0);
}

static const struct gt_case cases[] = {
	{ "signal_storm", signal_storm },
	{ "kill_young", kill_young },
	{ "thread_churn", thread_churn },
	{ "exit_with_threads", exit_with_threads },
	{ "exec_race", exec_race },
	{ "exit_race", exit_race },
	{ "interrupted_births", interrupted_births },
	{ "killed_in_vfork", killed_in_vfork },
	{ "forks_from_threads", forks_from_threads },
	{ "maps_from_threads", maps_from_threads },
	{ "fork_to_the_limit", fork_to_the_limit },
	{ "fork_bomb", fork_bomb },
	{ NULL, NULL },
};
GT_MAIN(cases)
