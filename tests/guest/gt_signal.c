/* SPDX-License-Identifier: Apache-2.0 */
/* Signals: masks, queues, sending, stopping, waiting for them. */
#include <poll.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/signalfd.h>

#include "gt_child.h"

static volatile sig_atomic_t hits;
static volatile sig_atomic_t order[64];

static void count(int sig)
{
	if (hits < 64)
		order[hits] = sig;
	hits++;
}

static long rt_sigaction(int sig, const void *act, void *old, size_t size)
{
	return syscall(SYS_rt_sigaction, sig, act, old, size);
}

static void sigaction_hostile(void)
{
	unsigned long act[4] = { 0 };
	char *edge = gt_edge_page();

	CHECK_ERR(rt_sigaction(0, act, NULL, 8), EINVAL);
	CHECK_ERR(rt_sigaction(65, act, NULL, 8), EINVAL);
	CHECK_ERR(rt_sigaction(-1, act, NULL, 8), EINVAL);
	CHECK_ERR(rt_sigaction(SIGUSR1, act, NULL, 16), EINVAL);
	CHECK_ERR(rt_sigaction(SIGUSR1, act, NULL, 0), EINVAL);
	CHECK_ERR(rt_sigaction(SIGKILL, act, NULL, 8), EINVAL);
	CHECK_ERR(rt_sigaction(SIGSTOP, act, NULL, 8), EINVAL);
	CHECK_OK(rt_sigaction(SIGKILL, NULL, act, 8));
	CHECK_ERR(rt_sigaction(SIGUSR1, BAD_PTR, NULL, 8), EFAULT);
	CHECK_ERR(rt_sigaction(SIGUSR1, NULL, BAD_PTR, 8), EFAULT);
	CHECK_ERR(rt_sigaction(SIGUSR1, edge + 4096 - 24, NULL, 8), EFAULT);
	CHECK_ERR(rt_sigaction(SIGUSR1, NULL, edge + 4096 - 24, 8), EFAULT);
}

static void mask_hostile(void)
{
	uint64_t set = ~0ull, old = 0;
	char *edge = gt_edge_page();

	CHECK_ERR(syscall(SYS_rt_sigprocmask, 7, &set, NULL, 8), EINVAL);
	CHECK_ERR(syscall(SYS_rt_sigprocmask, SIG_BLOCK, &set, NULL, 4), EINVAL);
	CHECK_ERR(syscall(SYS_rt_sigprocmask, SIG_BLOCK, BAD_PTR, NULL, 8), EFAULT);
	CHECK_ERR(syscall(SYS_rt_sigprocmask, SIG_BLOCK, edge + 4092, NULL, 8), EFAULT);
	CHECK_OK(syscall(SYS_rt_sigprocmask, 7, NULL, &old, 8)); /* how counts only with a set */
	CHECK_OK(syscall(SYS_rt_sigprocmask, SIG_SETMASK, &set, NULL, 8));
	CHECK_OK(syscall(SYS_rt_sigprocmask, SIG_SETMASK, NULL, &old, 8));
	CHECK_EQ(old, ~((1ull << (SIGKILL - 1)) | (1ull << (SIGSTOP - 1))));
	/* The old mask is written after the new one is set. */
	set = 1;
	CHECK_ERR(syscall(SYS_rt_sigprocmask, SIG_SETMASK, &set, BAD_PTR, 8), EFAULT);
	CHECK_OK(syscall(SYS_rt_sigprocmask, SIG_SETMASK, NULL, &old, 8));
	CHECK_EQ(old, 1);
	CHECK_ERR(syscall(SYS_rt_sigpending, BAD_PTR, 8), EFAULT);
	CHECK_ERR(syscall(SYS_rt_sigpending, &set, 9), EINVAL);
	CHECK_ERR(syscall(SYS_rt_sigsuspend, BAD_PTR, 8), EFAULT);
	CHECK_ERR(syscall(SYS_rt_sigsuspend, &set, 4), EINVAL);
	CHECK_ERR(syscall(SYS_rt_sigtimedwait, BAD_PTR, NULL, NULL, 8), EFAULT);
	CHECK_ERR(syscall(SYS_rt_sigtimedwait, &set, NULL, BAD_PTR, 8), EFAULT);
	CHECK_ERR(syscall(SYS_rt_sigtimedwait, &set, NULL, (&(struct timespec){ -1, 0 }), 8), EINVAL);
	CHECK_ERR(syscall(SYS_rt_sigtimedwait, &set, NULL, (&(struct timespec){ 0, 1000000000 }), 8), EINVAL);
}

