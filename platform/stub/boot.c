/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stub's first code, freestanding: runs as init (the parent of all stubs, in its own pid namespace where there is
 * one) and as the zygote, of which the sentry makes fresh stubs. Both are trusted until the zygote enters the shim.
 *
 * init:   dies with the sentry (PDEATHSIG, handshake), moves vvar and vdso into the reserved range, makes the zygote,
 * waits zygote: slot 0, alternate stack, handlers, no_new_privs, tells the sentry its pid (SO_PASSCRED) and where the
 * vdso is, installs the filter, enters the shim
 */
#include <asm/unistd.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/mman.h>
#include <linux/prctl.h>
#include <linux/resource.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stddef.h>

#include "platform/stub/hostcall.h"
#include "platform/stub/layout.h"

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

#define KSA_SIGINFO  0x00000004ul
#define KSA_RESTORER 0x04000000ul
#define KSA_ONSTACK  0x08000000ul
#define KSA_RESTART  0x10000000ul
#define KSA_NODEFER  0x40000000ul
#define KSS_AUTODISARM (1u << 31)
#define KPROT_RW     3
#define KMAP_PRIVATE 0x02
#define KMAP_ANON    0x20
#define KMAP_NOREPLACE 0x100000
#define KSIGILL      4
#define KSIGTRAP     5
#define KSIGBUS      7
#define KSIGFPE      8
#define KSIGKILL     9
#define KSIGSEGV     11
#define KSIGCHLD     17
#define KSIGSTOP     19
#define KSIG_SETMASK 2

struct ksigaction {
	uint64_t handler, flags, restorer, mask;
};

struct kstack {
	uint64_t sp;
	uint32_t flags, pad;
	uint64_t size;
};

extern const char shim_handler[], shim_restorer[], site_sigret[];
extern void shim_enter(uint64_t frame) __attribute__((noreturn));
void boot_main(void);

#define CALL HOSTCALL

/* The compiler may ask for these two. */
void *memset(void *dst, int c, size_t n);
void *memcpy(void *restrict dst, const void *restrict src, size_t n);

void *memset(void *dst, int c, size_t n)
{
	void *p = dst;

	__asm__ volatile("rep stosb" : "+D"(p), "+c"(n) : "a"(c) : "memory");
	return dst;
}

void *memcpy(void *restrict dst, const void *restrict src, size_t n)
{
	void *p = dst;

	__asm__ volatile("rep movsb" : "+D"(p), "+S"(src), "+c"(n) : : "memory");
	return dst;
}

static __attribute__((noreturn)) void die(int code)
{
	for (;;)
		CALL(__NR_exit_group, code);
}

/* One line of /proc/self/maps: true for "[vvar", "[vdso". */
struct maps_line {
	uint64_t lo, hi;
	int system, vdso;
};

static uint64_t parse_hex(const char **s)
{
	uint64_t v = 0;

	for (;; (*s)++) {
		if (**s >= '0' && **s <= '9')
			v = v << 4 | (uint64_t)(**s - '0');
		else if (**s >= 'a' && **s <= 'f')
			v = v << 4 | (uint64_t)(**s - 'a' + 10);
		else
			return v;
	}
}

static void parse_maps_line(const char *s, struct maps_line *l)
{
	l->lo = parse_hex(&s);
	s++;
	l->hi = parse_hex(&s);
	l->system = l->vdso = 0;
	while (*s && *s != '\n' && *s != '[')
		s++;
	if (s[0] != '[' || s[1] != 'v')
		return;
	l->vdso = s[2] == 'd' && s[3] == 's' && s[4] == 'o';
	l->system = l->vdso || (s[2] == 'v' && s[3] == 'a' && s[4] == 'r');
}

/* Reads all of /proc/self/maps, a few lines in a static program. 0: cannot. */
static long read_maps(char *buf, long cap)
{
	long fd = CALL(__NR_openat, BOOT_PROC, "maps", 0, 0), n = 0, r = 0;

	if (fd < 0)
		return 0;
	while (n < cap - 1 && (r = CALL(__NR_read, fd, buf + n, cap - 1 - n)) > 0)
		n += r;
	CALL(__NR_close, fd);
	buf[n] = 0;
	return r < 0 ? 0 : n;
}

/* vvar and its companions must keep their distance to the vdso, which addresses them relative to itself. */
static void move_vdso(struct boot_report *rep)
{
	struct maps_line l[8];
	char buf[4096];
	const char *s = buf;
	unsigned n = 0, moved = 0;

	if (!read_maps(buf, sizeof(buf)))
		return;
	while (*s && n < 8) {
		parse_maps_line(s, &l[n]);
		n += (unsigned)l[n].system;
		while (*s && *s++ != '\n')
			;
	}
	for (; moved < n; moved++) {
		uint64_t len = l[moved].hi - l[moved].lo, to = VDSO_BASE + (l[moved].lo - l[0].lo);

		if (CALL(__NR_mremap, l[moved].lo, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, to) != (long)to)
			break;
		if (l[moved].vdso)
			rep->vdso = to;
	}
	if (moved == n)
		return;
	/* Sealed system mappings (CONFIG_MSEAL_SYSTEM_MAPPINGS): they stay, when at least they are all in place. */
	rep->keep_lo = l[moved].lo;
	rep->keep_hi = l[n - 1].hi;
	rep->vdso = moved == 0 && l[n - 1].vdso ? l[n - 1].lo : 0;
}

