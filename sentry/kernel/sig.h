/* SPDX-License-Identifier: Apache-2.0 */
/* Signals: signal(7), sigaction(2). Numbers are Linux x86_64's. */
#ifndef SBX_SENTRY_KERNEL_SIG_H
#define SBX_SENTRY_KERNEL_SIG_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/ref.h"
#include "platform/platform.h"

struct task;
struct tgroup;

#define NSIG_LINUX 64
#define SIG_BIT(sig) (1ull << ((sig) - 1))

/* struct sigaction of the kernel ABI. */
struct linux_sigaction {
	uint64_t handler, flags, restorer, mask;
};

/* The 128 bytes of siginfo_t as the guest sees them. */
struct linux_siginfo {
	int32_t si_signo, si_errno, si_code, pad;
	union {
		struct { int32_t pid; uint32_t uid; int32_t status; int32_t pad; int64_t utime, stime; } kill_chld;
		struct { int32_t pid; uint32_t uid; uint64_t value; } rt;
		struct { int32_t timerid, overrun; uint64_t value; } timer;
		struct { uint64_t addr; } fault;
		struct { int64_t band; int32_t fd; } poll;
		uint8_t raw[112];
	};
};

struct sighand {
	struct ref ref;
	struct linux_sigaction act[NSIG_LINUX]; /* [sig - 1] */
};

/* Sends to one thread, a process, or a process group. @info NULL: SI_KERNEL. Ignored signals vanish; a queue at
 * RLIMIT_SIGPENDING gives -EAGAIN for real-time signals. sig 0 only checks. Wakes or interrupts whoever must act. */
int sig_send_task(struct task *t, int sig, const struct linux_siginfo *info);
int sig_send_tgroup(struct tgroup *tg, int sig, const struct linux_siginfo *info);
int sig_send_pgrp(pid_t pgid, int sig, const struct linux_siginfo *info);
/* A signal that cannot be blocked or ignored away (a fault, SIGSYS): forces the default action then. */
void sig_force_fault(struct task *t, int sig, int code, uaddr_t addr);
/* SIGPIPE, SIGXFSZ to the calling thread, as the write paths do. */
void sig_send_self(struct task *t, int sig);

bool sig_pending(const struct task *t); /* an unblocked one, or exit work */

/* Temporarily replaces the mask for ppoll, pselect, epoll_pwait, sigsuspend: restored on the way out. */
void sig_mask_push(struct task *t, uint64_t mask);

#endif
