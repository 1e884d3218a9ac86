/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The start of the stubs, the same for every platform that has them: memfd, namespaces, init, zygote, handshake. What
 * the zygote does after its report is the platform's business.
 */
#ifndef SBX_PLATFORM_STUB_SPAWN_H
#define SBX_PLATFORM_STUB_SPAWN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "platform/platform.h"
#include "platform/stub/layout.h"

struct stubs {
	struct shim_sites sites;
	struct boot_report report; /* the last one */
	unsigned long ns;          /* CLONE_NEW* that init has of its own */
	bool isolated;             /* the others are ours, and as good */
	int proc_fd;               /* borrowed, as in struct platform_config */
	pid_t init_pid;            /* 0: none */
	int init_pidfd;            /* -1: none */
	pid_t zygote_pid;          /* as we see it */
	int stub_fd, sock[2];      /* until stubs_started() */
};

void stubs_init(struct stubs *s);
/* Starts init and zygote. @boot_flags: BOOT_* of layout.h. The thread that calls this must live as long as the stubs.
 * After a failure stubs_kill() is due too. */
int stubs_start(struct stubs *s, const struct platform_config *cfg, uint32_t boot_flags, struct sbx_err *err);
/* Waits for the zygote's first report. */
int stubs_ready(struct stubs *s, struct sbx_err *err);
/* Another report of the zygote: 0, -EAGAIN when none has come in time, or another -errno with @err filled in. */
int stubs_report(struct stubs *s, int timeout_ms, struct sbx_err *err);
/* The start is over: closes what only it needs. */
void stubs_started(struct stubs *s);
/* Kills init, and with it all in its pid namespace. */
void stubs_abandon(const struct stubs *s);
/* The same, and waits for it. */
void stubs_kill(struct stubs *s);
/* What is isolated. @missing: what else the platform lacks, each part followed by "; ", or "". */
void stubs_info(const struct stubs *s, const char *missing, struct platform_info *info);

#endif
