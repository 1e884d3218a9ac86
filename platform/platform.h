/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What runs guest code, and nothing else: a platform knows no task, file or signal (docs: HACKING.md "Platforms").
 *
 * Objects. A struct platform is one sandbox's machine. A struct aspace is a guest address space (counted). A struct
 * vcpu_ctx is an execution context, one for each guest task, inside one aspace.
 *
 * States of a context, as the sentry sees it:
 *   RUNNING  guest code may be executing; only ctx_interrupt() is allowed
 *   STOPPED  a trap was reported and not yet answered; everything is allowed
 *   DEAD     the host thread is gone (killed, or ended for breaking a rule); every call returns -ESRCH,
 *            a trap of kind TRAP_EXITED is reported once, then only ctx_destroy() is allowed
 * A new context is STOPPED.
 *
 * Threads and locks. All functions are called with the kernel lock held and are synchronous. Some wait for the
 * guest thread to answer (an order); traps that other contexts raise meanwhile are queued inside the platform and
 * delivered later: the trap callback is never called from inside a platform function. run() calls
 * the trap callback, takes and releases nothing itself, and is to be called from one thread, the leader.
 *
 * The sentry owns the policy of what is mapped where (sentry/mm); the platform realises it. Guest addresses
 * [PLATFORM_RESERVED_START, PLATFORM_RESERVED_END) belong to the platform: every call that touches them gets -EINVAL.
 */
#ifndef SBX_PLATFORM_PLATFORM_H
#define SBX_PLATFORM_PLATFORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/macros.h"

typedef uint64_t uaddr_t; /* a guest address: never a pointer */

struct platform;
struct aspace;

/* Platforms embed it as their first member. */
struct vcpu_ctx {
	void *owner; /* the kernel's (struct task *); the platform never follows it */
};

/* User registers as in the Linux ABI (struct user_regs_struct without orig_rax). */
struct gregs {
	uint64_t r15, r14, r13, r12, rbp, rbx, r11, r10, r9, r8;
	uint64_t rax, rcx, rdx, rsi, rdi, rip, eflags, rsp;
	uint64_t fs_base, gs_base; /* see CTX_REGS_BASES */
};

enum trap_kind {
	TRAP_SYSCALL,   /* nr and args are valid; rip is behind the syscall instruction */
	TRAP_FAULT,     /* a processor exception, told as the signal Linux would send (SIGKILL: no memory for a page) */
	TRAP_INTERRUPT, /* ctx_interrupt() took effect; may come late, coalesced or spuriously */
	TRAP_EXITED,    /* the context is DEAD; status as of waitpid, 0 when unknown */
};

struct trap {
	enum trap_kind kind;
	bool foreign; /* TRAP_SYSCALL: an int 0x80 or x32 call: to be answered with -ENOSYS */
	union {
		struct {
			uint64_t nr;
			uint64_t args[6];
		} sys;
		struct {
			int signo; /* SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP */
			int code;  /* si_code */
			uaddr_t addr;
			uint64_t err;    /* page-fault error code */
			uint64_t trapno; /* x86 vector, 0 when unknown */
		} fault;
		int exit_status;
	};
};

struct platform_up {
	/* A context stopped (or died). While run() runs only. */
	void (*trap)(void *arg, struct vcpu_ctx *ctx, const struct trap *trap);
	/* Called from run() soon after wake(): run what is due. Not before every block: what a trap callback makes
	 * due it runs itself, or calls wake(), which costs next to nothing there. */
	void (*idle)(void *arg);
};

struct platform_config {
	int stub_fd;           /* the stub's ELF file, borrowed until start returns; -1: the built-in one */
	unsigned max_contexts; /* bound of all tables */
	bool no_userns;        /* run without a user/pid namespace even where they exist (tests) */
	bool isolated;         /* our root is empty; network, IPC and host name are our own: they do for guests */
	int proc_fd;           /* the host's /proc, borrowed until start returns; -1: by its path */
	bool verbose;
	/* Called once, or not at all, while host processes come up: what the caller can do without the platform. */
	void (*meanwhile)(void);
	bool automatic;        /* nobody asked for this platform: refuse a host that is known to run it badly */
	/* Bytes that the guest may use; 0: a default by the host. For platforms that own its memory: a bound, the limit
	 * itself is enforced elsewhere. */
	uint64_t memory_limit;
};

/* start(): the host lacks or forbids what the platform is built on, nothing else is wrong: another one may do. */
#define PLATFORM_UNAVAILABLE (-EOPNOTSUPP)

/* What the platform found on this host and what it isolates: for `sbx features`. */
struct platform_info {
	const char *name;
	bool userns, pidns, netns, sync_wakeup;
	char note[160]; /* what is missing and why, or "" */
};

