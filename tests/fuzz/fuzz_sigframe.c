/* SPDX-License-Identifier: Apache-2.0 */
/* Guest memory that the kernel parses on sigreturn (frame, FPU state) and at the end of a thread
 * (robust list). */
#include <stddef.h>
#include <string.h>

#include "sentry/arch/sigframe.h"
#include "sentry/kernel/futex.h"
#include "sentry/kernel/task.h"
#include "tests/lib/fake_guest.h"

const struct sys_desc sys_table[SYS_TABLE_SIZE];

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Bytes 0..7 place rsp and the list; the rest is memory from FAKE_BASE on. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct task *t;
	struct gregs regs = { .eflags = 0x202 };
	uint64_t mask, at;

	if (!t)
		t = fake_boot();
	if (size < sizeof(at))
		return 0;
	memcpy(&at, data, sizeof(at));
	memset(fake_mem(t, FAKE_BASE), 0, FAKE_SIZE);
	memcpy(fake_mem(t, FAKE_BASE), data + sizeof(at),
	       MIN(size - sizeof(at), (size_t)FAKE_SIZE));
	regs.rsp = FAKE_BASE + 8 + at;
	if (sigframe_pop(t, &regs, &mask) < 0 && regs.eflags != 0x202)
		__builtin_trap(); /* a refused frame changes nothing */
	t->robust_list = FAKE_BASE + at;
	futex_mm_release(t);
	return 0;
}