static void standard_merge_rt_queue(void)
{
	sigset_t pend;

	gt_handle(SIGUSR1, count, 0);
	gt_handle(SIGRTMIN, count, 0);
	sigprocmask(SIG_BLOCK, SET(SIGUSR1, SIGRTMIN), NULL);
	for (int i = 0; i < 5; i++) {
		CHECK_OK(raise(SIGUSR1));
		CHECK_OK(sigqueue(getpid(), SIGRTMIN, (union sigval){ .sival_int = i }));
	}
	CHECK_OK(sigpending(&pend));
	CHECK(sigismember(&pend, SIGUSR1) && sigismember(&pend, SIGRTMIN));
	CHECK_EQ(hits, 0);
	sigprocmask(SIG_UNBLOCK, SET(SIGUSR1, SIGRTMIN), NULL);
	CHECK_EQ(hits, 6);
	CHECK_OK(sigpending(&pend));
	CHECK(!sigismember(&pend, SIGUSR1));
}

static volatile int values[16];

static void on_info(int sig, siginfo_t *si, void *uc)
{
	if (hits < 16) {
		order[hits] = sig;
		values[hits] = si->si_value.sival_int;
	}
	hits++;
}

static void rt_order(void)
{
	struct sigaction sa = { .sa_sigaction = on_info, .sa_flags = SA_SIGINFO };
	int sigs[] = { SIGRTMIN + 2, SIGRTMIN, SIGRTMIN + 1, SIGRTMIN, SIGUSR1 };

	sigfillset(&sa.sa_mask);
	for (int i = 0; i < 5; i++) {
		CHECK_OK(sigaction(sigs[i], &sa, NULL));
		sigprocmask(SIG_BLOCK, SET(sigs[i]), NULL);
	}
	for (int i = 0; i < 5; i++)
		CHECK_OK(sigqueue(getpid(), sigs[i], (union sigval){ .sival_int = i }));
	sigprocmask(SIG_SETMASK, SET(0), NULL);
	CHECK_EQ(hits, 5);
	/* Standard ones first, then the lowest number, then the order of sending. */
	CHECK_EQ(order[0], SIGUSR1);
	CHECK_EQ(order[1], SIGRTMIN);
	CHECK_EQ(values[1], 1);
	CHECK_EQ(values[2], 3);
	CHECK_EQ(order[3], SIGRTMIN + 1);
	CHECK_EQ(order[4], SIGRTMIN + 2);
}

static void queue_hostile(void)
{
	siginfo_t si = { .si_signo = SIGUSR1, .si_code = SI_USER };

	/* Kernel-like codes may not be sent to others. */
	CHECK_ERR(syscall(SYS_rt_sigqueueinfo, getppid(), 0, &si), EPERM);
	si.si_code = SI_TKILL;
	CHECK_ERR(syscall(SYS_rt_sigqueueinfo, getppid(), 0, &si), EPERM);
	si.si_code = SI_QUEUE;
	CHECK_OK(syscall(SYS_rt_sigqueueinfo, getppid(), 0, &si));
	CHECK_ERR(syscall(SYS_rt_sigqueueinfo, getpid(), SIGUSR1, BAD_PTR), EFAULT);
	CHECK_ERR(syscall(SYS_rt_sigqueueinfo, getpid(), 65, &si), EINVAL);
	CHECK_ERR(syscall(SYS_rt_sigqueueinfo, 99999999, SIGUSR1, &si), ESRCH);
	CHECK_ERR(syscall(SYS_rt_tgsigqueueinfo, 0, gettid(), SIGUSR1, &si), EINVAL);
	CHECK_ERR(syscall(SYS_rt_tgsigqueueinfo, getpid(), -1, SIGUSR1, &si), EINVAL);
	CHECK_ERR(syscall(SYS_tgkill, getpid(), 0, SIGUSR1), EINVAL);
	CHECK_ERR(syscall(SYS_tgkill, getppid(), gettid(), SIGUSR1), ESRCH);
	CHECK_ERR(syscall(SYS_tkill, 0, SIGUSR1), EINVAL);
	CHECK_ERR(syscall(SYS_tkill, 99999999, SIGUSR1), ESRCH);
}

