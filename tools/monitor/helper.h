/* SPDX-License-Identifier: Apache-2.0 */
/* One helper process of a sandbox (gofer, sentry). */
#ifndef SBX_TOOLS_MONITOR_HELPER_H
#define SBX_TOOLS_MONITOR_HELPER_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

struct helper {
	const char *name;
	pid_t pid;   /* 0: not started or reaped */
	int pidfd;   /* -1 */
	int control; /* our end; -1 after end of file */
	int status;  /* wait status once reaped */
};

#define HELPER_INIT(program)                                                                       \
	{                                                                                          \
		.name = (program), .pidfd = -1, .control = -1                                      \
	}

/*
 * Starts @h->name with our side of a new control socket in @h->control (nonblocking is left to the
 * caller), its other end as fd 3 and @peer as fd 4. The program is taken from the directory of our
 * own executable, else from SBX_LIBEXECDIR; never from the environment. @null becomes its stdin and
 * stdout, our stderr its stderr.
 */
MUST_CHECK int helper_start(struct helper *h, int peer, int null, struct sbx_err *err);

/* Reaps @h if it has ended. Returns true when it is gone. */
bool helper_reap(struct helper *h);

/* SIGKILL; harmless when it is gone. */
void helper_kill(struct helper *h);

void helper_fini(struct helper *h);

#endif
