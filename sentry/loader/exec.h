/* SPDX-License-Identifier: Apache-2.0 */
/* execve(2): the ELF and script loader. elf(5). */
#ifndef SBX_SENTRY_LOADER_EXEC_H
#define SBX_SENTRY_LOADER_EXEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macros.h"

struct file;
struct task;

/* Limits of execve(2). */
#define EXEC_STRLEN_MAX (32 * 4096u) /* MAX_ARG_STRLEN, with the NUL */
#define EXEC_ARGS_MIN (32 * 4096ull) /* ARG_MAX: always allowed */
#define EXEC_ARGS_MAX (6ull << 20)   /* three quarters of the default stack: never more */

/* Argument and environment strings, copied in: one block, owned. argv first, then envp. All zero is
 * an empty one. */
struct exec_strings {
	char *block; /* NUL-terminated strings, one after another */
	size_t len, cap;
	unsigned argc, envc; /* counted by the caller of exec_strings_add() */
};

void exec_strings_fini(struct exec_strings *s);
/* Appends a copy of the @len bytes at @str and a NUL. -E2BIG when the string is too long or the
 * block with all pointers would pass @limit; -ENOMEM. */
MUST_CHECK int exec_strings_add(struct exec_strings *s, const char *str, size_t len, size_t limit);
/* As above, and counts it as the next argument; none may follow once there is an environment
 * string. */
MUST_CHECK int exec_strings_add_arg(struct exec_strings *s, const char *str, size_t limit);
MUST_CHECK int exec_strings_add_env(struct exec_strings *s, const char *str, size_t limit);
/* Replaces the first argument by @n others (for scripts). */
MUST_CHECK int exec_strings_replace_first(struct exec_strings *s, const char *const *args,
                                          unsigned n, size_t limit);
/* What the stack limit of @t allows for strings and pointers. */
size_t exec_strings_limit(const struct task *t);

/*
 * Opens a program for execution: path_walk() with @walk_flags, then a regular file with execute
 * permission on a mount that allows it. -EACCES and what the walk gives. Reading needs no
 * permission of the guest's.
 */
MUST_CHECK int exec_open(struct task *t, int dirfd, const char *path, unsigned walk_flags,
                         struct file **ret);

/*
 * Replaces the program of the calling task. @file is the program (borrowed), @path its name as
 * given (for AT_EXECFN and scripts; NULL or "": not reachable by name, which only matters to
 * scripts: -ENOENT). @strings may be changed. 0: the task is ready to run the new program and has
 * been resumed (return SYS_NO_RETURN); -errno: nothing was changed. A failure past the point of no
 * return kills the task with SIGKILL or SIGSEGV as Linux does and returns 0.
 *
 * Also starts the first program, in a task whose context is new and whose address space is empty.
 */
int exec_load(struct task *t, struct file *file, const char *path, struct exec_strings *strings);

/* For the exec bans: called with the resolved absolute path and argv; 0 or -EACCES (then recorded
 * as a denial). */
int exec_policy_check(struct task *t, const char *program, const struct exec_strings *strings);

#endif
