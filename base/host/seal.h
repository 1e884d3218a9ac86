/* SPDX-License-Identifier: Apache-2.0 */
/* Seals of a host memfd: the host then refuses what the guest could do through a mapping. */
#ifndef SBX_BASE_HOST_SEAL_H
#define SBX_BASE_HOST_SEAL_H

#include <fcntl.h>

#include "base/macros.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif
#ifndef F_SEAL_EXEC
#define F_SEAL_EXEC 0x0020
#endif

/* The seals that concern mappings and size; the others are ours alone to keep. */
#define SEALS_HOST (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)

/* 0, or -EBUSY when a writable mapping is in the way of F_SEAL_WRITE. */
MUST_CHECK int host_add_seals(int fd, int seals);

#endif
