/* SPDX-License-Identifier: Apache-2.0 */
/* Signals: hostile arguments, delivery, frames, masks, restart, job control. */
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <ucontext.h>

#include "gt.h"

static volatile int hits, last_sig, last_value;
static void *volatile last_addr;

static void note(int sig, siginfo_t *si, void *uc)
{
	hits++;
	last_sig = sig;
	last_value = si->si_value.sival_int;
	/* The interrupted code must get its registers back. */
	asm volatile("vzeroupper; pxor %%xmm0, %%xmm0; pxor %%xmm15, %%xmm15" ::: "xmm0", "xmm15");
}

static void set_handler(int sig, int flags)
{
	struct sigaction sa = { .sa_sigaction = note, .sa_flags = SA_SIGINFO | flags };

	sigemptyset(&sa.sa_mask);
	CHECK_OK(sigaction(sig, &sa, NULL));
}

static void alarm_us(int us)
{
	const struct itimerval it = { .it_value = { 0, us } };

	CHECK_OK(setitimer(ITIMER_REAL, &it, NULL));
}

static void block(int sig, sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, sig);
	CHECK_OK(sigprocmask(SIG_BLOCK, set, NULL));
}

static void bad_arguments(void)
{
	char *edge = gt_edge_page() + 4092;
	uint64_t set = 0;

	CHECK_ERR(syscall(SYS_rt_sigaction, SIGUSR1, BAD_PTR, NULL, 8), EFAULT);
	CHECK_ERR(syscall(SYS_rt_sigaction, SIGUSR1, NULL, edge, 8), EFAULT);
	CHECK_ERR(syscall(SYS_rt_sigaction, SIGUSR1, NULL, NULL, 4), EINVAL);
	CHECK_ERR(syscall(SYS_rt_sigaction, 0, NULL, NULL, 8), EINVAL);
	CHECK_ERR(syscall(SYS_rt_sigaction, 65, NULL, NULL, 8), EINVAL);
	CHECK_ERR(signal(SIGKILL, SIG_IGN) == SIG_ERR ? -1 : 0, EINVAL);
	CHECK_ERR(syscall(SYS_rt_sigprocmask, SIG_BLOCK, edge, NULL, 8), EFAULT);
	CHECK_ERR(syscall(SYS_rt_sigprocmask, 9, &set, NULL, 8), EINVAL);
	CHECK_ERR(syscall(SYS_rt_sigpending, &set, 16), EINVAL);
	CHECK_ERR(syscall(SYS_rt_sigsuspend, BAD_PTR, 8), EFAULT);
	CHECK_ERR(syscall(SYS_rt_sigtimedwait, BAD_PTR, NULL, NULL, 8), EFAULT);
	CHECK_ERR(syscall(SYS_sigaltstack, BAD_PTR, NULL), EFAULT);
	CHECK_ERR(syscall(SYS_tkill, 0, SIGUSR1), EINVAL);
	CHECK_ERR(syscall(SYS_tgkill, -1, 1, SIGUSR1), EINVAL);
	CHECK_ERR(kill(getpid(), 65), EINVAL);
	CHECK_ERR(kill(0x3fffffff, 0), ESRCH);
	CHECK_ERR(syscall(SYS_rt_sigqueueinfo, getpid(), SIGUSR1, BAD_PTR), EFAULT);
	CHECK_ERR(syscall(SYS_restart_syscall), EINTR);
	CHECK_ERR(syscall(SYS_signalfd4, 0, &set, 8, 0), EINVAL);
}

static void self_signal(void)
{
	set_handler(SIGUSR1, 0);
	for (int i = 1; i <= 100; i++) {
		CHECK_OK(kill(getpid(), SIGUSR1));
		CHECK_EQ(hits, i);
	}
	CHECK_EQ(last_sig, SIGUSR1);
}

static void vector_registers_kept(void)
{
	uint64_t in[2] = { 0x1122334455667788, 0x99aabbccddeeff00 }, out[2];
	long r = SYS_kill;

	set_handler(SIGUSR1, 0);
	asm volatile("movdqu %1, %%xmm15; syscall; movdqu %%xmm15, %2"
		     : "+a"(r)
		     : "m"(in), "m"(out), "D"((long)getpid()), "S"((long)SIGUSR1)
		     : "rcx", "r11", "xmm15", "memory");
	CHECK_EQ(r, 0);
	CHECK_EQ(hits, 1);
	CHECK(!memcmp(in, out, sizeof(in)));
}

static int order[4], n_order;

static void note_order(int sig)
{
	order[n_order++ % 4] = sig;
}

static void pending_order(void)
{
	sigset_t set;

	for (int sig = SIGRTMIN; sig < SIGRTMIN + 2; sig++)
		signal(sig, note_order);
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	sigaddset(&set, SIGRTMIN + 1);
	CHECK_OK(sigprocmask(SIG_BLOCK, &set, NULL));
	CHECK_OK(kill(getpid(), SIGRTMIN + 1));
	CHECK_OK(kill(getpid(), SIGRTMIN));
	CHECK_OK(kill(getpid(), SIGRTMIN));
	CHECK_OK(sigprocmask(SIG_UNBLOCK, &set, NULL));
	CHECK_EQ(n_order, 3);
	/* The lowest is taken first, so the handler of the higher one interrupts it. */
	CHECK_EQ(order[0] + order[1] + order[2], 3 * SIGRTMIN + 1);
}

