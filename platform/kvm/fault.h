/* SPDX-License-Identifier: Apache-2.0 */
/* Filling pages in (fault.c): for the guest's faults, and for copies to and from its memory. */
#ifndef SBX_PLATFORM_KVM_FAULT_H
#define SBX_PLATFORM_KVM_FAULT_H

#include "platform/kvm/pagetable.h"

#define KFAULT_READ 1u
#define KFAULT_WRITE 2u
#define KFAULT_EXEC 4u

/*
 * Makes the page of @addr accessible as asked (one of KFAULT_*). 0, or
 *   -ENXIO   nothing is mapped there
 *   -EACCES  the mapping forbids it
 *   -EFAULT  behind the end of the object
 *   -ENOMEM  the sandbox has no memory left
 */
int kfault_fill(struct aspace *as, uaddr_t addr, unsigned access);

/* Does @prot allow the access? Whatever may be written or executed can be read. */
bool kfault_allowed(int prot, unsigned access);

#endif
