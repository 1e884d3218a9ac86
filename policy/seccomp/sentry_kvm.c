/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sentry's host calls when guests run in a virtual machine. VM and vCPUs were made before: their
 * fds can be used, no other can be had.
 */
#include <linux/kvm.h>
#include <signal.h>
#include <stddef.h>

#include "base/macros.h"
#include "policy/seccomp/rows.h"

static const struct seccomp_row rows[] = {
	/* Each system call of a guest is one of these: the first to be asked for. */
	ROW_IF(ioctl, "platform/kvm/vcpu.c: into the guest", 1, ARG(1, EQ, KVM_RUN)),
	ROW_IF(ioctl, "platform/kvm/vcpu.c: into ring 0, and the register dump at the end", 1,
	       ARG(1, EQ, KVM_GET_SREGS)),
	ROW_IF(ioctl, "platform/kvm/vcpu.c: what a kick has left undone", 1, ARG(1, EQ, KVM_GET_VCPU_EVENTS)),
	ROW_IF(ioctl, "platform/kvm/regs.c: a switch of contexts", 1, ARG(1, EQ, KVM_GET_XSAVE)),
	ROW_IF(ioctl, "platform/kvm/regs.c: a switch of contexts", 1, ARG(1, EQ, KVM_SET_XSAVE)),
	ROW_IF(ioctl, "platform/kvm/regs.c: the bases of fs and gs", 1, ARG(1, EQ, KVM_GET_MSRS)),
	ROW_IF(ioctl, "platform/kvm/regs.c: the bases of fs and gs", 1, ARG(1, EQ, KVM_SET_MSRS)),
	ROW_IF(ioctl, "platform/kvm/memslot.c: more of the window of guest memory", 1,
	       ARG(1, EQ, KVM_SET_USER_MEMORY_REGION)),
	ROW(fstatfs, "platform/kvm/kobj.c: is the file on a noexec mount"),
	ROW(process_vm_readv, "base/host/map.c: ourselves, where a file may have been cut meanwhile"),
	ROW(process_vm_writev, "base/host/map.c: ourselves, where a file may have been cut meanwhile"),
	ROW_IF(tgkill, "platform/kvm/vcpu.c: out of the guest", 1, ARG(2, EQ, SIGUSR1)),
	ROW(getpid, "platform/kvm/vcpu.c"),
	ROW(sched_yield, "platform/kvm/vcpu.c: another vCPU comes out of the guest"),
	ROW(gettid, "platform/kvm/run.c"),
	ROW(rt_sigreturn, "platform/kvm/run.c: the kick's handler"),
	ROW(rt_sigprocmask, "platform/kvm/run.c; base/host/thread.c"),
};

const struct seccomp_table seccomp_sentry_kvm = { "sentry_kvm", rows, ARRAY_SIZE(rows),
	                                          &seccomp_sentry_common, &rows[0] };
