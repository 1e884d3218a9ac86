/* SPDX-License-Identifier: Apache-2.0 */
/* The first stack of a program: strings, auxiliary vector, environment, arguments (System V ABI
 * x86-64, getauxval(3)). */
#ifndef SBX_SENTRY_LOADER_STACK_H
#define SBX_SENTRY_LOADER_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macros.h"
#include "platform/platform.h"

struct cred;
struct exec_strings;
struct image;
struct mm_layout;

struct stack_image {
	uint8_t *buf; /* owned: what is to be at sp */
	size_t len;
	uaddr_t sp;
};

struct stack_args {
	uaddr_t top; /* page aligned; the image ends here */
	const struct exec_strings *strings;
	const char *execfn;
	const struct image *program;
	uaddr_t interp_base;     /* 0: none */
	const struct cred *cred; /* the new one */
	bool secure;             /* it has more rights than the caller: AT_SECURE */
};

/* Builds the stack image and notes its places and the auxiliary vector in @layout. -ENOMEM. */
MUST_CHECK int stack_build(struct stack_image *st, const struct stack_args *args,
                           struct mm_layout *layout);
void stack_image_fini(struct stack_image *st);

#endif
