/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The VM and its vCPUs as they are before the first instruction. The order of the settings of a vCPU matters: CPUID,
 * special registers, XCR0, MSRs. There is no interrupt controller, so that hlt comes out to us. The guest sees Linux's
 * selectors, no port, no 32-bit code, no hypervisor, and no processor state that is not kept over a switch.
 */
#include "platform/kvm/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/host/file.h"
#include "platform/kvm/kvm.h"
#include "platform/kvm/monitor.h"
#include "platform/kvm/vdso.h"

#define CR0_LONG 0x80050033ull /* PG AM WP NE ET MP PE */
#define CR4_PAE        (1ull << 5)
#define CR4_OSFXSR     (1ull << 9)
#define CR4_OSXMMEXCPT (1ull << 10)
#define CR4_UMIP       (1ull << 11)
#define CR4_FSGSBASE   (1ull << 16)
#define CR4_OSXSAVE    (1ull << 18)
#define CR4_SMEP       (1ull << 20)
#define EFER_LONG      0xd01ull /* NXE LMA LME SCE */

#define CPUID7_EBX_INVPCID (1u << 10)

#define XCR0_ALLOWED 0xe7ull /* x87, SSE, AVX, AVX-512: what fits the area without asking */
#define XCR0_AVX     4ull
#define XCR0_AVX512  0xe0ull

#define MSR_STAR    0xc0000081u
#define MSR_LSTAR   0xc0000082u
#define MSR_CSTAR   0xc0000083u
#define MSR_FMASK   0xc0000084u
#define MSR_TSC_AUX 0xc0000103u

static int dev_kvm = -1;

int kvm_prepare(struct sbx_err *err)
{
	kvdso_prepare();
	dev_kvm = host_open("/dev/kvm", O_RDWR | O_CLOEXEC, 0);
	return dev_kvm < 0 ? sbx_fail(err, dev_kvm, "open /dev/kvm") : 0;
}

static struct kvm_cpuid_entry2 *cpuid_find(struct platform *p, uint32_t leaf, uint32_t index)
{
	for (uint32_t i = 0; i < p->cpuid.nent; i++)
		if (p->cpuid.e[i].function == leaf && p->cpuid.e[i].index == index)
			return &p->cpuid.e[i];
	return NULL;
}

#define BIT(n) (1u << (n))

/* Features of the host that the guest is not to see: their state is not kept, their registers are not there, or they
 * would only help to watch the neighbours. */
static const struct {
	uint32_t leaf, index, eax, ebx, ecx, edx;
} hidden[] = {
	{ .leaf = 1,
	  /* HYPERVISOR, TSC_DEADLINE, X2APIC, PDCM, TM2, EIST, SMX, VMX, DS_CPL, MONITOR, DTES64 */
	  .ecx = BIT(31) | BIT(24) | BIT(21) | BIT(15) | BIT(8) | BIT(7) | BIT(6) | BIT(5) | BIT(4) | BIT(3) | BIT(2),
	  .edx = BIT(21) /* DS */ },
	{ .leaf = 7,
	  /* PT, RDT_A, MPX, PQM, RTM, HLE, SGX */
	  .ebx = BIT(25) | BIT(15) | BIT(14) | BIT(12) | BIT(11) | BIT(4) | BIT(2),
	  /* PKS, SGX_LC, ENQCMD, KL, TME, SHSTK, WAITPKG, OSPKE, PKU */
	  .ecx = BIT(31) | BIT(30) | BIT(29) | BIT(23) | BIT(13) | BIT(7) | BIT(5) | BIT(4) | BIT(3),
	  /* AMX_INT8, AMX_TILE, AMX_BF16, IBT, ARCH_LBR, PCONFIG, TSX_FORCE_ABORT, RTM_ALWAYS_ABORT, UINTR */
	  .edx = BIT(25) | BIT(24) | BIT(22) | BIT(20) | BIT(19) | BIT(18) | BIT(13) | BIT(11) | BIT(5) },
	{ .leaf = 7,
	  .index = 1,
	  /* MSRLIST, LAM, HRESET, AMX_FP16, LKGS, FRED */
	  .eax = BIT(27) | BIT(26) | BIT(22) | BIT(21) | BIT(18) | BIT(17),
	  /* APX, AVX10, CET_SSS, USER_MSR, UTMR, AMX_COMPLEX */
	  .edx = BIT(21) | BIT(19) | BIT(18) | BIT(15) | BIT(13) | BIT(8) },
	/* XFD; the supervisor's states */
	{ .leaf = 0xd, .index = 1, .eax = BIT(4), .ecx = UINT32_MAX, .edx = UINT32_MAX },
	{ .leaf = 0x80000001,
	  /* MWAITX, PERFCTR_LLC, _NB, _CORE, LWP, WDT, SKINIT, IBS, SVM */
	  .ecx = BIT(29) | BIT(28) | BIT(24) | BIT(23) | BIT(15) | BIT(13) | BIT(12) | BIT(10) | BIT(2) },
};

