/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the names of modules do not tell: in a VM of its own, of 14 pages and for three entries, a program of three
 * instructions reads a page and makes a system call. Does the call raise CPL? Is the page still the old one after its
 * entry was changed from outside and cr3 loaded? Then the host shadows page tables and sees no change of ours.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/host/file.h"
#include "platform/kvm/kvm.h"
#include "platform/kvm/monitor.h"

#define GPA(page) (KVM_GPA_BASE + (uint64_t)(page) * PAGE_SIZE)
#define TABLE_BITS (PTE_P | PTE_W | PTE_A)

#define CODE_AT 0x10000u
#define DATA_AT 0x11000u
#define OLD     0x11
#define NEW     0x22

enum page { PML4, USER_PDPT, USER_PD, USER_PT, MON_PDPT, MON_PD, MON_PT, TEXT, IDT, GDT, STACK, CODE, DATA_OLD,
	    DATA_NEW, N_PAGES };

static uint8_t *page(uint8_t *mem, enum page i)
{
	return mem + (uint64_t)i * PAGE_SIZE;
}

static void set_entry(uint8_t *mem, enum page table, unsigned i, enum page to, uint64_t bits)
{
	((uint64_t *)page(mem, table))[i] = GPA(to) | bits;
}

static void fill(uint8_t *mem, uint64_t stack_top)
{
	/* mov al, [DATA_AT]; syscall; jmp back */
	static const uint8_t code[] = { 0x8a, 0x04, 0x25, 0x00, 0x10, 0x01, 0x00, 0x0f, 0x05, 0xeb, 0xf5 };
	const uint64_t user = PTE_P | PTE_U | PTE_A;

	set_entry(mem, PML4, 0, USER_PDPT, TABLE_BITS | PTE_U);
	set_entry(mem, USER_PDPT, 0, USER_PD, TABLE_BITS | PTE_U);
	set_entry(mem, USER_PD, 0, USER_PT, TABLE_BITS | PTE_U);
	set_entry(mem, USER_PT, CODE_AT / PAGE_SIZE, CODE, user);
	set_entry(mem, USER_PT, DATA_AT / PAGE_SIZE, DATA_OLD, user | PTE_NX);
	set_entry(mem, PML4, 511, MON_PDPT, TABLE_BITS);
	set_entry(mem, MON_PDPT, 0, MON_PD, TABLE_BITS);
	set_entry(mem, MON_PD, 0, MON_PT, TABLE_BITS);
	set_entry(mem, MON_PT, 0, TEXT, PTE_P | PTE_A);
	set_entry(mem, MON_PT, 1, IDT, PTE_P | PTE_A | PTE_NX);
	set_entry(mem, MON_PT, 0x100, GDT, PTE_P | PTE_A | PTE_NX);
	set_entry(mem, MON_PT, 0x100 + KMON_STACK_PAGE / PAGE_SIZE, STACK, PTE_P | PTE_W | PTE_A | PTE_D | PTE_NX);
	memcpy(page(mem, TEXT), kmon_start, PAGE_SIZE);
	kmon_fill_idt((uint64_t *)page(mem, IDT));
	kmon_fill_gdt(page(mem, GDT), KVM_MON_CPU(0), stack_top);
	memcpy(page(mem, CODE), code, sizeof(code));
	page(mem, DATA_OLD)[0] = OLD;
	page(mem, DATA_NEW)[0] = NEW;
}

/* Runs to the system call. What the program read, or -1. */
static int run(struct kvcpu *c, struct kvm_regs *regs, bool *cpl3)
{
	struct kevent ev;

	do {
		__atomic_store_n(&c->where, KVCPU_GUEST, __ATOMIC_SEQ_CST);
		kvcpu_enter(c, GPA(PML4), regs, &ev);
	} while (ev.kind == KEV_KICKED);
	*cpl3 = ev.kind == KEV_VECTOR && regs->rip == KVM_MON_TEXT;
	if (!*cpl3 && ev.kind != KEV_SYSCALL)
		return -1;
	regs->rip = regs->rcx;
	regs->rflags = regs->r11;
	return (int)(regs->rax & 0xff);
}

static int examine(struct platform *p, int vm_fd, uint8_t *mem, struct sbx_err *err)
{
	const struct kvm_userspace_memory_region slot = {
		.guest_phys_addr = KVM_GPA_BASE, .memory_size = N_PAGES * PAGE_SIZE, .userspace_addr = (uint64_t)mem,
	};
	struct kvm_regs regs = { .rip = CODE_AT, .rflags = RFLAGS_FIXED };
	struct kvcpu c = { .p = p, .fd = -1, .cr3 = GPA(PML4), .stack = page(mem, STACK),
			   .stack_top = KVM_MON_CPU(0) + KMON_STACK_PAGE + PAGE_SIZE };
	bool again;
	int r, was, is;

	fill(mem, c.stack_top);
	r = (int)HOSTCALL(SYS_ioctl, vm_fd, KVM_SET_USER_MEMORY_REGION, &slot);
	if (r < 0)
		return sbx_fail(err, r, "kvm: memory of the self-test");
	r = kvcpu_open(p, vm_fd, &c, err);
	if (r < 0) {
		kvcpu_close(&c);
		return r;
	}
	was = run(&c, &regs, &p->syscall_cpl3);
	set_entry(mem, USER_PT, DATA_AT / PAGE_SIZE, DATA_NEW, PTE_P | PTE_U | PTE_A | PTE_NX);
	c.flush = 1;
	is = was == OLD ? run(&c, &regs, &again) : -1;
	kvcpu_close(&c);
	if (was != OLD || (is != OLD && is != NEW))
		return sbx_fail(err, -EIO, "kvm: the self-test failed (%d, %d)", was, is);
	p->shadow = is == OLD;
	return 0;
}

int kvm_selftest(struct platform *p, struct sbx_err *err)
{
	int vm_fd = kvm_create_vm(p, err), r;
	long mem;

	if (vm_fd < 0)
		return vm_fd;
	mem = HOSTCALL(SYS_mmap, NULL, N_PAGES * PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		       0);
	if (mem < 0) {
		host_close(vm_fd);
		return sbx_fail(err, (int)mem, "kvm: memory of the self-test");
	}
	r = examine(p, vm_fd, (uint8_t *)mem, err);
	host_close(vm_fd);
	HOSTCALL(SYS_munmap, mem, N_PAGES * PAGE_SIZE);
	return r;
}
