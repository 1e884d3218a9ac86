/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/shell_words.h"

#include <stdlib.h>
#include <string.h>

#include "base/macros.h"

enum token { T_END, T_WORD, T_OP };

struct lexer {
	const char *p;
	char *out;   /* where the next word goes; the buffer is as large as the text and a NUL for
	                each word */
	char *word;  /* of the last T_WORD */
	char op[3];  /* of the last T_OP; "\n" for a line's end */
	bool quoted; /* the word had quotes: it is no reserved word */
};

static bool is_op(char c)
{
	return c && strchr(";&|()<>\n", c) != NULL;
}

static void skip_blank(struct lexer *l)
{
	for (;;) {
		l->p += strspn(l->p, " \t\r");
		if (l->p[0] == '\\' && l->p[1] == '\n')
			l->p += 2;
		else if (l->p[0] == '#')
			l->p += strcspn(l->p, "\n");
		else
			return;
	}
}

/* Copies the quoted part at l->p (the quote) without its quotes. */
static void copy_quoted(struct lexer *l)
{
	char q = *l->p++;

	l->quoted = true;
	while (*l->p && *l->p != q) {
		if (q == '"' && l->p[0] == '\\' && l->p[1] && strchr("\"\\$`\n", l->p[1]))
			l->p++;
		*l->out++ = *l->p++;
	}
	if (*l->p)
		l->p++;
}

static enum token next(struct lexer *l)
{
	skip_blank(l);
	if (!*l->p)
		return T_END;
	if (is_op(*l->p)) {
		l->op[0] = *l->p++;
		l->op[1] = l->op[2] = '\0';
		if (*l->p &&
		    (*l->p == l->op[0] || (strchr("<>", l->op[0]) && strchr("<>&|", *l->p))) &&
		    strchr(";&|<>", l->op[0]))
			l->op[1] = *l->p++;
		return T_OP;
	}
	l->word = l->out;
	l->quoted = false;
	while (*l->p && !is_op(*l->p) && !strchr(" \t\r", *l->p)) {
		if (*l->p == '\'' || *l->p == '"') {
			copy_quoted(l);
		} else if (*l->p == '\\') {
			l->quoted = true;
			if (*++l->p)
				*l->out++ = *l->p++;
		} else {
			*l->out++ = *l->p++;
		}
	}
	*l->out++ = '\0';
	return T_WORD;
}

static bool is_reserved(const char *w)
{
	static const char *const words[] = {
		"if", "then", "else", "elif", "fi", "while", "until",
		"do", "done", "{",    "}",    "!",  "time",  NULL,
	};

	for (size_t i = 0; words[i]; i++) {
		if (!strcmp(words[i], w))
			return true;
	}
	return false;
}

static bool is_assignment(const char *w)
{
	size_t n = strspn(w, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789");

	return n && (w[n] == '=' || (w[n] == '+' && w[n + 1] == '=')) &&
	       !(w[0] >= '0' && w[0] <= '9');
}

struct collector {
	char *words[SHELL_WORDS_MAX + 1], *redirects[SHELL_WORDS_MAX];
	size_t n_words, n_redirects;
	bool (*fn)(void *ctx, const struct shell_command *c);
	void *ctx;
};

/* Hands the command that is collected over. Returns false when the caller wants no more. */
static bool flush(struct collector *c)
{
	struct shell_command cmd = { c->words, c->n_words, c->redirects, c->n_redirects };
	bool more = true;

	c->words[c->n_words] = NULL;
	if (c->n_words || c->n_redirects)
		more = c->fn(c->ctx, &cmd);
	c->n_words = c->n_redirects = 0;
	return more;
}

static void add_word(struct collector *c, const struct lexer *l)
{
	if (!c->n_words && !l->quoted && (is_reserved(l->word) || is_assignment(l->word)))
		return;
	if (c->n_words < SHELL_WORDS_MAX)
		c->words[c->n_words++] = l->word;
}

static void collect(struct lexer *l, struct collector *c)
{
	enum token t;

	while ((t = next(l)) != T_END) {
		if (t == T_WORD) {
			add_word(c, l);
		} else if (l->op[0] == '>' || l->op[0] == '<') {
			bool writes = l->op[0] == '>' || l->op[1] == '>';

			if (l->op[1] == '<') /* here document or string: its text is data */
				continue;
			/* A number in front of it was the descriptor. */
			if (c->n_words > 0 && strspn(c->words[c->n_words - 1], "0123456789") ==
			                              strlen(c->words[c->n_words - 1]))
				c->n_words--;
			if (next(l) != T_WORD)
				continue;
			if (writes && c->n_redirects < SHELL_WORDS_MAX)
				c->redirects[c->n_redirects++] = l->word;
		} else if (!flush(c)) {
			return;
		}
	}
	flush(c);
}

void shell_for_each(const char *text, bool (*fn)(void *ctx, const struct shell_command *c),
                    void *ctx)
{
	size_t len = strnlen(text, SHELL_TEXT_MAX + 1);
	struct collector *c;
	struct lexer l = { .p = text };
	char *buf;

	if (len > SHELL_TEXT_MAX)
		return;
	buf = malloc(2 * len + 2);
	c = calloc(1, sizeof(*c));
	if (buf && c) {
		l.out = buf;
		c->fn = fn;
		c->ctx = ctx;
		collect(&l, c);
	}
	free(c);
	free(buf);
}

/* Reads "NAME|NAME&" at @p without blanks; @name is @n bytes long. */
static bool calls_itself(const char *p, const char *name, size_t n)
{
	const char *end = strchr(p, '}');

	for (; *p && (!end || p < end); p++) {
		if (!strncmp(p, name, n) && p[n] == '|' && !strncmp(p + n + 1, name, n) &&
		    p[2 * n + 1] == '&' && p[2 * n + 2] != '&')
			return true;
	}
	return false;
}

bool shell_is_fork_bomb(const char *text)
{
	char flat[1024];
	size_t n = 0;

	/* "function f {" is another way to write "f(){"; blanks say nothing here. */
	for (; *text && n < sizeof(flat) - 1; text++) {
		if (!strncmp(text, "function ", 9))
			text += 8;
		else if (!strchr(" \t\r\n", *text))
			flat[n++] = *text;
	}
	flat[n] = '\0';
	for (char *brace = flat; (brace = strchr(brace, '{')); brace++) {
		char *end = brace, *start;

		if (end >= flat + 2 && end[-1] == ')' && end[-2] == '(')
			end -= 2;
		for (start = end; start > flat && !strchr(";&|(){}", start[-1]); start--)
			;
		if (start < end && calls_itself(brace + 1, start, (size_t)(end - start)))
			return true;
	}
	return false;
}
