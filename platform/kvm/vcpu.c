/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Into the guest and out again. A vCPU that stopped in the monitor (cpl0) goes on by one of its stubs, chosen by rip:
 *
 *   kmon_sysret  nothing to forget, same root, and rcx, r11 are what sysret will load: the usual way of a system call
 *   kmon_iret    the rest, by a frame that we write on the exception stack
 *   kmon_cr3     the same with a load of cr3 before: another address space, or a flush of the TLB
 *
 * A vCPU that was kicked out of user code (not cpl0) goes on by its registers alone; to take a stub it is first put
 * into ring 0, which costs two more settings.
 *
 * Translations. A worker says GUEST, then takes its flush flag; kvcpu_shootdown() sets the flag, then looks who is
 * GUEST: one of the two sees the other. Who is in the guest is kicked out, and comes to the flag before he goes back.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/log.h"
#include "platform/kvm/kvm.h"
#include "platform/kvm/monitor.h"

static inline long kvm_run(const struct kvcpu *c)
{
	return HOSTCALL(SYS_ioctl, c->fd, KVM_RUN, 0);
}

static inline uint64_t *frame_word(const struct kvcpu *c, enum kmon_frame what)
{
	return (uint64_t *)(c->stack + PAGE_SIZE) - what;
}

/* By the worker himself or under the lock, but others look without: uses(). */
static inline void set_root(struct kvcpu *c, gpa_t root)
{
	__atomic_store_n(&c->cr3, root, __ATOMIC_RELAXED);
}

/* Right before an entry: the special registers have the bases of fs and gs, which must not be older than the MSRs. */
static void to_ring0(struct kvcpu *c)
{
	struct kvm_sregs *s = &c->run->s.regs.sregs;

	if (likely(c->cpl0 && !c->root_gone))
		return;
	HOSTCALL(SYS_ioctl, c->fd, KVM_GET_SREGS, s);
	kvcpu_segments(s, false);
	s->cr3 = c->cr3;
	c->run->kvm_dirty_regs |= KVM_SYNC_X86_SREGS;
	c->cpl0 = true;
	c->root_gone = false;
}

/* Chooses the way in. True: by kmon_cr3. */
static bool prepare(struct kvcpu *c, gpa_t root, const struct kvm_regs *user)
{
	struct kvm_regs *g = &c->run->s.regs.regs;
	bool load = __atomic_exchange_n(&c->flush, 0, __ATOMIC_SEQ_CST) || c->cr3 != root;

	*g = *user;
	c->run->kvm_dirty_regs |= KVM_SYNC_X86_REGS;
	if (load)
		to_ring0(c);
	if (!c->cpl0)
		return false;
	/* With TF sysret traps before the next instruction, and would do so for ever. */
	if (likely(!load && user->rcx == user->rip && user->r11 == user->rflags && !(user->rflags & RFLAGS_TF))) {
		g->rip = KMON(kmon_sysret);
		return false;
	}
	*frame_word(c, KF_SS) = SEL_USER_DS;
	*frame_word(c, KF_RSP) = user->rsp;
	*frame_word(c, KF_RFLAGS) = user->rflags;
	*frame_word(c, KF_CS) = SEL_USER_CS;
	*frame_word(c, KF_RIP) = user->rip;
	g->rip = KMON(kmon_iret);
	g->rsp = c->stack_top - KF_RIP * sizeof(uint64_t);
	g->rflags = 2;
	if (load) {
		*frame_word(c, KF_ERR) = user->rax;
		g->rip = KMON(kmon_cr3);
		g->rsp -= sizeof(uint64_t);
		g->rax = root;
	}
	return load;
}

/*
 * An exception that KVM was about to deliver stays with the vCPU, which may run another context next, or the monitor.
 * It is taken away: a fault comes again with its instruction. A debug trap does not, so it is an event.
 */
