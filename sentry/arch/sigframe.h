/* SPDX-License-Identifier: Apache-2.0 */
/* The x86_64 signal frame on the guest's stack: sigreturn(2), the layout of <asm/ucontext.h>. */
#ifndef SBX_SENTRY_ARCH_SIGFRAME_H
#define SBX_SENTRY_ARCH_SIGFRAME_H

#include <stdbool.h>
#include <stdint.h>

#include "platform/platform.h"

struct linux_sigaction;
struct linux_siginfo;
struct linux_stack;
struct task;

/* Pushes a frame for the handler and points @regs at it; @saved_mask is what sigreturn restores. 0,
 * -EFAULT when the stack cannot take it (then SIGSEGV), or -ESRCH: the context is dead. */
int sigframe_push(struct task *t, const struct linux_sigaction *act,
		  const struct linux_siginfo *info, uint64_t saved_mask, struct gregs *regs);
/* Undoes it for rt_sigreturn: fills @regs and *mask, restores FPU state and altstack; -EFAULT for a
 * bad frame. */
int sigframe_pop(struct task *t, struct gregs *regs, uint64_t *mask);

/* sigaltstack(2): is @sp on the alternate stack in a way that forbids changing it? */
bool sigframe_on_altstack(const struct task *t, uaddr_t sp);
/* Its checks and effect, for a thread whose stack pointer is @sp: 0, -EPERM, -EINVAL, -ENOMEM. */
int sigframe_set_altstack(struct task *t, const struct linux_stack *ss, uaddr_t sp);

#endif
