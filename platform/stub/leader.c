/* SPDX-License-Identifier: Apache-2.0 */
#include "platform/stub/leader.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <ucontext.h>

#include "platform/stub/hostcall.h"

#define WAKE_SIGNAL SIGUSR1

extern const char leader_window_start[], leader_window_end[], leader_window_abort[];

__asm__(".text\n"
	".balign 16\n"
	".globl leader_wait\n"
	".type leader_wait, @function\n"
	"leader_wait:\n"
	"	mov %rdi, %r11\n"
	"	mov %rsi, %rax\n"
	"	mov %rdx, %rdi\n"
	"	mov %rcx, %rsi\n"
	"	mov %r8, %rdx\n"
	"	mov %r9, %r10\n"
	"leader_window_start:\n"
	"	cmpl $0, (%r11)\n"
	"	jne leader_window_abort\n"
	"	syscall\n"
	"leader_window_end:\n"
	"	ret\n"
	"leader_window_abort:\n"
	"	mov $-4, %rax\n" /* -EINTR */
	"	ret\n"
	".size leader_wait, . - leader_wait\n");

/* Set while the handler is to describe the FPU state in its own frame. */
static struct fpu_layout *fpu_probe;

static void on_wake_sigsafe(int sig, siginfo_t *si, void *ctx)
{
	ucontext_t *uc = ctx;
	greg_t *rip = &uc->uc_mcontext.gregs[REG_RIP];

	if (*rip >= (greg_t)leader_window_start && *rip < (greg_t)leader_window_end)
		*rip = (greg_t)leader_window_abort;
	if (fpu_probe)
		fpu_probe_sigsafe(fpu_probe, (const uint8_t *)uc->uc_mcontext.fpregs);
}

int leader_init(struct leader *l, struct fpu_layout *fpu)
{
	/* SA_RESTART: the leader's other host calls must not see EINTR for it. */
	struct sigaction sa = { .sa_sigaction = on_wake_sigsafe, .sa_flags = SA_SIGINFO | SA_RESTART };
	sigset_t set;

	sigemptyset(&sa.sa_mask);
	sigemptyset(&set);
	sigaddset(&set, WAKE_SIGNAL);
	l->pid = (pid_t)HOSTCALL(SYS_getpid);
	l->tid = (pid_t)HOSTCALL(SYS_gettid);
	if (sigaction(WAKE_SIGNAL, &sa, NULL) < 0 || pthread_sigmask(SIG_UNBLOCK, &set, NULL))
		return -EINVAL;
	if (!fpu)
		return 0;
	fpu_probe = fpu;
	HOSTCALL(SYS_tgkill, l->pid, l->tid, WAKE_SIGNAL);
	fpu_probe = NULL;
	return fpu->size ? 0 : -ENOTSUP;
}

void leader_wake(struct leader *l, uint32_t bit)
{
	/* When other bits are still set, the signal for them was sent and the leader has not yet looked. */
	if (__atomic_fetch_or(&l->wake_bits, bit, __ATOMIC_SEQ_CST) == 0)
		HOSTCALL(SYS_tgkill, l->pid, l->tid, WAKE_SIGNAL);
}

/* True while the leader runs a callback: it will look at wake_bits before it sleeps, no signal is needed. */
static __thread bool in_callback;

void leader_request_idle(struct leader *l)
{
	if (in_callback)
		__atomic_fetch_or(&l->wake_bits, LEADER_WAKE_IDLE, __ATOMIC_SEQ_CST);
	else
		leader_wake(l, LEADER_WAKE_IDLE);
}

static void run_idle(struct leader *l, const struct leader_ops *ops, void *arg)
{
	if (__atomic_load_n(&l->wake_bits, __ATOMIC_SEQ_CST) & LEADER_WAKE_IDLE) {
		__atomic_fetch_and(&l->wake_bits, ~LEADER_WAKE_IDLE, __ATOMIC_SEQ_CST);
		l->idle_pending = true;
	}
	if (l->idle_pending) {
		l->idle_pending = false;
		ops->idle(arg);
	}
}

int leader_run(struct leader *l, const struct leader_ops *ops, void *arg)
{
	int r = leader_init(l, NULL);

	if (r < 0)
		return r;
	l->stopping = false;
	l->idle_pending = true;
	while (!l->stopping) {
		in_callback = true;
		ops->deliver(arg);
		run_idle(l, ops, arg);
		in_callback = false;
		if (l->stopping)
			break;
		if (l->idle_pending || ops->busy(arg))
			continue;
		r = ops->pump(arg);
		if (r < 0)
			return r;
	}
	return 0;
}
