/* SPDX-License-Identifier: Apache-2.0 */
/* epoll(7). */
#ifndef SBX_SENTRY_VFS_EPOLL_H
#define SBX_SENTRY_VFS_EPOLL_H

#include <stdint.h>

#include "base/macros.h"

struct file;
struct task;

#define EPOLL_ITEMS_MAX 65536u /* of the sandbox: /proc/sys/fs/epoll/max_user_watches */
#define EPOLL_NEST_MAX 4      /* epoll sets that watch epoll sets */

struct linux_epoll_event {
	uint32_t events;
	uint64_t data;
} __attribute__((packed));

MUST_CHECK int epoll_create_file(struct file **ret);
/* EPOLL_CTL_*; @fd is the number under which @target was named. @ev is ignored for DEL. */
MUST_CHECK int epoll_ctl_file(struct file *ep, int op, int fd, struct file *target, const struct linux_epoll_event *ev);
/* Up to @max ready events into @out, without blocking. Their number, or -EINVAL when @ep is no epoll file. */
MUST_CHECK int epoll_collect(struct file *ep, struct linux_epoll_event *out, unsigned max);
/* A file's last reference goes: forgets it everywhere. Called by file_put(). */
void epoll_file_gone(struct file *f);

#endif