static void take_exception(struct kvcpu *c, struct kevent *ev)
{
	struct kvm_vcpu_events *s = &c->run->s.regs.events;

	if (HOSTCALL(SYS_ioctl, c->fd, KVM_GET_VCPU_EVENTS, s) == 0 && s->exception.injected &&
	    s->exception.nr == VEC_DB) {
		ev->kind = KEV_VECTOR;
		ev->vec = VEC_DB;
	}
	memset(s, 0, sizeof(*s));
	c->run->kvm_dirty_regs |= KVM_SYNC_X86_EVENTS;
}

/* After an interrupted KVM_RUN. True: it is in the monitor on its way to a hlt, run it again. */
static bool interrupted(struct kvcpu *c, gpa_t root, bool load, struct kvm_regs *regs, struct kevent *ev)
{
	const struct kvm_regs *g = &c->run->s.regs.regs;

	__atomic_store_n(&c->run->immediate_exit, 0, __ATOMIC_SEQ_CST);
	if (g->rip >> 47 == 0) {
		take_exception(c, ev);
		*regs = *g;
		c->cpl0 = false;
		if (load)
			set_root(c, root);
		return false;
	}
	if (g->rip < KMON(kmon_sysret) || g->rip >= KMON(kmon_cr3_end))
		return true;
	/* On its way out, but no instruction of the guest has run: @regs are still what it has. */
	if (load && g->rip == KMON(kmon_cr3))
		__atomic_store_n(&c->flush, 1, __ATOMIC_SEQ_CST);
	else if (load)
		set_root(c, root);
	return false;
}

static bool has_error_code(unsigned vec)
{
	return vec == VEC_DF || (vec >= VEC_TS && vec <= VEC_PF) || vec == VEC_AC || vec == VEC_CP;
}

static void syscall_event(struct kvm_regs *regs, struct kevent *ev)
{
	regs->rip = regs->rcx;
	regs->rflags = regs->r11;
	ev->kind = KEV_SYSCALL;
}

/* What the hlt that it stopped at means. */
static void decode(const struct kvcpu *c, struct kvm_regs *regs, struct kevent *ev)
{
	uint64_t cs, vec;

	*regs = c->run->s.regs.regs;
	if (likely(regs->rip == KMON(kmon_sysret))) { /* behind the hlt of kmon_start */
		syscall_event(regs, ev);
		return;
	}
	vec = regs->rip - 1 - KMON(kmon_idt);
	if (regs->rip == KMON(kmon_pf_end)) {
		vec = VEC_PF;
		ev->cr2 = regs->rax;
		regs->rax = *frame_word(c, KF_RAX);
	}
	ev->kind = KEV_BROKEN;
	if (vec > 255)
		return;
	ev->vec = (unsigned)vec;
	if (has_error_code(ev->vec))
		ev->err = *frame_word(c, KF_ERR);
	cs = *frame_word(c, KF_CS);
	regs->rip = *frame_word(c, KF_RIP);
	regs->rflags = *frame_word(c, KF_RFLAGS);
	regs->rsp = *frame_word(c, KF_RSP);
	if (regs->rip == KVM_MON_TEXT) {
		/* At the entry: a host that does not raise CPL, or a debug trap that came one instruction late. */
		bool late = ev->vec == VEC_DB && (cs & 3) == 0;
		bool low = c->p->syscall_cpl3 && (ev->vec == VEC_PF || ev->vec == VEC_GP) && (cs & 3) == 3;

		if (late || low) {
			syscall_event(regs, ev);
			/* A jump to the entry looks the same there: r11 is what the guest likes. */
			kregs_sanitise(regs);
			return;
		}
	}
	if ((cs & 3) == 3)
		ev->kind = KEV_VECTOR;
}

