/* SPDX-License-Identifier: Apache-2.0 */
/* futex(2), robust lists, and what pthreads make of them. */
#include <linux/futex.h>
#include <pthread.h>

#include "gt_child.h"

static long fut(void *addr, int op, unsigned val, const void *timeout, void *addr2, unsigned val3)
{
	return syscall(SYS_futex, addr, op, val, timeout, addr2, val3);
}

static void hostile(void)
{
	char *edge = gt_edge_page();
	uint32_t w = 5, w2 = 0;
	struct timespec bad[] = { { -1, 0 }, { 0, -1 }, { 0, 1000000000 } };

	CHECK_ERR(fut(BAD_PTR, FUTEX_WAIT, 0, NULL, NULL, 0), EFAULT);
	CHECK_ERR(fut(NULL, FUTEX_WAIT, 0, NULL, NULL, 0), EFAULT);
	CHECK_ERR(fut((char *)&w + 1, FUTEX_WAIT, 0, NULL, NULL, 0), EINVAL);
	CHECK_ERR(fut(edge + 4094, FUTEX_WAIT, 0, NULL, NULL, 0), EINVAL);
	CHECK_ERR(fut(edge + 4096, FUTEX_WAIT, 0, NULL, NULL, 0), EFAULT);
	CHECK_ERR(fut((void *)0xffff800000000000ul, FUTEX_WAIT, 0, NULL, NULL, 0), EFAULT);
	CHECK_ERR(fut(&w, FUTEX_WAIT, 4, NULL, NULL, 0), EAGAIN);
	CHECK_ERR(fut(&w, FUTEX_WAIT, 5, BAD_PTR, NULL, 0), EFAULT);
	CHECK_ERR(fut(&w, FUTEX_WAIT_BITSET, 5, NULL, NULL, 0), EINVAL);
	CHECK_ERR(fut(&w, FUTEX_WAKE_BITSET, 1, NULL, NULL, 0), EINVAL);
	CHECK_ERR(fut(&w, 63, 0, NULL, NULL, 0), ENOSYS);
	CHECK_ERR(fut(&w, FUTEX_FD, 0, NULL, NULL, 0), ENOSYS);
	CHECK_ERR(fut(&w, FUTEX_WAKE | FUTEX_CLOCK_REALTIME, 0, NULL, NULL, 0), ENOSYS);
	for (int i = 0; i < 3; i++)
		CHECK_ERR(fut(&w, FUTEX_WAIT, 5, &bad[i], NULL, 0), EINVAL);
	CHECK_ERR(fut(&w, FUTEX_REQUEUE, -1, (void *)1, &w2, 0), EINVAL);
	CHECK_ERR(fut(&w, FUTEX_REQUEUE, 1, (void *)-1l, &w2, 0), EINVAL);
	CHECK_ERR(fut(&w, FUTEX_CMP_REQUEUE, 1, (void *)1, &w2, 4), EAGAIN);
	CHECK_ERR(fut(&w, FUTEX_CMP_REQUEUE, 1, (void *)1, BAD_PTR, 5), EFAULT);
	CHECK_EQ(fut(&w, FUTEX_WAKE, 1, NULL, NULL, 0), 0);
	CHECK_EQ(fut(&w, FUTEX_WAKE, -1, NULL, NULL, 0), 0);
	/* Waking does not read the word of a private one. */
	CHECK_EQ(fut(edge + 4096, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, NULL, NULL, 0), 0);
	CHECK_ERR(fut(edge + 4096, FUTEX_WAKE, 1, NULL, NULL, 0), EFAULT);
	CHECK_ERR(fut(&w, FUTEX_WAKE_OP, 1, (void *)1, BAD_PTR, FUTEX_OP(FUTEX_OP_SET, 1, FUTEX_OP_CMP_EQ, 0)), EFAULT);
	CHECK_ERR(fut(&w, FUTEX_WAKE_OP, 1, (void *)1, &w2, FUTEX_OP(6, 1, FUTEX_OP_CMP_EQ, 0)), ENOSYS);
	CHECK_ERR(syscall(SYS_set_robust_list, &w, 23), EINVAL);
	CHECK_ERR(syscall(SYS_get_robust_list, 0, BAD_PTR, BAD_PTR), EFAULT);
	CHECK_ERR(syscall(SYS_get_robust_list, 99999999, &w, &w), ESRCH);
}

