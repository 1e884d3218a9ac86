/* SPDX-License-Identifier: Apache-2.0 */
/* Linux itself as the model: an address space is a process that does what it is told and reports what it sees. */
#ifndef SBX_TESTS_UNIT_KVM_MEM_ORACLE_H
#define SBX_TESTS_UNIT_KVM_MEM_ORACLE_H

#include <stdint.h>

#include "platform/platform.h"

#define ORACLE_BASE 0x200000000000ull /* nobody else: the address sanitizer has what is below 0x10007fff8000 */
#define ORACLE_PAGES 96u
#define ORACLE_MAX 4u /* address spaces */

/* What an access of a page gives. */
struct oracle_page {
	int sig, code; /* 0: it was read */
	uint64_t word; /* its first eight bytes */
};

/* Makes the first one. */
void oracle_start(void);
void oracle_end(void);
/* The result of the op done in the address space @i: 0 or -errno. */
int oracle_apply(unsigned i, const struct aspace_op *op);
/* Writes @byte to @addr as the program would: 0, or the signal, with its code in *code. */
int oracle_write(unsigned i, uaddr_t addr, uint8_t byte, int *code);
/* @i forks, the child becomes @child. */
void oracle_fork(unsigned i, unsigned child);
void oracle_exit(unsigned i);
/* All pages as @i sees them. */
const struct oracle_page *oracle_look(unsigned i);

#endif
