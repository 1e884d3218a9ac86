/* SPDX-License-Identifier: Apache-2.0 */
/* Host clocks. They are read through the vDSO: no system call for REALTIME, MONOTONIC, BOOTTIME,
 * TAI and their kin. */
#ifndef SBX_BASE_HOST_CLOCK_H
#define SBX_BASE_HOST_CLOCK_H

#include <stdint.h>

#include "base/macros.h"

/* clock_gettime(2) in ns: 0 or -errno. */
MUST_CHECK int host_clock_ns(int id, uint64_t *ns);

#endif
