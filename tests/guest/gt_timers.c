/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks, sleeping and timers. The machine may be slow: only lower bounds are exact. */
#include <poll.h>
#include <sys/time.h>
#include <sys/timerfd.h>

#include "gt_child.h"

static volatile sig_atomic_t hits;
static volatile siginfo_t last;

static void count(int sig)
{
	hits++;
}

static void count_info(int sig, siginfo_t *si, void *uc)
{
	*(siginfo_t *)&last = *si;
	hits++;
}

static void clocks(void)
{
	static const int ids[] = { CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID,
				   CLOCK_MONOTONIC_RAW, CLOCK_REALTIME_COARSE, CLOCK_MONOTONIC_COARSE, CLOCK_BOOTTIME };
	struct timespec ts, ts2;

	CHECK_ERR(syscall(SYS_clock_gettime, 99, &ts), EINVAL);
	CHECK_ERR(syscall(SYS_clock_gettime, CLOCK_MONOTONIC, BAD_PTR), EFAULT);
	CHECK_ERR(syscall(SYS_clock_getres, 99, &ts), EINVAL);
	CHECK_ERR(syscall(SYS_clock_getres, CLOCK_MONOTONIC, BAD_PTR), EFAULT);
	CHECK_OK(syscall(SYS_clock_getres, CLOCK_MONOTONIC, NULL));
	CHECK_ERR(syscall(SYS_clock_settime, CLOCK_MONOTONIC, &ts), EINVAL);
	CHECK_ERR(syscall(SYS_gettimeofday, BAD_PTR, NULL), EFAULT);
	CHECK_ERR(syscall(SYS_time, BAD_PTR), EFAULT);
	for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++) {
		CHECK_OK(syscall(SYS_clock_gettime, ids[i], &ts));
		CHECK(ts.tv_nsec >= 0 && ts.tv_nsec < 1000000000);
		CHECK_OK(syscall(SYS_clock_gettime, ids[i], &ts2));
		CHECK(ts2.tv_sec > ts.tv_sec || (ts2.tv_sec == ts.tv_sec && ts2.tv_nsec >= ts.tv_nsec));
		CHECK_OK(syscall(SYS_clock_getres, ids[i], &ts));
		CHECK(ts.tv_sec == 0 && ts.tv_nsec > 0);
	}
	/* The calls and the vDSO agree. */
	CHECK_OK(clock_gettime(CLOCK_MONOTONIC, &ts));
	CHECK_OK(syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &ts2));
	CHECK(ts2.tv_sec - ts.tv_sec <= 1);
	CHECK(labs(time(NULL) - (syscall(SYS_clock_gettime, CLOCK_REALTIME, &ts), ts.tv_sec)) <= 1);
}

static void sleep_hostile(void)
{
	struct timespec bad[] = { { -1, 0 }, { 0, -1 }, { 0, 1000000000 } };
	struct timespec zero = { 0, 0 };

	CHECK_ERR(syscall(SYS_nanosleep, BAD_PTR, NULL), EFAULT);
	CHECK_ERR(syscall(SYS_nanosleep, NULL, NULL), EFAULT);
	for (int i = 0; i < 3; i++) {
		CHECK_ERR(syscall(SYS_nanosleep, &bad[i], NULL), EINVAL);
		CHECK_ERR(syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &bad[i], NULL), EINVAL);
	}
	CHECK_ERR(syscall(SYS_clock_nanosleep, 99, 0, &zero, NULL), EINVAL);
	CHECK_ERR(syscall(SYS_clock_nanosleep, CLOCK_THREAD_CPUTIME_ID, 0, &zero, NULL), EOPNOTSUPP);
	CHECK_OK(syscall(SYS_nanosleep, &zero, BAD_PTR)); /* no remainder to tell */
	CHECK_OK(syscall(SYS_clock_nanosleep, CLOCK_REALTIME, TIMER_ABSTIME, &(struct timespec){ 1, 0 }, NULL));
}

