/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Build-time program: writes the filters of all roles as C arrays to standard output. Each role has
 * one that kills and one that lets through and logs, to find what a table lacks.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/macros.h"
#include "policy/seccomp/rows.h"

static const struct seccomp_table *const tables[] = { &seccomp_sbx, &seccomp_sentry, &seccomp_sentry_ptrace,
	                                              &seccomp_sentry_kvm, &seccomp_gofer };

static int add_rows(scmp_filter_ctx ctx, const struct seccomp_table *t)
{
	for (size_t i = 0; i < t->n; i++) {
		const struct seccomp_row *r = &t->rows[i];
		int ret;

		if (!r->why || !*r->why) {
			fprintf(stderr, "%s: row %zu has no reason\n", t->name, i);
			return -EINVAL;
		}
		ret = seccomp_rule_add_array(ctx, SCMP_ACT_ALLOW, r->nr, r->n, r->cmp);
		if (ret) {
			fprintf(stderr, "%s: row %zu (%s): %s\n", t->name, i, r->why,
			        strerror(-ret));
			return ret;
		}
	}
	return t->also ? add_rows(ctx, t->also) : 0;
}

static void print_insn(struct sock_filter f)
{
	printf("\t{ 0x%02x, %u, %u, 0x%08x },\n", f.code, f.jt, f.jf, f.k);
}

/* Lets @r through, and goes on behind with anything else. */
static int print_first(const struct seccomp_row *r)
{
	const uint32_t arg = (uint32_t)offsetof(struct seccomp_data, args[r->cmp[0].arg]);
	const struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 0, 7),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)r->nr, 0, 5),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, arg), /* its lower half: little endian */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)r->cmp[0].datum_a, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, arg + 4),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(r->cmp[0].datum_a >> 32), 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	if (r->n != 1 || r->cmp[0].op != SCMP_CMP_EQ)
		return -EINVAL;
	for (size_t i = 0; i < ARRAY_SIZE(f); i++)
		print_insn(f[i]);
	return 0;
}

static int print_program(const struct seccomp_table *t, const char *kind, int fd)
{
	struct sock_filter f;
	size_t n = 0;

	printf("static const struct sock_filter filter_%s_%s[] = {\n", t->name, kind);
	if (t->first && print_first(t->first))
		return -EINVAL;
	if (lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	while (read(fd, &f, sizeof(f)) == sizeof(f)) {
		print_insn(f);
		n++;
	}
	printf("};\n");
	return n ? 0 : -EIO;
}

static int generate(const struct seccomp_table *t, const char *kind, uint32_t action)
{
	scmp_filter_ctx ctx = seccomp_init(action);
	int fd = memfd_create("filter", MFD_CLOEXEC), r;

	if (!ctx || fd < 0)
		return -ENOMEM;
	/* A binary tree: the calls on the fast path take a handful of comparisons. */
	r = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	if (!r)
		r = add_rows(ctx, t);
#ifdef SBX_SANITIZED
	if (!r)
		r = add_rows(ctx, &seccomp_sanitizer);
#endif
	if (!r)
		r = seccomp_export_bpf(ctx, fd);
	seccomp_release(ctx);
	if (!r)
		r = print_program(t, kind, fd);
	close(fd);
	return r;
}

int main(void)
{
	printf("/* Made by policy/seccomp/gen.c from the tables beside it. */\n#include "
	       "<linux/filter.h>\n");
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
		int r = generate(tables[i], "kill", SCMP_ACT_KILL_PROCESS);

		if (!r)
			r = generate(tables[i], "log", SCMP_ACT_LOG);
		if (r) {
			fprintf(stderr, "%s: %s\n", tables[i]->name, strerror(-r));
			return 1;
		}
	}
	return ferror(stdout) || fflush(stdout) ? 1 : 0;
}