static void set_handlers(void)
{
	/* SIGILL SIGTRAP SIGBUS SIGFPE SIGSEGV SIGUSR2 SIGSYS go to the shim, all else has its default action. */
	static const uint64_t ours =
		1ul << 4 | 1ul << 5 | 1ul << 7 | 1ul << 8 | 1ul << 11 | 1ul << SHIM_KICK | 1ul << 31;
	struct ksigaction sa;

	for (int sig = 1; sig <= 64; sig++) {
		if (sig == KSIGKILL || sig == KSIGSTOP)
			continue;
		sa.handler = sig < 64 && (ours >> sig & 1) ? (uint64_t)shim_handler : 0;
		/* SA_RESTART: a kick must not make a not yet received notification return EINTR. */
		sa.flags = KSA_SIGINFO | KSA_RESTORER | KSA_ONSTACK | KSA_RESTART;
		sa.restorer = (uint64_t)shim_restorer;
		sa.mask = ~0ul;
		CALL(__NR_rt_sigaction, sig, &sa, 0, 8);
	}
}

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (offsetof(struct seccomp_data, field)))
#define LOAD_HIGH(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (offsetof(struct seccomp_data, field) + 4))
#define IF_EQ(k, t, f) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(k), t, f)
#define IF_GE(k, t, f) BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, (uint32_t)(k), t, f)
#define RET(k) BPF_STMT(BPF_RET | BPF_K, (uint32_t)(k))

#define KENOSYS 38
#define X32_BIT 0x40000000

/*
 * Which calls trap into the shim: they change the register file or the address space, or send signals, most often to
 * the caller itself (raise, abort), whose handler needs the registers. Every other call of the guest is notified
 * directly. The jump offsets count from the following instruction; GUEST and TRAP are labels below.
 */
static long install_filter(void)
{
	struct sock_filter prog[] = {
		/*  0 */ LOAD(arch),
		/*  1 */ IF_EQ(AUDIT_ARCH_X86_64, 0, 25 - 2), /* else: TRAP */
		/*  2 */ LOAD_HIGH(instruction_pointer),
		/*  3 */ IF_EQ(SHIM_BASE >> 32, 0, 11 - 4),   /* else: GUEST */
		/*  4 */ LOAD(instruction_pointer),
		/*  5 */ IF_GE(SHIM_BASE & 0xffffffff, 0, 11 - 6),
		/*  6 */ IF_GE((SHIM_BASE + SHIM_SIZE) & 0xffffffff, 11 - 7, 0),
		/*  7 */ IF_EQ(0, 0, 26 - 8),                 /* site_sigret, put in below; else: NOTIFY */
		/*  8 */ LOAD(nr),
		/*  9 */ IF_EQ(__NR_rt_sigreturn, 0, 26 - 10),
		/* 10 */ RET(SECCOMP_RET_ALLOW),
		/* 11 GUEST */ LOAD(nr),
		/* 12 */ IF_GE(X32_BIT, 27 - 13, 0),
		/* 13 */ IF_EQ(__NR_clone, 25 - 14, 0),
		/* 14 */ IF_EQ(__NR_fork, 25 - 15, 0),
		/* 15 */ IF_EQ(__NR_vfork, 25 - 16, 0),
		/* 16 */ IF_EQ(__NR_execve, 25 - 17, 0),
		/* 17 */ IF_EQ(__NR_rt_sigreturn, 25 - 18, 0),
		/* 18 */ IF_EQ(__NR_clone3, 25 - 19, 0),
		/* 19 */ IF_EQ(__NR_execveat, 25 - 20, 0),
		/* 20 */ IF_EQ(__NR_mmap, 25 - 21, 0),
		/* 21 */ IF_EQ(__NR_mremap, 25 - 22, 0),
		/* 22 */ IF_EQ(__NR_kill, 25 - 23, 0),
		/* 23 */ IF_EQ(__NR_tkill, 25 - 24, 0),
		/* 24 */ IF_EQ(__NR_tgkill, 0, 26 - 25),
		/* 25 TRAP */ RET(SECCOMP_RET_TRAP),
		/* 26 NOTIFY */ RET(SECCOMP_RET_USER_NOTIF),
		/* 27 */ RET(SECCOMP_RET_ERRNO | KENOSYS),
	};
	struct sock_fprog fprog = { .len = sizeof(prog) / sizeof(prog[0]), .filter = prog };

	prog[7].k = (uint32_t)((uint64_t)site_sigret & 0xffffffff);
	return CALL(__NR_seccomp, SECCOMP_SET_MODE_FILTER,
		    SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, &fprog);
}

