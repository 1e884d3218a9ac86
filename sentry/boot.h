/* SPDX-License-Identifier: Apache-2.0 */
/* The guest's first view of the world: its mounts, its standard files, its first program. */
#ifndef SBX_SENTRY_BOOT_H
#define SBX_SENTRY_BOOT_H

#include "base/err.h"
#include "base/macros.h"
#include "sentry/control/control.pb-c.h"

struct fdtable;
struct fs_ctx;
struct gofer_conn;
struct task;

/* Mounts everything the configuration names into kernel.mnt_ns. @disk_fd: for the store, consumed; -1: none. */
MUST_CHECK int boot_mounts(const Sbx__Control__SentryConfig *cfg, int disk_fd, struct gofer_conn *gofer,
                           struct sbx_err *err);

/* Makes the first task with stdio and loads its program. Consumes the three fds. *code: exit code when it fails. */
MUST_CHECK int boot_program(const Sbx__Control__SentryConfig *cfg, int stdio[3], int *code, struct sbx_err *err);

#endif