static void timeouts(void)
{
	uint32_t w = 1;
	struct timespec ts = { 0, 40 * MS };
	int64_t t0 = gt_now_ms();

	CHECK_ERR(fut(&w, FUTEX_WAIT, 1, &ts, NULL, 0), ETIMEDOUT);
	CHECK(gt_now_ms() - t0 >= 40);
	/* Absolute, of both clocks; a past one at once. */
	clock_gettime(CLOCK_MONOTONIC, &ts);
	ts.tv_nsec += 40 * MS;
	ts.tv_sec += ts.tv_nsec / 1000000000;
	ts.tv_nsec %= 1000000000;
	t0 = gt_now_ms();
	CHECK_ERR(fut(&w, FUTEX_WAIT_BITSET, 1, &ts, NULL, ~0u), ETIMEDOUT);
	CHECK(gt_now_ms() - t0 >= 39);
	CHECK_ERR(fut(&w, FUTEX_WAIT_BITSET, 1, &ts, NULL, ~0u), ETIMEDOUT);
	clock_gettime(CLOCK_REALTIME, &ts);
	CHECK_ERR(fut(&w, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, 1, &ts, NULL, ~0u), ETIMEDOUT);
	ts = (struct timespec){ 0, 0 };
	CHECK_ERR(fut(&w, FUTEX_WAIT, 1, &ts, NULL, 0), ETIMEDOUT);
}

struct waiters {
	uint32_t word, word2;
	int asleep, woken;
	unsigned bits;
};