/* For the frames that tell what a fault was (platform/ptrace/fault.c): the handler itself never runs. */
static void set_fault_handlers(void)
{
	static const int sigs[] = { KSIGILL, KSIGTRAP, KSIGBUS, KSIGFPE, KSIGSEGV };
	struct ksigaction sa = { .handler = (uint64_t)shim_handler, .restorer = (uint64_t)shim_restorer,
				 .flags = KSA_SIGINFO | KSA_RESTORER | KSA_NODEFER };

	for (unsigned i = 0; i < sizeof(sigs) / sizeof(sigs[0]); i++)
		CALL(__NR_rt_sigaction, sigs[i], &sa, 0, 8);
}

/* Its tracer sees every signal and every system call; it waits to be attached to. */
static __attribute__((noreturn)) void traced_zygote(struct boot_report *rep)
{
	uint64_t none = 0;

	set_fault_handlers();
	CALL(__NR_rt_sigprocmask, KSIG_SETMASK, &none, 0, 8);
	CALL(__NR_write, BOOT_SOCK, rep, sizeof(*rep));
	for (;;)
		CALL(__NR_pause);
}

static __attribute__((noreturn)) void zygote(const struct boot_config *cfg, struct boot_report *rep)
{
	struct kstack ss = { .sp = SLOT_BASE + SLOT_STACK, .flags = KSS_AUTODISARM,
			     .size = SLOT_SIZE - SLOT_STACK };
	uint64_t all = ~0ul;
	long r;

	r = CALL(__NR_mmap, SLOT_BASE, SLOT_SIZE, KPROT_RW, KMAP_PRIVATE | KMAP_ANON | KMAP_NOREPLACE, -1, 0);
	if (r != SLOT_BASE)
		die(BOOT_E_SLOT);
	if (cfg->flags & BOOT_NODUMP)
		CALL(__NR_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
	if (cfg->flags & BOOT_PTRACE)
		traced_zygote(rep);
	if (CALL(__NR_sigaltstack, &ss, 0))
		die(BOOT_E_ALTSTACK);
	CALL(__NR_rt_sigprocmask, KSIG_SETMASK, &all, 0, 8);
	set_handlers();
	CALL(__NR_write, BOOT_SOCK, rep, sizeof(*rep));
	r = install_filter();
	if (r < 0) {
		rep->listener_err = (int32_t)r;
		CALL(__NR_write, BOOT_SOCK, rep, sizeof(*rep));
		die(BOOT_E_NNP);
	}
	shim_enter(SLOT_BASE + SLOT_FRAME);
}

static void give_up_privileges(void)
{
	struct __user_cap_header_struct hdr = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2];
	struct { uint64_t cur, max; } core = { 1, 1 }; /* 0 would still start a core_pattern pipe */

	memset(none, 0, sizeof(none));
	CALL(__NR_capset, &hdr, none);
	CALL(__NR_setsid);
	CALL(__NR_prlimit64, 0, RLIMIT_CORE, &core, 0);
	if (CALL(__NR_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		die(BOOT_E_NNP);
}

void boot_main(void)
{
	struct boot_report rep;
	struct boot_config cfg;
	struct ksigaction sa;
	long pid;

	memset(&rep, 0, sizeof(rep));
	rep.magic = BOOT_MAGIC;
	give_up_privileges();
	/* After all credential changes, which would clear it. A sentry that is gone by now gives end of file below. */
	CALL(__NR_prctl, PR_SET_PDEATHSIG, KSIGKILL, 0, 0, 0);
	if (CALL(__NR_read, BOOT_SOCK, &cfg, sizeof(cfg)) != sizeof(cfg) || cfg.magic != BOOT_MAGIC)
		die(BOOT_E_HANDSHAKE);
	if (!(cfg.flags & BOOT_NO_VDSO))
		move_vdso(&rep);
	CALL(__NR_close, BOOT_PROC);
	memset(&sa, 0, sizeof(sa));
	sa.handler = 1; /* SIG_IGN: children are reaped by the kernel */
	sa.flags = KSA_RESTORER;
	CALL(__NR_rt_sigaction, KSIGCHLD, &sa, 0, 8);
	pid = CALL(__NR_clone, KSIGCHLD, 0, 0, 0, 0, 0);
	if (pid < 0)
		die(BOOT_E_FORK);
	if (pid == 0)
		zygote(&cfg, &rep);
	CALL(__NR_close_range, 0, ~0u, 0);
	for (;;)
		CALL(__NR_pause);
}

__asm__(".section .text.start, \"ax\"\n"
	".globl boot_start\n"
	"boot_start:\n"
	"	xor %ebp, %ebp\n"
	"	and $-16, %rsp\n"
	"	call boot_main\n"
	"	ud2\n"
	".text\n");
