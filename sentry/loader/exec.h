/* SPDX-License-Identifier: Apache-2.0 */
/* execve(2): the ELF and script loader. elf(5). */
#ifndef SBX_SENTRY_LOADER_EXEC_H
#define SBX_SENTRY_LOADER_EXEC_H

#include <stddef.h>

struct file;
struct task;

/* Argument and environment strings, copied in: one block, owned. */
struct exec_strings {
	char *block;     /* NUL-terminated strings, one after another */
	size_t len, cap;
	unsigned argc, envc;
};

void exec_strings_fini(struct exec_strings *s);
int exec_strings_add(struct exec_strings *s, const char *str, size_t len, size_t limit); /* -E2BIG */

/*
 * Replaces the program of the calling task. @file is the program (borrowed), @path its name as given (for AT_EXECFN and
 * scripts). 0: the task is ready to run the new program and has been resumed (return SYS_NO_RETURN); -errno: nothing
 * was changed. A failure past the point of no return kills the task with SIGKILL or SIGSEGV as Linux does and returns 0.
 */
int exec_load(struct task *t, struct file *file, const char *path, struct exec_strings *strings);

/* For the exec bans: called with the resolved absolute path and argv; 0 or -EACCES (then recorded as a denial). */
int exec_policy_check(struct task *t, const char *program, const struct exec_strings *strings);

#endif
