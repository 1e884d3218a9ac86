/* SPDX-License-Identifier: Apache-2.0 */
/*
 * POSIX timers of a process: timer_create(2). As on Linux an expired timer with an interval is
 * armed again when its signal is taken, and the periods that went by meanwhile are its overrun: a
 * short interval costs no more than its handler.
 */
#ifndef SBX_SENTRY_KERNEL_POSIX_TIMER_H
#define SBX_SENTRY_KERNEL_POSIX_TIMER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/macros.h"

struct linux_sigevent;
struct task;
struct tgroup;

#define POSIX_TIMERS_MAX 8192 /* in the sandbox; beside RLIMIT_SIGPENDING for a process */

/* In ns. value: of the next expiry (absolute when asked for in set; relative in get), 0: off. */
struct posix_timer_value {
	uint64_t value, interval;
};

/* The id (>= 0), -EINVAL, -EAGAIN at a limit. @ev NULL: SIGALRM with the id. */
MUST_CHECK int posix_timer_create(struct task *t, int clock, const struct linux_sigevent *ev);
/* All: -EINVAL when there is no such timer. */
MUST_CHECK int posix_timer_set(struct tgroup *tg, int id, bool absolute,
			       const struct posix_timer_value *v, struct posix_timer_value *old);
MUST_CHECK int posix_timer_get(struct tgroup *tg, int id, struct posix_timer_value *v);
MUST_CHECK int posix_timer_overrun(struct tgroup *tg, int id);
MUST_CHECK int posix_timer_delete(struct tgroup *tg, int id);

void posix_timer_exit(struct tgroup *tg);      /* deletes all: exit, execve */
void posix_timer_exit_task(struct task *t); /* a thread ends: timers that signal it fall silent */

#endif
