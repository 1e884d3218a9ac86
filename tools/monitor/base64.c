/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/monitor/base64.h"

#include <stdint.h>

struct encoder {
	struct strbuf *sb;
	uint32_t bits;
	unsigned n; /* bytes in bits */
};

static void put_group(struct encoder *e)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	char out[4] = { '=', '=', '=', '=' };
	uint32_t v = e->bits << (8 * (3 - e->n));

	for (unsigned i = 0; i <= e->n; i++)
		out[i] = digits[v >> (18 - 6 * i) & 63];
	strbuf_add(e->sb, out, 4);
	e->bits = 0;
	e->n = 0;
}

static void encode(struct encoder *e, const uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		e->bits = e->bits << 8 | p[i];
		if (++e->n == 3)
			put_group(e);
	}
}

void jsonw_base64(struct jsonw *w, const char *key, const void *a, size_t a_len, const void *b,
                  size_t b_len)
{
	struct strbuf text = { 0 };
	struct encoder e = { .sb = &text };

	encode(&e, a, a_len);
	if (b)
		encode(&e, b, b_len);
	if (e.n)
		put_group(&e);
	jsonw_strn(w, key, text.p ? text.p : "", text.len);
	if (!strbuf_ok(&text))
		w->sb->failed = true;
	strbuf_fini(&text);
}