static void kill_forms(void)
{
	pid_t a, b;
	int st;

	CHECK_ERR(kill(99999999, 0), ESRCH);
	CHECK_ERR(kill(INT32_MIN, SIGTERM), ESRCH);
	CHECK_ERR(kill(getpid(), 65), EINVAL);
	CHECK_ERR(kill(getpid(), -1), EINVAL);
	CHECK_ERR(kill(-99999999, SIGTERM), ESRCH);
	CHECK_OK(kill(getpid(), 0));
	/* A group. */
	a = CHILD(setpgid(0, 0); pause());
	setpgid(a, a);
	b = CHILD(setpgid(0, a); pause());
	setpgid(b, a);
	CHECK_OK(kill(-a, SIGTERM));
	CHECK_KILLED(a, SIGTERM);
	CHECK_KILLED(b, SIGTERM);
	/* Zombies are there. */
	a = CHILD(_exit(0));
	CHECK_OK(waitid(P_PID, a, &(siginfo_t){ 0 }, WEXITED | WNOWAIT));
	CHECK_OK(kill(a, SIGTERM));
	CHECK_EQ(waitpid(a, &st, 0), a);
	CHECK_ERR(kill(a, SIGTERM), ESRCH);
}

static void kill_permission(void)
{
	pid_t root_child;

	if (getuid())
		_exit(GT_SKIP);
	root_child = CHILD(pause());
	CHECK_EXIT(CHILD({
		CHECK_OK(setresuid(65534, 65534, 65534));
		CHECK_ERR(kill(root_child, 0), EPERM);
		CHECK_ERR(kill(root_child, SIGTERM), EPERM);
		CHECK_ERR(kill(root_child, 65), EINVAL);
		CHECK_ERR(syscall(SYS_tgkill, root_child, root_child, SIGTERM), EPERM);
		CHECK_OK(kill(getpid(), 0));
	}), 0);
	/* SIGCONT passes within a session. */
	CHECK_OK(kill(root_child, SIGSTOP));
	CHECK_OK(waitid(P_PID, root_child, &(siginfo_t){ 0 }, WSTOPPED));
	CHECK_EXIT(CHILD({
		CHECK_OK(setresuid(65534, 65534, 65534));
		CHECK_OK(kill(root_child, SIGCONT));
	}), 0);
	CHECK_OK(waitid(P_PID, root_child, &(siginfo_t){ 0 }, WCONTINUED));
	CHECK_OK(kill(root_child, SIGKILL));
	CHECK_KILLED(root_child, SIGKILL);
}

/* A signal that is ignored, or stops and continues, does not interrupt. */
static void stop_does_not_interrupt(void)
{
	int p[2], q[2];
	pid_t a;
	char c;

	CHECK_OK(pipe(p));
	CHECK_OK(pipe(q));
	a = CHILD({
		int64_t t0 = gt_now_ms();
		signal(SIGUSR1, SIG_IGN);
		CHECK_EQ(write(q[1], "r", 1), 1);
		CHECK_EQ(read(p[0], &c, 1), 1);
		CHECK_EQ(c, 'y');
		CHECK_EQ(nanosleep(&(struct timespec){ 0, 100 * MS }, NULL), 0);
		CHECK(gt_now_ms() - t0 >= 100);
	});
	CHECK_EQ(read(q[0], &c, 1), 1);
	gt_sleep_ms(30);
	kill(a, SIGUSR1);
	kill(a, SIGCHLD);
	kill(a, SIGWINCH);
	kill(a, SIGSTOP);
	CHECK_OK(waitid(P_PID, a, &(siginfo_t){ 0 }, WSTOPPED));
	CHECK_EQ(write(p[1], "y", 1), 1);
	gt_sleep_ms(30);
	CHECK_EQ(waitpid(a, NULL, WNOHANG), 0);
	kill(a, SIGCONT);
	gt_sleep_ms(30);
	kill(a, SIGSTOP);
	CHECK_OK(waitid(P_PID, a, &(siginfo_t){ 0 }, WSTOPPED));
	kill(a, SIGCONT);
	CHECK_EXIT(a, 0);
}

