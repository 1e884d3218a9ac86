/* SPDX-License-Identifier: Apache-2.0 */
/* Futexes, as raw calls and as the C library uses them; clocks and timers. */
#include <linux/futex.h>
#include <pthread.h>
#include <sys/time.h>
#include <sys/timerfd.h>

#include "gt.h"

static long futex(uint32_t *a, int op, uint32_t val, const void *ts, void *a2, uint32_t val3)
{
	return syscall(SYS_futex, a, op, val, ts, a2, val3);
}

static void bad_arguments(void)
{
	uint32_t w = 1, w2 = 0;
	struct timespec bad = { 0, 1000000000 }, shortly = { 0, 2000000 };

	CHECK_ERR(futex((uint32_t *)((char *)&w + 1), FUTEX_WAIT, 1, NULL, NULL, 0), EINVAL);
	CHECK_ERR(futex(BAD_PTR, FUTEX_WAIT, 1, NULL, NULL, 0), EFAULT);
	CHECK_ERR(futex(&w, FUTEX_WAIT, 2, NULL, NULL, 0), EAGAIN);
	CHECK_ERR(futex(&w, FUTEX_WAIT, 1, &bad, NULL, 0), EINVAL);
	CHECK_ERR(futex(&w, FUTEX_WAIT, 1, BAD_PTR, NULL, 0), EFAULT);
	CHECK_ERR(futex(&w, FUTEX_WAIT, 1, &shortly, NULL, 0), ETIMEDOUT);
	CHECK_ERR(futex(&w, FUTEX_WAIT_BITSET, 1, NULL, NULL, 0), EINVAL);
	CHECK_ERR(futex(&w, FUTEX_CMP_REQUEUE, 1, (void *)1, &w2, 2), EAGAIN);
	CHECK_ERR(futex(&w, 100, 1, NULL, NULL, 0), ENOSYS);
	CHECK_ERR(futex(&w, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0), EPERM);
	CHECK_EQ(futex(&w, FUTEX_WAKE, 1, NULL, NULL, 0), 0);
	CHECK_ERR(syscall(SYS_futex_waitv, NULL, 1, 0, NULL, 0), EINVAL);
	CHECK_ERR(syscall(SYS_set_robust_list, &w, 1), EINVAL);
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int count, turn;

static void *add(void *arg)
{
	for (int i = 0; i < 2000; i++) {
		pthread_mutex_lock(arg);
		count++;
		if (i % 100 == 0)
			sched_yield();
		pthread_mutex_unlock(arg);
	}
	return NULL;
}

static void hammer(pthread_mutex_t *m)
{
	pthread_t t[4];

	count = 0;
	for (int i = 0; i < 4; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, add, m), 0);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	CHECK_EQ(count, 8000);
}

static void mutexes(void)
{
	hammer(&mutex);
}

static void pi_mutexes(void)
{
	pthread_mutexattr_t attr;
	pthread_mutex_t m;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
	CHECK_EQ(pthread_mutex_init(&m, &attr), 0);
	hammer(&m);
}

static void *ping(void *arg)
{
	int me = *(int *)arg;

	for (int i = 0; i < 500; i++) {
		pthread_mutex_lock(&mutex);
		while (turn != me)
			pthread_cond_wait(&cond, &mutex);
		turn = !me;
		pthread_cond_broadcast(&cond);
		pthread_mutex_unlock(&mutex);
	}
	return NULL;
}

static void conditions(void)
{
	int who[2] = { 0, 1 };
	pthread_t t[2];

	for (int i = 0; i < 2; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, ping, &who[i]), 0);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
}

static void *lock_and_die(void *arg)
{
	pthread_mutex_lock(arg);
	return NULL;
}

static void robust(bool pi, bool process)
{
	pthread_mutexattr_t attr;
	pthread_mutex_t *m = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_t t;

	CHECK(m != MAP_FAILED);
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	if (pi)
		pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
	CHECK_EQ(pthread_mutex_init(m, &attr), 0);
	if (process) {
		pid_t pid = fork();

		if (!pid) {
			pthread_mutex_lock(m);
			usleep(30000);
			kill(getpid(), SIGKILL);
		}
		usleep(10000);
		CHECK_EQ(pthread_mutex_lock(m), EOWNERDEAD);
		CHECK_EQ(waitpid(pid, NULL, 0), pid);
	} else {
		CHECK_EQ(pthread_create(&t, NULL, lock_and_die, m), 0);
		CHECK_EQ(pthread_join(t, NULL), 0);
		CHECK_EQ(pthread_mutex_lock(m), EOWNERDEAD);
	}
	CHECK_EQ(pthread_mutex_consistent(m), 0);
	CHECK_EQ(pthread_mutex_unlock(m), 0);
	CHECK_EQ(pthread_mutex_lock(m), 0);
}

static void robust_thread(void) { robust(false, false); }
static void robust_pi(void) { robust(true, false); }
static void robust_killed_process(void) { robust(false, true); }

static void shared_between_processes(void)
{
	uint32_t *w = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid;
	int st;

	CHECK(w != MAP_FAILED);
	pid = fork();
	if (!pid)
		_exit(futex(w, FUTEX_WAIT, 0, NULL, NULL, 0) != 0 && errno != EAGAIN);
	while (futex(w, FUTEX_WAKE, 1, NULL, NULL, 0) != 1)
		usleep(1000);
	CHECK_EQ(waitpid(pid, &st, 0), pid);
	CHECK_EQ(st, 0);
}