static void *waiter(void *arg)
{
	struct waiters *s = arg;
	unsigned bits = s->bits;

	__atomic_fetch_add(&s->asleep, 1, __ATOMIC_SEQ_CST);
	if (fut(&s->word, FUTEX_WAIT_BITSET, 0, NULL, NULL, bits) == 0)
		__atomic_fetch_add(&s->woken, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

static void start_waiters(struct waiters *s, pthread_t *t, int n, unsigned bits)
{
	for (int i = 0; i < n; i++) {
		int before = s->asleep;

		s->bits = bits;
		CHECK_EQ(pthread_create(&t[i], NULL, waiter, s), 0);
		WAIT_FOR(*(volatile int *)&s->asleep != before);
	}
	gt_sleep_ms(40);
}

static void wake_counts(void)
{
	static struct waiters s;
	pthread_t t[6];

	start_waiters(&s, t, 3, 1);
	start_waiters(&s, t + 3, 3, 2);
	CHECK_EQ(fut(&s.word, FUTEX_WAKE_BITSET, 100, NULL, NULL, 4), 0);
	CHECK_EQ(fut(&s.word, FUTEX_WAKE_BITSET, 2, NULL, NULL, 2), 2);
	WAIT_FOR(*(volatile int *)&s.woken == 2);
	CHECK_EQ(fut(&s.word, FUTEX_WAKE, 1, NULL, NULL, 0), 1);
	CHECK_EQ(fut(&s.word, FUTEX_WAKE, 100, NULL, NULL, 0), 3);
	for (int i = 0; i < 6; i++)
		pthread_join(t[i], NULL);
	CHECK_EQ(s.woken, 6);
}

static void requeue(void)
{
	static struct waiters s;
	pthread_t t[5];

	start_waiters(&s, t, 5, ~0u);
	CHECK_EQ(fut(&s.word, FUTEX_CMP_REQUEUE, 1, (void *)2, &s.word2, 0), 3);
	CHECK_EQ(fut(&s.word2, FUTEX_WAKE, 100, NULL, NULL, 0), 2);
	CHECK_EQ(fut(&s.word, FUTEX_REQUEUE, 0, (void *)100, &s.word2, 0), 2);
	CHECK_EQ(fut(&s.word, FUTEX_WAKE, 100, NULL, NULL, 0), 0);
	CHECK_EQ(fut(&s.word2, FUTEX_WAKE, 100, NULL, NULL, 0), 2);
	for (int i = 0; i < 5; i++)
		pthread_join(t[i], NULL);
}

static void wake_op(void)
{
	static struct waiters a, b;
	pthread_t t[4];

	start_waiters(&a, t, 2, ~0u);
	start_waiters(&b, t + 2, 2, ~0u);
	b.word = 7;
	CHECK_EQ(fut(&a.word, FUTEX_WAKE_OP, 1, (void *)9, &b.word, FUTEX_OP(FUTEX_OP_ADD, 3, FUTEX_OP_CMP_EQ, 8)), 1);
	CHECK_EQ(b.word, 10);
	CHECK_EQ(fut(&a.word, FUTEX_WAKE_OP, 9, (void *)9, &b.word, FUTEX_OP(FUTEX_OP_ANDN, 2, FUTEX_OP_CMP_GE, 10)),
	         3);
	CHECK_EQ(b.word, 8);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	CHECK_EQ(fut(&a.word, FUTEX_WAKE_OP, 0, (void *)0, &b.word,
		     FUTEX_OP((FUTEX_OP_OR | FUTEX_OP_OPARG_SHIFT), 5, FUTEX_OP_CMP_EQ, 0)), 0);
	CHECK_EQ(b.word, 8 | 32);
	CHECK_EQ(fut(&a.word, FUTEX_WAKE_OP, 0, (void *)0, &b.word, FUTEX_OP(FUTEX_OP_XOR, 0xfff, FUTEX_OP_CMP_EQ, 0)),
	         0);
	CHECK_EQ(b.word, (8 | 32) ^ 0xffffffffu); /* the argument is signed, 12 bits */
}

/* Between processes, through memory that is shared in different ways. */
static void shared_pair(uint32_t *a, uint32_t *b, bool meets)
{
	pid_t pid;

	*b = 0;
	pid = CHILD({
		struct timespec ts = { 0, 400 * MS };
		long r = fut(b, FUTEX_WAIT, 0, &ts, NULL, 0);
		_exit(r == 0 ? 1 : errno == ETIMEDOUT ? 2 : 3);
	});
	for (int i = 0; i < 50 && fut(a, FUTEX_WAKE, 1, NULL, NULL, 0) == 0; i++)
		gt_sleep_ms(10);
	CHECK_EXIT(pid, meets ? 1 : 2);
}

static void across_processes(void)
{
	int fd = open("f", O_RDWR | O_CREAT, 0600), fd2 = open("f", O_RDWR);
	uint32_t *anon = gt_shared(8192);
	uint32_t *f1, *f2, *priv;

	CHECK_OK(ftruncate(fd, 8192));
	f1 = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	f2 = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd2, 4096);
	priv = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(f1 != MAP_FAILED && f2 != MAP_FAILED);
	shared_pair(anon + 5, anon + 5, true);
	shared_pair(f1 + 1024 + 3, f2 + 3, true);
	shared_pair(f1 + 3, f2 + 3, false);
	*priv = 0;
	shared_pair(priv, priv, false);
	CHECK_EXIT(CHILD({
		int fd3 = memfd_create("x", 0);
		if (fd3 < 0)
			_exit(0);
		CHECK_OK(ftruncate(fd3, 4096));
		uint32_t *m1 = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd3, 0);
		uint32_t *m2 = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd3, 0);
		shared_pair(m1, m2, true);
	}), 0);
	CHECK_OK(unlink("f"));
}

