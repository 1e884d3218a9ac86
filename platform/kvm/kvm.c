/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kvm platform: guest code runs in ring 3 of a virtual machine, never in a host process. Its system calls and
 * faults come out of the VM to us; the host kernel sees KVM_RUN and nothing else of the guest.
 *
 *   monitor.S    all of ring 0          machine.c   the VM, CPUID, the first state of a vCPU
 *   selftest.c   what this host is like vcpu.c      into the guest and out, translations, the monitor's calls
 *   run.c        workers, run queue     trap.c      what a stop means
 *   ctx.c regs.c contexts, registers    kvm_priv.h  the border to the memory half: mem.c, pagetable.c, fault.c, ...
 *
 * A typical sequence: step() picks a context, run_one() gives up the lock, kvcpu_enter() sets rip to a stub of the
 * monitor and calls KVM_RUN; the guest's syscall ends at the monitor's hlt; decode() and ktrap_decode() make a trap of
 * it, tell() calls up->trap, which answers by kvm_ctx_return(); step() goes on with the same context.
 */
#include "platform/kvm/kvm.h"

#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/host/file.h"
#include "base/host/sched.h"
#include "platform/kvm/mem.h"
#include "platform/kvm/vdso.h"

#define VDSO_AT (PLATFORM_RESERVED_START + 0x200000)

static void fini(struct platform *p)
{
	kvm_workers_end(p);
	for (unsigned i = 0; i < p->n_vcpus; i++) {
		kvcpu_close(p->vcpus[i]);
		free(p->vcpus[i]);
	}
	free(p->vdso);
	kmem_fini(p);
	kvm_machine_close(p);
	free(p);
}

/* The vDSO's pages for all address spaces to come, when the guest can tell the time by its own counter. */
static int setup_vdso(struct platform *p, struct sbx_err *err)
{
	size_t len = (size_t)(kvdso_image_end - kvdso_image);
	gpa_t pages[1 + KVDSO_IMAGE_PAGES];
	int r;

	static_assert(sizeof(struct kvdso_data) <= PAGE_SIZE, "the page in front of the vDSO");
	if (!p->tsc_is_host || len > KVDSO_IMAGE_PAGES * PAGE_SIZE)
		return 0;
	for (unsigned i = 0; i < ARRAY_SIZE(pages); i++) {
		size_t at = i ? (i - 1) * PAGE_SIZE : len;

		pages[i] = kpage_alloc(p, KPAGE_ZERO);
		if (!pages[i])
			return sbx_fail(err, -ENOMEM, "kvm: memory of the vDSO");
		if (at < len)
			memcpy(kpage_ptr(p, pages[i]), kvdso_image + at, MIN(len - at, (size_t)PAGE_SIZE));
	}
	r = kaspace_set_vdso(p, VDSO_AT, pages, 1, ARRAY_SIZE(pages));
	if (r < 0)
		return sbx_fail(err, r, "kvm: memory of the vDSO");
	p->vdso = calloc(1, sizeof(*p->vdso));
	if (!p->vdso)
		return sbx_fail(err, -ENOMEM, "kvm: memory of the vDSO");
	/* The number of a vCPU is not that of a processor of the host, which getcpu(2) tells. */
	kvdso_init(p->vdso, kpage_ptr(p, pages[0]), false);
	return 0;
}

static int setup(struct platform *p, struct sbx_err *err)
{
	unsigned n = MIN(host_cpu_count(), KVM_VCPUS_MAX);
	int r = kvm_machine_open(p, err);

	if (r == 0)
		r = kvm_selftest(p, err);
	if (r == 0)
		r = kmem_init(p, err);
	if (r == 0)
		r = kvm_monitor_init(p, err);
	for (unsigned i = 0; r == 0 && i < n; i++)
		r = kvcpu_create(p, i, err);
	if (r == 0) {
		p->me = p->vcpus[0];
		r = setup_vdso(p, err);
	}
	return r == 0 ? kvm_workers_start(p, err) : r;
}

static int kvm_start(const struct platform_config *cfg, const struct platform_up *up, void *arg,
		     struct platform **ret, struct sbx_err *err) LOCK_UNCHECKED
{
	struct platform *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return sbx_fail(err, -ENOMEM, "kvm");
	/* One thread at a time is in our code: an arena for each would be memory for nothing. */
	mallopt(M_ARENA_MAX, 1);
	p->cfg = *cfg;
	p->up = up;
	p->up_arg = arg;
	p->kvm_fd = p->vm_fd = -1;
	list_init(&p->runq);
	/* Held by whoever is in our code: until run(), and after it, by the caller. */
	sbx_mutex_lock(&p->lock);
	r = setup(p, err);
	if (r < 0) {
		fini(p);
		return r;
	}
	host_close(p->kvm_fd); /* no other VM for whoever takes over this process */
	p->kvm_fd = -1;
	p->info = (struct platform_info){ .name = "kvm" };
	snprintf(p->info.note, sizeof(p->info.note), "%u vCPUs%s%s%s", p->n_vcpus,
		 p->shadow ? "; this host shadows page tables: slow" : "",
		 p->syscall_cpl3 ? "; a system call leaves the guest twice: slow" : "",
		 p->vdso ? "" : "; clocks cost a system call");
	*ret = p;
	return 0;
}

static void kvm_info(const struct platform *p, struct platform_info *info)
{
	*info = p->info;
}

static uaddr_t kvm_vdso(const struct platform *p)
{
	return p->vdso ? VDSO_AT + PAGE_SIZE : 0;
}

const struct platform_ops kvm_platform_ops = {
	.name = "kvm",
	.by_name = true,
	.in_process = true,
	.prepare = kvm_prepare,
	.start = kvm_start,
	.info = kvm_info,
	.run = kvm_run_loop,
	.stop = kvm_stop,
	.wake = kvm_wake,
	.destroy = fini,
	.ctx_create = kvm_ctx_create,
	.ctx_clone = kvm_ctx_clone,
	.ctx_exec = kvm_ctx_exec,
	.ctx_destroy = kvm_ctx_destroy,
	.ctx_return = kvm_ctx_return,
	.ctx_resume = kvm_ctx_resume,
	.ctx_interrupt = kvm_ctx_interrupt,
	.hold = kvm_hold,
	.ctx_parked = kvm_ctx_parked,
	.ctx_regs_get = kvm_ctx_regs_get,
	.ctx_regs_set = kvm_ctx_regs_set,
	.ctx_fpu_get = kvm_ctx_fpu_get,
	.ctx_fpu_set = kvm_ctx_fpu_set,
	.ctx_arch_prctl = kvm_ctx_arch_prctl,
	.aspace_apply = kvm_aspace_apply,
	.aspace_cut = kvm_aspace_cut,
	.aspace_get = kvm_aspace_get,
	.aspace_put = kvm_aspace_put,
	.read = kvm_aspace_read,
	.write = kvm_aspace_write,
	.vdso = kvm_vdso,
};
