/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments of a system call, and what a sys_* function is. */
#ifndef SBX_SENTRY_SYSCALLS_SYSARGS_H
#define SBX_SENTRY_SYSCALLS_SYSARGS_H

#include <stdint.h>

struct task;

struct sysargs {
	uint64_t a[6];
};

/*
 * Decodes, copies in, calls one noun_verb, copies out. Returns the result, -errno, or a value of kernel/restart.h.
 * It may be run several times (see kernel/waitq.h).
 */
typedef int64_t (*sys_fn)(struct task *t, const struct sysargs *a);

/* Arguments are truncated as Linux's SYSCALL_DEFINE does: an int is the low 32 bits. */
#define ARG_INT(s, i)  ((int)(s)->a[i])
#define ARG_U32(s, i)  ((uint32_t)(s)->a[i])
#define ARG_U64(s, i)  ((s)->a[i])
#define ARG_I64(s, i)  ((int64_t)(s)->a[i])
#define ARG_PTR(s, i)  ((uint64_t)(s)->a[i])

enum sys_support {
	SYS_NONE,    /* ENOSYS */
	SYS_FULL,
	SYS_PARTIAL, /* the note says what is missing */
	SYS_STUB,    /* answers as Linux may answer, without the effect; the note says why that is right */
};

struct sys_desc {
	const char *name;
	sys_fn fn;          /* NULL: -ENOSYS */
	uint8_t support;    /* enum sys_support */
	const char *argfmt; /* for strace: "fd,buf,len" */
	const char *note;   /* required unless SYS_FULL */
};

#define SYS_TABLE_SIZE 480
extern const struct sys_desc sys_table[SYS_TABLE_SIZE]; /* by x86_64 number; gaps are all zero */

#endif