/* Leaves it does not get: counters, RDT, SGX, trace, key locker, branch records, AMX, AVX10, SVM, IBS, LWP, SEV. */
static const uint32_t no_leaf[] = { 0xa,  0xf,  0x10, 0x12,       0x14,       0x19,       0x1b,       0x1c,      0x1d,
				    0x1e, 0x20, 0x23, 0x24,       0x8000000a, 0x8000001b, 0x8000001c, 0x8000001f,
				    0x80000020, 0x80000022 };

/* False: the guest does not get this entry at all. */
static bool cpuid_filter(struct platform *p, struct kvm_cpuid_entry2 *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(no_leaf); i++)
		if (e->function == no_leaf[i])
			return false;
	for (size_t i = 0; i < ARRAY_SIZE(hidden); i++) {
		if (e->function != hidden[i].leaf || e->index != hidden[i].index)
			continue;
		e->eax &= ~hidden[i].eax;
		e->ebx &= ~hidden[i].ebx;
		e->ecx &= ~hidden[i].ecx;
		e->edx &= ~hidden[i].edx;
	}
	if (e->function == 7 && e->index == 0)
		e->eax = MIN(e->eax, 1u); /* further subleaves tell of MSRs */
	else if (e->function == 7)
		return e->index == 1;
	if (e->function == 0xd && e->index == 0) {
		e->eax &= (uint32_t)p->fpu.xfeatures;
		e->edx = 0;
		e->ecx = p->fpu.size;
	} else if (e->function == 0xd && e->index > 1) {
		return e->index < 64 && p->fpu.xfeatures >> e->index & 1;
	}
	return (e->function & 0xf0000000) != 0x40000000;
}

/* XCR0, and where its parts lie in the standard area. */
static void find_xstate(struct platform *p)
{
	const struct kvm_cpuid_entry2 *d = cpuid_find(p, 0xd, 0);
	uint32_t size = FPU_HEADER, mxcsr_mask;
	uint64_t xcr0;
	uint8_t fx[512] __attribute__((aligned(16)));

	xcr0 = d ? ((uint64_t)d->edx << 32 | d->eax) & XCR0_ALLOWED : 3;
	if (!(xcr0 & XCR0_AVX))
		xcr0 &= 3;
	if ((xcr0 & XCR0_AVX512) != XCR0_AVX512)
		xcr0 &= ~XCR0_AVX512;
	xcr0 |= 3;
	for (uint32_t i = 2; i < 63; i++) {
		const struct kvm_cpuid_entry2 *e = xcr0 >> i & 1 ? cpuid_find(p, 0xd, i) : NULL;

		if (e && e->eax + e->ebx > size && e->eax + e->ebx <= KVM_XSAVE_AREA - FPU_MAGIC2_SIZE)
			size = e->eax + e->ebx;
	}
	memset(fx, 0, sizeof(fx));
	__asm__ volatile("fxsave64 %0" : "=m"(fx));
	memcpy(&mxcsr_mask, fx + 28, sizeof(mxcsr_mask));
	fpu_layout_init(&p->fpu, size, xcr0, mxcsr_mask);
}

static int cpuid_init(struct platform *p, struct sbx_err *err)
{
	const struct kvm_cpuid_entry2 *e;
	struct kvm_cpuid_entry2 *leaf7;
	uint32_t n = 0;
	long r;

	p->cpuid.nent = KVM_CPUID_MAX;
	r = HOSTCALL(SYS_ioctl, p->kvm_fd, KVM_GET_SUPPORTED_CPUID, &p->cpuid);
	if (r < 0)
		return sbx_fail(err, (int)r, "kvm: CPUID");
	find_xstate(p);
	e = cpuid_find(p, 0x80000008, 0);
	p->phys_bits = e && (e->eax & 0xff) >= 36 ? e->eax & 0xff : 36;
	for (uint32_t i = 0; i < p->cpuid.nent; i++)
		if (cpuid_filter(p, &p->cpuid.e[i]))
			p->cpuid.e[n++] = p->cpuid.e[i];
	p->cpuid.nent = n;
	/* Of ring 0 only. Where the host shadows page tables it is KVM that executes it, and KVM asks for no ring. */
	leaf7 = cpuid_find(p, 7, 0);
	if (leaf7)
		leaf7->ebx &= ~CPUID7_EBX_INVPCID;
	return 0;
}

