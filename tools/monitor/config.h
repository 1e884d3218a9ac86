/* SPDX-License-Identifier: Apache-2.0 */
/* The first messages to gofer and sentry. */
#ifndef SBX_TOOLS_MONITOR_CONFIG_H
#define SBX_TOOLS_MONITOR_CONFIG_H

#include "tools/monitor/monitor.h"

MUST_CHECK int config_send_gofer(int sock, const struct run_spec *spec);

/* The fds that go with it; borrowed. */
struct config_fds {
	int stdio[3];          /* the first program's stdin, stdout and stderr */
	int disk;              /* see store_disk.h; -1: none */
	uint64_t store_memory; /* with a disk */
};

MUST_CHECK int config_send_sentry(int sock, const struct run_spec *spec, const struct config_fds *fds);

#endif
