/* SPDX-License-Identifier: Apache-2.0 */
/* Replies of a hostile gofer, as the sentry parses them. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sentry/fs/gofer_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t mem[GOFER_ARENA_SIZE];
	struct wire_arena arena = { .base = mem, .cap = sizeof(mem) };
	const Sbx__Gofer__Reply *r;

	if (size > WIRE_MSG_MAX || gofer_reply_parse(data, size, &arena, &r) < 0)
		return 0;
	/* What was let through has the promised form. */
	for (size_t i = 0; i < r->n_attrs; i++) {
		if (!gofer_attr_sane(r->attrs[i]))
			abort();
	}
	for (size_t i = 0; i < r->n_entries; i++) {
		if (!r->entries[i]->name[0] || strlen(r->entries[i]->name) > 255)
			abort();
	}
	return 0;
}
