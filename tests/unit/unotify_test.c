/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <stdio.h>

#include "platform/platform.h"
#include "tests/lib/tap.h"

#define GUEST_CODE  0x400000ull
#define GUEST_DATA  0x500000ull
#define GUEST_STACK 0x600000ull
extern const char guest_start[], guest_end[], g_hello[], g_nop_loop[];
static const struct platform_ops *const ops = &unotify_platform_ops;
static struct platform *plat;
static long results[64];
static void on_trap(void *arg, struct vcpu_ctx *ctx, const struct trap *t)
{
	if (t->kind != TRAP_SYSCALL) { printf("# trap %d sig %d addr %lx\n", t->kind, t->fault.signo, t->fault.addr); ops->stop(plat); return; }
	switch (t->sys.nr) {
	case 110: ops->ctx_return(ctx, 1); break;
	case 1000: results[t->sys.args[0]] = (long)t->sys.args[1]; ops->ctx_return(ctx, 0); break;
	case SYS_exit_group: ops->ctx_destroy(ctx); ops->stop(plat); break;
	default: ops->ctx_return(ctx, -38);
	}
}
static void on_idle(void *arg) {}
static const struct platform_up up = { on_trap, on_idle };
static int code_fd;
static void start(const char *entry, uint64_t rdi)
{
	struct aspace *as; struct vcpu_ctx *ctx; unsigned done;
	struct aspace_op m[] = {
		{ .op = ASPACE_MAP, .prot = PROT_READ|PROT_EXEC, .fd = code_fd, .addr = GUEST_CODE, .len = 0x10000 },
		{ .op = ASPACE_MAP, .prot = PROT_READ|PROT_WRITE, .fd = -1, .addr = GUEST_DATA, .len = 0x10000 },
		{ .op = ASPACE_MAP, .prot = PROT_READ|PROT_WRITE, .fd = -1, .addr = GUEST_STACK, .len = 0x10000 },
	};
	struct gregs r = { .rip = GUEST_CODE + (uint64_t)(entry - guest_start), .rsp = GUEST_STACK + 0xff00, .rdi = rdi };
	tap_eq(ops->ctx_create(plat, &as, &ctx), 0, "create");
	tap_eq(ops->aspace_apply(ctx, m, 3, false, &done), 0, "map");
	tap_eq(ops->ctx_regs_set(ctx, 0, &r), 0, "regs");
	tap_eq(ops->write(as, GUEST_DATA, "hello", 5), 5, "write");
	char b[5]; tap_eq(ops->read(as, GUEST_DATA, b, 5), 5, "read");
	tap_eq(ops->ctx_resume(ctx), 0, "resume");
	ops->aspace_put(as);
}
int main(int argc, char **argv)
{
	struct platform_config cfg = { .stub_fd = -1, .max_contexts = 4096 };
	struct sbx_err err; struct platform_info info;
	code_fd = memfd_create("code", 0);
	ftruncate(code_fd, 0x10000);
	pwrite(code_fd, guest_start, guest_end - guest_start, 0);
	if (!tap_ok(ops->start(&cfg, &up, NULL, &plat, &err) == 0, "start")) { printf("# %s\n", err.msg); return 1; }
	ops->info(plat, &info);
	printf("# userns %d pidns %d netns %d sync %d note '%s' vdso %lx\n", info.userns, info.pidns, info.netns, info.sync_wakeup, info.note, ops->vdso(plat));
	start(g_hello, 0);
	tap_eq(ops->run(plat), 0, "run");
	tap_eq(results[0], 1, "getppid");
	ops->destroy(plat);
	return tap_done();
}
