/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "sentry/kernel/task.h"
#include "sentry/loader/exec.h"

void exec_strings_fini(struct exec_strings *s)
{
	free(s->block);
	*s = (struct exec_strings){ .block = NULL };
}

size_t exec_strings_limit(const struct task *t)
{
	uint64_t n = task_rlimit(t, RLIMIT_STACK) / 4;

	return MAX(MIN(n, EXEC_ARGS_MAX), EXEC_ARGS_MIN);
}

static int reserve(struct exec_strings *s, size_t need)
{
	size_t cap = s->cap ? s->cap : 4096;
	char *p;

	if (need <= s->cap)
		return 0;
	while (cap < need)
		cap *= 2;
	p = realloc(s->block, cap);
	if (!p)
		return -ENOMEM;
	s->block = p;
	s->cap = cap;
	return 0;
}

/* Linux counts the pointers too (bprm_stack_limits). */
static bool fits(const struct exec_strings *s, size_t len, size_t limit)
{
	size_t pointers = ((size_t)s->argc + s->envc + 1) * sizeof(uint64_t);

	return pointers <= limit && len <= limit - pointers;
}

int exec_strings_add(struct exec_strings *s, const char *str, size_t len, size_t limit)
{
	int rc;

	if (len >= EXEC_STRLEN_MAX || !fits(s, s->len + len + 1, limit))
		return -E2BIG;
	rc = reserve(s, s->len + len + 1);
	if (rc < 0)
		return rc;
	memcpy(s->block + s->len, str, len);
	s->block[s->len + len] = '\0';
	s->len += len + 1;
	return 0;
}

int exec_strings_add_arg(struct exec_strings *s, const char *str, size_t limit)
{
	int rc = exec_strings_add(s, str, strlen(str), limit);

	if (rc == 0)
		s->argc++;
	return rc;
}

int exec_strings_add_env(struct exec_strings *s, const char *str, size_t limit)
{
	int rc = exec_strings_add(s, str, strlen(str), limit);

	if (rc == 0)
		s->envc++;
	return rc;
}

int exec_strings_replace_first(struct exec_strings *s, const char *const *args, unsigned n,
                               size_t limit)
{
	size_t old = s->argc ? strlen(s->block) + 1 : 0, new = 0;
	char *to;
	int rc;

	for (unsigned i = 0; i < n; i++)
		new += strlen(args[i]) + 1;
	if (!fits(s, s->len - old + new + n * sizeof(uint64_t), limit))
		return -E2BIG;
	rc = reserve(s, s->len - old + new);
	if (rc < 0)
		return rc;
	memmove(s->block + new, s->block + old, s->len - old);
	to = s->block;
	for (unsigned i = 0; i < n; i++)
		to = stpcpy(to, args[i]) + 1;
	s->len = s->len - old + new;
	s->argc += n - (s->argc ? 1 : 0);
	return 0;
}