static void *spin(void *arg)
{
	while (!*(volatile int *)arg)
		;
	return NULL;
}

static void wake_op_beside_running_thread(void)
{
	uint32_t a = 0, b = 1;
	int stop = 0;
	pthread_t t;

	CHECK_EQ(pthread_create(&t, NULL, spin, &stop), 0);
	for (uint32_t i = 1; i < 20; i++) {
		CHECK_EQ(futex(&a, FUTEX_WAKE_OP_PRIVATE, 1, (void *)1, &b,
			       FUTEX_OP(FUTEX_OP_ADD, 1, FUTEX_OP_CMP_EQ, 0)), 0);
		CHECK_EQ(b, i + 1);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_SEQ_CST);
	CHECK_EQ(pthread_join(t, NULL), 0);
}

static void timerfd_ticks(void)
{
	const struct itimerspec it = { { 0, 5000000 }, { 0, 5000000 } };
	int fd = (int)CHECK_OK(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK));
	uint64_t ticks;

	CHECK_ERR(timerfd_create(99, 0), EINVAL);
	CHECK_ERR(timerfd_settime(fd, 0, BAD_PTR, NULL), EFAULT);
	CHECK_ERR(timerfd_settime(0, 0, &it, NULL), EINVAL);
	CHECK_ERR(read(fd, &ticks, 8), EAGAIN);
	CHECK_OK(timerfd_settime(fd, 0, &it, NULL));
	usleep(26000);
	CHECK_EQ(read(fd, &ticks, 8), 8);
	CHECK(ticks >= 5);
}

static volatile int fired, overrun;

static void on_timer(int sig, siginfo_t *si, void *uc)
{
	fired++;
	if (si->si_overrun > overrun)
		overrun = si->si_overrun; /* the largest: a slow machine may see more than one */
}

static void posix_timer(void)
{
	struct sigaction sa = { .sa_sigaction = on_timer, .sa_flags = SA_SIGINFO };
	struct sigevent ev = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN };
	struct itimerspec it = { { 0, 2000000 }, { 0, 2000000 } };
	sigset_t set;
	timer_t id;

	sigemptyset(&sa.sa_mask);
	CHECK_OK(sigaction(SIGRTMIN, &sa, NULL));
	CHECK_ERR(timer_create(99, &ev, &id), EINVAL);
	CHECK_OK(timer_create(CLOCK_REALTIME, &ev, &id));
	CHECK_OK(timer_settime(id, 0, &it, NULL));
	while (fired < 3)
		;
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	CHECK_OK(sigprocmask(SIG_BLOCK, &set, NULL));
	usleep(30000);
	CHECK_OK(sigprocmask(SIG_UNBLOCK, &set, NULL));
	CHECK(overrun >= 5);
	CHECK_OK(timer_delete(id));
	CHECK_ERR(syscall(SYS_timer_delete, 12345), EINVAL);
}

static void cpu_timers(void)
{
	const struct itimerval it = { .it_value = { 0, 20000 } };
	struct sigaction sa = { .sa_sigaction = on_timer, .sa_flags = SA_SIGINFO };

	sigemptyset(&sa.sa_mask);
	CHECK_OK(sigaction(SIGVTALRM, &sa, NULL));
	CHECK_OK(sigaction(SIGPROF, &sa, NULL));
	CHECK_OK(setitimer(ITIMER_VIRTUAL, &it, NULL));
	CHECK_OK(setitimer(ITIMER_PROF, &it, NULL));
	while (fired < 2)
		;
}

static void clocks(void)
{
	struct timespec a, b;

	CHECK_ERR(syscall(SYS_clock_gettime, 99, &a), EINVAL);
	CHECK_ERR(syscall(SYS_clock_gettime, CLOCK_MONOTONIC, BAD_PTR), EFAULT);
	CHECK_OK(syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &a));
	CHECK_OK(clock_gettime(CLOCK_MONOTONIC, &b));
	CHECK(b.tv_sec > a.tv_sec || (b.tv_sec == a.tv_sec && b.tv_nsec >= a.tv_nsec));
	CHECK(b.tv_sec - a.tv_sec < 5);
	CHECK_OK(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a));
	CHECK_OK(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a));
	CHECK_OK(clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){ 0, 1000000 }, NULL));
	CHECK_EQ(clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){ 0, -1 }, NULL), EINVAL);
}

static const struct gt_case cases[] = {
	{ "bad_arguments", bad_arguments },
	{ "mutexes", mutexes },
	{ "pi_mutexes", pi_mutexes },
	{ "conditions", conditions },
	{ "robust_thread", robust_thread },
	{ "robust_pi", robust_pi },
	{ "robust_killed_process", robust_killed_process },
	{ "shared_between_processes", shared_between_processes },
	{ "wake_op_beside_running_thread", wake_op_beside_running_thread },
	{ "timerfd_ticks", timerfd_ticks },
	{ "posix_timer", posix_timer },
	{ "cpu_timers", cpu_timers },
	{ "clocks", clocks },
	{ NULL, NULL },
};

GT_MAIN(cases)
