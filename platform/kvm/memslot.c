/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <linux/kvm.h>
#include <sys/ioctl.h>

#include "platform/kvm/machine.h"
#include "platform/kvm/mem.h"

int kvm_memslot_add(struct platform *p, unsigned slot, gpa_t gpa, uint64_t len, void *host)
{
	struct kvm_userspace_memory_region r = {
		.slot = slot,
		.guest_phys_addr = gpa,
		.memory_size = len,
		.userspace_addr = (uintptr_t)host,
	};

	return ioctl(p->vm_fd, KVM_SET_USER_MEMORY_REGION, &r) < 0 ? -errno : 0;
}
