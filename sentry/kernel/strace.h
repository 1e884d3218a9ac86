/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The strace channel: one line a system call, driven by sys_desc.argfmt. That is a list of words, one an argument:
 *   fd int     signed 32 bits                  len size uint off   unsigned
 *   hex ptr    hexadecimal                     path str   a string in guest memory
 *   dirfd      or AT_FDCWD                     argv       an array of strings
 *   mode       octal                           in:N       bytes in guest memory, as many as argument N says (from 0)
 *   sig        a signal's number               out:N      bytes that the call has written: as many as its result, at
 *                                                         most argument N
 * Any other word shows as hex. Guest memory is shown quoted and cut.
 */
#ifndef SBX_SENTRY_KERNEL_STRACE_H
#define SBX_SENTRY_KERNEL_STRACE_H

#include <stdint.h>

struct task;

void strace_enter(struct task *t);
void strace_blocked(struct task *t);
void strace_leave(struct task *t, int64_t result);

#endif
