/* SPDX-License-Identifier: Apache-2.0 */
/* Reading an audit log back. */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "policy/audit.h"

#define HASH_TEXT (7 + 2 * SHA256_LEN) /* "sha256:" and digits */
#define TRAILER (sizeof(",\"hash\":\"\"}") - 1 + HASH_TEXT)

static bool hash_text_ok(const char *s)
{
	return strlen(s) == HASH_TEXT && !strncmp(s, "sha256:", 7) &&
	       strspn(s + 7, "0123456789abcdef") == 2 * SHA256_LEN;
}

/* Takes what the chain needs from the parsed record. */
static int fields(json_t *v, struct audit_line *out)
{
	const char *prev = json_string_value(json_object_get(v, "prev"));
	const char *hash = json_string_value(json_object_get(v, "hash"));
	const char *op = json_string_value(json_object_get(v, "op"));
	json_t *seq = json_object_get(v, "seq"), *count = json_object_get(v, "count");

	if (!prev || !hash || !op || !json_is_integer(seq) || json_integer_value(seq) < 1 ||
	    !hash_text_ok(prev) || !hash_text_ok(hash))
		return -EINVAL;
	out->seq = (uint64_t)json_integer_value(seq);
	strcpy(out->prev, prev);
	strcpy(out->hash, hash);
	out->recovered = !strcmp(op, "recover");
	if (!strcmp(op, "lost") && json_is_integer(count) && json_integer_value(count) > 0)
		out->lost = (uint64_t)json_integer_value(count);
	return 0;
}

int audit_line_parse(const char *line, size_t len, struct audit_line *out)
{
	char want[HASH_TEXT + 1];
	uint8_t digest[SHA256_LEN];
	struct sha256 s;
	json_t *v;
	int r;

	*out = (struct audit_line){ 0 };
	if (len < TRAILER || memcmp(line + len - TRAILER, ",\"hash\":\"sha256:", 16))
		return -EINVAL;
	v = json_loadb(line, len, JSON_REJECT_DUPLICATES, NULL);
	if (!v)
		return -EINVAL;
	r = json_is_object(v) ? fields(v, out) : -EINVAL;
	json_decref(v);
	if (r)
		return r;
	sha256_init(&s);
	sha256_update(&s, line, len - TRAILER);
	sha256_final(&s, digest);
	memcpy(want, "sha256:", 7);
	sha256_hex(digest, want + 7);
	return strcmp(want, out->hash) ? -EBADMSG : 0;
}

struct verify {
	struct audit_check *c;
	uint64_t line, seq;
	uint64_t torn_line; /* an unfinished line that no record has noted yet; 0: none */
};

/* Returns false at the first error. */
static bool check_line(struct verify *v, const char *text, size_t len)
{
	struct audit_check *c = v->c;
	struct audit_line l;
	int r = audit_line_parse(text, len, &l);

	v->line++;
	if (r == -EINVAL && !v->torn_line) {
		v->torn_line = v->line;
		return true;
	}
	c->line = v->line;
	if (v->torn_line && (r || !l.recovered)) {
		c->line = v->torn_line;
		snprintf(c->why, sizeof(c->why), "is no record");
	} else if (r) {
		snprintf(c->why, sizeof(c->why), "was changed: its hash does not fit its content");
	} else if (strcmp(l.prev, c->head)) {
		snprintf(c->why, sizeof(c->why),
		         "does not follow the record before it: records were removed, inserted or "
		         "changed");
	} else if (l.seq != v->seq + 1) {
		snprintf(c->why, sizeof(c->why), "has number %llu, expected %llu",
		         (unsigned long long)l.seq, (unsigned long long)v->seq + 1);
	} else {
		c->line = 0;
		c->records++;
		c->torn += v->torn_line != 0;
		c->lost += l.lost;
		v->torn_line = 0;
		v->seq = l.seq;
		memcpy(c->head, l.hash, sizeof(c->head));
		return true;
	}
	return false;
}

int audit_verify(FILE *f, struct audit_check *check, struct sbx_err *err)
{
	struct verify v = { .c = check };
	char *line = NULL;
	size_t cap = 0;
	ssize_t n;

	*check = (struct audit_check){ 0 };
	memcpy(check->head, "sha256:", 7);
	memset(check->head + 7, '0', 2 * SHA256_LEN);
	errno = 0;
	while ((n = getline(&line, &cap, f)) > 0) {
		if (line[n - 1] == '\n')
			n--;
		if (!check_line(&v, line, (size_t)n))
			break;
	}
	free(line);
	if (ferror(f))
		return sbx_fail(err, errno ? -errno : -EIO, "read");
	if (!check->line && v.torn_line) {
		check->line = v.torn_line;
		snprintf(check->why, sizeof(check->why), "is unfinished or no record");
	}
	return 0;
}
