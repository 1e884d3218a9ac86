/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A line is begun when the call starts, since its strings may be gone at its end (execve), and written when it ends. In
 * between it lies in one buffer; a call that blocks writes its line as unfinished and a second one when it ends.
 */
#include "sentry/kernel/strace.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "sentry/kernel/restart.h"
#include "sentry/kernel/task.h"
#include "sentry/kernel/uaccess.h"
#include "sentry/syscalls/sysargs.h"

#define SHOW_BYTES 48u
#define SHOW_PATH  200u
#define SHOW_ARGS  8u

static struct {
	char s[900];
	size_t len;
	const struct task *owner; /* whose line it is; NULL: none */
} line;

PRINTF(1, 2) static void put(const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(line.s + line.len, sizeof(line.s) - line.len, fmt, ap);
	va_end(ap);
	if (n > 0)
		line.len = MIN(line.len + (size_t)n, sizeof(line.s) - 1);
}

static void line_write(const struct task *t)
{
	log_dbg(CH_STRACE, "%d %s", t->tid, line.s);
	line.owner = NULL;
}

static void put_str(struct task *t, uaddr_t a)
{
	char raw[SHOW_PATH], quoted[4 * SHOW_PATH + 1];
	ssize_t n = a ? copy_in_str(t, a, raw, sizeof(raw)) : -1;

	if (n < 0)
		put("%#llx", (unsigned long long)a);
	else
		put("\"%s\"", log_quote(quoted, sizeof(quoted), raw, (size_t)n));
}

static void put_bytes(struct task *t, uaddr_t a, uint64_t len)
{
	char raw[SHOW_BYTES], quoted[4 * SHOW_BYTES + 1];
	ssize_t n = copy_in_part(t, a, raw, MIN(len, (uint64_t)sizeof(raw)));

	if (n < 0 || !a)
		put("%#llx", (unsigned long long)a);
	else
		put("\"%s\"%s", log_quote(quoted, sizeof(quoted), raw, (size_t)n),
		    len > sizeof(raw) ? "..." : "");
}

static void put_argv(struct task *t, uaddr_t a)
{
	uint64_t p;

	put("[");
	for (unsigned i = 0; i < SHOW_ARGS && copy_in(t, a + 8 * i, &p, sizeof(p)) == 0 && p; i++) {
		if (i)
			put(", ");
		put_str(t, p);
	}
	put("]");
}

static bool word_is(const char *w, size_t len, const char *s)
{
	return len == strlen(s) && !memcmp(w, s, len);
}

/* The argument that "in:N" or "out:N" names. */
static uint64_t named_len(const struct sysargs *a, const char *digit)
{
	return *digit >= '0' && *digit <= '5' ? a->a[*digit - '0'] : 0;
}

static void put_arg(struct task *t, unsigned i, const char *w, size_t len)
{
	const struct sysargs *a = &t->op.args;

	if (word_is(w, len, "fd") || word_is(w, len, "int") || word_is(w, len, "sig"))
		put("%d", ARG_INT(a, i));
	else if (word_is(w, len, "dirfd") && ARG_INT(a, i) == AT_FDCWD)
		put("AT_FDCWD");
	else if (word_is(w, len, "dirfd"))
		put("%d", ARG_INT(a, i));
	else if (word_is(w, len, "argv"))
		put_argv(t, a->a[i]);
	else if (word_is(w, len, "len") || word_is(w, len, "size") || word_is(w, len, "uint") || word_is(w, len, "off"))
		put("%llu", (unsigned long long)a->a[i]);
	else if (word_is(w, len, "mode"))
		put("0%o", ARG_U32(a, i));
	else if (word_is(w, len, "path") || word_is(w, len, "str"))
		put_str(t, a->a[i]);
	else if (len == 4 && !memcmp(w, "in:", 3))
		put_bytes(t, a->a[i], named_len(a, w + 3));
	else
		put("%#llx", (unsigned long long)a->a[i]);
}

static const struct sys_desc *desc_of(const struct task *t)
{
	static const struct sys_desc none;

	return t->op.nr < SYS_TABLE_SIZE ? &sys_table[t->op.nr] : &none;
}

static void put_name(const struct task *t)
{
	const struct sys_desc *d = desc_of(t);

	if (d->name)
		put("%s", d->name);
	else
		put("syscall_%llu", (unsigned long long)t->op.nr);
}

void strace_enter(struct task *t)
{
	const char *w = desc_of(t)->argfmt;

	if (t->op.restarted)
		return;
	line.len = 0;
	line.owner = t;
	put_name(t);
	put("(");
	for (unsigned i = 0; w && *w && i < 6; i++) {
		size_t len = strcspn(w, ",");

		if (i)
			put(", ");
		put_arg(t, i, w, len);
		w += len;
		if (*w == ',')
			w++;
	}
}

void strace_blocked(struct task *t)
{
	if (line.owner != t)
		return;
	put(" <unfinished>");
	line_write(t);
}

/* The bytes that the call gave: of the first "out:N". */
static void put_output(struct task *t, int64_t result)
{
	const char *w = desc_of(t)->argfmt;

	for (unsigned i = 0; w && *w && i < 6; i++) {
		size_t len = strcspn(w, ",");

		if (len == 5 && !memcmp(w, "out:", 4) && result > 0) {
			put(" ");
			put_bytes(t, t->op.args.a[i],
				  MIN((uint64_t)result, named_len(&t->op.args, w + 4)));
			return;
		}
		w += len;
		if (*w == ',')
			w++;
	}
}

void strace_leave(struct task *t, int64_t result)
{
	if (line.owner != t) {
		line.len = 0;
		put("<");
		put_name(t);
		put(" resumed>");
	}
	put(")");
	if (result == SYS_NO_RETURN) {
		put(" = ?");
	} else if (result < 0 && result >= -4095) {
		const char *e = strerrorname_np((int)-result);

		put(" = -%s", e ? e : "?");
	} else {
		put(result >= 0 && result < 65536 ? " = %lld" : " = %#llx", (long long)result);
		put_output(t, result);
	}
	line_write(t);
}