void kvcpu_enter(struct kvcpu *c, gpa_t root, struct kvm_regs *regs, struct kevent *ev)
{
	bool load = prepare(c, root, regs);
	long r;

	*ev = (struct kevent){ .kind = KEV_KICKED };
	do {
		r = kvm_run(c);
	} while (unlikely(r == -EINTR || r == -EAGAIN) && interrupted(c, root, load, regs, ev));
	/* At a hlt's door there is no way back: a call or a fault of the guest would be lost. */
	if (unlikely(r == -ENOMEM) && !interrupted(c, root, load, regs, ev)) {
		ev->kind = KEV_NO_MEMORY;
		r = -EINTR;
	}
	if (likely(r == 0 && c->run->exit_reason == KVM_EXIT_HLT)) {
		c->cpl0 = true;
		if (load)
			set_root(c, root);
		decode(c, regs, ev);
	} else if (r == -EFAULT && c->run->s.regs.regs.rip >> 47 == 0) {
		take_exception(c, ev);
		ev->kind = KEV_MEMORY;
		*regs = c->run->s.regs.regs;
		c->cpl0 = false;
		if (load)
			set_root(c, root);
	} else if (r != -EINTR && r != -EAGAIN) {
		ev->kind = KEV_BROKEN;
		ev->err = (uint64_t)r;
	}
	__atomic_store_n(&c->where, KVCPU_OUT, __ATOMIC_SEQ_CST); /* kvcpu_expel() polls it */
}

int kvcpu_call(struct kvcpu *c, uint64_t rip, uint64_t rax, uint64_t rsp)
{
	struct kvm_regs *g = &c->run->s.regs.regs;
	long r;

	to_ring0(c);
	*g = (struct kvm_regs){ .rip = rip, .rax = rax, .rsp = rsp, .rflags = 2 };
	c->run->kvm_dirty_regs |= KVM_SYNC_X86_REGS;
	do {
		r = kvm_run(c);
		if (r < 0)
			__atomic_store_n(&c->run->immediate_exit, 0, __ATOMIC_SEQ_CST);
	} while (r == -EINTR || r == -EAGAIN);
	if (r == 0 && c->run->exit_reason == KVM_EXIT_HLT)
		return 0;
	kvm_broken(c->p, c, "a call of the monitor failed");
	return -EIO;
}

void kvcpu_kick(struct kvcpu *c)
{
	long pid = HOSTCALL(SYS_getpid);

	__atomic_store_n(&c->run->immediate_exit, 1, __ATOMIC_SEQ_CST);
	HOSTCALL(SYS_tgkill, pid, __atomic_load_n(&c->tid, __ATOMIC_RELAXED), SIGUSR1);
}

static void await_out(const struct kvcpu *c)
{
	while (kvcpu_where(c) == KVCPU_GUEST)
		HOSTCALL(SYS_sched_yield);
}

void kvcpu_expel(struct kvcpu *c)
{
	if (kvcpu_where(c) != KVCPU_GUEST)
		return;
	kvcpu_kick(c);
	await_out(c);
}

/* Those of @set, a bit each: all are kicked before any is waited for. */
static void expel_set(struct platform *p, uint32_t set)
{
	uint32_t kicked = 0;

	for (unsigned i = 0; i < p->n_vcpus; i++) {
		if (!(set >> i & 1) || kvcpu_where(p->vcpus[i]) != KVCPU_GUEST)
			continue;
		kvcpu_kick(p->vcpus[i]);
		kicked |= 1u << i;
	}
	for (unsigned i = 0; i < p->n_vcpus; i++)
		if (kicked >> i & 1)
			await_out(p->vcpus[i]);
}

void kvm_hold(struct platform *p)
{
	expel_set(p, UINT32_MAX);
}

/* Whether it stands on the root of @as, or goes there. Who is in the guest keeps cr3 for himself: a value on its way
 * is that of cur. */
static bool uses(const struct kvcpu *c, const struct aspace *as)
{
	return __atomic_load_n(&c->cr3, __ATOMIC_RELAXED) == kaspace_root(as) || (c->cur && c->cur->as == as);
}

