/* SPDX-License-Identifier: Apache-2.0 */
/* Interval timers, POSIX timers, timerfd and signalfd. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <time.h>

#include "sentry/abi/signal.h"
#include "sentry/abi/syscall_nr.h"
#include "sentry/abi/time.h"
#include "sentry/kernel/clock.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/posix_timer.h"
#include "sentry/kernel/sig_deliver.h"
#include "sentry/kernel/task_priv.h"
#include "sentry/kernel/timer.h"
#include "sentry/syscalls/signal.h"
#include "sentry/syscalls/time.h"
#include "sentry/syscalls/timer.h"
#include "sentry/vfs/fdtable.h"
#include "sentry/vfs/file.h"
#include "sentry/vfs/uio.h"
#include "tests/lib/fake_guest.h"
#include "tests/lib/tap.h"

#define A1 (FAKE_BASE + 0x1000)
#define A2 (FAKE_BASE + 0x1100)
#define MS 1000000ll

const struct sys_desc sys_table[SYS_TABLE_SIZE] = {
	[LINUX_SYS_rt_sigaction] = { "rt_sigaction", sys_rt_sigaction, SYS_FULL, "", NULL },
	[LINUX_SYS_rt_sigprocmask] = { "rt_sigprocmask", sys_rt_sigprocmask, SYS_FULL, "", NULL },
	[LINUX_SYS_rt_sigtimedwait] = { "rt_sigtimedwait", sys_rt_sigtimedwait, SYS_FULL, "",
					NULL },
	[LINUX_SYS_signalfd4] = { "signalfd4", sys_signalfd4, SYS_FULL, "", NULL },
	[LINUX_SYS_alarm] = { "alarm", sys_alarm, SYS_FULL, "", NULL },
	[LINUX_SYS_getitimer] = { "getitimer", sys_getitimer, SYS_FULL, "", NULL },
	[LINUX_SYS_setitimer] = { "setitimer", sys_setitimer, SYS_FULL, "", NULL },
	[LINUX_SYS_timer_create] = { "timer_create", sys_timer_create, SYS_FULL, "", NULL },
	[LINUX_SYS_timer_settime] = { "timer_settime", sys_timer_settime, SYS_FULL, "", NULL },
	[LINUX_SYS_timer_gettime] = { "timer_gettime", sys_timer_gettime, SYS_FULL, "", NULL },
	[LINUX_SYS_timer_getoverrun] = { "timer_getoverrun", sys_timer_getoverrun, SYS_FULL, "",
					 NULL },
	[LINUX_SYS_timer_delete] = { "timer_delete", sys_timer_delete, SYS_FULL, "", NULL },
	[LINUX_SYS_timerfd_create] = { "timerfd_create", sys_timerfd_create, SYS_FULL, "", NULL },
	[LINUX_SYS_timerfd_settime] = { "timerfd_settime", sys_timerfd_settime, SYS_FULL, "",
					NULL },
	[LINUX_SYS_timerfd_gettime] = { "timerfd_gettime", sys_timerfd_gettime, SYS_FULL, "",
					NULL },
	[LINUX_SYS_clock_gettime] = { "clock_gettime", sys_clock_gettime, SYS_FULL, "", NULL },
	[LINUX_SYS_clock_getres] = { "clock_getres", sys_clock_getres, SYS_FULL, "", NULL },
	[LINUX_SYS_clock_settime] = { "clock_settime", sys_clock_settime, SYS_FULL, "", NULL },
	[LINUX_SYS_clock_nanosleep] = { "clock_nanosleep", sys_clock_nanosleep, SYS_FULL, "",
					NULL },
	[LINUX_SYS_adjtimex] = { "adjtimex", sys_adjtimex, SYS_FULL, "", NULL },
	[LINUX_SYS_gettimeofday] = { "gettimeofday", sys_gettimeofday, SYS_FULL, "", NULL },
	[LINUX_SYS_time] = { "time", sys_time, SYS_FULL, "", NULL },
};

static void block(struct task *t, uint64_t mask)
{
	*(uint64_t *)fake_mem(t, A1) = mask;
	CALL4(t, LINUX_SYS_rt_sigprocmask, SIG_SETMASK, A1, 0, 8);
}

/* Takes a pending signal of @sig: its siginfo in *info. */
static int take(struct task *t, int sig, struct linux_siginfo *info)
{
	int64_t r;

	*(uint64_t *)fake_mem(t, A1) = SIG_BIT(sig);
	*(struct linux_timespec *)fake_mem(t, A1 + 8) = (struct linux_timespec){ 0, 0 };
	r = CALL4(t, LINUX_SYS_rt_sigtimedwait, A1, A2, A1 + 8, 8);
	memcpy(info, fake_mem(t, A2), sizeof(*info));
	return (int)r;
}

