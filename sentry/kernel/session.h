/* SPDX-License-Identifier: Apache-2.0 */
/* Process groups and sessions: setpgid(2), setsid(2), credentials(7). */
#ifndef SBX_SENTRY_KERNEL_SESSION_H
#define SBX_SENTRY_KERNEL_SESSION_H

#include <sys/types.h>

struct task;
struct tgroup;

/* As the system calls; 0 or a number, or -errno. */
int pgrp_set(struct task *t, pid_t pid, pid_t pgid);
pid_t pgrp_get(struct task *t, pid_t pid);
pid_t session_create(struct task *t);
pid_t session_get(struct task *t, pid_t pid);

/* @tg ended, or lost @parent as its parent: when that orphaned its process group and members of it are stopped, the
 * group gets SIGHUP and SIGCONT. setpgid(2), exit(3) "Effects". */
void pgrp_check_orphaned(struct tgroup *tg, const struct tgroup *parent);

/* What the terminal layer wants to know: the session leader @tg ended (its terminal is lost: SIGHUP to the foreground
 * group), or left its session by setsid(2). NULL functions are skipped. */
struct session_hooks {
	void (*leader_exit)(struct tgroup *tg);
	void (*left)(struct tgroup *tg, pid_t old_sid);
};
extern struct session_hooks session_hooks;

void session_exit(struct tgroup *tg);

#endif
