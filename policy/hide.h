/* SPDX-License-Identifier: Apache-2.0 */
/* What of the host's root file system the guest must not see when it is shown ("rootfs": "host"). */
#ifndef SBX_POLICY_HIDE_H
#define SBX_POLICY_HIDE_H

#include <stddef.h>

struct hide_row {
	const char *path; /* absolute; the name and all below it do not exist for the guest */
	const char *why;
	unsigned empty_mode; /* not 0: an empty directory of this mode takes its place */
};

extern const struct hide_row policy_hide_rows[];
extern const size_t policy_hide_count;

#endif
