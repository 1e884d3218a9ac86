/* SPDX-License-Identifier: Apache-2.0 */
/* Tells the monitor when the sandbox does nothing but wait for its standard input: see kernel_note_input_wait(). */
#ifndef SBX_SENTRY_KERNEL_INPUT_WAIT_H
#define SBX_SENTRY_KERNEL_INPUT_WAIT_H

#include <stdbool.h>

/* The leader is about to wait. */
void input_wait_idle(void);

extern bool input_wait_reported;
void input_wait_over(void);

/* Something ran. */
static inline void input_wait_activity(void)
{
	if (__builtin_expect(input_wait_reported, 0))
		input_wait_over();
}

#endif