static void remainders(void)
{
	struct timespec ts = { 3, 0 }, rem = { 9, 9 };

	gt_handle(SIGALRM, count, SA_RESTART); /* does not restart */
	setitimer(ITIMER_REAL, &(struct itimerval){ { 0, 0 }, { 0, 50000 } }, NULL);
	CHECK_ERR(syscall(SYS_nanosleep, &ts, &rem), EINTR);
	CHECK(rem.tv_sec <= 2);
	setitimer(ITIMER_REAL, &(struct itimerval){ { 0, 0 }, { 0, 50000 } }, NULL);
	CHECK_ERR(syscall(SYS_nanosleep, &ts, BAD_PTR), EFAULT);
	/* An absolute sleep tells nothing. */
	rem.tv_sec = 77;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	ts.tv_sec += 3;
	setitimer(ITIMER_REAL, &(struct itimerval){ { 0, 0 }, { 0, 50000 } }, NULL);
	CHECK_ERR(syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, &rem), EINTR);
	CHECK_EQ(rem.tv_sec, 77);
	CHECK_EQ(hits, 3);
}

static void sleeps_long_enough(void)
{
	for (int i = 1; i < 60; i += 13) {
		struct timespec a, b, ts = { 0, i * MS };

		clock_gettime(CLOCK_MONOTONIC, &a);
		CHECK_OK(nanosleep(&ts, NULL));
		clock_gettime(CLOCK_MONOTONIC, &b);
		CHECK((b.tv_sec - a.tv_sec) * 1000000000 + b.tv_nsec - a.tv_nsec >= i * MS);
	}
}

static void itimers(void)
{
	struct itimerval v = { { 0, 1000000 }, { 0, 0 } }, old;

	CHECK_ERR(syscall(SYS_setitimer, 3, &v, NULL), EINVAL);
	CHECK_ERR(syscall(SYS_setitimer, ITIMER_REAL, &v, NULL), EINVAL);
	v.it_interval.tv_usec = -1;
	CHECK_ERR(syscall(SYS_setitimer, ITIMER_REAL, &v, NULL), EINVAL);
	CHECK_ERR(syscall(SYS_setitimer, ITIMER_REAL, BAD_PTR, NULL), EFAULT);
	CHECK_ERR(syscall(SYS_getitimer, ITIMER_REAL, BAD_PTR), EFAULT);
	CHECK_ERR(syscall(SYS_getitimer, 3, &v), EINVAL);
	gt_handle(SIGALRM, count, 0);
	v = (struct itimerval){ { 0, 10000 }, { 0, 10000 } };
	CHECK_OK(setitimer(ITIMER_REAL, &v, NULL));
	WAIT_FOR(hits >= 5);
	v = (struct itimerval){ { 0, 0 }, { 0, 0 } };
	CHECK_OK(setitimer(ITIMER_REAL, &v, &old));
	CHECK_EQ(old.it_interval.tv_usec, 10000);
	hits = 0;
	gt_sleep_ms(40);
	CHECK_EQ(hits, 0);
	/* Not in a child. */
	v.it_value.tv_sec = 100;
	CHECK_OK(setitimer(ITIMER_REAL, &v, NULL));
	CHECK_EXIT(CHILD(CHECK_OK(getitimer(ITIMER_REAL, &old)); CHECK_EQ(old.it_value.tv_sec, 0)), 0);
	CHECK(alarm(50) >= 99);
	CHECK(alarm(0) >= 49);
	CHECK_EQ(alarm(0), 0);
	CHECK_KILLED(CHILD(signal(SIGALRM, SIG_DFL); alarm(1); pause()), SIGALRM);
}