/* One change of an address space. All addresses and lengths are page aligned, checked by the caller. */
enum aspace_opcode {
	ASPACE_MAP, /* replaces what is there (as MAP_FIXED) */
	ASPACE_UNMAP,
	ASPACE_PROTECT,
	ASPACE_REMAP, /* moves [addr, len) to [new_addr, new_len), always fixed; dont_unmap in flags. new_addr == addr:
	               * grows in place. len 0: the shared memory at addr appears a second time */
	ASPACE_ADVISE,
};

#define ASPACE_SHARED     1u /* MAP: shared with other mappings of the same object (or with forks when anonymous) */
#define ASPACE_DONTUNMAP  2u /* REMAP */
#define ASPACE_NORESERVE  4u
#define ASPACE_LOCKED     8u /* MAP: populate (MAP_POPULATE) */

struct aspace_op {
	enum aspace_opcode op;
	uint32_t flags;   /* ASPACE_* */
	int prot;         /* PROT_* : MAP, PROTECT */
	int fd;           /* MAP: host fd of the object, borrowed; -1: anonymous */
	uint64_t offset;  /* MAP: in the object */
	uaddr_t addr;
	uint64_t len;
	uaddr_t new_addr; /* REMAP */
	uint64_t new_len; /* REMAP */
	int advice;       /* ADVISE: a MADV_ value that the caller has allowed */
};

/* aspace_apply() has answered the context's system call too: nothing is left to do for this trap. */
#define ASPACE_RESUMED 0x7fffffff

enum ctx_clone_kind {
	CTX_CLONE_FORK,   /* a new aspace, copy-on-write */
	CTX_CLONE_THREAD, /* same aspace, same host process */
	CTX_CLONE_VM,     /* same aspace, its own host process (vfork, CLONE_VM without CLONE_THREAD) */
};

struct ctx_clone_args {
	enum ctx_clone_kind kind;
	uaddr_t stack;  /* the child's rsp; 0: the parent's */
	bool set_tls;
	uint64_t tls;   /* the child's fs_base */
	/* Of a THREAD: the parent may go on with @result at once; ctx_clone() then returns CTX_RESUMED. */
	bool may_resume;
	int64_t result;
};

#define CTX_RESUMED 1

#define CTX_REGS_BASES 1u /* ctx_regs_get/set: fs_base and gs_base too (costs more on some platforms) */

struct platform_ops {
	const char *name;
	bool by_name; /* `auto` never takes it */
	bool in_process; /* guests run on threads of the calling process */

	/* Opens what needs the host identity that the process gives up before start(). NULL: nothing. */
	int (*prepare)(struct sbx_err *err);
	/* Starts the machine. Must be called before the process gives up its privileges. @up and @arg live as long
	 * as the platform. On success *ret is the caller's. */
	int (*start)(const struct platform_config *cfg, const struct platform_up *up, void *arg,
		     struct platform **ret, struct sbx_err *err);
	void (*info)(const struct platform *p, struct platform_info *info);

	/* Receives and delivers traps until stop(); see struct platform_up. Returns 0, or -errno when the
	 * machine broke (the sandbox must end). */
	int (*run)(struct platform *p);
	/* Makes run() return after the current callback. From callbacks only. */
	void (*stop)(struct platform *p);
	/* Makes the leader call up->idle soon. From any thread, async-signal-safe, never loses a call. */
	void (*wake)(struct platform *p);
	/* May be NULL. No guest code runs from soon after it on, and nothing is freed: for a caller that is about to
	 * exit, so that the host's part of the end goes on beside it. Nothing but exit(2) may follow. */
	void (*abandon)(struct platform *p);
	/* Ends every guest thread at once and frees all; contexts and aspaces must not be used afterwards. */
	void (*destroy)(struct platform *p);

	/* A fresh context in a fresh, empty aspace (first program). *as gets one reference. */
	int (*ctx_create)(struct platform *p, struct aspace **as, struct vcpu_ctx **ctx);
	/* clone(2): @ctx is STOPPED. The child has the parent's registers with rax = 0 (and stack, tls as asked), not
	 * yet resumed. For FORK *as is a new aspace (one reference), else it is ctx's with one more reference.
	 * 0, CTX_RESUMED or -errno. */
	int (*ctx_clone)(struct vcpu_ctx *ctx, const struct ctx_clone_args *args, struct aspace **as,
			 struct vcpu_ctx **child);
	/* execve(2): gives an empty aspace, initial FPU state and a STOPPED context for the task of @ctx. When @alone
	 * (the only context in its aspace) this may happen in place; then *new_ctx == ctx and *as == its aspace with
	 * one more reference. Otherwise the old context stays STOPPED until ctx_destroy(). Only after success is
	 * anything changed. */
	int (*ctx_exec)(struct vcpu_ctx *ctx, bool alone, struct aspace **as, struct vcpu_ctx **new_ctx);
	/* Ends the host thread, in any state, without waiting for the guest's help; NULL is allowed. When it was the
	 * last of its host process the process ends. */
	void (*ctx_destroy)(struct vcpu_ctx *ctx);

