/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers with units, as in policies and on the command line. */
#ifndef SBX_POLICY_UNITS_H
#define SBX_POLICY_UNITS_H

#include <stdint.h>

#include "base/macros.h"

/* "512", "64K", "2G", "1.5G", "2GiB": bytes, powers of 1024. Returns 0, -EINVAL or -ERANGE. */
MUST_CHECK int units_parse_size(const char *s, uint64_t *bytes);

/* "512", "200k", "1M": a count, powers of 1000. */
MUST_CHECK int units_parse_count(const char *s, uint64_t *count);

/* "60", "0.5", "90s", "5m", "1h": milliseconds. A number without a unit is in seconds. */
MUST_CHECK int units_parse_time(const char *s, uint64_t *ms);

#endif