static long check_cap(const struct platform *p, long cap)
{
	return HOSTCALL(SYS_ioctl, p->kvm_fd, KVM_CHECK_EXTENSION, cap);
}

int kvm_create_vm(struct platform *p, struct sbx_err *err)
{
	struct kvm_enable_cap quirks = {
		.cap = KVM_CAP_DISABLE_QUIRKS2, .args = { KVM_X86_QUIRK_FIX_HYPERCALL_INSN }
	};
	long fd = HOSTCALL(SYS_ioctl, p->kvm_fd, KVM_CREATE_VM, 0);

	if (fd < 0)
		return sbx_fail(err, (int)fd, "kvm: create a VM");
	/* Or KVM writes into the guest's text when it calls the hypervisor wrongly. Older hosts cannot. */
	(void)HOSTCALL(SYS_ioctl, fd, KVM_ENABLE_CAP, &quirks);
	return (int)fd;
}

int kvm_machine_open(struct platform *p, struct sbx_err *err)
{
	long r;

	if (dev_kvm < 0 && kvm_prepare(err) < 0)
		return err->code;
	p->kvm_fd = dev_kvm;
	dev_kvm = -1;
	if (HOSTCALL(SYS_ioctl, p->kvm_fd, KVM_GET_API_VERSION) != KVM_API_VERSION)
		return sbx_fail(err, -ENOTSUP, "kvm: unknown API version");
	r = check_cap(p, KVM_CAP_SYNC_REGS);
	if (r < 0 || !(r & KVM_SYNC_X86_REGS) || !(r & KVM_SYNC_X86_EVENTS) ||
	    check_cap(p, KVM_CAP_IMMEDIATE_EXIT) <= 0 || check_cap(p, KVM_CAP_XCRS) <= 0 ||
	    check_cap(p, KVM_CAP_XSAVE) <= 0 || check_cap(p, KVM_CAP_VCPU_EVENTS) <= 0)
		return sbx_fail(err, -ENOTSUP, "kvm: this host's KVM is too old");
	r = check_cap(p, KVM_CAP_XSAVE2);
	if (r > (long)KVM_XSAVE_AREA)
		return sbx_fail(err, -ENOTSUP, "kvm: the processor's state does not fit");
	r = HOSTCALL(SYS_ioctl, p->kvm_fd, KVM_GET_VCPU_MMAP_SIZE, 0);
	if (r < (long)sizeof(struct kvm_run))
		return sbx_fail(err, r < 0 ? (int)r : -EINVAL, "kvm: size of a vCPU");
	p->run_size = (size_t)r;
	r = cpuid_init(p, err);
	if (r < 0)
		return (int)r;
	p->vm_fd = kvm_create_vm(p, err);
	return p->vm_fd < 0 ? p->vm_fd : 0;
}

void kvm_machine_close(struct platform *p)
{
	host_close(p->vm_fd);
	host_close(p->kvm_fd);
	p->vm_fd = p->kvm_fd = -1;
}

void kmon_fill_idt(uint64_t *idt)
{
	for (uint64_t v = 0; v < 256; v++) {
		uint64_t at = v == VEC_PF ? KMON(kmon_pf) : KMON(kmon_idt) + v;
		uint64_t dpl = v == VEC_BP || v == VEC_OF || v == VEC_INT80 ? 3 : 0;

		/* An interrupt gate on IST 1: the user's rsp is never used. */
		idt[2 * v] = (at & 0xffff) | (uint64_t)SEL_KERNEL_CS << 16 | 1ull << 32 | (0x8e00 | dpl << 13) << 32 |
			     (at >> 16 & 0xffff) << 48;
		idt[2 * v + 1] = at >> 32;
	}
}

void kmon_fill_gdt(uint8_t *page, uint64_t page_va, uint64_t stack_top)
{
	uint64_t *gdt = (uint64_t *)page, tss_va = page_va + KMON_TSS;
	uint8_t *tss = page + KMON_TSS;
	const uint16_t no_ports = 0x68; /* the I/O bitmap begins beyond the limit */

	gdt[2] = 0x00af9b000000ffffull;
	gdt[3] = 0x00cf93000000ffffull;
	gdt[5] = 0x00cff3000000ffffull; /* 4, 32-bit code, stays empty */
	gdt[6] = 0x00affb000000ffffull;
	gdt[8] = 0x67 | (tss_va & 0xffffff) << 16 | 0x8bull << 40 | (tss_va >> 24 & 0xff) << 56;
	gdt[9] = tss_va >> 32;
	memcpy(tss + 4, &stack_top, 8);
	for (unsigned i = 0; i < 7; i++)
		memcpy(tss + 0x24 + 8 * i, &stack_top, 8);
	memcpy(tss + 0x66, &no_ports, 2);
}

