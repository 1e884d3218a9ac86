/* SPDX-License-Identifier: Apache-2.0 */
/* base: strbuf, jsonw, glob, sha256 */
#include <jansson.h>
#include <string.h>
#include <time.h>

#include "base/glob.h"
#include "base/jsonw.h"
#include "base/macros.h"
#include "base/sha256.h"
#include "tests/lib/tap.h"

static void test_sha256(void)
{
	static const struct {
		const char *in;
		unsigned times;
		const char *want;
	} v[] = {
		{ "", 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
		{ "abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
		{ "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
		  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
		{ "aaaaaaaaaa", 100000,
		  "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		char hex[2 * SHA256_LEN + 1];
		uint8_t d[SHA256_LEN];
		struct sha256 s;

		sha256_init(&s);
		for (unsigned k = 0; k < v[i].times; k++)
			sha256_update(&s, v[i].in, strlen(v[i].in));
		sha256_final(&s, d);
		sha256_hex(d, hex);
		tap_ok(!strcmp(hex, v[i].want), "sha256 vector %zu", i);
	}
}

static void test_glob(void)
{
	static const struct {
		const char *pattern, *s;
		unsigned flags;
		bool match;
	} v[] = {
		{ "abc", "abc", 0, true },
		{ "abc", "abcd", 0, false },
		{ "a*c", "abbbc", 0, true },
		{ "a*c", "a/c", 0, true },
		{ "a*c", "a/c", GLOB_PATH, false },
		{ "*", "", 0, true },
		{ "of=/dev/*", "of=/dev/disk/by-id/x", 0, true },
		{ "?", "/", GLOB_PATH, false },
		{ "[a-c]x", "bx", 0, true },
		{ "[!a-c]x", "bx", 0, false },
		{ "[]a]", "]", 0, true },
		{ "[a-]", "-", 0, true },
		{ "[x", "x", 0, false },
		{ "\\*", "*", 0, true },
		{ "\\*", "x", 0, false },
		{ "x\\", "x", 0, false },
		{ "", "", 0, false },
		{ "**/.git/config", ".git/config", GLOB_PATH, true },
		{ "**/.git/config", "a/b/.git/config", GLOB_PATH, true },
		{ "**/.git/config", "x.git/config", GLOB_PATH, false },
		{ "**/.git/config", "a/x.git/config", GLOB_PATH, false },
		{ "**/.git/hooks/**", ".git/hooks/pre-commit", GLOB_PATH, true },
		{ "**/.git/hooks/**", ".git/hooks/a/b", GLOB_PATH, true },
		{ "**/.git/hooks/**", ".git/hooks", GLOB_PATH, false },
		{ "/usr/**/python*", "/usr/bin/python3", GLOB_PATH, true },
		{ "/usr/**/python*", "/usr/python3", GLOB_PATH, true },
		{ "/usr/bin/*", "/usr/bin/a/b", GLOB_PATH, false },
		{ "**/**/x", "x", GLOB_PATH, true },
		{ "**/**/x", "a/x", GLOB_PATH, true },
		{ "**/**/x", "ax", GLOB_PATH, false },
	};
	char slow[512], text[2000];
	clock_t start;

	for (size_t i = 0; i < ARRAY_SIZE(v); i++)
		tap_eq(glob_match(v[i].pattern, v[i].s, v[i].flags), v[i].match, "'%s' on '%s'",
		       v[i].pattern, v[i].s);
	tap_ok(!glob_valid("[a") && !glob_valid("") && glob_valid("a*"), "glob_valid");
	for (size_t i = 0; i < sizeof(slow) - 1; i++)
		slow[i] = i % 2 ? 'a' : '*';
	slow[sizeof(slow) - 2] = '\0'; /* after an 'a': the text ends in 'b' */
	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 2] = 'b';
	text[sizeof(text) - 1] = '\0';
	start = clock();
	tap_ok(!glob_match(slow, text, 0), "a hostile pattern");
	tap_ok(clock() - start < CLOCKS_PER_SEC, "takes no long time");
}

static bool encodes(const char *in, size_t len, const char *want)
{
	struct strbuf sb = { 0 };
	struct jsonw w = { .sb = &sb };
	bool same;
	json_t *v;

	jsonw_open(&w, NULL, '[');
	jsonw_strn(&w, NULL, in, len);
	jsonw_close(&w, ']');
	same = strlen(want) + 4 == sb.len && !strncmp(sb.p + 2, want, strlen(want));
	if (!same)
		printf("# got %s\n", sb.p);
	v = json_loads(sb.p, 0, NULL);
	same = same && v;
	json_decref(v);
	strbuf_fini(&sb);
	return same;
}

static void test_json(void)
{
	tap_ok(encodes("plain", 5, "plain"), "plain text");
	tap_ok(encodes("a\"b\\c\n\x01", 7, "a\\\"b\\\\c\\n\\u0001"), "quotes and controls");
	tap_ok(encodes("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", 9,
	               "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"),
	       "UTF-8 stays");
	tap_ok(encodes("a\xff"
	               "b",
	               3,
	               "a\xef\xbf\xbd"
	               "b"),
	       "a bad byte is replaced");
	tap_ok(encodes("\xc0\xaf", 2, "\xef\xbf\xbd\xef\xbf\xbd"), "an overlong form is bad");
	tap_ok(encodes("\xed\xa0\x80", 3, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"),
	       "a surrogate is bad");
	tap_ok(encodes("\xe2\x80\xae", 3, "\\u202e"), "right-to-left override is escaped");
	tap_ok(encodes("\xc2\x9b", 2, "\\u009b"), "a C1 control is escaped");
	tap_ok(encodes("x\x7f", 2, "x\\u007f"), "DEL is escaped");
	tap_ok(!utf8_valid("\xe2\x82", 2), "a cut character is not valid");
}

int main(void)
{
	test_sha256();
	test_glob();
	test_json();
	return tap_done();
}
