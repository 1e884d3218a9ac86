/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SBX_TOOLS_MONITOR_BASE64_H
#define SBX_TOOLS_MONITOR_BASE64_H

#include <stddef.h>

#include "base/jsonw.h"

/* Writes the bytes of @a followed by those of @b (may be NULL) as one base64 string. */
void jsonw_base64(struct jsonw *w, const char *key, const void *a, size_t a_len, const void *b,
                  size_t b_len);

#endif
