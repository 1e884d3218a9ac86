/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A platform whose guest is the test: contexts are objects, an address space is a buffer of FAKE_MEM_SIZE bytes at
 * FAKE_MEM_BASE, and a system call is a function call. Checks that the kernel keeps the rules of platform.h.
 */
#ifndef SBX_TESTS_LIB_FAKE_PLATFORM_H
#define SBX_TESTS_LIB_FAKE_PLATFORM_H

#include <stdbool.h>
#include <stdint.h>

#include "platform/platform.h"

struct kernel_limits;
struct task;

#define FAKE_MEM_BASE 0x100000ull
#define FAKE_MEM_SIZE 0x10000ull

/* What fake_call() returns when the call was not answered. */
#define FAKE_BLOCKED (-100000)
#define FAKE_RESUMED (-100001) /* by ctx_resume: registers were set */
#define FAKE_GONE    (-100002) /* the task exited */

enum fake_state { FAKE_STOPPED, FAKE_RUNNING };

struct fake_ctx {
	struct vcpu_ctx vc;
	struct aspace *as;
	enum fake_state state;
	int64_t result;    /* of the last ctx_return */
	bool by_regs;      /* last went on by ctx_resume */
	unsigned interrupts, parks;
	struct gregs regs;
};

extern const struct platform_ops fake_platform_ops;
extern unsigned fake_n_ctx, fake_n_aspace, fake_wakes, fake_errors;
extern bool fake_stopped;

/* kernel_init(), a tmpfs as root, and the first process of user @uid, running. Exits the test on failure. */
struct task *fake_boot(const struct kernel_limits *limits, uint32_t uid);

static inline struct fake_ctx *fake_ctx(struct vcpu_ctx *c)
{
	return (struct fake_ctx *)c;
}

/* A system call of a running task. Its result, or a FAKE_* value. */
int64_t fake_call(struct task *t, uint64_t nr, uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4);
/* The state of a task whose call was FAKE_BLOCKED: its result once it was answered, else FAKE_BLOCKED. */
int64_t fake_result(const struct task *t);
/* TRAP_INTERRUPT, or TRAP_FAULT with SIGSEGV at @addr. */
void fake_interrupt(struct task *t);
void fake_fault(struct task *t, uint64_t addr);
/* Delivers the interrupts that the kernel asked for, and runs kernel_idle(). */
void fake_settle(void);

void *fake_mem(const struct task *t, uint64_t addr);

#endif