void kvcpu_shootdown(struct aspace *as)
{
	struct platform *p = kaspace_platform(as);
	uint32_t set = 0;

	static_assert(KVM_VCPUS_MAX <= 32, "a set of vCPUs");
	for (unsigned i = 0; i < p->n_vcpus; i++) {
		if (!uses(p->vcpus[i], as))
			continue;
		__atomic_store_n(&p->vcpus[i]->flush, 1, __ATOMIC_SEQ_CST);
		set |= 1u << i;
	}
	expel_set(p, set);
}

void kvcpu_zap(struct aspace *as, const gpa_t *tables, unsigned n)
{
	struct platform *p = kaspace_platform(as);
	struct kvcpu *c = p->me;
	uint64_t *list = (uint64_t *)c->stack;
	gpa_t root = kaspace_root(as);

	/* When the address space ends no vCPU stands on it: who finds a table of it again looks at it anew. */
	if (!root)
		root = kpt_kernel_root(p);

	while (n) {
		unsigned batch = MIN(n, KVM_ZAP_BATCH);

		for (unsigned i = 0; i < batch; i++)
			list[i] = KVM_MON_DIRECT + (tables[i] - KVM_GPA_BASE) + 1;
		list[batch] = 0;
		if (kvcpu_call(c, KMON(kmon_zap), root, c->stack_top - PAGE_SIZE) < 0)
			return;
		set_root(c, root);
		tables += batch;
		n -= batch;
	}
}

void kvcpu_leave(struct aspace *as)
{
	struct platform *p = kaspace_platform(as);

	for (unsigned i = 0; i < p->n_vcpus; i++) {
		struct kvcpu *c = p->vcpus[i];

		if (!uses(c, as))
			continue;
		kvcpu_expel(c); /* it may be on its way to another root */
		if (c->cr3 != kaspace_root(as))
			continue;
		set_root(c, kpt_kernel_root(p));
		/* Not a call of another thread's: KVM waits for a grace period of RCU each time that a vCPU is run by
		 * another thread than before. */
		if (c == p->me)
			(void)kvcpu_call(c, KMON(kmon_root), c->cr3, c->stack_top);
		else
			c->root_gone = true;
	}
}

void kvm_broken(struct platform *p, const struct kvcpu *c, const char *why)
{
	const struct kvm_run *run = c->run;
	const struct kvm_regs *g = &run->s.regs.regs;
	struct kvm_sregs s = { 0 };

	if (p->broken)
		return;
	p->broken = -EIO;
	HOSTCALL(SYS_ioctl, c->fd, KVM_GET_SREGS, &s);
	log_err(CH_PLATFORM, "kvm: vCPU %u: %s: exit %u (%#llx %#llx)", c->idx, why, run->exit_reason,
		(unsigned long long)run->hw.hardware_exit_reason, (unsigned long long)run->internal.data[0]);
	log_err(CH_PLATFORM, "kvm: rip %#llx rsp %#llx rflags %#llx rax %#llx rcx %#llx r11 %#llx",
		(unsigned long long)g->rip, (unsigned long long)g->rsp, (unsigned long long)g->rflags,
		(unsigned long long)g->rax, (unsigned long long)g->rcx, (unsigned long long)g->r11);
	log_err(CH_PLATFORM, "kvm: cs %#x ss %#x cr0 %#llx cr2 %#llx cr3 %#llx cr4 %#llx efer %#llx", s.cs.selector,
		s.ss.selector, (unsigned long long)s.cr0, (unsigned long long)s.cr2, (unsigned long long)s.cr3,
		(unsigned long long)s.cr4, (unsigned long long)s.efer);
	for (enum kmon_frame i = KF_SS; i <= KF_RAX; i++)
		log_err(CH_PLATFORM, "kvm: exception stack -%u: %#llx", i, (unsigned long long)*frame_word(c, i));
}
