/* SPDX-License-Identifier: Apache-2.0 */
/* The first messages to gofer and sentry. */
#ifndef SBX_TOOLS_MONITOR_CONFIG_H
#define SBX_TOOLS_MONITOR_CONFIG_H

#include "tools/monitor/monitor.h"

MUST_CHECK int config_send_gofer(int sock, const struct run_spec *spec);

/* @stdio: the first program's stdin, stdout and stderr (borrowed). */
MUST_CHECK int config_send_sentry(int sock, const struct run_spec *spec, const int stdio[3]);

#endif