static void put_itimerval(struct task *t, int64_t value_us, int64_t interval_us)
{
	*(struct linux_itimerval *)fake_mem(t, A1) =
		(struct linux_itimerval){ { 0, interval_us }, { 0, value_us } };
}

static void put_itimerspec(struct task *t, int64_t value_ns, int64_t interval_ns)
{
	*(struct linux_itimerspec *)fake_mem(t, A1) =
		(struct linux_itimerspec){ { 0, interval_ns }, { 0, value_ns } };
}

static void test_itimer(struct task *t)
{
	struct linux_itimerval *it = fake_mem(t, A2);
	struct linux_siginfo info;
	uint64_t spin;

	block(t, SIG_BIT(SIGALRM) | SIG_BIT(SIGPROF));
	put_itimerval(t, 1000000, 0);
	tap_eq(CALL3(t, LINUX_SYS_setitimer, ITIMER_REAL, A1, 0), -EINVAL, "usec out of range");
	tap_eq(CALL3(t, LINUX_SYS_setitimer, 3, A1, 0), -EINVAL, "no such timer");
	put_itimerval(t, 3000, 0);
	tap_eq(CALL3(t, LINUX_SYS_setitimer, ITIMER_REAL, A1, 0), 0, "ITIMER_REAL");
	tap_eq(CALL2(t, LINUX_SYS_getitimer, ITIMER_REAL, A2), 0, "getitimer");
	tap_ok(it->it_value.tv_sec == 0 && it->it_value.tv_usec > 0 && it->it_value.tv_usec <= 3000,
	       "what is left");
	fake_pass_time(5 * MS);
	tap_eq(take(t, SIGALRM, &info), SIGALRM, "it fires");
	tap_eq(info.si_code, LINUX_SI_KERNEL, "from the kernel");
	CALL2(t, LINUX_SYS_getitimer, ITIMER_REAL, A2);
	tap_ok(!it->it_value.tv_sec && !it->it_value.tv_usec, "and is off");
	tap_eq(CALL1(t, LINUX_SYS_alarm, 10), 0, "alarm");
	tap_eq(CALL1(t, LINUX_SYS_alarm, 0), 10, "alarm 0 cancels it");
	put_itimerval(t, 1000, 1000);
	CALL3(t, LINUX_SYS_setitimer, ITIMER_PROF, A1, 0);
	spin = clock_mono_ns() + 2 * MS; /* a running task uses CPU time */
	while (clock_mono_ns() < spin)
		;
	fake_pass_time(6 * MS);
	tap_eq(take(t, SIGPROF, &info), SIGPROF, "ITIMER_PROF fires");
	put_itimerval(t, 0, 0);
	CALL3(t, LINUX_SYS_setitimer, ITIMER_PROF, A1, 0);
	fake_pass_time(6 * MS);
	tap_eq(take(t, SIGPROF, &info), -EAGAIN, "and is off");
	block(t, 0);
}

static int create(struct task *t, int clock, int notify, int sig)
{
	struct linux_sigevent *ev = fake_mem(t, A1);

	*ev = (struct linux_sigevent){ .sigev_value = 0x1122334455667788,
				       .sigev_signo = sig,
				       .sigev_notify = notify };
	ev->sigev_tid = t->tid;
	return (int)CALL3(t, LINUX_SYS_timer_create, clock, A1, A2) ?: *(int *)fake_mem(t, A2);
}

