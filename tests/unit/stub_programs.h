/* SPDX-License-Identifier: Apache-2.0 */
/* The guest programs of stub_guest.c that every platform runs alike, under the tiny kernel of stub_kernel.c. */
#ifndef SBX_TESTS_UNIT_STUB_PROGRAMS_H
#define SBX_TESTS_UNIT_STUB_PROGRAMS_H

#include <stdbool.h>

/* Makes tk.code_fd and tk.file_fd, which the programs are loaded from. */
bool tk_files(void);
/* Runs them on the platform that was started. @wake_us: how often a thread wakes it while a guest spins. */
void tk_programs(unsigned wake_us);

#endif
