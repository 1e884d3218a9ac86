/* SPDX-License-Identifier: Apache-2.0 */
/* sbx audit verify | show */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "policy/audit.h"
#include "tools/sbx/verb.h"

static int do_verify(FILE *f, const char *path)
{
	struct audit_check c;
	struct sbx_err err = { 0 };

	if (audit_verify(f, &c, &err))
		return verb_fail("%s: %s", path, err.msg);
	if (c.line) {
		verb_fail("%s: line %" PRIu64 " %s", path, c.line, c.why);
		return 1;
	}
	printf("%" PRIu64 " records, whole; head %s\n", c.records, c.head);
	if (c.torn)
		printf("%" PRIu64 " unfinished lines left by crashes\n", c.torn);
	if (c.lost)
		printf("%" PRIu64 " events were lost and are not in the log\n", c.lost);
	return 0;
}

static const char *field(json_t *v, const char *key, char *buf, size_t cap)
{
	const char *s = json_string_value(json_object_get(v, key));

	return s ? log_quote(buf, cap, s, strlen(s)) : "";
}

/* One record as a line for people. */
static void show_line(const char *line, size_t len)
{
	json_t *v = json_loadb(line, len, 0, NULL);
	char t[40], class[32], op[64], object[512], verdict[16], rule[128], reason[256];

	if (!v) {
		printf("(unreadable line)\n");
		return;
	}
	printf("%6" PRId64 " %s %-5s %s %s %s",
	       (int64_t)json_integer_value(json_object_get(v, "seq")), field(v, "t", t, sizeof(t)),
	       field(v, "verdict", verdict, sizeof(verdict)),
	       field(v, "class", class, sizeof(class)), field(v, "op", op, sizeof(op)),
	       field(v, "object", object, sizeof(object)));
	if (*field(v, "rule", rule, sizeof(rule)))
		printf(" [%s]", rule);
	if (*field(v, "reason", reason, sizeof(reason)))
		printf(" %s", reason);
	if (json_integer_value(json_object_get(v, "count")) > 1)
		printf(" (%" PRId64 " times)",
		       (int64_t)json_integer_value(json_object_get(v, "count")));
	printf("\n");
	json_decref(v);
}

static int do_show(FILE *f, const char *path)
{
	char *line = NULL;
	size_t cap = 0;
	ssize_t n;

	while ((n = getline(&line, &cap, f)) > 0) {
		if (line[n - 1] == '\n')
			n--;
		show_line(line, (size_t)n);
	}
	free(line);
	return ferror(f) ? verb_fail("%s: %s", path, strerror(errno)) : 0;
}

static const struct {
	const char *name;
	int (*fn)(FILE *f, const char *path);
} actions[] = {
	{ "verify", do_verify },
	{ "show", do_show },
};

int verb_audit(int argc, char **argv)
{
	FILE *f;
	int r;

	if (argc != 3)
		return verb_fail("usage: sbx audit verify|show FILE");
	for (size_t i = 0; i < ARRAY_SIZE(actions); i++) {
		if (strcmp(argv[1], actions[i].name))
			continue;
		f = fopen(argv[2], "re");
		if (!f)
			return verb_fail("%s: %s", argv[2], strerror(errno));
		r = actions[i].fn(f, argv[2]);
		fclose(f);
		return r;
	}
	return verb_fail("audit: unknown action '%s'", argv[1]);
}