static void stop_and_continue(void)
{
	volatile int *w = gt_shared(4096);
	pid_t a = CHILD(for (;;) ++*w);
	int st, seen;

	WAIT_FOR(*w);
	CHECK_OK(kill(a, SIGSTOP));
	CHECK_EQ(waitpid(a, &st, WUNTRACED), a);
	CHECK(WIFSTOPPED(st) && WSTOPSIG(st) == SIGSTOP);
	seen = *w;
	gt_sleep_ms(20);
	CHECK_EQ(*w, seen);
	CHECK_OK(kill(a, SIGTERM)); /* waits until it goes on */
	gt_sleep_ms(10);
	CHECK_EQ(waitpid(a, &st, WNOHANG), 0);
	CHECK_OK(kill(a, SIGCONT));
	CHECK_KILLED(a, SIGTERM);
	/* SIGKILL ends a stopped one; SIGCONT takes back a pending stop. */
	a = CHILD(for (;;) ++*w);
	CHECK_OK(kill(a, SIGSTOP));
	CHECK_EQ(waitpid(a, &st, WUNTRACED), a);
	CHECK_OK(kill(a, SIGKILL));
	CHECK_KILLED(a, SIGKILL);
}

static void *spin_counter(void *arg)
{
	for (;;)
		++*(volatile int *)arg;
	return NULL;
}

static void stop_threads(void)
{
	volatile int *w = gt_shared(4096);
	int st, a0, b0;
	pid_t a = CHILD({
		pthread_t t;
		CHECK_EQ(pthread_create(&t, NULL, spin_counter, (void *)&w[1]), 0);
		spin_counter((void *)&w[0]);
	});

	WAIT_FOR(w[0] && w[1]);
	CHECK_OK(kill(a, SIGSTOP));
	CHECK_EQ(waitpid(a, &st, WUNTRACED), a);
	a0 = w[0];
	b0 = w[1];
	gt_sleep_ms(30);
	CHECK_EQ(w[0], a0);
	CHECK_EQ(w[1], b0);
	CHECK_OK(kill(a, SIGCONT));
	WAIT_FOR(w[0] != a0 && w[1] != b0);
	CHECK_OK(kill(a, SIGKILL));
	CHECK_KILLED(a, SIGKILL);
}

static void sigchld_ignore(void)
{
	pid_t pid;

	signal(SIGCHLD, SIG_IGN);
	pid = CHILD(_exit(3));
	CHECK_ERR(waitpid(pid, NULL, 0), ECHILD); /* waits for the end all the same */
	WAIT_FOR(kill(pid, 0) < 0); /* a moment later: its number is given back after its parent is told */
	CHECK_EQ(errno, ESRCH);
	gt_handle(SIGCHLD, count, SA_NOCLDWAIT);
	pid = CHILD(_exit(3));
	while (waitpid(-1, NULL, 0) < 0 && errno == EINTR)
		;
	CHECK_EQ(errno, ECHILD);
	CHECK_EQ(hits, 1);
	gt_handle(SIGCHLD, count, SA_NOCLDSTOP);
	hits = 0;
	pid = CHILD(raise(SIGSTOP));
	CHECK_OK(waitid(P_PID, pid, &(siginfo_t){ 0 }, WSTOPPED));
	CHECK_EQ(hits, 0);
	kill(pid, SIGCONT);
	gt_status(pid);
	CHECK_EQ(hits, 1);
}

static volatile siginfo_t chld_info;

static void on_chld(int sig, siginfo_t *si, void *uc)
{
	*(siginfo_t *)&chld_info = *si;
	hits++;
}

