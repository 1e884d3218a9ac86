/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the places in monitor.S, and the selectors and tables that go with it. */
#ifndef SBX_PLATFORM_KVM_MONITOR_H
#define SBX_PLATFORM_KVM_MONITOR_H

#include <stdint.h>

#include "platform/kvm/kvm_priv.h"

extern const uint8_t kmon_start[], kmon_sysret[], kmon_iret[], kmon_cr3[], kmon_cr3_end[], kmon_root[], kmon_zap[],
	kmon_pf[], kmon_pf_end[], kmon_idt[], kmon_end[];

/* Where a place of the monitor is in the guest. */
#define KMON(place) (KVM_MON_TEXT + (uint64_t)((place) - kmon_start))

#define SEL_KERNEL_CS 0x10
#define SEL_KERNEL_DS 0x18
#define SEL_USER_DS   0x2b
#define SEL_USER_CS   0x33
#define SEL_TSS       0x40

#define KMON_TSS        0x100u /* in the page of the GDT */
#define KMON_STACK_PAGE 0x2000u /* from KVM_MON_CPU() */

#define VEC_DE 0
#define VEC_DB 1
#define VEC_BP 3
#define VEC_OF 4
#define VEC_BR 5
#define VEC_UD 6
#define VEC_DF 8
#define VEC_CSO 9
#define VEC_TS 10
#define VEC_NP 11
#define VEC_SS 12
#define VEC_GP 13
#define VEC_PF 14
#define VEC_MF 16
#define VEC_AC 17
#define VEC_XM 19
#define VEC_CP 21
#define VEC_INT80 0x80

/* The exception stack from its top down, as the processor and kmon_pf leave it. */
enum kmon_frame { KF_SS = 1, KF_RSP, KF_RFLAGS, KF_CS, KF_RIP, KF_ERR, KF_RAX };

#define RFLAGS_USER  0x244dd5ull /* ID AC NT OF DF TF and the arithmetic ones */
#define RFLAGS_FIXED 0x202ull
#define RFLAGS_TF    0x100ull
#define RFLAGS_FMASK 0x257fd5ull /* what the entry clears */

/* Fill in the tables of the monitor (machine.c): the IDT, and one vCPU's page of GDT and TSS. */
void kmon_fill_idt(uint64_t *idt);
void kmon_fill_gdt(uint8_t *page, uint64_t page_va, uint64_t stack_top);

#endif
