/* SPDX-License-Identifier: Apache-2.0 */
/* The tiny kernel of stub_suite.c: what the guest programs of stub_guest.c need, and counters. */
#ifndef SBX_TESTS_UNIT_STUB_KERNEL_H
#define SBX_TESTS_UNIT_STUB_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

#include "platform/platform.h"

#define MAX_TASKS  2048
#define INTERRUPTS 100
#define FILE_LEN   0x20000

/* Its state; all but the marked ones belong to the leader. */
struct tiny_kernel {
	struct platform *plat;
	const char *mode;        /* for the lines of TAP */
	int code_fd, file_fd;    /* the guest image, a file full of 'f' */
	int n_live, n_sleeping;
	long results[64];        /* by H_RESULT */
	int n_exited, n_faults, n_interrupts;
	int fault_signals[8];
	bool interrupting;       /* after each call and idle, those who asked */
	bool skipping;           /* go on after a fault */
	bool spinning;           /* G_SPIN is to be let go after INTERRUPTS */
	bool quiet;              /* no lines but failures */
	struct vcpu_ctx *first;  /* of the program loaded last */
	uint64_t stop_at;        /* idle that has seen so much ends run() */
	uint64_t idle_seen, idle_posted; /* atomic: what idle has seen of posted */
	int (*find_stub)(void);  /* a host pid */
};

extern struct tiny_kernel tk;
extern const struct platform_up tk_up;
extern const struct platform_ops *ops; /* under test */

void tk_reset(void);
/* A fresh context with a program, not yet run. 0 or -errno. */
int tk_load(long program, long arg);
/* Destroys all contexts, in whatever state they are. */
void tk_end(void);
/* Runs a program to its end. */
int tk_run(long program, long arg);

#endif