static void cpu_timers(void)
{
	struct itimerval v = { { 0, 0 }, { 0, 20000 } };
	struct timespec a, b;
	int64_t end = gt_now_ms() + 8000;

	gt_handle(SIGVTALRM, count, 0);
	gt_handle(SIGPROF, count, 0);
	CHECK_OK(setitimer(ITIMER_PROF, &v, NULL));
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
	while (hits < 1 && gt_now_ms() < end)
		for (volatile int i = 0; i < 100000; i++)
			;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
	CHECK_EQ(hits, 1);
	CHECK((b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / MS >= 5); /* ticks are coarse */
	CHECK_OK(setitimer(ITIMER_VIRTUAL, &v, NULL));
	while (hits < 2 && gt_now_ms() < end)
		for (volatile int i = 0; i < 100000; i++)
			;
	CHECK_EQ(hits, 2);
}

static void posix_timers_hostile(void)
{
	struct sigevent ev = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = 65 };
	struct itimerspec its = { { 0, 0 }, { 0, 1000000000 } };
	int id = -1;

	CHECK_ERR(syscall(SYS_timer_create, 99, NULL, &id), EINVAL);
	CHECK_ERR(syscall(SYS_timer_create, CLOCK_MONOTONIC, BAD_PTR, &id), EFAULT);
	CHECK_ERR(syscall(SYS_timer_create, CLOCK_MONOTONIC, NULL, BAD_PTR), EFAULT);
	CHECK_ERR(syscall(SYS_timer_create, CLOCK_MONOTONIC, &ev, &id), EINVAL);
	ev.sigev_signo = SIGUSR1;
	ev.sigev_notify = 99;
	CHECK_ERR(syscall(SYS_timer_create, CLOCK_MONOTONIC, &ev, &id), EINVAL);
	ev.sigev_notify = SIGEV_THREAD_ID;
	*(int *)((char *)&ev + 16) = 1;
	CHECK_ERR(syscall(SYS_timer_create, CLOCK_MONOTONIC, &ev, &id), EINVAL);
	CHECK_ERR(syscall(SYS_timer_settime, 12345, 0, &its, NULL), EINVAL);
	CHECK_ERR(syscall(SYS_timer_gettime, 12345, &its), EINVAL);
	CHECK_ERR(syscall(SYS_timer_getoverrun, 12345), EINVAL);
	CHECK_ERR(syscall(SYS_timer_delete, 12345), EINVAL);
	CHECK_OK(syscall(SYS_timer_create, CLOCK_MONOTONIC, NULL, &id));
	CHECK_ERR(syscall(SYS_timer_settime, id, 0, &its, NULL), EINVAL);
	CHECK_ERR(syscall(SYS_timer_settime, id, 0, NULL, NULL), EINVAL);
	CHECK_ERR(syscall(SYS_timer_settime, id, 0, BAD_PTR, NULL), EFAULT);
	CHECK_ERR(syscall(SYS_timer_gettime, id, BAD_PTR), EFAULT);
	CHECK_OK(syscall(SYS_timer_delete, id));
	CHECK_ERR(syscall(SYS_timer_delete, id), EINVAL);
}

