/* SPDX-License-Identifier: Apache-2.0 */
/* What stops of a guest are taken for (platform/kvm/trap.c), over the memory half with faked processors. */
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "platform/kvm/kvm.h"
#include "platform/kvm/monitor.h"
#include "tests/lib/tap.h"
#include "tests/unit/kvm_mem_fakes.h"

#define A  0x10000000ull
#define PG PAGE_SIZE
#define RW (PROT_READ | PROT_WRITE)

#define PF_WRITE_USER 6u

static struct kctx ctx;

int kctx_fpe_code(struct kctx *c, bool simd)
{
	(void)c;
	(void)simd;
	return 0;
}

static int map_file(uaddr_t at, unsigned pages, int fd)
{
	return fake_apply(ctx.as, &(struct aspace_op){ .op = ASPACE_MAP, .addr = at, .len = pages * PG, .prot = RW,
						       .flags = ASPACE_SHARED, .fd = fd });
}

static void begin(void)
{
	fake_start(false, 64ull << 20);
	memset(&ctx, 0, sizeof(ctx));
	ctx.p = &fake_platform;
	ctx.as = kaspace_create(&fake_platform);
	ctx.regs.rip = 0x401000;
}

static void end(void)
{
	kvm_aspace_put(ctx.as);
	fake_end();
}

static bool page_fault(uaddr_t addr)
{
	return ktrap_decode(&ctx, &(struct kevent){ .kind = KEV_VECTOR, .vec = VEC_PF, .err = PF_WRITE_USER,
						    .cr2 = addr });
}

static bool host_fails(void)
{
	return ktrap_decode(&ctx, &(struct kevent){ .kind = KEV_MEMORY });
}

static bool present(uaddr_t addr)
{
	uint64_t *pte = kpt_find(ctx.as, addr, NULL);

	return pte && pte_present(pte_load(pte));
}

static bool told(int signo, uaddr_t addr)
{
	const struct trap *t = &ctx.trap;

	return t->kind == TRAP_FAULT && t->fault.signo == signo && t->fault.addr == addr;
}

static void test_cut(int fd)
{
	begin();
	tap_eq(map_file(A, 8, fd), 0, "map");
	tap_ok(!page_fault(A + 5 * PG) && present(A), "pages are filled in");
	tap_ok(ftruncate(fd, 3 * PG) == 0, "the file is cut");
	tap_ok(!host_fails() && present(A + 2 * PG) && !present(A + 3 * PG), "what is behind the end goes");
	tap_ok(page_fault(A + 5 * PG + 9) && told(SIGBUS, A + 5 * PG + 9), "the fault then tells where");
	tap_ok(ftruncate(fd, 8 * PG) == 0, "restored");
	end();
}

/* The host refuses to write to a hole of a file: what reads says nothing. */
static void test_no_room(int fd)
{
	begin();
	tap_eq(map_file(A, 8, fd), 0, "map");
	tap_ok(!page_fault(A) && present(A + PG), "pages are filled in");
	tap_ok(!host_fails() && !present(A) && !present(A + PG), "one is missing: all of files go");
	/* An access across two pages, of which the host lacks the second. */
	tap_ok(!page_fault(A + PG - 1) && present(A) && !present(A + PG), "no more than what is asked for comes");
	tap_ok(!page_fault(A + PG) && present(A + PG), "page by page");
	ctx.regs.rflags ^= 1u << 16;
	tap_ok(host_fails() && told(SIGBUS, A + PG), "the page that was asked for last");
	tap_eq(ctx.trap.fault.code, BUS_ADRERR, "its code");
	tap_eq(ctx.trap.fault.err, PF_WRITE_USER, "and what the access was");
	tap_ok(!page_fault(A + 4 * PG) && present(A + 5 * PG), "afterwards pages come in groups again");
	end();
}

/* It has the page again, and later lacks another. */
static void test_recovers(int fd)
{
	begin();
	tap_eq(map_file(A, 8, fd), 0, "map");
	tap_ok(!page_fault(A) && !host_fails() && !page_fault(A), "a page is missing once");
	ctx.regs.rcx++;
	tap_ok(!host_fails(), "at another step: it is looked for anew");
	tap_ok(!page_fault(A + 3 * PG) && host_fails() && told(SIGBUS, A + 3 * PG), "and found");
	tap_ok(!host_fails() && !page_fault(A + PG), "once more");
	tap_ok(ktrap_decode(&ctx, &(struct kevent){ .kind = KEV_SYSCALL }) && ctx.trap.kind == TRAP_SYSCALL, "a call");
	tap_ok(!host_fails(), "ends the search");
	end();
}

/* Others always fill the page in first: it is not tried for ever. */
static void test_unknown(void)
{
	unsigned n = 0;

	begin();
	while (n < 100 && !host_fails())
		n++;
	tap_ok(n < 20 && told(SIGBUS, ctx.regs.rip), "given up after %u, at rip", n);
	end();
}

static void test_others(void)
{
	const struct kevent own = { .kind = KEV_VECTOR, .vec = VEC_PF, .cr2 = A, .err = 2 };

	begin();
	tap_ok(ktrap_decode(&ctx, &(struct kevent){ .kind = KEV_NO_MEMORY }) && ctx.trap.kind == TRAP_FAULT &&
		       ctx.trap.fault.signo == SIGKILL, "no memory for the host's tables: the end of the process");
	tap_ok(!ktrap_decode(&ctx, &(struct kevent){ .kind = KEV_KICKED }), "a kick tells nothing");
	ctx.regs.rax = 0x40000000ull | SYS_getpid;
	tap_ok(ktrap_decode(&ctx, &(struct kevent){ .kind = KEV_SYSCALL }) && ctx.trap.foreign, "x32");
	ctx.regs.rax = 0xffffffff00000000ull | SYS_getpid;
	tap_ok(ktrap_decode(&ctx, &(struct kevent){ .kind = KEV_SYSCALL }) && ctx.trap.sys.nr == SYS_getpid &&
		       !ctx.trap.foreign, "eax counts");
	tap_ok(page_fault(KVM_MON_TEXT) && told(SIGSEGV, KVM_MON_TEXT) && ctx.trap.fault.code == SEGV_MAPERR,
	       "the monitor is not there");
	tap_ok(ktrap_decode(&ctx, &own) && told(SIGSEGV, A), "an access of the processor's own is not tried again");
	ctx.regs.rip = 0xffff900000000000ull;
	ktrap_bad_rip(&ctx);
	tap_ok(told(SIGSEGV, ctx.regs.rip), "rip in the upper half");
	ctx.regs.rip = 1ull << 47;
	ktrap_bad_rip(&ctx);
	tap_ok(told(SIGSEGV, 0), "rip of no half");
	end();
}

int main(void)
{
	int fd = memfd_create("t", 0);

	tap_ok(ftruncate(fd, 8 * PG) == 0, "a file");
	test_cut(fd);
	test_no_room(fd);
	test_recovers(fd);
	test_unknown();
	test_others();
	return tap_done();
}