static void test_posix(struct task *t)
{
	struct linux_itimerspec *it = fake_mem(t, A2);
	struct linux_siginfo info;
	int id, id2;

	block(t, SIG_BIT(40) | SIG_BIT(SIGALRM));
	tap_eq(create(t, 99, LINUX_SIGEV_SIGNAL, 40), -EINVAL, "no such clock");
	tap_eq(create(t, CLOCK_MONOTONIC, LINUX_SIGEV_SIGNAL, 0), -EINVAL, "no signal");
	tap_eq(create(t, CLOCK_MONOTONIC, 3, 40), -EINVAL, "no such notification");
	tap_eq(CALL3(t, LINUX_SYS_timer_create, CLOCK_MONOTONIC, 0, 8), -EFAULT,
	       "nowhere to put the id");
	id = create(t, CLOCK_MONOTONIC, LINUX_SIGEV_SIGNAL, 40);
	tap_ok(id >= 0, "create");
	put_itimerspec(t, 2 * MS, 0);
	tap_eq(CALL4(t, LINUX_SYS_timer_settime, id, 0, A1, 0), 0, "one shot");
	tap_eq(CALL2(t, LINUX_SYS_timer_gettime, id, A2), 0, "gettime");
	tap_ok(it->it_value.tv_nsec > 0 && it->it_value.tv_nsec <= 2 * MS, "what is left");
	fake_pass_time(4 * MS);
	tap_eq(take(t, 40, &info), 40, "it fires");
	tap_ok(info.si_code == LINUX_SI_TIMER && info.timer.timerid == id &&
		       info.timer.value == 0x1122334455667788,
	       "siginfo");
	CALL2(t, LINUX_SYS_timer_gettime, id, A2);
	tap_eq(it->it_value.tv_nsec, 0, "and is off");
	put_itimerspec(t, MS, MS);
	CALL4(t, LINUX_SYS_timer_settime, id, 0, A1, 0);
	fake_pass_time(8 * MS);
	tap_eq(take(t, 40, &info), 40, "a periodic one");
	tap_ok(info.timer.overrun >= 5, "has overruns (%d)", info.timer.overrun);
	tap_eq(CALL1(t, LINUX_SYS_timer_getoverrun, id), info.timer.overrun, "timer_getoverrun");
	fake_pass_time(3 * MS);
	put_itimerspec(t, 0, 0);
	CALL4(t, LINUX_SYS_timer_settime, id, 0, A1, A2);
	tap_ok(it->it_interval.tv_nsec == MS && it->it_value.tv_nsec > 0, "old value");
	tap_eq(take(t, 40, &info), -EAGAIN, "disarming takes the pending signal back");
	put_itimerspec(t, 1, 0);
	tap_eq(CALL4(t, LINUX_SYS_timer_settime, id, TIMER_ABSTIME, A1, 0), 0,
	       "a time that has passed");
	fake_pass_time(0);
	tap_eq(take(t, 40, &info), 40, "fires at once");
	id2 = create(t, CLOCK_REALTIME, LINUX_SIGEV_THREAD_ID, 40);
	tap_eq(id2, id + 1, "SIGEV_THREAD_ID");
	*(struct linux_itimerspec *)fake_mem(t, A1) =
		(struct linux_itimerspec){ .it_value = ns_to_timespec(clock_real_ns() + 2 * MS) };
	CALL4(t, LINUX_SYS_timer_settime, id2, TIMER_ABSTIME, A1, 0);
	fake_pass_time(4 * MS);
	tap_eq(take(t, 40, &info), 40, "absolute real time");
	tap_eq(CALL1(t, LINUX_SYS_timer_delete, id2), 0, "delete");
	tap_eq(CALL1(t, LINUX_SYS_timer_delete, id2), -EINVAL, "twice");
	id2 = create(t, CLOCK_BOOTTIME, LINUX_SIGEV_NONE, 0);
	put_itimerspec(t, MS, MS);
	CALL4(t, LINUX_SYS_timer_settime, id2, 0, A1, 0);
	fake_pass_time(3 * MS);
	CALL2(t, LINUX_SYS_timer_gettime, id2, A2);
	tap_ok(it->it_value.tv_nsec > 0 && it->it_value.tv_nsec <= MS, "SIGEV_NONE runs on");
	tap_eq(CALL3(t, LINUX_SYS_timer_create, CLOCK_MONOTONIC, 0, A2), 0, "without an event");
	put_itimerspec(t, MS, 0);
	CALL4(t, LINUX_SYS_timer_settime, *(int *)fake_mem(t, A2), 0, A1, 0);
	fake_pass_time(2 * MS);
	tap_eq(take(t, SIGALRM, &info), SIGALRM, "SIGALRM by default");
	put_itimerspec(t, MS, 0);
	CALL4(t, LINUX_SYS_timer_settime, id, 0, A1, 0);
	fake_pass_time(2 * MS);
	tap_ok(sig_pending_set(t) & SIG_BIT(40), "pending");
	tap_eq(sig_exec(t), 0, "execve");
	tap_eq(sig_pending_set(t), 0, "deletes timers, with their signals");
	block(t, 0);
}

static ssize_t read_file(struct task *t, int fd, uaddr_t buf, size_t n)
{
	struct file *f;
	struct uio_seg seg = { buf, n };
	struct uio u = { .task = t, .segs = &seg, .n_segs = 1, .resid = n };
	ssize_t r = fd_get(t, fd, &f);

	if (r < 0)
		return r;
	kernel.current = t;
	r = f->ops->read(f, &u, NULL);
	kernel.current = NULL;
	file_put(f);
	return r;
}

