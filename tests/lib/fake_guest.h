/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A guest made of test code: the real kernel/ over a platform whose contexts run nothing. A test
 * raises traps by hand and looks at what the kernel did with the context. mm, files and event loop
 * are small fakes (fake_guest.c); the system calls are those that the test puts into its own
 * sys_table.
 */
#ifndef SBX_TESTS_LIB_FAKE_GUEST_H
#define SBX_TESTS_LIB_FAKE_GUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "platform/platform.h"
#include "sentry/kernel/task.h"

#define FAKE_BASE 0x10000ull
#define FAKE_SIZE 0x40000ull
#define FAKE_FPU_SIZE 832u /* x87, SSE, AVX */
#define FAKE_SHARED (FAKE_BASE + 0x10000) /* a page that counts as shared (its bytes are not) */
#define FAKE_BLOCKED INT64_MIN

struct fake_ctx {
	struct fake_ctx *next; /* of all */
	struct vcpu_ctx base;
	struct aspace *as;
	struct gregs regs;
	uint8_t fpu[FAKE_FPU_SIZE];
	bool running;     /* guest code would run now */
	bool kicked;      /* ctx_interrupt() while running */
	bool destroyed;
	int64_t result;   /* of the last ctx_return() */
	unsigned n_resume, n_regs_get;
};

struct aspace {
	int refs;
	uint8_t mem[FAKE_SIZE] __attribute__((aligned(16)));
};

extern unsigned fake_reads, fake_writes; /* guest copies so far */

/* A kernel with init and a first process, which runs guest code. */
struct task *fake_boot(void);
struct task *fake_thread(struct task *parent); /* as by pthread_create */
struct task *fake_fork(struct task *parent);

struct fake_ctx *fake_ctx(struct task *t);
void *fake_mem(struct task *t, uaddr_t a); /* host view of guest memory */

/* The guest makes a system call. Its result when it was answered by then, else FAKE_BLOCKED. */
int64_t fake_call(struct task *t, uint64_t nr, uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3,
		  uint64_t a4, uint64_t a5);
#define CALL0(t, nr)                fake_call(t, nr, 0, 0, 0, 0, 0, 0)
#define CALL1(t, nr, a)             fake_call(t, nr, (uint64_t)(a), 0, 0, 0, 0, 0)
#define CALL2(t, nr, a, b)          fake_call(t, nr, (uint64_t)(a), (uint64_t)(b), 0, 0, 0, 0)
#define CALL3(t, nr, a, b, c) fake_call(t, nr, (uint64_t)(a), (uint64_t)(b), (uint64_t)(c), 0, 0, 0)
#define CALL4(t, nr, a, b, c, d)                                                                   \
	fake_call(t, nr, (uint64_t)(a), (uint64_t)(b), (uint64_t)(c), (uint64_t)(d), 0, 0)

/* The context answers a kick, if there was one. */
void fake_take_kick(struct task *t);
/* Lets the clock pass @ns and runs due timers and woken calls. */
void fake_pass_time(uint64_t ns);
/* Since the last call of @t blocked: has it been answered, with what? FAKE_BLOCKED: no. */
int64_t fake_result(struct task *t);

#endif