	/* Answers a TRAP_SYSCALL with @result in rax: the fast path. */
	int (*ctx_return)(struct vcpu_ctx *ctx, int64_t result);
	/* Continues with the register file as it is (after TRAP_FAULT, TRAP_INTERRUPT, ctx_regs_set, or a new context).
	 */
	int (*ctx_resume)(struct vcpu_ctx *ctx);
	/* Asks a RUNNING context to stop with TRAP_INTERRUPT. On a STOPPED or DEAD one: nothing. Never waits. */
	void (*ctx_interrupt)(struct vcpu_ctx *ctx);
	/* Keeps all guest code from running until the callback that calls it returns: what guests may change by
	 * themselves is ours alone till then. From callbacks only. NULL: contexts must be interrupted one by one. */
	void (*hold)(struct platform *p);
	/* Tells that the context's answer will take long (the task blocked), so that it may be parked cheaply. */
	void (*ctx_parked)(struct vcpu_ctx *ctx);

	/* The register file of a STOPPED context. After TRAP_SYSCALL rax is undefined on get (the caller knows nr) and
	 * rcx, r11 are as the syscall instruction left them; after a set, use ctx_resume. */
	int (*ctx_regs_get)(struct vcpu_ctx *ctx, unsigned flags, struct gregs *regs);
	/* Values are sanitised by the platform: non-canonical rip, forbidden eflags bits never reach the processor. */
	int (*ctx_regs_set)(struct vcpu_ctx *ctx, unsigned flags, const struct gregs *regs);
	/* The XSAVE area in standard (not compacted) form with Linux's sw_reserved bytes filled in: get writes *len
	 * bytes (at most FPU_STATE_MAX). set with len 0 gives the initial state; a state the processor refuses is
	 * -EINVAL. Both count the end mark (extended_size of sw_reserved); bytes without valid marks are x87 and SSE
	 * only, from 512 on. */
	int (*ctx_fpu_get)(struct vcpu_ctx *ctx, void *buf, size_t *len);
	int (*ctx_fpu_set)(struct vcpu_ctx *ctx, const void *buf, size_t len);

	/* Answers the pending arch_prctl(2) with @code ARCH_SET_FS, ARCH_SET_GS, ARCH_GET_FS or ARCH_GET_GS by the
	 * host's own result and resumes, as ASPACE_RESUMED does. 0 or -errno (-EINVAL: another code; then it is not
	 * answered). */
	int (*ctx_arch_prctl)(struct vcpu_ctx *ctx, int code, uint64_t value);

	/* Executes @ops in order, by the STOPPED context @ctx in its own aspace; stops at the first error and returns
	 * it (what was done stays done: the caller's VMAs must then be corrected; *done tells how many). With
	 * @may_resume and n == 1 the platform may let the op's result be the result of ctx's current system call and
	 * resume it: it then returns ASPACE_RESUMED; for MAP the guest gets addr, for REMAP new_addr, else 0 (or the
	 * host's -errno). */
	int64_t (*aspace_apply)(struct vcpu_ctx *ctx, const struct aspace_op *ops, unsigned n, bool may_resume,
				unsigned *done);
	/* The mapping of a file at [addr, addr + len) lies behind the file's end since it was cut: what was there is
	 * gone, private copies too. NULL: the host sees to it. */
	void (*aspace_cut)(struct aspace *as, uaddr_t addr, uint64_t len);
	struct aspace *(*aspace_get)(struct aspace *as);
	void (*aspace_put)(struct aspace *as); /* NULL is allowed */

	/* Copies between guest memory and ours, obeying the guest's page protection. Return the number of bytes copied,
	 * which is short at the first page that cannot be accessed, or -EFAULT for none, or -ESRCH. */
	ssize_t (*read)(struct aspace *as, uaddr_t addr, void *buf, size_t n);
	ssize_t (*write)(struct aspace *as, uaddr_t addr, const void *buf, size_t n);

	/* Where the vDSO is in every aspace, 0 when there is none. */
	uaddr_t (*vdso)(const struct platform *p);
};

#define PLATFORM_RESERVED_START 0x7ff000000000ull
#define PLATFORM_RESERVED_END   0x7ff080000000ull
#define FPU_STATE_MAX           16384u
#define GUEST_TASK_SIZE         0x7ffffffff000ull

/* All platforms, in the order in which `auto` tries them; NULL-terminated. */
extern const struct platform_ops *const platform_table[];
extern const struct platform_ops unotify_platform_ops;
extern const struct platform_ops ptrace_platform_ops;
extern const struct platform_ops kvm_platform_ops;

#endif
