/* SPDX-License-Identifier: Apache-2.0 */
/* What of the host's root file system the guest must not see when it is shown ("rootfs": "host").
 */
#ifndef SBX_POLICY_HIDE_H
#define SBX_POLICY_HIDE_H

#include <stdbool.h>
#include <stddef.h>

struct hide_row {
	const char *path; /* absolute; the name and all below it do not exist for the guest */
	const char *why;
	unsigned empty_mode; /* not 0: an empty directory of this mode takes its place */
};

extern const struct hide_row policy_hide_rows[];
extern const size_t policy_hide_count;

/* Directories of which only these names are shown: what a host keeps beside them cannot be known.
 */
struct show_row {
	const char *dir;
	const char *const *names; /* ends with NULL */
};

extern const struct show_row policy_show_rows[];
extern const size_t policy_show_count;

/* True when @name in the directory of @row is shown (unless a hide_row names it). */
bool policy_shows(const struct show_row *row, const char *name);

#endif
