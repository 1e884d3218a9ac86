/* SPDX-License-Identifier: Apache-2.0 */
#include "sentry/loader/script.h"

#include <errno.h>
#include <string.h>

static bool is_blank(uint8_t c)
{
	return c == ' ' || c == '\t';
}

/* Copies [from, to) as a string; a NUL in the file ends it, as it does for Linux. */
static void copy_word(char *dst, const uint8_t *from, const uint8_t *to)
{
	size_t n = strnlen((const char *)from, (size_t)(to - from));

	memcpy(dst, from, n);
	dst[n] = '\0';
}

int script_parse(const uint8_t *buf, size_t n, struct script_line *ret)
{
	const uint8_t *p, *end, *nl, *stop;

	n = MIN(n, (size_t)SCRIPT_LINE_MAX - 1); /* Linux keeps the last byte for a NUL */
	if (n < 2 || buf[0] != '#' || buf[1] != '!')
		return -ENOEXEC;
	nl = memchr(buf, '\n', n);
	/* Linux pads a short file with NULs, which end the line too. */
	end = nl ? nl : buf + n;
	for (p = buf + 2; p < end && is_blank(*p); p++)
		;
	for (stop = p; stop < end && *stop && !is_blank(*stop); stop++)
		;
	/* A full buffer without a newline: the interpreter's name must at least be whole. */
	if (stop == p || (!nl && n == SCRIPT_LINE_MAX - 1 && stop == end))
		return -ENOEXEC;
	while (end > stop && is_blank(end[-1]))
		end--;
	copy_word(ret->interp, p, stop);
	for (p = stop; p < end && is_blank(*p); p++)
		;
	ret->has_arg = p < end && *p && *stop;
	ret->arg[0] = '\0';
	if (ret->has_arg)
		copy_word(ret->arg, p, end);
	return 0;
}
