/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors of host-side tools and of start-up code: an int that is -errno, and a message for the user.
 * Only tools/ and start-up code (main.c) take a struct sbx_err; everything in the guest's reach returns -errno alone.
 */
#ifndef SBX_BASE_ERR_H
#define SBX_BASE_ERR_H

#include "base/macros.h"

struct sbx_err {
	int code;      /* -errno; 0 when nothing failed */
	char msg[512]; /* without a trailing newline */
};

/* Fills @err with "message: strerror" and returns @code. @code is -errno, or 0 for a message with no errno text;
 * the return value is then -EINVAL. */
int sbx_fail(struct sbx_err *err, int code, const char *fmt, ...) PRINTF(3, 4);

/* Puts "fmt: " before the message of @err and returns its code. */
int sbx_fail_in(struct sbx_err *err, const char *fmt, ...) PRINTF(2, 3);

#endif