static void queued_values(void)
{
	siginfo_t si;
	sigset_t set;

	block(SIGRTMIN, &set);
	for (int i = 0; i < 3; i++)
		CHECK_OK(sigqueue(getpid(), SIGRTMIN, (union sigval){ .sival_int = i }));
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(sigwaitinfo(&set, &si), SIGRTMIN);
		CHECK_EQ(si.si_value.sival_int, i);
		CHECK_EQ(si.si_code, SI_QUEUE);
		CHECK_EQ(si.si_pid, getpid());
	}
	CHECK_ERR(sigtimedwait(&set, &si, &(struct timespec){ 0, 1000000 }), EAGAIN);
}

static sigjmp_buf env;

static void jump(int sig, siginfo_t *si, void *uc)
{
	last_addr = si->si_addr;
	siglongjmp(env, 1 + (((ucontext_t *)uc)->uc_mcontext.gregs[REG_TRAPNO] == 14));
}

static void fault_on_altstack(void)
{
	struct sigaction sa = { .sa_sigaction = jump, .sa_flags = SA_SIGINFO | SA_ONSTACK };
	stack_t ss = { .ss_sp = malloc(65536), .ss_size = 65536 };

	sigemptyset(&sa.sa_mask);
	CHECK_OK(sigaction(SIGSEGV, &sa, NULL));
	CHECK_ERR(sigaltstack(&(stack_t){ .ss_sp = ss.ss_sp, .ss_size = 1 }, NULL), ENOMEM);
	CHECK_OK(sigaltstack(&ss, NULL));
	for (int i = 0; i < 3; i++) {
		switch (sigsetjmp(env, 1)) {
		case 0:
			*(volatile int *)0x1230 = 1;
			CHECK(false);
		case 2:
			break;
		default:
			CHECK(!"trapno");
		}
		CHECK(last_addr == (void *)0x1230);
	}
}

static void bad_frame_is_fatal(void)
{
	int st;
	pid_t pid = fork();

	if (!pid) {
		asm volatile("mov $0x100, %%rsp; syscall" ::"a"((long)SYS_rt_sigreturn) : "memory");
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &st, 0), pid);
	CHECK(WIFSIGNALED(st) && WTERMSIG(st) == SIGSEGV);
}

static void interrupts_spinning_code(void)
{
	set_handler(SIGALRM, SA_RESTART);
	alarm_us(20000);
	while (!hits)
		;
	CHECK_EQ(hits, 1);
}

static void restarts_read(void)
{
	int p[2], st;
	char c;

	CHECK_OK(pipe(p));
	set_handler(SIGALRM, 0);
	alarm_us(20000);
	CHECK_ERR(read(p[0], &c, 1), EINTR);
	set_handler(SIGALRM, SA_RESTART);
	if (!fork()) {
		usleep(60000);
		_exit(write(p[1], "x", 1) != 1);
	}
	alarm_us(20000);
	CHECK_EQ(read(p[0], &c, 1), 1);
	CHECK_EQ(hits, 2);
	while (wait(&st) < 0)
		;
	CHECK_EQ(st, 0);
}

static void sleep_tells_the_rest(void)
{
	struct timespec ts = { 5, 0 }, rem;

	set_handler(SIGALRM, SA_RESTART);
	alarm_us(20000);
	CHECK_ERR(nanosleep(&ts, &rem), EINTR);
	CHECK_EQ(rem.tv_sec, 4);
}

static void suspend(void)
{
	sigset_t set, none;

	block(SIGALRM, &set);
	set_handler(SIGALRM, SA_RESTART);
	sigemptyset(&none);
	alarm_us(20000);
	CHECK_ERR(sigsuspend(&none), EINTR);
	CHECK_EQ(hits, 1);
	CHECK_OK(sigprocmask(SIG_BLOCK, NULL, &set));
	CHECK_EQ(sigismember(&set, SIGALRM), 1);
}

static void job_control(void)
{
	pid_t pid = fork();
	int st;

	if (!pid)
		for (;;)
			; /* stopped and ended while it computes */
	CHECK_OK(kill(pid, SIGSTOP));
	CHECK_EQ(waitpid(pid, &st, WUNTRACED), pid);
	CHECK(WIFSTOPPED(st) && WSTOPSIG(st) == SIGSTOP);
	CHECK_OK(kill(pid, SIGCONT));
	CHECK_EQ(waitpid(pid, &st, WCONTINUED), pid);
	CHECK(WIFCONTINUED(st));
	CHECK_OK(kill(pid, SIGTERM));
	CHECK_EQ(waitpid(pid, &st, 0), pid);
	CHECK(WIFSIGNALED(st) && WTERMSIG(st) == SIGTERM);
}

