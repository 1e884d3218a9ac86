/* SPDX-License-Identifier: Apache-2.0 */
/* signalfd(2): reads the pending signals of whoever reads. */
#ifndef SBX_SENTRY_VFS_SIGNALFD_H
#define SBX_SENTRY_VFS_SIGNALFD_H

#include <stdint.h>

#include "base/macros.h"

struct file;
struct task;
struct tgroup;

/* One reference in *ret. */
MUST_CHECK int signalfd_create_file(struct task *t, uint64_t mask, uint32_t flags,
				    struct file **ret);
/* -EINVAL when @f is no signalfd. */
MUST_CHECK int signalfd_set_mask(struct file *f, uint64_t mask);

/* @sig was queued for @tg or a thread of it: wakes who may read it. */
void signalfd_notify(struct tgroup *tg, int sig);

#endif