static void posix_timers(void)
{
	struct sigevent ev = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN, .sigev_value.sival_int = 42 };
	struct itimerspec its = { { 0, 10 * MS }, { 0, 10 * MS } }, now;
	int id;

	gt_handle_info(SIGRTMIN, count_info, 0);
	CHECK_OK(syscall(SYS_timer_create, CLOCK_MONOTONIC, &ev, &id));
	CHECK_OK(syscall(SYS_timer_settime, id, 0, &its, NULL));
	WAIT_FOR(hits >= 3);
	CHECK_EQ(last.si_code, SI_TIMER);
	CHECK_EQ(last.si_value.sival_int, 42);
	CHECK_EQ(last.si_timerid, id);
	/* Blocked: one in the queue, the others are overruns. */
	sigprocmask(SIG_BLOCK, SET(SIGRTMIN), NULL);
	hits = 0;
	gt_sleep_ms(80);
	CHECK_OK(syscall(SYS_timer_gettime, id, &now));
	CHECK_EQ(now.it_interval.tv_nsec, 10 * MS);
	CHECK(now.it_value.tv_nsec > 0 && now.it_value.tv_nsec <= 10 * MS);
	sigprocmask(SIG_UNBLOCK, SET(SIGRTMIN), NULL);
	WAIT_FOR(hits >= 1);
	its = (struct itimerspec){ { 0, 0 }, { 0, 0 } };
	CHECK_OK(syscall(SYS_timer_settime, id, 0, &its, &now));
	CHECK_EQ(now.it_interval.tv_nsec, 10 * MS);
	hits = 0;
	gt_sleep_ms(30);
	CHECK(hits <= 1);
	/* Absolute in the past: at once. */
	hits = 0;
	its.it_value.tv_nsec = 1;
	CHECK_OK(syscall(SYS_timer_settime, id, TIMER_ABSTIME, &its, NULL));
	WAIT_FOR(hits == 1);
	CHECK_OK(syscall(SYS_timer_delete, id));
	/* Without a signal it still runs. */
	ev.sigev_notify = SIGEV_NONE;
	CHECK_OK(syscall(SYS_timer_create, CLOCK_REALTIME, &ev, &id));
	its.it_value.tv_sec = 100;
	CHECK_OK(syscall(SYS_timer_settime, id, 0, &its, NULL));
	CHECK_OK(syscall(SYS_timer_gettime, id, &now));
	CHECK(now.it_value.tv_sec >= 99);
	/* Not in a child. */
	CHECK_EXIT(CHILD(CHECK_ERR(syscall(SYS_timer_gettime, id, &now), EINVAL)), 0);
}

static void overruns(void)
{
	struct sigevent ev = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN };
	struct itimerspec its = { { 0, MS }, { 0, MS } };
	siginfo_t si;
	int id;

	sigprocmask(SIG_BLOCK, SET(SIGRTMIN), NULL);
	CHECK_OK(syscall(SYS_timer_create, CLOCK_MONOTONIC, &ev, &id));
	CHECK_OK(syscall(SYS_timer_settime, id, 0, &its, NULL));
	gt_sleep_ms(60);
	CHECK_EQ(sigwaitinfo(SET(SIGRTMIN), &si), SIGRTMIN);
	CHECK(si.si_overrun >= 40);
	CHECK(syscall(SYS_timer_getoverrun, id) >= 40);
}

static void timerfds(void)
{
	struct itimerspec its = { { 0, 0 }, { 0, 1000000000 } }, now;
	struct pollfd pfd = { .events = POLLIN };
	uint64_t n;
	int fd;

	CHECK_ERR(timerfd_create(99, 0), EINVAL);
	CHECK_ERR(timerfd_create(CLOCK_MONOTONIC, 1), EINVAL);
	CHECK_ERR(timerfd_settime(1, 0, &its, NULL), EINVAL);
	CHECK_ERR(timerfd_settime(999, 0, &its, NULL), EINVAL); /* the time is looked at first */
	CHECK_ERR(timerfd_gettime(999, &now), EBADF);
	fd = CHECK_OK(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
	CHECK_ERR(timerfd_settime(fd, 0, &its, NULL), EINVAL);
	CHECK_ERR(timerfd_settime(fd, 0x10, &its, NULL), EINVAL);
	CHECK_ERR(timerfd_settime(fd, 0, BAD_PTR, NULL), EFAULT);
	CHECK_ERR(timerfd_gettime(fd, BAD_PTR), EFAULT);
	CHECK_ERR(read(fd, &n, 8), EAGAIN);
	CHECK_ERR(read(fd, &n, 4), EINVAL);
	its = (struct itimerspec){ { 0, 10 * MS }, { 0, 10 * MS } };
	CHECK_OK(timerfd_settime(fd, 0, &its, NULL));
	pfd.fd = fd;
	CHECK_EQ(poll(&pfd, 1, 3000), 1);
	CHECK_EQ(read(fd, &n, 8), 8);
	CHECK(n >= 1);
	gt_sleep_ms(60);
	CHECK_EQ(read(fd, &n, 8), 8);
	CHECK(n >= 5);
	CHECK_OK(timerfd_gettime(fd, &now));
	CHECK(now.it_value.tv_nsec > 0 && now.it_value.tv_nsec <= 10 * MS);
	gt_sleep_ms(20);
	CHECK_ERR(read(fd, BAD_PTR, 8), EFAULT);
	its = (struct itimerspec){ { 0, 0 }, { 0, 1 } };
	CHECK_OK(timerfd_settime(fd, TFD_TIMER_ABSTIME, &its, &now));
	CHECK_EQ(now.it_interval.tv_nsec, 10 * MS);
	CHECK_EQ(poll(&pfd, 1, 3000), 1);
	CHECK_EQ(read(fd, &n, 8), 8);
	CHECK_EQ(n, 1);
	/* Blocking. */
	CHECK_OK(fcntl(fd, F_SETFL, 0));
	its = (struct itimerspec){ { 0, 0 }, { 0, 30 * MS } };
	CHECK_OK(timerfd_settime(fd, 0, &its, NULL));
	CHECK_EQ(read(fd, &n, 8), 8);
}

static void many_timers(void)
{
	struct sigevent ev = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN };
	struct itimerspec its = { { 0, 0 }, { 0, 20 * MS } };

	gt_handle(SIGRTMIN, count, 0);
	for (int i = 0; i < 200; i++) {
		int id;

		its.it_value.tv_nsec = (20 + i % 7) * MS;
		CHECK_OK(syscall(SYS_timer_create, CLOCK_MONOTONIC, &ev, &id));
		CHECK_OK(syscall(SYS_timer_settime, id, 0, &its, NULL));
	}
	WAIT_FOR(hits == 200);
}

