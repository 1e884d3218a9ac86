/* SPDX-License-Identifier: Apache-2.0 */
/* The sentry's end of the monitor's socket: control.proto. */
#ifndef SBX_SENTRY_CONTROL_CONTROL_H
#define SBX_SENTRY_CONTROL_CONTROL_H

#include <stdbool.h>

#include "base/err.h"
#include "base/macros.h"
#include "sentry/control/control.pb-c.h"

struct kernel_report_ops;

#define CONTROL_FD 3 /* to the monitor */
#define GOFER_FD   4 /* to the gofer */

/* Receives the SentryConfig (valid for the life of the process) and its fds, the caller's. *@disk: -1 without one. */
MUST_CHECK int control_config(Sbx__Control__SentryConfig **cfg, int stdio[3], int *disk, struct sbx_err *err);

/* Takes messages of the monitor from now on; at end of file, or on nonsense, the sandbox ends. After event_init(). */
MUST_CHECK int control_listen(struct sbx_err *err);

/* Tells the monitor that the program starts, or with @error why it does not (exit code for it in @code). */
void control_started(const char *platform, const char *note, const char *error, int code);

/* The reports of kernel.report. */
extern const struct kernel_report_ops control_report_ops;

/* The exec bans of the configuration, in force from now on. */
MUST_CHECK int exec_policy_init(const Sbx__Control__SentryConfig *cfg);
bool exec_policy_hit(void); /* something was refused */

#endif