static uint32_t poll_file(struct task *t, int fd)
{
	struct waitq *q;
	struct file *f;
	uint32_t r;

	if (fd_get(t, fd, &f) < 0)
		return POLLNVAL;
	kernel.current = t;
	r = f->ops->poll(f, &q);
	kernel.current = NULL;
	file_put(f);
	return r;
}

static void test_timerfd(struct task *t)
{
	struct linux_itimerspec *it = fake_mem(t, A2);
	uint64_t *ticks = fake_mem(t, A2 + 64);
	int fd;

	tap_eq(CALL2(t, LINUX_SYS_timerfd_create, CLOCK_TAI, 0), -EINVAL,
	       "timerfd on another clock");
	tap_eq(CALL2(t, LINUX_SYS_timerfd_create, CLOCK_MONOTONIC, 1), -EINVAL, "unknown flag");
	fd = (int)CALL2(t, LINUX_SYS_timerfd_create, CLOCK_MONOTONIC, 0);
	tap_ok(fd >= 0, "timerfd");
	put_itimerspec(t, 2 * MS, 0);
	tap_eq(CALL4(t, LINUX_SYS_timerfd_settime, fd, 8, A1, 0), -EINVAL, "unknown flag");
	tap_eq(CALL4(t, LINUX_SYS_timerfd_settime, fd, 0, A1, 0), 0, "one shot");
	tap_eq(read_file(t, fd, A2 + 64, 8), -EAGAIN, "not yet");
	tap_eq(read_file(t, fd, A2 + 64, 7), -EINVAL, "a short buffer");
	fake_pass_time(3 * MS);
	tap_eq(poll_file(t, fd), POLLIN, "ready");
	tap_ok(read_file(t, fd, A2 + 64, 8) == 8 && *ticks == 1, "one tick");
	put_itimerspec(t, MS, MS);
	CALL4(t, LINUX_SYS_timerfd_settime, fd, 0, A1, 0);
	fake_pass_time(5 * MS + MS / 2);
	tap_ok(read_file(t, fd, A2 + 64, 8) == 8 && *ticks >= 5, "several ticks (%d)", (int)*ticks);
	tap_eq(CALL2(t, LINUX_SYS_timerfd_gettime, fd, A2), 0, "gettime");
	tap_ok(it->it_value.tv_nsec > 0 && it->it_value.tv_nsec <= MS &&
		       it->it_interval.tv_nsec == MS,
	       "goes on");
	put_itimerspec(t, 1, 0);
	tap_eq(CALL4(t, LINUX_SYS_timerfd_settime, fd, 1, A1, 0), 0, "absolute, long ago");
	tap_eq(poll_file(t, fd), POLLIN, "ready at once");
	DISCARD(fd_close(t, fd));
}

static void test_signalfd(struct task *t)
{
	struct linux_signalfd_siginfo *si = fake_mem(t, A2);
	struct linux_siginfo info = { .si_code = LINUX_SI_QUEUE };
	int fd, tfd;

	block(t, SIG_BIT(SIGUSR1) | SIG_BIT(41));
	*(uint64_t *)fake_mem(t, A1) = SIG_BIT(SIGUSR1) | SIG_BIT(41) | SIG_BIT(SIGKILL);
	tap_eq(CALL4(t, LINUX_SYS_signalfd4, -1, A1, 4, 0), -EINVAL, "signalfd with another size");
	fd = (int)CALL4(t, LINUX_SYS_signalfd4, -1, A1, 8, 0);
	tap_ok(fd >= 0, "signalfd");
	tap_eq(read_file(t, fd, A2, 128), -EAGAIN, "nothing");
	tap_eq(poll_file(t, fd), 0, "not ready");
	sig_send_self(t, SIGUSR1);
	info.rt.value = 0x99;
	info.rt.pid = 7;
	(void)sig_send_tgroup(t->tg, 41, &info);
	tap_eq(poll_file(t, fd), POLLIN, "ready");
	tap_eq(read_file(t, fd, A2, 300), 256, "two at once");
	tap_ok(si[0].signo == SIGUSR1 && si[0].pid == (uint32_t)t->tg->tgid &&
		       si[0].code == LINUX_SI_USER,
	       "kill");
	tap_ok(si[1].signo == 41 && si[1].ptr == 0x99 && si[1].pid == 7, "sigqueue");
	*(uint64_t *)fake_mem(t, A1) = SIG_BIT(41);
	tap_eq(CALL4(t, LINUX_SYS_signalfd4, fd, A1, 8, 0), fd, "another mask");
	sig_send_self(t, SIGUSR1);
	tap_eq(poll_file(t, fd), 0, "counts");
	tfd = (int)CALL2(t, LINUX_SYS_timerfd_create, CLOCK_MONOTONIC, 0);
	tap_eq(CALL4(t, LINUX_SYS_signalfd4, tfd, A1, 8, 0), -EINVAL, "not a signalfd");
	tap_eq(CALL4(t, LINUX_SYS_timerfd_settime, fd, 0, A1 + 64, 0), -EINVAL, "not a timerfd");
	DISCARD(fd_close(t, tfd));
	DISCARD(fd_close(t, fd));
	(void)sig_dequeue(t, UINT64_MAX, &info);
	block(t, 0);
}

