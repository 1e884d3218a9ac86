/* SPDX-License-Identifier: Apache-2.0 */
#include "sentry/syscalls/exec.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sentry/kernel/restart.h"
#include "sentry/kernel/task.h"
#include "sentry/kernel/uaccess.h"
#include "sentry/loader/exec.h"
#include "sentry/vfs/fdtable.h"
#include "sentry/vfs/file.h"
#include "sentry/vfs/vfs.h"

#define POINTERS_AT_ONCE 256
#define WINDOW_SIZE 16384

/* Strings of one call mostly lie one after another: guest memory is read in windows, each byte
 * once. */
struct window {
	uaddr_t base;
	size_t len;
	char buf[WINDOW_SIZE];
};

/* At least one byte at @at, or -EFAULT. */
static ssize_t window_at(struct window *w, struct task *t, uaddr_t at, const char **p)
{
	if (at < w->base || at - w->base >= w->len) {
		ssize_t n = copy_in_part(t, at, w->buf, sizeof(w->buf));

		w->base = at;
		w->len = n > 0 ? (size_t)n : 0;
		if (n <= 0)
			return -EFAULT;
	}
	*p = w->buf + (at - w->base);
	return (ssize_t)(w->len - (at - w->base));
}

/* The state of copying argv and envp. */
struct arg_copy {
	struct task *t;
	struct exec_strings *strings;
	size_t limit;
	struct window win;
	char long_string[EXEC_STRLEN_MAX]; /* one that passes the end of a window */
};

static int copy_string(struct arg_copy *c, uaddr_t at)
{
	size_t len = 0;

	for (;;) {
		const char *p, *nul;
		ssize_t n = window_at(&c->win, c->t, at + len, &p);
		size_t take;

		if (n < 0)
			return -EFAULT;
		nul = memchr(p, '\0', (size_t)n);
		take = nul ? (size_t)(nul - p) : (size_t)n;
		if (take >= EXEC_STRLEN_MAX - len)
			return -E2BIG;
		if (nul && !len)
			return exec_strings_add(c->strings, p, take, c->limit);
		memcpy(c->long_string + len, p, take);
		len += take;
		if (nul)
			return exec_strings_add(c->strings, c->long_string, len, c->limit);
	}
}

/* Copies the strings of the NULL-terminated array at @array; NULL is an empty one (as Linux has
 * it). */
static int copy_array(struct arg_copy *c, uaddr_t array, unsigned *count)
{
	uint64_t ptr[POINTERS_AT_ONCE];
	unsigned i = 0, n = 0;

	while (array) {
		int rc;

		if (i == n) {
			ssize_t got = copy_in_part(c->t, array, ptr, sizeof(ptr));

			if (got < (ssize_t)sizeof(ptr[0]))
				return -EFAULT;
			n = (unsigned)got / sizeof(ptr[0]);
			array += n * sizeof(ptr[0]);
			i = 0;
		}
		if (!ptr[i])
			return 0;
		rc = copy_string(c, ptr[i++]);
		if (rc < 0)
			return rc;
		(*count)++;
	}
	return 0;
}

static int copy_args(struct task *t, uaddr_t argv, uaddr_t envp, struct exec_strings *s)
{
	struct arg_copy *c = malloc(sizeof(*c));
	int rc;

	if (!c)
		return -ENOMEM;
	c->t = t;
	c->strings = s;
	c->limit = exec_strings_limit(t);
	c->win.base = c->win.len = 0;
	rc = copy_array(c, argv, &s->argc);
	if (rc == 0)
		rc = copy_array(c, envp, &s->envc);
	free(c);
	return rc;
}

/* The name under which an fd's program is known: /dev/fd/N[/path]; "" when a script there could not
 * be opened again. */
static void fd_name(struct task *t, int fd, const char *path, char *buf, size_t cap)
{
	int flags = fd_get_flags(t->fdt, fd);

	if (flags < 0 || (flags & FD_CLOEXEC) ||
	    snprintf(buf, cap, path[0] ? "/dev/fd/%d/%s" : "/dev/fd/%d", fd, path) >= (int)cap)
		buf[0] = '\0';
}

static int64_t exec_call(struct task *t, int dirfd, uaddr_t upath, uaddr_t argv, uaddr_t envp,
                         int flags)
{
	char path[PATH_MAX_LINUX], name[PATH_MAX_LINUX + 32];
	struct exec_strings strings = { .block = NULL };
	unsigned walk = flags & AT_SYMLINK_NOFOLLOW ? 0 : WALK_FOLLOW;
	struct file *f;
	ssize_t n;
	int rc;

	if (flags & ~(AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW))
		return -EINVAL;
	n = copy_in_str(t, upath, path, sizeof(path));
	if (n < 0)
		return n;
	if (!n && !(flags & AT_EMPTY_PATH))
		return -ENOENT;
	rc = exec_open(t, dirfd, path, walk | (flags & AT_EMPTY_PATH ? WALK_EMPTY : 0), &f);
	if (rc < 0)
		return rc;
	if (dirfd == AT_FDCWD || path[0] == '/')
		memcpy(name, path, (size_t)n + 1);
	else
		fd_name(t, dirfd, path, name, sizeof(name));
	rc = copy_args(t, argv, envp, &strings);
	if (rc == 0)
		rc = exec_load(t, f, name, &strings);
	exec_strings_fini(&strings);
	file_put(f);
	return rc < 0 ? rc : SYS_NO_RETURN;
}

int64_t sys_execve(struct task *t, const struct sysargs *a)
{
	return exec_call(t, AT_FDCWD, ARG_PTR(a, 0), ARG_PTR(a, 1), ARG_PTR(a, 2), 0);
}

int64_t sys_execveat(struct task *t, const struct sysargs *a)
{
	return exec_call(t, ARG_INT(a, 0), ARG_PTR(a, 1), ARG_PTR(a, 2), ARG_PTR(a, 3),
	                 ARG_INT(a, 4));
}
