/* SPDX-License-Identifier: Apache-2.0 */
/* Children of a case: short forms. A check that fails in a child prints and makes it end with status 1. */
#ifndef SBX_TESTS_GUEST_GT_CHILD_H
#define SBX_TESTS_GUEST_GT_CHILD_H

#include "gt.h"

#define MS 1000000L /* nanoseconds */

/* Runs the statements in a child; gives its pid. */
#define CHILD(...) \
	({ \
		pid_t p_; \
		fflush(stdout); \
		p_ = fork(); \
		CHECK(p_ >= 0); \
		if (p_ == 0) { \
			__VA_ARGS__; \
			fflush(stdout); \
			_exit(0); \
		} \
		p_; \
	})

/* The wait status of a child. */
__attribute__((unused)) static int gt_status(pid_t pid)
{
	int st = -1;
	pid_t r;

	while ((r = waitpid(pid, &st, __WALL)) < 0 && errno == EINTR)
		;
	CHECK_EQ(r, pid);
	return st;
}

/* A child ended in this way. */
#define CHECK_EXIT(pid, code) \
	do { \
		int st_ = gt_status(pid); \
		if (!WIFEXITED(st_) || WEXITSTATUS(st_) != (code)) \
			gt_fail(__FILE__, __LINE__, "child ended with %#x, not exit %d", st_, code); \
	} while (0)
#define CHECK_KILLED(pid, sig) \
	do { \
		int st_ = gt_status(pid); \
		if (!WIFSIGNALED(st_) || WTERMSIG(st_) != (sig)) \
			gt_fail(__FILE__, __LINE__, "child ended with %#x, not signal %d", st_, sig); \
	} while (0)

__attribute__((unused)) static void gt_sleep_ms(long ms)
{
	struct timespec ts = { ms / 1000, ms % 1000 * MS };

	while (nanosleep(&ts, &ts) && errno == EINTR)
		;
}

__attribute__((unused)) static int64_t gt_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000 + ts.tv_nsec / MS;
}

/* Waits up to half a minute (more on a slow platform) for a condition that others bring about. */
#define WAIT_FOR(cond) \
	do { \
		int64_t end_ = gt_now_ms() + 30000 * (int64_t)gt_slow(); \
		while (!(cond)) { \
			if (gt_now_ms() > end_) \
				gt_fail(__FILE__, __LINE__, "waited in vain: %s", #cond); \
			gt_sleep_ms(2); \
		} \
	} while (0)

/* Memory that parent and children share. */
__attribute__((unused)) static void *gt_shared(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

__attribute__((unused)) static void gt_handle(int sig, void (*fn)(int), int flags)
{
	struct sigaction sa = { .sa_handler = fn, .sa_flags = flags };

	CHECK_OK(sigaction(sig, &sa, NULL));
}

__attribute__((unused)) static void gt_handle_info(int sig, void (*fn)(int, siginfo_t *, void *), int flags)
{
	struct sigaction sa = { .sa_sigaction = fn, .sa_flags = flags | SA_SIGINFO };

	CHECK_OK(sigaction(sig, &sa, NULL));
}

__attribute__((unused)) static sigset_t gt_sigset(int sig, ...)
{
	sigset_t set;
	va_list ap;

	sigemptyset(&set);
	va_start(ap, sig);
	for (; sig; sig = va_arg(ap, int))
		sigaddset(&set, sig);
	va_end(ap);
	return set;
}

#define SET(...) (&(sigset_t[]){ gt_sigset(__VA_ARGS__, 0) }[0])

#endif
