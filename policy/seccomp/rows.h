/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which host calls each of our processes may still make once it is steady. One table a role, each
 * row with its reason; a wider filter is always a change under policy/seccomp. gen.c turns the
 * tables into BPF at build time.
 */
#ifndef SBX_POLICY_SECCOMP_ROWS_H
#define SBX_POLICY_SECCOMP_ROWS_H

#include <seccomp.h>
#include <stddef.h>

struct seccomp_row {
	int nr;
	const char *why; /* "file.c: what for" */
	unsigned n;      /* of cmp; all must hold. Several rows of one call: any of them */
	struct scmp_arg_cmp cmp[2];
};

#define ROW(name, reason)                                                                          \
	{                                                                                          \
		SCMP_SYS(name), reason, 0,                                                         \
		{                                                                                  \
			{                                                                          \
				0                                                                  \
			}                                                                          \
		}                                                                                  \
	}
#define ARG(i, op, ...)                                                                            \
	{                                                                                          \
		i, SCMP_CMP_##op, __VA_ARGS__                                                      \
	}
#define ROW_IF(name, reason, n, ...)                                                               \
	{                                                                                          \
		SCMP_SYS(name), reason, n,                                                         \
		{                                                                                  \
			__VA_ARGS__                                                                \
		}                                                                                  \
	}

struct seccomp_table {
	const char *name;
	const struct seccomp_row *rows;
	size_t n;
	const struct seccomp_table *also; /* its rows too; or NULL */
	/* One of the rows, of one argument that must be equal: asked for before all others. Or NULL */
	const struct seccomp_row *first;
};

extern const struct seccomp_table seccomp_sentry, seccomp_sentry_ptrace, seccomp_sentry_kvm, seccomp_sentry_common,
        seccomp_gofer, seccomp_sbx;

#ifdef SBX_SANITIZED
/* What the run-time libraries of sanitizers do, in every role. Such a build is for tests and says
 * so. */
extern const struct seccomp_table seccomp_sanitizer;
#endif

#endif
