/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes JSON into a strbuf. Strings may hold anything: what is no valid UTF-8 becomes U+FFFD, and
 * control and direction-changing characters are escaped, so that a line of our JSON is safe to show
 * on a terminal.
 */
#ifndef SBX_BASE_JSONW_H
#define SBX_BASE_JSONW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"

struct jsonw {
	struct strbuf *sb;
	bool comma; /* the next element needs a comma before it */
};

/* @key is NULL inside an array and at the top. */
void jsonw_open(struct jsonw *w, const char *key, char bracket);
void jsonw_close(struct jsonw *w, char bracket);
void jsonw_str(struct jsonw *w, const char *key, const char *s); /* NULL: null */
void jsonw_strn(struct jsonw *w, const char *key, const char *s, size_t len);
void jsonw_int(struct jsonw *w, const char *key, int64_t v);
void jsonw_uint(struct jsonw *w, const char *key, uint64_t v);
void jsonw_bool(struct jsonw *w, const char *key, bool v);
void jsonw_null(struct jsonw *w, const char *key);

/* Length of the valid UTF-8 character at @s (1..4), or 0. */
size_t utf8_char_len(const char *s, size_t len);
bool utf8_valid(const char *s, size_t len);

#endif
