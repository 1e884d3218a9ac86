/* SPDX-License-Identifier: Apache-2.0 */
/* Captured output: the head and the tail of a stream are kept, what is between them is counted. */
#ifndef SBX_TOOLS_MONITOR_OUTPUT_H
#define SBX_TOOLS_MONITOR_OUTPUT_H

#include <stddef.h>
#include <stdint.h>

#include "base/macros.h"

#define OUTPUT_MAX (1u << 20) /* bytes kept of one stream */

struct output {
	uint8_t *buf; /* head, then the tail as a ring; grows up to OUTPUT_MAX */
	size_t cap;
	uint64_t total; /* bytes seen */
};

/* Adds bytes. Returns 0, or -ENOMEM with nothing added. */
MUST_CHECK int output_add(struct output *o, const void *data, size_t len);

/* Bytes that were dropped between head and tail. */
uint64_t output_dropped(const struct output *o);

/* What is kept, in order. @tail is NULL when nothing was dropped in between; otherwise both ends of
 * the gap are cut to whole UTF-8 characters. */
struct output_view {
	const uint8_t *head, *tail;
	size_t head_len, tail_len;
	uint64_t dropped; /* with the cut */
};

/* Once, when no more will be added. */
void output_view(struct output *o, struct output_view *v);

void output_fini(struct output *o);

#endif