static void robust_exit(void)
{
	pthread_mutex_t *m = gt_shared(sizeof(*m));
	pthread_mutexattr_t at;

	pthread_mutexattr_init(&at);
	pthread_mutexattr_setrobust(&at, PTHREAD_MUTEX_ROBUST);
	pthread_mutexattr_setpshared(&at, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(m, &at);
	CHECK_EXIT(CHILD(CHECK_EQ(pthread_mutex_lock(m), 0)), 0);
	CHECK_EQ(pthread_mutex_lock(m), EOWNERDEAD);
	CHECK_EQ(pthread_mutex_consistent(m), 0);
	CHECK_EQ(pthread_mutex_unlock(m), 0);
	/* Killed while another waits. */
	for (int i = 0; i < 3; i++) {
		volatile int *locked = gt_shared(4096);
		pid_t pid = CHILD(pthread_mutex_lock(m); *locked = 1; pause());
		pid_t pid2;

		WAIT_FOR(*locked);
		pid2 = CHILD({
			int r = pthread_mutex_lock(m);
			CHECK_EQ(r, EOWNERDEAD);
			pthread_mutex_consistent(m);
			pthread_mutex_unlock(m);
		});
		gt_sleep_ms(20);
		kill(pid, SIGKILL);
		CHECK_KILLED(pid, SIGKILL);
		CHECK_EXIT(pid2, 0);
	}
	/* Exec lets go of it too. */
	CHECK_EXIT(CHILD(pthread_mutex_lock(m); execl("/bin/true", "true", (char *)NULL)), 0);
	CHECK_EQ(pthread_mutex_lock(m), EOWNERDEAD);
}

static void robust_hostile(void)
{
	/* Lists that are circular, wild or enormous must not hang or kill the others. */
	CHECK_EXIT(CHILD({
		struct robust_list_head *h = malloc(sizeof(*h));
		struct robust_list *l = malloc(sizeof(*l));
		h->list.next = l;
		l->next = l;
		h->futex_offset = 16;
		h->list_op_pending = l;
		syscall(SYS_set_robust_list, h, sizeof(*h));
	}), 0);
	CHECK_EXIT(CHILD(syscall(SYS_set_robust_list, BAD_PTR, sizeof(struct robust_list_head))), 0);
	CHECK_EXIT(CHILD({
		struct robust_list_head *h = malloc(sizeof(*h));
		h->list.next = BAD_PTR;
		h->futex_offset = INT64_MAX;
		h->list_op_pending = (void *)-1l;
		syscall(SYS_set_robust_list, h, sizeof(*h));
	}), 0);
}

/* Storms. */
#define THREADS 8
#define ROUNDS  1500

static pthread_mutex_t storm_mutex = PTHREAD_MUTEX_INITIALIZER;
static long storm_count;

static void *mutex_worker(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		pthread_mutex_lock(arg);
		storm_count++;
		pthread_mutex_unlock(arg);
	}
	return NULL;
}

static void run_threads(void *(*fn)(void *), void *arg)
{
	pthread_t t[THREADS];

	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, fn, arg), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
}

static void mutex_storm(void)
{
	run_threads(mutex_worker, &storm_mutex);
	CHECK_EQ(storm_count, THREADS * ROUNDS);
}

static void pi_mutex_storm(void)
{
	pthread_mutexattr_t at;
	pthread_mutex_t m;

	pthread_mutexattr_init(&at);
	pthread_mutexattr_setprotocol(&at, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&m, &at);
	run_threads(mutex_worker, &m);
	CHECK_EQ(storm_count, THREADS * ROUNDS);
}

/* The same while others wait for their turn on each processor. */
static void pi_mutex_busy(void)
{
	pid_t pid[6];

	for (unsigned i = 0; i < 6; i++)
		pid[i] = CHILD(for (;;));
	pi_mutex_storm();
	for (unsigned i = 0; i < 6; i++) {
		CHECK_OK(kill(pid[i], SIGKILL));
		CHECK_KILLED(pid[i], SIGKILL);
	}
}

static void pi_rules(void)
{
	uint32_t w = 0;
	struct timespec past = { 1, 0 };

	CHECK_ERR(fut(&w, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0), EPERM);
	CHECK_OK(fut(&w, FUTEX_LOCK_PI, 0, NULL, NULL, 0));
	CHECK_EQ(w & FUTEX_TID_MASK, gettid());
	CHECK_ERR(fut(&w, FUTEX_LOCK_PI, 0, NULL, NULL, 0), EDEADLK);
	CHECK_ERR(fut(&w, FUTEX_TRYLOCK_PI, 0, NULL, NULL, 0), EDEADLK);
	CHECK_OK(fut(&w, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0));
	CHECK_EQ(w, 0);
	w = 99999999 & FUTEX_TID_MASK;
	CHECK_ERR(fut(&w, FUTEX_LOCK_PI, 0, NULL, NULL, 0), ESRCH);
	w = getppid();
	CHECK_ERR(fut(BAD_PTR, FUTEX_LOCK_PI, 0, NULL, NULL, 0), EFAULT);
	w = 0;
	{
		uint32_t *s = gt_shared(4096);
		pid_t pid = CHILD(CHECK_OK(fut(s, FUTEX_LOCK_PI, 0, NULL, NULL, 0)); s[1] = 1; gt_sleep_ms(100);
		                  fut(s, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0));

		WAIT_FOR(((volatile uint32_t *)s)[1]);
		CHECK_ERR(fut(s, FUTEX_TRYLOCK_PI, 0, NULL, NULL, 0), EAGAIN);
		CHECK_ERR(fut(s, FUTEX_LOCK_PI, 0, &past, NULL, 0), ETIMEDOUT);
		CHECK_OK(fut(s, FUTEX_LOCK_PI, 0, NULL, NULL, 0));
		CHECK_EQ(s[0] & FUTEX_TID_MASK, gettid());
		CHECK_EXIT(pid, 0);
	}
}