static struct kvm_segment segment(uint16_t sel, uint8_t type, uint8_t dpl, bool code64)
{
	return (struct kvm_segment){ .limit = UINT32_MAX, .selector = sel, .type = type, .present = 1, .dpl = dpl,
				     .db = !code64, .s = 1, .l = code64, .g = 1 };
}

void kvcpu_segments(struct kvm_sregs *s, bool user)
{
	s->cs = user ? segment(SEL_USER_CS, 11, 3, true) : segment(SEL_KERNEL_CS, 11, 0, true);
	s->ss = user ? segment(SEL_USER_DS, 3, 3, false) : segment(SEL_KERNEL_DS, 3, 0, false);
}

static int set_sregs(struct platform *p, struct kvcpu *c)
{
	const struct kvm_cpuid_entry2 *e = cpuid_find(p, 7, 0);
	uint64_t page_va = c->stack_top - PAGE_SIZE - KMON_STACK_PAGE;
	struct kvm_sregs s;
	long r = HOSTCALL(SYS_ioctl, c->fd, KVM_GET_SREGS, &s);

	if (r < 0)
		return (int)r;
	s.cr0 = CR0_LONG;
	s.cr3 = c->cr3;
	s.cr4 = CR4_PAE | CR4_OSFXSR | CR4_OSXMMEXCPT | CR4_OSXSAVE;
	if (e && e->ebx & 1u << 0)
		s.cr4 |= CR4_FSGSBASE;
	if (e && e->ebx & 1u << 7)
		s.cr4 |= CR4_SMEP;
	if (e && e->ecx & 1u << 2)
		s.cr4 |= CR4_UMIP;
	s.efer = EFER_LONG;
	kvcpu_segments(&s, true);
	s.ds = s.es = s.fs = s.gs = s.ss;
	s.ds.selector = s.es.selector = s.fs.selector = s.gs.selector = 0;
	s.tr = (struct kvm_segment){ .base = page_va + KMON_TSS, .limit = 0x67, .selector = SEL_TSS, .type = 11,
				     .present = 1 };
	s.ldt = (struct kvm_segment){ .unusable = 1, .type = 2 };
	s.gdt.base = page_va;
	s.gdt.limit = 0x4f;
	s.idt.base = KVM_MON_IDT;
	s.idt.limit = 0xfff;
	return (int)HOSTCALL(SYS_ioctl, c->fd, KVM_SET_SREGS, &s);
}

static int set_msrs(struct kvcpu *c)
{
	struct { /* as struct kvm_msrs */
		uint32_t nmsrs, pad;
		struct kvm_msr_entry e[4];
	} m = {
		.nmsrs = 4,
		.e = {
			{ .index = MSR_STAR, .data = 0x23ull << 48 | (uint64_t)SEL_KERNEL_CS << 32 },
			{ .index = MSR_LSTAR, .data = KVM_MON_TEXT },
			{ .index = MSR_CSTAR, .data = KVM_MON_TEXT },
			{ .index = MSR_FMASK, .data = RFLAGS_FMASK },
		},
	};
	long r = HOSTCALL(SYS_ioctl, c->fd, KVM_SET_MSRS, &m);

	if (r != 4)
		return r < 0 ? (int)r : -EINVAL;
	/* For the vDSO's getcpu; not every processor has it. */
	m.nmsrs = 1;
	m.e[0] = (struct kvm_msr_entry){ .index = MSR_TSC_AUX, .data = c->idx };
	(void)HOSTCALL(SYS_ioctl, c->fd, KVM_SET_MSRS, &m);
	return 0;
}

static int set_cpuid(struct platform *p, const struct kvcpu *c)
{
	struct kvm_cpuid_entry2 *e = cpuid_find(p, 1, 0);

	if (e)
		e->ebx = (e->ebx & 0xffffff) | c->idx << 24;
	for (uint32_t i = 0; i < p->cpuid.nent; i++)
		if (p->cpuid.e[i].function == 0xb || p->cpuid.e[i].function == 0x1f)
			p->cpuid.e[i].edx = c->idx;
	return (int)HOSTCALL(SYS_ioctl, c->fd, KVM_SET_CPUID2, &p->cpuid);
}