static int64_t clock_by(bool by_call, int clock)
{
	struct timespec ts = { 0 };

	if (by_call)
		CHECK_OK(syscall(SYS_clock_gettime, clock, &ts));
	else
		CHECK_OK(clock_gettime(clock, &ts));
	return ts.tv_sec * 1000000000ll + ts.tv_nsec;
}

/* The library's way, which may do without a call, and the call itself tell the same time. */
static void two_ways_to_the_time(void)
{
	static const int clocks[] = { CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_TAI, CLOCK_MONOTONIC_RAW,
				      CLOCK_REALTIME_COARSE, CLOCK_MONOTONIC_COARSE };
	int64_t end = gt_now_ms() + 300, last[16] = { 0 };
	struct timeval tv;
	int apart = 0;

	for (unsigned i = 0; gt_now_ms() < end || i < 100; i++) {
		int clock = clocks[i % (sizeof(clocks) / sizeof(*clocks))];
		int64_t before = clock_by(true, clock), t = clock_by(false, clock), after = clock_by(true, clock);

		/* Some microseconds are allowed, and once in a while more, when the host's clock is put right. */
		apart += t < before - 50000 || t > after + 50000;
		CHECK(t >= last[clock] || clock == CLOCK_REALTIME || clock == CLOCK_TAI);
		last[clock] = t;
	}
	CHECK(apart <= 2);
	for (int i = 0; i < 100; i++) {
		time_t a = time(NULL), b = syscall(SYS_time, NULL), c = time(NULL);

		CHECK(a <= b && b <= c);
		CHECK_OK(gettimeofday(&tv, NULL));
		CHECK(tv.tv_sec >= c && tv.tv_sec - c <= 1);
		gt_sleep_ms(1);
	}
}

static const struct gt_case cases[] = {
	{ "two_ways_to_the_time", two_ways_to_the_time },
	{ "clocks", clocks },
	{ "sleep_hostile", sleep_hostile },
	{ "remainders", remainders },
	{ "sleeps_long_enough", sleeps_long_enough },
	{ "itimers", itimers },
	{ "cpu_timers", cpu_timers },
	{ "posix_timers_hostile", posix_timers_hostile },
	{ "posix_timers", posix_timers },
	{ "overruns", overruns },
	{ "timerfds", timerfds },
	{ "many_timers", many_timers },
	{ NULL, NULL },
};
GT_MAIN(cases)
