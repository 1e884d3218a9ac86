/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/units.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

struct unit {
	const char *name;
	uint64_t factor;
};

static const struct unit size_units[] = {
	{ "", 1 },           { "B", 1 },
	{ "K", 1ull << 10 }, { "KiB", 1ull << 10 },
	{ "M", 1ull << 20 }, { "MiB", 1ull << 20 },
	{ "G", 1ull << 30 }, { "GiB", 1ull << 30 },
	{ "T", 1ull << 40 }, { "TiB", 1ull << 40 },
};
static const struct unit count_units[] = { { "", 1 }, { "k", 1000 }, { "M", 1000000 } };
static const struct unit time_units[] = {
	{ "", 1000 }, { "ms", 1 }, { "s", 1000 }, { "m", 60000 }, { "h", 3600000 },
};

/* A decimal number with at most six digits after the point, times the factor of its unit. */
static int parse_scaled(const char *s, const struct unit *units, size_t n, uint64_t *out)
{
	uint64_t whole = 0, frac = 0, div = 1, part;
	const char *start = s;

	for (; *s >= '0' && *s <= '9'; s++) {
		if (__builtin_mul_overflow(whole, 10, &whole) ||
		    __builtin_add_overflow(whole, (uint64_t)(*s - '0'), &whole))
			return -ERANGE;
	}
	if (s == start)
		return -EINVAL;
	if (*s == '.') {
		for (s++; *s >= '0' && *s <= '9'; s++) {
			if (div >= 1000000)
				return -EINVAL;
			frac = frac * 10 + (uint64_t)(*s - '0');
			div *= 10;
		}
		if (div == 1)
			return -EINVAL;
	}
	for (size_t i = 0; i < n; i++) {
		if (strcasecmp(s, units[i].name))
			continue;
		part = frac * units[i].factor / div; /* below 10^6 * 2^40: no overflow */
		if (__builtin_mul_overflow(whole, units[i].factor, &whole) ||
		    __builtin_add_overflow(whole, part, out))
			return -ERANGE;
		return 0;
	}
	return -EINVAL;
}

int units_parse_size(const char *s, uint64_t *bytes)
{
	return parse_scaled(s, size_units, ARRAY_SIZE(size_units), bytes);
}

int units_parse_count(const char *s, uint64_t *count)
{
	return parse_scaled(s, count_units, ARRAY_SIZE(count_units), count);
}

int units_parse_time(const char *s, uint64_t *ms)
{
	return parse_scaled(s, time_units, ARRAY_SIZE(time_units), ms);
}
