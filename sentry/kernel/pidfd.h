/* SPDX-License-Identifier: Apache-2.0 */
/* pidfd_open(2): a file that stands for a process and becomes readable when it is dead. */
#ifndef SBX_SENTRY_KERNEL_PIDFD_H
#define SBX_SENTRY_KERNEL_PIDFD_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/macros.h"

struct file;
struct task;
struct tgroup;

#define PIDFD_WAKE_EXIT   (POLLIN | POLLRDNORM)
#define PIDFD_WAKE_REAPED (POLLIN | POLLRDNORM | POLLHUP)

/* @flags: O_NONBLOCK or 0. *ret is the caller's. 0 or -ENOMEM, -ENFILE. */
MUST_CHECK int pidfd_create(struct tgroup *tg, uint32_t flags, struct file **ret);
/* The group of descriptor @fd of @t, counted in *ret; -EBADF when it is no pidfd. @nonblock (may be NULL): O_NONBLOCK
 * is set. */
MUST_CHECK int pidfd_tgroup(struct task *t, int fd, struct tgroup **ret, bool *nonblock);
/* Borrowed, or NULL when @f is no pidfd: for /proc/PID/fdinfo. */
struct tgroup *pidfd_peek(const struct file *f);

#endif
