/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/sbx/opt.h"

#include <stdio.h>
#include <string.h>

struct parser {
	const struct opt *table;
	size_t n;
	int argc, i; /* i: the argument that is looked at */
	char **argv;
	void *ctx;
	const struct opt *of_group[256];
};

static const struct opt *find_long(const struct parser *p, const char *name, size_t len)
{
	for (size_t i = 0; i < p->n; i++) {
		if (strlen(p->table[i].name) == len && !memcmp(p->table[i].name, name, len))
			return &p->table[i];
	}
	return NULL;
}

static const struct opt *find_letter(const struct parser *p, char letter)
{
	for (size_t i = 0; i < p->n; i++) {
		if (p->table[i].letter == letter)
			return &p->table[i];
	}
	return NULL;
}

static int apply(struct parser *p, const struct opt *o, const char *value, struct sbx_err *err)
{
	const struct opt *other = p->of_group[o->group];
	int r;

	if (o->group && other && other != o)
		return sbx_fail(err, 0, "--%s and --%s cannot be used together", other->name,
		                o->name);
	p->of_group[o->group] = o;
	r = o->set(p->ctx, o, value, err);
	return r ? sbx_fail_in(err, "--%s", o->name) : 0;
}

/* The value of an option that needs one: the rest of this argument, or the next. */
static int apply_value(struct parser *p, const struct opt *o, const char *rest, struct sbx_err *err)
{
	if (!rest) {
		if (p->i + 1 >= p->argc)
			return sbx_fail(err, 0, "--%s needs a value (%s)", o->name, o->value_name);
		rest = p->argv[++p->i];
	}
	return apply(p, o, rest, err);
}

static int parse_long(struct parser *p, const char *arg, struct sbx_err *err)
{
	size_t len = strcspn(arg, "=");
	const char *value = arg[len] ? arg + len + 1 : NULL;
	const struct opt *o = find_long(p, arg, len);

	if (!o)
		return sbx_fail(err, 0, "unknown option --%.*s", (int)MIN(len, (size_t)100), arg);
	if (o->arg == OPT_VALUE)
		return apply_value(p, o, value, err);
	if (o->arg == OPT_FLAG && value)
		return sbx_fail(err, 0, "--%s takes no value", o->name);
	return apply(p, o, value, err);
}

static int parse_letters(struct parser *p, const char *s, struct sbx_err *err)
{
	for (; *s; s++) {
		const struct opt *o = find_letter(p, *s);
		int r;

		if (!o)
			return sbx_fail(err, 0, "unknown option -%c",
			                *s > 0x20 && *s < 0x7f ? *s : '?');
		if (o->arg == OPT_VALUE)
			return apply_value(p, o, s[1] ? s + 1 : NULL, err);
		r = apply(p, o, NULL, err);
		if (r)
			return r;
	}
	return 0;
}

int opt_parse(const struct opt *table, size_t n, int argc, char **argv, void *ctx,
              struct sbx_err *err)
{
	struct parser p = { .table = table, .n = n, .argc = argc, .argv = argv, .ctx = ctx };

	for (p.i = 1; p.i < argc; p.i++) {
		const char *arg = argv[p.i];
		int r;

		if (arg[0] != '-' || !arg[1])
			break;
		if (!strcmp(arg, "--")) {
			p.i++;
			break;
		}
		r = arg[1] == '-' ? parse_long(&p, arg + 2, err) : parse_letters(&p, arg + 1, err);
		if (r)
			return r;
	}
	return p.i;
}

void opt_print_help(const struct opt *table, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct opt *o = &table[i];
		char left[64];

		snprintf(left, sizeof(left), "%s%c%s--%s%s%s%s", o->letter ? "-" : " ",
		         o->letter ? o->letter : ' ', o->letter ? ", " : "  ", o->name,
		         o->arg == OPT_VALUE      ? " "
		         : o->arg == OPT_OPTIONAL ? "[="
		                                  : "",
		         o->arg == OPT_FLAG ? "" : o->value_name,
		         o->arg == OPT_OPTIONAL ? "]" : "");
		printf("  %-28s %s\n", left, o->help);
	}
}
