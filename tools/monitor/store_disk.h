/* SPDX-License-Identifier: Apache-2.0 */
/* The disk file for what the guest writes, where its quota is more than memory is to hold. */
#ifndef SBX_TOOLS_MONITOR_STORE_DISK_H
#define SBX_TOOLS_MONITOR_STORE_DISK_H

#include <stdint.h>

#include "base/macros.h"
#include "policy/model.h"

/*
 * Opens an unlinked file on a disk ($TMPDIR, /var/tmp or /tmp, the first that is on one), with how
 * much of the store stays in memory in *@memory. Returns the fd, or -1: everything fits in memory, or
 * there is no such disk and memory has to hold it.
 */
MUST_CHECK int store_disk_open(const struct policy *p, uint64_t *memory);

#endif