static void stopped_sleep_goes_on(void)
{
	struct timespec t0, t1;
	pid_t pid = fork();
	int st;

	if (!pid) {
		clock_gettime(CLOCK_MONOTONIC, &t0);
		if (nanosleep(&(struct timespec){ 0, 200000000 }, NULL))
			_exit(1);
		clock_gettime(CLOCK_MONOTONIC, &t1);
		_exit((t1.tv_sec - t0.tv_sec) * 1000 + (t1.tv_nsec - t0.tv_nsec) / 1000000 < 199);
	}
	usleep(20000);
	CHECK_OK(kill(pid, SIGSTOP));
	CHECK_EQ(waitpid(pid, &st, WUNTRACED), pid);
	usleep(20000);
	CHECK_OK(kill(pid, SIGCONT));
	CHECK_EQ(waitpid(pid, &st, 0), pid);
	CHECK_EQ(st, 0);
}

static void ignored_children(void)
{
	pid_t pid;

	signal(SIGCHLD, SIG_IGN);
	pid = fork();
	if (!pid)
		_exit(1);
	CHECK_ERR(waitpid(pid, NULL, 0), ECHILD);
}

static void killed_by(void)
{
	static const int sigs[] = { SIGABRT, SIGQUIT, SIGKILL, SIGUSR1, SIGALRM, 40 };
	const struct rlimit none = { 0, 0 };
	int st;

	CHECK_OK(setrlimit(RLIMIT_CORE, &none));
	for (unsigned i = 0; i < sizeof(sigs) / sizeof(sigs[0]); i++) {
		pid_t pid = fork();

		if (!pid) {
			kill(getpid(), sigs[i]);
			_exit(0);
		}
		CHECK_EQ(waitpid(pid, &st, 0), pid);
		CHECK(WIFSIGNALED(st) && WTERMSIG(st) == sigs[i] && !WCOREDUMP(st));
	}
}

static void *wait_for_usr2(void *arg)
{
	sigset_t set;
	int sig = 0;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigwait(&set, &sig);
	*(int *)arg = sig;
	return NULL;
}

static void thread_takes_signal(void)
{
	sigset_t set;
	pthread_t t;
	int got = 0;

	block(SIGUSR2, &set);
	CHECK_EQ(pthread_create(&t, NULL, wait_for_usr2, &got), 0);
	usleep(10000);
	CHECK_OK(kill(getpid(), SIGUSR2));
	CHECK_EQ(pthread_join(t, NULL), 0);
	CHECK_EQ(got, SIGUSR2);
}

static void signalfd_works(void)
{
	struct signalfd_siginfo si;
	struct pollfd pf = { .events = POLLIN };
	sigset_t set;
	pid_t pid;

	block(SIGUSR2, &set);
	pf.fd = CHECK_OK(signalfd(-1, &set, SFD_NONBLOCK));
	CHECK_ERR(read(pf.fd, &si, sizeof(si)), EAGAIN);
	CHECK_EQ(poll(&pf, 1, 0), 0);
	pid = fork();
	if (!pid) {
		usleep(20000);
		_exit(kill(getppid(), SIGUSR2) != 0);
	}
	CHECK_EQ(poll(&pf, 1, 5000), 1);
	CHECK_EQ(read(pf.fd, &si, sizeof(si)), sizeof(si));
	CHECK_EQ(si.ssi_signo, SIGUSR2);
	CHECK_EQ(si.ssi_pid, pid);
}

static void exec_keeps_ignored(void)
{
	int st;
	pid_t pid;

	signal(SIGUSR1, SIG_IGN);
	set_handler(SIGUSR2, 0);
	pid = fork();
	if (!pid) {
		execl("/bin/sh", "sh", "-c", "kill -USR1 $$; kill -USR2 $$; exit 3", (char *)NULL);
		_exit(127);
	}
	CHECK_EQ(waitpid(pid, &st, 0), pid);
	CHECK(WIFSIGNALED(st) && WTERMSIG(st) == SIGUSR2);
}

static const struct gt_case cases[] = {
	{ "bad_arguments", bad_arguments },
	{ "self_signal", self_signal },
	{ "vector_registers_kept", vector_registers_kept },
	{ "pending_order", pending_order },
	{ "queued_values", queued_values },
	{ "fault_on_altstack", fault_on_altstack },
	{ "bad_frame_is_fatal", bad_frame_is_fatal },
	{ "interrupts_spinning_code", interrupts_spinning_code },
	{ "restarts_read", restarts_read },
	{ "sleep_tells_the_rest", sleep_tells_the_rest },
	{ "suspend", suspend },
	{ "job_control", job_control },
	{ "stopped_sleep_goes_on", stopped_sleep_goes_on },
	{ "ignored_children", ignored_children },
	{ "killed_by", killed_by },
	{ "thread_takes_signal", thread_takes_signal },
	{ "signalfd_works", signalfd_works },
	{ "exec_keeps_ignored", exec_keeps_ignored },
	{ NULL, NULL },
};

GT_MAIN(cases)
