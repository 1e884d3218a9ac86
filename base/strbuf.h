/* SPDX-License-Identifier: Apache-2.0 */
/* A growing string. A failed allocation sticks: later additions do nothing and strbuf_ok() is
 * false. */
#ifndef SBX_BASE_STRBUF_H
#define SBX_BASE_STRBUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/macros.h"

struct strbuf {
	char *p; /* NUL terminated once something was added; NULL before */
	size_t len, cap;
	bool failed;
};

void strbuf_fini(struct strbuf *sb);
void strbuf_add(struct strbuf *sb, const void *data, size_t len);
void strbuf_puts(struct strbuf *sb, const char *s);
void strbuf_putc(struct strbuf *sb, char c);
void strbuf_printf(struct strbuf *sb, const char *fmt, ...) PRINTF(2, 3);

/* Forgets the content, keeps the memory. */
void strbuf_reset(struct strbuf *sb);

static inline bool strbuf_ok(const struct strbuf *sb)
{
	return !sb->failed;
}

#endif
