/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SBX_BASE_HOST_NOTIF_H
#define SBX_BASE_HOST_NOTIF_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Whether this kernel is known to have the race of killable seccomp notifications: before Linux 6.18 a call that is
 * answered before its thread has gone to its killable sleep can be made twice when a signal comes. The stable series
 * were mended, each from some version on; of a kernel whose name does not tell what a distribution has put into it
 * nothing is known: false. @why: filled in when true.
 */
bool host_notif_race(char *why, size_t cap);
/* The same for a name as uname(2) gives it. */
bool host_notif_race_in(const char *release, char *why, size_t cap);

#endif
