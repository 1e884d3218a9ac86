/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The notification fd and the thread that receives from it, the leader.
 *
 * Waking the leader without a race: a waker sets a bit and, when it is the first, sends a signal to the leader. The
 * leader tests the bits and receives in one short piece of assembly, the window. A signal that arrives inside the
 * window, or that interrupts the sleeping ioctl (SA_RESTART has then moved rip back onto the system call), makes the
 * handler move rip to the window's abort label. So between the test and the sleep no wake-up is lost, and a receive
 * costs one system call. RECV takes a notification only when it returns 0, which is behind the window.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <ucontext.h>

#include "platform/stub/hostcall.h"
#include "platform/unotify/unotify_priv.h"

#define WAKE_SIGNAL SIGUSR1
#define FP_MAGIC1   0x46505853u

long listener_window(const uint32_t *bits, long fd, long request, void *arg);
extern const char listener_window_start[], listener_window_end[], listener_window_abort[];

__asm__(".text\n"
	".balign 16\n"
	".type listener_window, @function\n"
	"listener_window:\n"
	"	mov %rdi, %r8\n"
	"	mov %rsi, %rdi\n"
	"	mov %rdx, %rsi\n"
	"	mov %rcx, %rdx\n"
	"listener_window_start:\n"
	"	cmpl $0, (%r8)\n"
	"	jne listener_window_abort\n"
	"	mov $16, %eax\n" /* ioctl */
	"	syscall\n"
	"listener_window_end:\n"
	"	ret\n"
	"listener_window_abort:\n"
	"	mov $-4, %rax\n" /* -EINTR */
	"	ret\n"
	".size listener_window, . - listener_window\n");

/* Set while the handler is to describe the FPU state in its own frame. */
static struct fpu_layout *fpu_probe;

/* The bytes that the host kernel leaves for software at the end of the legacy area. */
struct fpu_sw {
	uint32_t magic1, ext_size;
	uint64_t xfeatures;
	uint32_t size;
};

static void probe_fpu_sigsafe(const uint8_t *fp)
{
	struct fpu_sw sw;

	if (!fp)
		return;
	memcpy(&sw, fp + 464, sizeof(sw));
	memcpy(fpu_probe->sw_reserved, fp + 464, sizeof(fpu_probe->sw_reserved));
	memcpy(&fpu_probe->mxcsr_mask, fp + 28, 4);
	if (sw.magic1 != FP_MAGIC1 || sw.size > sw.ext_size || sw.ext_size > FPU_STATE_MAX)
		return;
	fpu_probe->size = sw.size;
	fpu_probe->ext_size = sw.ext_size;
	fpu_probe->xfeatures = sw.xfeatures;
}

static void on_wake_sigsafe(int sig, siginfo_t *si, void *ctx)
{
	ucontext_t *uc = ctx;
	greg_t *rip = &uc->uc_mcontext.gregs[REG_RIP];

	if (*rip >= (greg_t)listener_window_start && *rip < (greg_t)listener_window_end)
		*rip = (greg_t)listener_window_abort;
	if (fpu_probe)
		probe_fpu_sigsafe((const uint8_t *)uc->uc_mcontext.fpregs);
}

int listener_init_leader(struct platform *p, struct fpu_layout *fpu)
{
	/* SA_RESTART: the leader's other host calls must not see EINTR for it. */
	struct sigaction sa = { .sa_sigaction = on_wake_sigsafe, .sa_flags = SA_SIGINFO | SA_RESTART };
	sigset_t set;

	sigemptyset(&sa.sa_mask);
	sigemptyset(&set);
	sigaddset(&set, WAKE_SIGNAL);
	p->pid = (pid_t)HOSTCALL(SYS_getpid);
	p->leader_tid = (pid_t)HOSTCALL(SYS_gettid);
	if (sigaction(WAKE_SIGNAL, &sa, NULL) < 0 || pthread_sigmask(SIG_UNBLOCK, &set, NULL))
		return -EINVAL;
	if (!fpu)
		return 0;
	fpu_probe = fpu;
	HOSTCALL(SYS_tgkill, p->pid, p->leader_tid, WAKE_SIGNAL);
	fpu_probe = NULL;
	return fpu->size ? 0 : -ENOTSUP;
}

void listener_wake(struct platform *p, uint32_t bit)
{
	/* When other bits are still set, the signal for them was sent and the leader has not yet looked. */
	if (__atomic_fetch_or(&p->wake_bits, bit, __ATOMIC_SEQ_CST) == 0)
		HOSTCALL(SYS_tgkill, p->pid, p->leader_tid, WAKE_SIGNAL);
}

/* ENOENT: the notifying thread died or was kicked before we read it; or there is nobody left. */
static int recv_vanished(struct platform *p)
{
	struct pollfd pf = { .fd = p->listener, .events = POLLIN };

	if (HOSTCALL(SYS_poll, &pf, 1, 0) == 1 && (pf.revents & POLLHUP))
		return -ENOTCONN;
	return -ENOENT;
}

int listener_recv(struct platform *p, struct seccomp_notif *n)
{
	long r;

	memset(n, 0, sizeof(*n)); /* the kernel wants zeros */
	r = listener_window(&p->wake_bits, p->listener, SECCOMP_IOCTL_NOTIF_RECV, n);
	if (unlikely(r == -ENOENT))
		return recv_vanished(p);
	return (int)r;
}

static int send_resp(struct platform *p, const struct seccomp_notif_resp *resp)
{
	return (int)HOSTCALL(SYS_ioctl, p->listener, SECCOMP_IOCTL_NOTIF_SEND, resp);
}

int listener_send(struct platform *p, uint64_t id, int64_t val)
{
	struct seccomp_notif_resp resp = { .id = id, .val = val };

	return send_resp(p, &resp);
}

int listener_continue(struct platform *p, uint64_t id)
{
	struct seccomp_notif_resp resp = { .id = id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE };

	return send_resp(p, &resp);
}

int listener_addfd(struct platform *p, uint64_t id, int fd, int at)
{
	struct seccomp_notif_addfd add = { .id = id, .flags = SECCOMP_ADDFD_FLAG_SETFD, .srcfd = (uint32_t)fd,
					   .newfd = (uint32_t)at, .newfd_flags = O_CLOEXEC };

	return (int)HOSTCALL(SYS_ioctl, p->listener, SECCOMP_IOCTL_NOTIF_ADDFD, &add);
}

bool listener_id_valid(struct platform *p, uint64_t id)
{
	return HOSTCALL(SYS_ioctl, p->listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0;
}
