/* SPDX-License-Identifier: Apache-2.0 */
#include "base/host/notif.h"

#include <stdio.h>
#include <sys/utsname.h>

#include "base/macros.h"

bool host_notif_race_in(const char *release, char *why, size_t cap)
{
	/* The flag came with 5.19; 6.18 was never without the mend. */
	static const struct { unsigned major, minor, mended; } series[] = {
		{ 6, 17, 3 }, { 6, 12, 53 }, { 6, 6, 112 }, { 6, 1, 156 },
	};
	unsigned major, minor, patch;

	/* Distributions that count for themselves say x.y.0-n. */
	if (sscanf(release, "%u.%u.%u", &major, &minor, &patch) != 3 || patch == 0)
		return false;
	for (unsigned i = 0; i < ARRAY_SIZE(series); i++) {
		if (major != series[i].major || minor != series[i].minor || patch >= series[i].mended)
			continue;
		snprintf(why, cap, "Linux %u.%u.%u may make a system call twice (mended in %u.%u.%u)", major, minor,
			 patch, major, minor, series[i].mended);
		return true;
	}
	return false;
}

bool host_notif_race(char *why, size_t cap)
{
	struct utsname u;

	return uname(&u) == 0 && host_notif_race_in(u.release, why, cap);
}
