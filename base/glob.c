/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pattern is compiled to tokens; the match keeps the set of tokens that may come next and moves
 * it on by one character of the string (a nondeterministic automaton), so no pattern can make it
 * slow.
 */
#include "base/glob.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum glob_op {
	G_CHAR,
	G_ONE,         /* ? */
	G_SET,         /* [...] */
	G_STAR,        /* * */
	G_STARS,       /* ** */
	G_STARS_SLASH, /* ** and the slash after it, at the start of a component: any number of
	                  whole components */
};

struct glob_tok {
	uint8_t op;
	char c;
	uint16_t set; /* G_SET: offset after '[' in the pattern */
};

/* Returns the offset after the closing bracket, or 0 when there is none. @i is the offset after
 * '['. */
static size_t set_end(const char *p, size_t i)
{
	if (p[i] == '!' || p[i] == '^')
		i++;
	if (p[i] == ']')
		i++;
	while (p[i] && p[i] != ']')
		i++;
	return p[i] ? i + 1 : 0;
}

static bool set_has(const char *p, size_t i, char ch)
{
	unsigned char c = (unsigned char)ch;
	bool negate = p[i] == '!' || p[i] == '^', hit = false;
	size_t start;

	if (negate)
		i++;
	for (start = i; p[i] != ']' || i == start; i++) {
		unsigned char lo = (unsigned char)p[i], hi = lo;

		if (p[i + 1] == '-' && p[i + 2] != ']') {
			hi = (unsigned char)p[i + 2];
			i += 2;
		}
		if (c >= lo && c <= hi)
			hit = true;
	}
	return hit != negate;
}

/* Returns the number of tokens, or -1 for a bad pattern. */
static int compile(const char *p, struct glob_tok *t)
{
	size_t len = strlen(p);
	int n = 0;

	if (!len || len > GLOB_PAT_MAX)
		return -1;
	for (size_t i = 0; p[i];) {
		struct glob_tok *k = &t[n++];

		*k = (struct glob_tok){ .op = G_CHAR };
		if (p[i] == '*' && p[i + 1] == '*') {
			bool comp = i == 0 || p[i - 1] == '/';

			for (i += 2; p[i] == '*'; i++)
				;
			k->op = G_STARS;
			if (comp && p[i] == '/') {
				k->op = G_STARS_SLASH;
				i++;
			}
		} else if (p[i] == '*') {
			k->op = G_STAR;
			i++;
		} else if (p[i] == '?') {
			k->op = G_ONE;
			i++;
		} else if (p[i] == '[') {
			k->op = G_SET;
			k->set = (uint16_t)(i + 1);
			i = set_end(p, i + 1);
			if (!i)
				return -1;
		} else {
			if (p[i] == '\\' && !p[++i])
				return -1;
			k->c = p[i++];
		}
	}
	return n;
}

/* Adds token @i to the set, and those that follow it when it may match nothing. */
static void enter(const struct glob_tok *t, int n, uint8_t *set, int i)
{
	while (!set[i]) {
		set[i] = 1;
		if (i == n || t[i].op < G_STAR)
			return;
		i++;
	}
}

static void step(const char *p, const struct glob_tok *t, int n, const uint8_t *cur, uint8_t *next,
                 char c, unsigned flags)
{
	bool slash = (flags & GLOB_PATH) && c == '/';

	for (int i = 0; i < n; i++) {
		if (!cur[i])
			continue;
		switch ((enum glob_op)t[i].op) {
		case G_CHAR:
			if (t[i].c == c)
				enter(t, n, next, i + 1);
			break;
		case G_ONE:
			if (!slash)
				enter(t, n, next, i + 1);
			break;
		case G_SET:
			if (!slash && set_has(p, t[i].set, c))
				enter(t, n, next, i + 1);
			break;
		case G_STAR:
			if (!slash)
				enter(t, n, next, i);
			break;
		case G_STARS:
			enter(t, n, next, i);
			break;
		case G_STARS_SLASH:
			next[i] = 1; /* inside a component: what follows has to wait for its end */
			if (c == '/')
				enter(t, n, next, i + 1);
			break;
		}
	}
}

bool glob_match(const char *pattern, const char *s, unsigned flags)
{
	struct glob_tok t[GLOB_PAT_MAX];
	uint8_t sets[2][GLOB_PAT_MAX + 1];
	uint8_t *cur = sets[0], *next = sets[1];
	int n = compile(pattern, t);

	if (n < 0)
		return false;
	memset(cur, 0, (size_t)n + 1);
	enter(t, n, cur, 0);
	for (; *s; s++) {
		uint8_t *tmp = cur;

		memset(next, 0, (size_t)n + 1);
		step(pattern, t, n, cur, next, *s, flags);
		cur = next;
		next = tmp;
	}
	return cur[n];
}

bool glob_valid(const char *pattern)
{
	struct glob_tok t[GLOB_PAT_MAX];

	return compile(pattern, t) >= 0;
}