static pthread_cond_t storm_cond = PTHREAD_COND_INITIALIZER;
static int turn;

static void *cond_worker(void *arg)
{
	int me = __atomic_fetch_add((int *)arg, 1, __ATOMIC_SEQ_CST);

	for (int i = 0; i < 60; i++) {
		pthread_mutex_lock(&storm_mutex);
		while (turn % THREADS != me)
			pthread_cond_wait(&storm_cond, &storm_mutex);
		turn++;
		pthread_cond_broadcast(&storm_cond);
		pthread_mutex_unlock(&storm_mutex);
	}
	return NULL;
}

static void cond_storm(void)
{
	int n = 0;

	run_threads(cond_worker, &n);
	CHECK_EQ(turn, 60 * THREADS);
}

static pthread_barrier_t storm_barrier;

static void *barrier_worker(void *arg)
{
	for (int i = 0; i < 60; i++) {
		if (pthread_barrier_wait(&storm_barrier) == PTHREAD_BARRIER_SERIAL_THREAD)
			storm_count++;
	}
	return NULL;
}

static void barrier_storm(void)
{
	pthread_barrier_init(&storm_barrier, NULL, THREADS);
	run_threads(barrier_worker, NULL);
	CHECK_EQ(storm_count, 60);
}

static pthread_rwlock_t storm_rw = PTHREAD_RWLOCK_INITIALIZER;

static void *rw_worker(void *arg)
{
	for (int i = 0; i < 500; i++) {
		if (i % 4) {
			pthread_rwlock_rdlock(&storm_rw);
		} else {
			pthread_rwlock_wrlock(&storm_rw);
			storm_count++;
		}
		pthread_rwlock_unlock(&storm_rw);
	}
	return NULL;
}

static void rwlock_storm(void)
{
	run_threads(rw_worker, NULL);
	CHECK_EQ(storm_count, THREADS * 125);
}

static void timedlock(void)
{
	struct timespec ts;
	pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
	int64_t t0;

	pthread_mutex_lock(&m);
	clock_gettime(CLOCK_REALTIME, &ts);
	ts.tv_sec += ts.tv_nsec > 900 * MS;
	ts.tv_nsec = (ts.tv_nsec + 50 * MS) % 1000000000;
	t0 = gt_now_ms();
	CHECK_EQ(pthread_mutex_timedlock(&m, &ts), ETIMEDOUT);
	CHECK(gt_now_ms() - t0 < 15000);
}

static const struct gt_case cases[] = {
	{ "hostile", hostile },
	{ "timeouts", timeouts },
	{ "wake_counts", wake_counts },
	{ "requeue", requeue },
	{ "wake_op", wake_op },
	{ "across_processes", across_processes },
	{ "robust_exit", robust_exit },
	{ "robust_hostile", robust_hostile },
	{ "mutex_storm", mutex_storm },
	{ "pi_mutex_storm", pi_mutex_storm },
	{ "pi_mutex_busy", pi_mutex_busy },
	{ "pi_rules", pi_rules },
	{ "cond_storm", cond_storm },
	{ "barrier_storm", barrier_storm },
	{ "rwlock_storm", rwlock_storm },
	{ "timedlock", timedlock },
	{ NULL, NULL },
};
GT_MAIN(cases)
