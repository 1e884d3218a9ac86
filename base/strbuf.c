/* SPDX-License-Identifier: Apache-2.0 */
#include "base/strbuf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void strbuf_fini(struct strbuf *sb)
{
	free(sb->p);
	*sb = (struct strbuf){ 0 };
}

void strbuf_reset(struct strbuf *sb)
{
	sb->len = 0;
	if (sb->p)
		sb->p[0] = '\0';
}

/* Makes room for @more bytes and a NUL. */
static bool strbuf_grow(struct strbuf *sb, size_t more)
{
	size_t need, cap = sb->cap ? sb->cap : 128;
	char *p;

	if (sb->failed || __builtin_add_overflow(sb->len, more, &need) ||
	    __builtin_add_overflow(need, 1, &need))
		goto fail;
	if (need <= sb->cap)
		return true;
	while (cap < need) {
		if (__builtin_mul_overflow(cap, 2, &cap))
			goto fail;
	}
	p = realloc(sb->p, cap);
	if (!p)
		goto fail;
	sb->p = p;
	sb->cap = cap;
	return true;
fail:
	sb->failed = true;
	return false;
}

void strbuf_add(struct strbuf *sb, const void *data, size_t len)
{
	if (!strbuf_grow(sb, len))
		return;
	if (len)
		memcpy(sb->p + sb->len, data, len);
	sb->len += len;
	sb->p[sb->len] = '\0';
}

void strbuf_puts(struct strbuf *sb, const char *s)
{
	strbuf_add(sb, s, strlen(s));
}

void strbuf_putc(struct strbuf *sb, char c)
{
	strbuf_add(sb, &c, 1);
}

void strbuf_printf(struct strbuf *sb, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0) {
		sb->failed = true;
		return;
	}
	if (!strbuf_grow(sb, (size_t)n))
		return;
	va_start(ap, fmt);
	vsnprintf(sb->p + sb->len, (size_t)n + 1, fmt, ap);
	va_end(ap);
	sb->len += (size_t)n;
}
