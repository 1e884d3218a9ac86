/* SPDX-License-Identifier: Apache-2.0 */
#include "base/jsonw.h"

#include <inttypes.h>
#include <string.h>

size_t utf8_char_len(const char *str, size_t len)
{
	const uint8_t *s = (const uint8_t *)str;
	uint32_t cp, min;
	size_t n;

	if (!len)
		return 0;
	if (s[0] < 0x80)
		return 1;
	if ((s[0] & 0xe0) == 0xc0)
		n = 2, cp = s[0] & 0x1f, min = 0x80;
	else if ((s[0] & 0xf0) == 0xe0)
		n = 3, cp = s[0] & 0x0f, min = 0x800;
	else if ((s[0] & 0xf8) == 0xf0)
		n = 4, cp = s[0] & 0x07, min = 0x10000;
	else
		return 0;
	if (n > len)
		return 0;
	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		cp = cp << 6 | (s[i] & 0x3f);
	}
	if (cp < min || cp > 0x10ffff || (cp >= 0xd800 && cp <= 0xdfff))
		return 0;
	return n;
}

bool utf8_valid(const char *s, size_t len)
{
	while (len) {
		size_t n = utf8_char_len(s, len);

		if (!n)
			return false;
		s += n;
		len -= n;
	}
	return true;
}

/* C1 controls, and characters that change the writing direction or break lines. */
static bool needs_escape(uint32_t cp)
{
	return (cp >= 0x7f && cp < 0xa0) || cp == 0x061c || (cp >= 0x200e && cp <= 0x200f) ||
	       (cp >= 0x2028 && cp <= 0x202e) || (cp >= 0x2066 && cp <= 0x2069);
}

static uint32_t decode(const uint8_t *s, size_t n)
{
	if (n == 1)
		return s[0];
	if (n == 2)
		return (s[0] & 0x1fu) << 6 | (s[1] & 0x3fu);
	if (n == 3)
		return (s[0] & 0x0fu) << 12 | (s[1] & 0x3fu) << 6 | (s[2] & 0x3fu);
	return 0x10000; /* never escaped */
}

static void put_ascii(struct strbuf *sb, char c)
{
	switch (c) {
	case '"':
		strbuf_puts(sb, "\\\"");
		break;
	case '\\':
		strbuf_puts(sb, "\\\\");
		break;
	case '\n':
		strbuf_puts(sb, "\\n");
		break;
	case '\t':
		strbuf_puts(sb, "\\t");
		break;
	case '\r':
		strbuf_puts(sb, "\\r");
		break;
	default:
		strbuf_printf(sb, "\\u%04x", (unsigned char)c);
		break;
	}
}

static void put_string(struct strbuf *sb, const char *s, size_t len)
{
	size_t plain = 0; /* bytes before s[i] that can be copied as they are */
	size_t i = 0;

	strbuf_putc(sb, '"');
	while (i < len) {
		size_t n = utf8_char_len(s + i, len - i);
		uint32_t cp = n ? decode((const uint8_t *)s + i, n) : 0;

		if (n && cp >= 0x20 && cp != '"' && cp != '\\' && !needs_escape(cp)) {
			i += n;
			plain += n;
			continue;
		}
		strbuf_add(sb, s + i - plain, plain);
		plain = 0;
		if (!n)
			strbuf_puts(sb, "\xef\xbf\xbd");
		else if (cp < 0x80)
			put_ascii(sb, (char)cp);
		else
			strbuf_printf(sb, "\\u%04x", cp);
		i += n ? n : 1;
	}
	strbuf_add(sb, s + i - plain, plain);
	strbuf_putc(sb, '"');
}

static void put_key(struct jsonw *w, const char *key)
{
	if (w->comma)
		strbuf_putc(w->sb, ',');
	w->comma = true;
	if (key) {
		put_string(w->sb, key, strlen(key));
		strbuf_putc(w->sb, ':');
	}
}

void jsonw_open(struct jsonw *w, const char *key, char bracket)
{
	put_key(w, key);
	strbuf_putc(w->sb, bracket);
	w->comma = false;
}

void jsonw_close(struct jsonw *w, char bracket)
{
	strbuf_putc(w->sb, bracket);
	w->comma = true;
}

void jsonw_strn(struct jsonw *w, const char *key, const char *s, size_t len)
{
	put_key(w, key);
	put_string(w->sb, s, len);
}

void jsonw_str(struct jsonw *w, const char *key, const char *s)
{
	if (s)
		jsonw_strn(w, key, s, strlen(s));
	else
		jsonw_null(w, key);
}

void jsonw_int(struct jsonw *w, const char *key, int64_t v)
{
	put_key(w, key);
	strbuf_printf(w->sb, "%" PRId64, v);
}

void jsonw_uint(struct jsonw *w, const char *key, uint64_t v)
{
	put_key(w, key);
	strbuf_printf(w->sb, "%" PRIu64, v);
}

void jsonw_bool(struct jsonw *w, const char *key, bool v)
{
	put_key(w, key);
	strbuf_puts(w->sb, v ? "true" : "false");
}

void jsonw_null(struct jsonw *w, const char *key)
{
	put_key(w, key);
	strbuf_puts(w->sb, "null");
}
