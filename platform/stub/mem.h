/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of a stub by process_vm_readv(2) and process_vm_writev(2) through one of its threads, which must be one that
 * cannot end and give its number to another process. Obeys the page protection of the stub. */
#ifndef SBX_PLATFORM_STUB_MEM_H
#define SBX_PLATFORM_STUB_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Cuts [addr, addr + *n) at the end of guest memory: 0 or -EFAULT. */
int mem_clip(uint64_t addr, size_t *n);
/* The number of bytes copied, -EFAULT for none, -ESRCH. */
ssize_t mem_read(pid_t tid, uint64_t addr, void *buf, size_t n);
ssize_t mem_write(pid_t tid, uint64_t addr, const void *buf, size_t n);
/* Whole or nothing: 0, -EFAULT, -ESRCH. */
int mem_peek(pid_t tid, uint64_t addr, void *buf, size_t n);
int mem_poke(pid_t tid, uint64_t addr, const void *buf, size_t n);

#endif
