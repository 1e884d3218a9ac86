/* SPDX-License-Identifier: Apache-2.0 */
/* Values of a sys_* function that are not results. None ever reaches the guest: the exit path (trap.c) turns them. */
#ifndef SBX_SENTRY_KERNEL_RESTART_H
#define SBX_SENTRY_KERNEL_RESTART_H

/* A signal interrupts the call. As in Linux (include/linux/errno.h, signal(7) "Interruption of system calls"): */
#define ERESTARTSYS     512 /* restarted when the handler has SA_RESTART, else EINTR */
#define ERESTARTNOINTR  513 /* always restarted */
#define ERESTARTNOHAND  514 /* restarted only when no handler runs, else EINTR */
#define ERESTART_BLOCK                                                                                                 \
	516 /* as ERESTARTNOHAND, and the restart keeps task->op (deadline, progress): nanosleep, poll, futex */

/* The call registered on wait queues and will be run again from the start, with task->op kept. */
#define SYS_BLOCKED     (-4096 - 1)
/* The call has seen to the resume itself (exit, sigreturn, execve, ASPACE_RESUMED). */
#define SYS_NO_RETURN   (-4096 - 2)

#endif