static void sigchld_info(void)
{
	struct sigaction sa = { .sa_sigaction = on_chld, .sa_flags = SA_SIGINFO };
	pid_t pid;

	CHECK_OK(sigaction(SIGCHLD, &sa, NULL));
	pid = CHILD(_exit(3));
	WAIT_FOR(hits == 1);
	CHECK_EQ(chld_info.si_code, CLD_EXITED);
	CHECK_EQ(chld_info.si_status, 3);
	CHECK_EQ(chld_info.si_pid, pid);
	CHECK_EQ(chld_info.si_uid, getuid());
	CHECK_EXIT(pid, 3);
	pid = CHILD(pause());
	kill(pid, SIGSTOP);
	WAIT_FOR(hits == 2);
	CHECK_EQ(chld_info.si_code, CLD_STOPPED);
	kill(pid, SIGCONT);
	WAIT_FOR(hits == 3);
	CHECK_EQ(chld_info.si_code, CLD_CONTINUED);
	kill(pid, SIGINT);
	WAIT_FOR(hits == 4);
	CHECK_EQ(chld_info.si_code, CLD_KILLED);
	CHECK_EQ(chld_info.si_status, SIGINT);
	gt_status(pid);
}

/* Waiting for signals. */
static void suspend_and_timedwait(void)
{
	siginfo_t si;
	int64_t t0;

	gt_handle(SIGUSR1, count, 0);
	sigprocmask(SIG_BLOCK, SET(SIGUSR1, SIGUSR2, SIGRTMIN), NULL);
	raise(SIGUSR1);
	CHECK_ERR(sigsuspend(SET(SIGUSR2)), EINTR);
	CHECK_EQ(hits, 1);
	{
		sigset_t now;

		sigprocmask(0, NULL, &now);
		CHECK(sigismember(&now, SIGUSR1));
	}
	CHECK_ERR(sigtimedwait(SET(SIGUSR2), &si, &(struct timespec){ 0, 0 }), EAGAIN);
	t0 = gt_now_ms();
	CHECK_ERR(sigtimedwait(SET(SIGUSR2), &si, &(struct timespec){ 0, 50 * MS }), EAGAIN);
	CHECK(gt_now_ms() - t0 >= 50);
	sigqueue(getpid(), SIGRTMIN, (union sigval){ .sival_int = 77 });
	CHECK_EQ(sigtimedwait(SET(SIGUSR2, SIGRTMIN), &si, NULL), SIGRTMIN);
	CHECK_EQ(si.si_code, SI_QUEUE);
	CHECK_EQ(si.si_value.sival_int, 77);
	CHECK_EQ(si.si_pid, getpid());
	raise(SIGUSR2);
	CHECK_ERR(syscall(SYS_rt_sigtimedwait, SET(SIGUSR2), BAD_PTR, NULL, 8), EFAULT);
	(void)CHILD(gt_sleep_ms(30); kill(getppid(), SIGUSR2));
	CHECK_EQ(sigwaitinfo(SET(SIGUSR2), &si), SIGUSR2);
	CHECK_EQ(si.si_code, SI_USER);
}

static void signalfds(void)
{
	struct signalfd_siginfo s[3];
	struct pollfd pfd = { .events = POLLIN };
	int fd;

	CHECK_ERR(syscall(SYS_signalfd4, -1, SET(SIGUSR1), 4, 0), EINVAL);
	CHECK_ERR(syscall(SYS_signalfd4, -1, BAD_PTR, 8, 0), EFAULT);
	CHECK_ERR(syscall(SYS_signalfd4, -1, SET(SIGUSR1), 8, 1), EINVAL);
	CHECK_ERR(syscall(SYS_signalfd4, 1, SET(SIGUSR1), 8, 0), EINVAL);
	CHECK_ERR(syscall(SYS_signalfd4, 999, SET(SIGUSR1), 8, 0), EBADF);
	sigprocmask(SIG_BLOCK, SET(SIGUSR1, SIGRTMIN), NULL);
	fd = signalfd(-1, SET(SIGUSR1, SIGRTMIN), SFD_NONBLOCK | SFD_CLOEXEC);
	CHECK(fd >= 0);
	CHECK_ERR(read(fd, s, sizeof(*s)), EAGAIN);
	CHECK_ERR(read(fd, s, 10), EINVAL);
	CHECK_ERR(write(fd, s, sizeof(*s)), EINVAL);
	pfd.fd = fd;
	CHECK_EQ(poll(&pfd, 1, 0), 0);
	raise(SIGUSR1);
	raise(SIGUSR1);
	sigqueue(getpid(), SIGRTMIN, (union sigval){ .sival_int = 5 });
	CHECK_EQ(poll(&pfd, 1, 0), 1);
	CHECK_EQ(read(fd, s, sizeof(s)), 2 * sizeof(*s));
	CHECK_EQ(s[0].ssi_signo, SIGUSR1);
	CHECK_EQ(s[1].ssi_signo, SIGRTMIN);
	CHECK_EQ(s[1].ssi_int, 5);
	CHECK_EQ(s[1].ssi_pid, getpid());
	raise(SIGUSR1);
	CHECK_ERR(read(fd, BAD_PTR, sizeof(*s)), EFAULT);
	CHECK_EQ(signalfd(fd, SET(SIGHUP), 0), fd);
	CHECK_EQ(poll(&pfd, 1, 0), 0);
}