static bool tsc_is_host(const struct kvcpu *c)
{
	uint64_t zero = 0;
	struct kvm_device_attr a = { .group = KVM_VCPU_TSC_CTRL, .attr = KVM_VCPU_TSC_OFFSET,
				     .addr = (uint64_t)&zero };

	return HOSTCALL(SYS_ioctl, c->fd, KVM_SET_DEVICE_ATTR, &a) == 0;
}

int kvcpu_open(struct platform *p, int vm_fd, struct kvcpu *c, struct sbx_err *err)
{
	struct kvm_xcrs x = { .nr_xcrs = 1, .xcrs = { { .xcr = 0, .value = p->fpu.xfeatures } } };
	long r = HOSTCALL(SYS_ioctl, vm_fd, KVM_CREATE_VCPU, c->idx);

	c->p = p;
	if (r < 0)
		return sbx_fail(err, (int)r, "kvm: create vCPU %u", c->idx);
	c->fd = (int)r;
	r = HOSTCALL(SYS_mmap, NULL, p->run_size, PROT_READ | PROT_WRITE, MAP_SHARED, c->fd, 0);
	if (r < 0)
		return sbx_fail(err, (int)r, "kvm: map vCPU %u", c->idx);
	c->run = (struct kvm_run *)r;
	r = set_cpuid(p, c);
	if (r == 0)
		r = set_sregs(p, c);
	if (r == 0)
		r = HOSTCALL(SYS_ioctl, c->fd, KVM_SET_XCRS, &x);
	if (r == 0)
		r = set_msrs(c);
	if (r < 0)
		return sbx_fail(err, (int)r, "kvm: set up vCPU %u", c->idx);
	p->tsc_is_host = tsc_is_host(c) && (c->idx == 0 || p->tsc_is_host);
	c->run->kvm_valid_regs = KVM_SYNC_X86_REGS;
	c->cpl0 = false;
	return 0;
}

void kvcpu_close(struct kvcpu *c)
{
	if (c->run)
		HOSTCALL(SYS_munmap, c->run, c->p->run_size);
	host_close(c->fd);
	c->run = NULL;
	c->fd = -1;
}

int kvm_monitor_init(struct platform *p, struct sbx_err *err)
{
	p->text_page = kpage_alloc(p, KPAGE_ZERO | KPAGE_SYSTEM);
	p->idt_page = kpage_alloc(p, KPAGE_ZERO | KPAGE_SYSTEM);
	if (!p->text_page || !p->idt_page)
		return sbx_fail(err, -ENOMEM, "kvm: memory of the monitor");
	memcpy(kpage_ptr(p, p->text_page), kmon_start, (size_t)(kmon_end - kmon_start));
	kmon_fill_idt(kpage_ptr(p, p->idt_page));
	if (kpt_map_system(p, KVM_MON_TEXT, p->text_page, 0) < 0 ||
	    kpt_map_system(p, KVM_MON_IDT, p->idt_page, PTE_NX) < 0)
		return sbx_fail(err, -ENOMEM, "kvm: memory of the monitor");
	return 0;
}

int kvcpu_create(struct platform *p, unsigned idx, struct sbx_err *err)
{
	uint64_t va = KVM_MON_CPU(idx);
	struct kvcpu *c = calloc(1, sizeof(*c));

	if (!c)
		return sbx_fail(err, -ENOMEM, "kvm: vCPU %u", idx);
	p->vcpus[p->n_vcpus++] = c;
	c->p = p;
	c->idx = idx;
	c->fd = -1;
	c->stack_top = va + KMON_STACK_PAGE + PAGE_SIZE;
	c->cr3 = kpt_kernel_root(p);
	c->gdt_page = kpage_alloc(p, KPAGE_ZERO | KPAGE_SYSTEM);
	c->stack_page = kpage_alloc(p, KPAGE_ZERO | KPAGE_SYSTEM);
	if (!c->gdt_page || !c->stack_page || kpt_map_system(p, va, c->gdt_page, PTE_NX) < 0 ||
	    kpt_map_system(p, va + KMON_STACK_PAGE, c->stack_page, PTE_W | PTE_NX) < 0)
		return sbx_fail(err, -ENOMEM, "kvm: memory of vCPU %u", idx);
	c->stack = kpage_ptr(p, c->stack_page);
	kmon_fill_gdt(kpage_ptr(p, c->gdt_page), va, c->stack_top);
	return kvcpu_open(p, p->vm_fd, c, err);
}
