/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each pattern is a small automaton over path components: state i says that its first i components are matched. A set
 * of states is a bit mask. A "**" at position i loops in state i and may match nothing (state i + 1 is then set as
 * well).
 */
#include "gofer/protect.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct component {
	const char *s; /* in text */
	uint8_t len;
	bool any_depth; /* "**" */
};

struct pattern {
	char *text;
	bool absolute;
	unsigned n;
	struct component c[PROTECT_COMPONENTS_MAX];
};

struct protect {
	unsigned n;
	struct pattern *pats[PROTECT_PATTERNS_MAX];
};

int protect_create(struct protect **ret)
{
	struct protect *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	*ret = p;
	return 0;
}

static void pattern_destroy(struct pattern *pat)
{
	if (!pat)
		return;
	free(pat->text);
	free(pat);
}

void protect_destroy(struct protect *p)
{
	if (!p)
		return;
	for (unsigned i = 0; i < p->n; i++)
		pattern_destroy(p->pats[i]);
	free(p);
}

static int add_component(struct pattern *pat, const char *s, size_t len)
{
	struct component *c;

	if (len > 255 || (len == 1 && s[0] == '.') || (len == 2 && !memcmp(s, "..", 2)))
		return -EINVAL;
	if (pat->n == PROTECT_COMPONENTS_MAX)
		return -EINVAL;
	c = &pat->c[pat->n];
	c->s = s;
	c->len = (uint8_t)len;
	c->any_depth = len == 2 && !memcmp(s, "**", 2);
	if (c->any_depth && pat->n && pat->c[pat->n - 1].any_depth)
		return 0; /* a second one adds nothing */
	pat->n++;
	return 0;
}

static int pattern_parse(struct pattern *pat)
{
	const char *s = pat->text;

	pat->absolute = *s == '/';
	if (!strchr(s, '/')) {
		int r = add_component(pat, "**", 2);

		if (r < 0)
			return r;
	}
	while (*s) {
		size_t len = strcspn(s, "/");
		int r = len ? add_component(pat, s, len) : 0;

		if (r < 0)
			return r;
		s += len;
		while (*s == '/')
			s++;
	}
	return pat->n ? 0 : -EINVAL;
}

int protect_add(struct protect *p, const char *pattern)
{
	struct pattern *pat;
	int r;

	if (p->n == PROTECT_PATTERNS_MAX)
		return -E2BIG;
	pat = calloc(1, sizeof(*pat));
	if (!pat)
		return -ENOMEM;
	pat->text = strdup(pattern);
	r = pat->text ? pattern_parse(pat) : -ENOMEM;
	if (r < 0) {
		pattern_destroy(pat);
		return r;
	}
	p->pats[p->n++] = pat;
	return 0;
}

unsigned protect_count(const struct protect *p)
{
	return p->n;
}

const char *protect_pattern(const struct protect *p, unsigned i)
{
	return p->pats[i]->text;
}

static unsigned char fold(char c)
{
	return c >= 'A' && c <= 'Z' ? (unsigned char)(c - 'A' + 'a') : (unsigned char)c;
}

/* A bracket expression at pat[*i] == '['; moves *i behind it. An unclosed one is a literal '['. */
static bool glob_bracket(const char *pat, size_t len, size_t *i, unsigned char c)
{
	size_t k = *i + 1;
	bool invert = false, hit = false, first = true;

	if (k < len && (pat[k] == '!' || pat[k] == '^')) {
		invert = true;
		k++;
	}
	for (; k < len && (first || pat[k] != ']'); first = false) {
		unsigned char lo = fold(pat[k]), hi = lo;

		if (k + 2 < len && pat[k + 1] == '-' && pat[k + 2] != ']') {
			hi = fold(pat[k + 2]);
			k += 2;
		}
		hit |= c >= lo && c <= hi;
		k++;
	}
	if (k >= len) {
		(*i)++;
		return c == '[';
	}
	*i = k + 1;
	return hit != invert;
}

bool protect_glob(const char *pat, size_t pat_len, const char *s, size_t len)
{
	size_t i = 0, k = 0, star = SIZE_MAX, star_k = 0;

	while (k < len) {
		size_t next = i;
		bool ok = false;

		if (i < pat_len && pat[i] == '*') {
			star = i++;
			star_k = k;
			continue;
		}
		if (i < pat_len && pat[i] == '[') {
			ok = glob_bracket(pat, pat_len, &next, fold(s[k]));
		} else if (i < pat_len) {
			ok = pat[i] == '?' || fold(pat[i]) == fold(s[k]);
			next = i + 1;
		}
		if (ok) {
			i = next;
			k++;
		} else if (star != SIZE_MAX) {
			i = star + 1;
			k = ++star_k;
		} else {
			return false;
		}
	}
	while (i < pat_len && pat[i] == '*')
		i++;
	return i == pat_len;
}

/* The states that are reached without a component. */
static uint64_t closure(const struct pattern *pat, uint64_t set)
{
	for (unsigned i = 0; i < pat->n; i++) {
		/* A "**" at the end wants at least one component: "a/" "**" is what lies below a, not a. */
		if ((set & (1ull << i)) && pat->c[i].any_depth && i + 1 < pat->n)
			set |= 1ull << (i + 1);
	}
	return set;
}

void protect_start(const struct protect *p, struct protect_state *st, bool absolute)
{
	memset(st, 0, sizeof(*st));
	st->absolute = absolute;
	st->matched = -1;
	for (unsigned i = 0; i < p->n; i++) {
		if (p->pats[i]->absolute == absolute)
			st->at[i] = closure(p->pats[i], 1);
	}
}

void protect_feed(const struct protect *p, struct protect_state *st, const char *name, size_t len)
{
	for (unsigned i = 0; i < p->n; i++) {
		const struct pattern *pat = p->pats[i];
		uint64_t old = st->at[i], set = 0;

		for (unsigned k = 0; old >> k && k < pat->n; k++) {
			const struct component *c = &pat->c[k];

			if (!(old & (1ull << k)))
				continue;
			if (c->any_depth)
				set |= 1ull << k | (k + 1 == pat->n ? 1ull << pat->n : 0);
			else if (protect_glob(c->s, c->len, name, len))
				set |= 1ull << (k + 1);
		}
		set = closure(pat, set) | (old & (1ull << pat->n));
		st->at[i] = set;
		if ((set & (1ull << pat->n)) && st->matched < 0)
			st->matched = (int)i;
	}
}

bool protect_on_the_way(const struct protect *p, const struct protect_state *st)
{
	for (unsigned i = 0; i < p->n; i++) {
		const struct pattern *pat = p->pats[i];

		if (pat->absolute == st->absolute && (st->at[i] & ~closure(pat, 1)))
			return true;
	}
	return false;
}

bool protect_equal(const struct protect *p, const struct protect_state *a, const struct protect_state *b)
{
	return !memcmp(a->at, b->at, p->n * sizeof(a->at[0]));
}