static volatile pid_t thread_hit;

static void on_which(int sig)
{
	thread_hit = gettid();
	hits++;
}

static void *blocked_thread(void *arg)
{
	sigprocmask(SIG_BLOCK, SET(SIGUSR1), NULL);
	*(volatile pid_t *)arg = gettid();
	gt_sleep_ms(150);
	return NULL;
}

static void thread_choice(void)
{
	static volatile pid_t other;
	pthread_t t;

	gt_handle(SIGUSR1, on_which, 0);
	gt_handle(SIGUSR2, on_which, 0);
	CHECK_EQ(pthread_create(&t, NULL, blocked_thread, (void *)&other), 0);
	WAIT_FOR(other);
	/* The one that does not block it takes a process's signal. */
	sigprocmask(SIG_UNBLOCK, SET(SIGUSR1), NULL);
	CHECK_OK(kill(getpid(), SIGUSR1));
	WAIT_FOR(hits == 1);
	CHECK_EQ(thread_hit, gettid());
	CHECK_OK(syscall(SYS_tgkill, getpid(), other, SIGUSR2));
	WAIT_FOR(hits == 2);
	CHECK_EQ(thread_hit, other);
	sigprocmask(SIG_BLOCK, SET(SIGUSR2), NULL);
	CHECK_OK(kill(getpid(), SIGUSR2));
	WAIT_FOR(hits == 3);
	CHECK_EQ(thread_hit, other);
	pthread_join(t, NULL);
}

static void rlimit_sigpending(void)
{
	struct rlimit rl = { 3, 3 };
	int r = 0, n = 0;

	sigprocmask(SIG_BLOCK, SET(SIGRTMIN, SIGUSR1), NULL);
	CHECK_OK(setrlimit(RLIMIT_SIGPENDING, &rl));
	while (n < 100 && (r = sigqueue(getpid(), SIGRTMIN, (union sigval){ 0 })) == 0)
		n++;
	CHECK_EQ(r, -1);
	CHECK_EQ(errno, EAGAIN);
	CHECK(n <= 3);
	CHECK_OK(kill(getpid(), SIGUSR1)); /* a standard one always */
}

static const struct gt_case cases[] = {
	{ "sigaction_hostile", sigaction_hostile },
	{ "mask_hostile", mask_hostile },
	{ "standard_merge_rt_queue", standard_merge_rt_queue },
	{ "rt_order", rt_order },
	{ "queue_hostile", queue_hostile },
	{ "kill_forms", kill_forms },
	{ "kill_permission", kill_permission },
	{ "stop_does_not_interrupt", stop_does_not_interrupt },
	{ "stop_and_continue", stop_and_continue },
	{ "stop_threads", stop_threads },
	{ "sigchld_ignore", sigchld_ignore },
	{ "sigchld_info", sigchld_info },
	{ "suspend_and_timedwait", suspend_and_timedwait },
	{ "signalfds", signalfds },
	{ "thread_choice", thread_choice },
	{ "rlimit_sigpending", rlimit_sigpending },
	{ NULL, NULL },
};
GT_MAIN(cases)
