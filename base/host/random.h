/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SBX_BASE_HOST_RANDOM_H
#define SBX_BASE_HOST_RANDOM_H

#include <stddef.h>

/* Fills @buf from the host's generator; ends the process when it has none. */
void host_random(void *buf, size_t n);

#endif
