/* SPDX-License-Identifier: Apache-2.0 */
/* Command-line options as a table. */
#ifndef SBX_TOOLS_SBX_OPT_H
#define SBX_TOOLS_SBX_OPT_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/macros.h"

enum opt_arg {
	OPT_FLAG,     /* --name */
	OPT_VALUE,    /* --name V, --name=V, -nV, -n V */
	OPT_OPTIONAL, /* --name, --name=V */
};

struct opt {
	const char *name; /* without the dashes */
	char letter;      /* 0: none */
	enum opt_arg arg;
	/* @value is NULL for a flag and for a missing optional value. Returns 0, or -errno with
	 * @err. */
	int (*set)(void *ctx, const struct opt *o, const char *value, struct sbx_err *err);
	int id;        /* for set functions that serve several options */
	uint8_t group; /* at most one option of a group may be given; 0: none */
	const char *value_name;
	const char *help;
};

/*
 * Parses options up to the first argument that is none, or past "--". Returns the index of the
 * first argument after them, or -errno with @err for an unknown, incomplete or conflicting option.
 */
MUST_CHECK int opt_parse(const struct opt *table, size_t n, int argc, char **argv, void *ctx,
                         struct sbx_err *err);

/* One line for each option. */
void opt_print_help(const struct opt *table, size_t n);

#endif
