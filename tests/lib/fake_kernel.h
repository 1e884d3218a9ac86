/* SPDX-License-Identifier: Apache-2.0 */
/* See fake_kernel.c. */
#ifndef SBX_TESTS_LIB_FAKE_KERNEL_H
#define SBX_TESTS_LIB_FAKE_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

struct task;

extern uint64_t fake_fault_page;    /* guest addresses in this page fault */
extern int fake_signal;             /* the last one sent to the caller */
extern bool fake_signal_pending;    /* task_block() is interrupted */
extern unsigned fake_blocked;       /* calls of task_block() */

void fake_op_end(struct task *t); /* what the exit path does with t->op */

#endif