static void test_clocks(struct task *t)
{
	struct linux_timespec *ts = fake_mem(t, A2);
	uint64_t before;

	for (int id = 0; id <= 11; id++)
		tap_eq(CALL2(t, LINUX_SYS_clock_gettime, id, A2), id == 10 ? -EINVAL : 0,
		       "clock %d", id);
	before = clock_mono_ns();
	CALL2(t, LINUX_SYS_clock_gettime, CLOCK_MONOTONIC, A2);
	tap_ok((uint64_t)ts->tv_sec * 1000000000 + (uint64_t)ts->tv_nsec >= before,
	       "monotonic is the host's");
	tap_eq(CALL2(t, LINUX_SYS_clock_gettime, -6, A2), 0,
	       "the CPU clock of a process"); /* ~0 << 3 | 2 */
	tap_eq(CALL2(t, LINUX_SYS_clock_gettime, (int)(~(unsigned)t->tid << 3 | 6), A2), 0,
	       "and of a thread");
	tap_eq(CALL2(t, LINUX_SYS_clock_gettime, (int)(~99999u << 3 | 6), A2), -EINVAL,
	       "of nobody");
	tap_eq(CALL2(t, LINUX_SYS_clock_gettime, CLOCK_MONOTONIC, 8), -EFAULT, "nowhere");
	tap_eq(CALL2(t, LINUX_SYS_clock_getres, CLOCK_MONOTONIC, 0), 0, "getres");
	*ts = (struct linux_timespec){ 1, 0 };
	tap_eq(CALL2(t, LINUX_SYS_clock_settime, CLOCK_REALTIME, A2), -EPERM, "settime");
	tap_eq(CALL2(t, LINUX_SYS_clock_settime, CLOCK_MONOTONIC, A2), -EINVAL,
	       "of a clock that cannot be set");
	tap_eq(CALL4(t, LINUX_SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, A2, 0), 0,
	       "sleep until the past");
	tap_eq(CALL4(t, LINUX_SYS_clock_nanosleep, CLOCK_THREAD_CPUTIME_ID, 0, A2, 0), -EOPNOTSUPP,
	       "on a CPU clock");
	tap_eq(CALL4(t, LINUX_SYS_clock_nanosleep, 77, 0, A2, 0), -EINVAL, "on no clock");
	*ts = ns_to_timespec(clock_real_ns() + 2 * MS);
	tap_eq(CALL4(t, LINUX_SYS_clock_nanosleep, CLOCK_REALTIME, TIMER_ABSTIME, A2, 0),
	       FAKE_BLOCKED, "until soon");
	fake_pass_time(4 * MS);
	tap_eq(fake_result(t), 0, "ends");
	memset(fake_mem(t, A2), 0, sizeof(struct timex));
	tap_eq(CALL1(t, LINUX_SYS_adjtimex, A2), TIME_ERROR, "adjtimex reads");
	((struct timex *)fake_mem(t, A2))->modes = ADJ_OFFSET;
	tap_eq(CALL1(t, LINUX_SYS_adjtimex, A2), -EPERM, "and does not write");
	tap_ok(CALL1(t, LINUX_SYS_time, 0) >= 1600000000, "time");
	tap_eq(CALL2(t, LINUX_SYS_gettimeofday, A2, A1), 0, "gettimeofday");
}

int main(void)
{
	struct task *t = fake_boot();

	test_itimer(t);
	test_posix(t);
	test_timerfd(t);
	test_signalfd(t);
	test_clocks(t);
	tap_eq(kernel.counters.ktimers, 0, "no timer is left");
	return tap_done();
}
