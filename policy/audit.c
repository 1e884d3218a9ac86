/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/audit.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/host/file.h"
#include "base/jsonw.h"

#define FIELD_MAX 4096          /* bytes of one string before escaping */
#define TAIL_BYTES (512 * 1024) /* more than two of the longest lines */

#define FIRST_PREV "sha256:0000000000000000000000000000000000000000000000000000000000000000"

struct audit {
	int fd;
	off_t end;    /* size after our last write; another writer made it grow when it differs */
	uint64_t seq; /* of the last record */
	char head[8 + 2 * SHA256_LEN];
	uint64_t first, last; /* ours */
	char our_head[8 + 2 * SHA256_LEN];
	uint64_t lost, lost_noted;
	struct strbuf line;
};

static void put(struct jsonw *w, const char *key, const char *s)
{
	jsonw_strn(w, key, s ? s : "", s ? strnlen(s, FIELD_MAX) : 0);
}

static void put_time(struct jsonw *w)
{
	struct timespec now;
	struct tm tm;
	char text[48];
	size_t n;

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &tm);
	n = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text + n, sizeof(text) - n, ".%03dZ", (int)(now.tv_nsec / 1000000));
	jsonw_str(w, "t", text);
}

/* Builds the line in a->line. Returns its hash in @hash. */
static void format(struct audit *a, const char *sandbox, const struct audit_event *e, char *hash)
{
	struct jsonw w = { .sb = &a->line };
	uint8_t digest[SHA256_LEN];
	struct sha256 s;

	strbuf_reset(&a->line);
	jsonw_open(&w, NULL, '{');
	jsonw_uint(&w, "seq", a->seq + 1);
	put_time(&w);
	put(&w, "sandbox", sandbox);
	jsonw_uint(&w, "pid", e->pid);
	put(&w, "exe", e->exe);
	put(&w, "source", e->source);
	put(&w, "class", e->class);
	put(&w, "op", e->op);
	put(&w, "object", e->object);
	put(&w, "mode", e->mode);
	put(&w, "verdict", e->verdict);
	put(&w, "rule", e->rule);
	put(&w, "reason", e->reason);
	jsonw_uint(&w, "count", e->count ? e->count : 1);
	jsonw_str(&w, "prev", a->head);
	if (!strbuf_ok(&a->line))
		return;
	sha256_init(&s);
	sha256_update(&s, a->line.p, a->line.len);
	sha256_final(&s, digest);
	memcpy(hash, "sha256:", 7);
	sha256_hex(digest, hash + 7);
	strbuf_printf(&a->line, ",\"hash\":\"%s\"}\n", hash);
}

static int append(struct audit *a, const char *data, size_t len)
{
	ssize_t n = host_write(a->fd, data, len);

	if (n == (ssize_t)len) {
		a->end += n;
		return 0;
	}
	/* Half a line helps nobody. Should this fail too, the next to open the log closes the line.
	 */
	if (n > 0 && host_ftruncate(a->fd, a->end) < 0)
		a->end += n;
	return n < 0 ? (int)n : -ENOSPC;
}

static int write_event(struct audit *a, const char *sandbox, const struct audit_event *e)
{
	char hash[sizeof(a->head)];
	int r;

	format(a, sandbox, e, hash);
	if (!strbuf_ok(&a->line)) {
		strbuf_fini(&a->line);
		return -ENOMEM;
	}
	r = append(a, a->line.p, a->line.len);
	if (r)
		return r;
	memcpy(a->head, hash, sizeof(hash));
	memcpy(a->our_head, hash, sizeof(hash));
	a->last = ++a->seq;
	if (!a->first)
		a->first = a->last;
	return 0;
}

/* Finds the last whole record in the file's tail. Returns the bytes of an unfinished line after it,
 * or -errno. */
static ssize_t load_tail(struct audit *a, off_t size)
{
	size_t len = (size_t)MIN(size, (off_t)TAIL_BYTES), end, start;
	struct audit_line last;
	ssize_t r = -ENOMEM;
	char *buf;

	strcpy(a->head, FIRST_PREV);
	a->seq = 0;
	a->end = size;
	if (!size)
		return 0;
	buf = malloc(len);
	if (buf)
		r = host_pread(a->fd, buf, len, size - (off_t)len);
	if (r != (ssize_t)len) {
		free(buf);
		return r < 0 ? r : -EIO;
	}
	for (end = len; end && buf[end - 1] != '\n'; end--)
		;
	r = (ssize_t)(len - end);
	if (!end) {
		/* Not one line: a crash in the very first, if it looks like it. */
		r = len < TAIL_BYTES && buf[0] == '{' ? r : -EINVAL;
		free(buf);
		return r;
	}
	for (start = end - 1; start && buf[start - 1] != '\n'; start--)
		;
	if (audit_line_parse(buf + start, end - 1 - start, &last)) {
		free(buf);
		return -EINVAL;
	}
	a->seq = last.seq;
	memcpy(a->head, last.hash, sizeof(last.hash));
	free(buf);
	return r;
}

/* With the lock held: takes over what another writer appended, and closes a line that it left
 * unfinished. */
static int sync_tail(struct audit *a, bool force)
{
	struct audit_event e = {
		.source = "monitor",
		.class = "lifecycle",
		.op = "recover",
		.verdict = "allow",
		.reason = "an unfinished line was left by a crash",
		.count = 1,
	};
	struct stat st;
	ssize_t torn;
	int r = host_fstat(a->fd, &st);

	if (r || (!force && st.st_size == a->end))
		return r;
	torn = load_tail(a, st.st_size);
	if (torn <= 0)
		return (int)torn;
	r = append(a, "\n", 1);
	return r ? r : write_event(a, "", &e);
}

static int note_losses(struct audit *a)
{
	uint64_t n = a->lost - a->lost_noted;
	struct audit_event e = {
		.source = "monitor",
		.class = "lifecycle",
		.op = "lost",
		.verdict = "deny",
		.reason = "events could not be written",
		.count = (uint32_t)MIN(n, (uint64_t)UINT32_MAX),
	};
	int r;

	if (!n)
		return 0;
	r = write_event(a, "", &e);
	if (!r)
		a->lost_noted = a->lost;
	return r;
}

int audit_open(const char *path, struct audit **ret, struct sbx_err *err)
{
	struct audit *a = calloc(1, sizeof(*a));
	struct stat st;
	int r;

	if (!a)
		return sbx_fail(err, -ENOMEM, "audit log");
	a->fd = host_open(path, O_RDWR | O_APPEND | O_CREAT | O_NOCTTY | O_NONBLOCK, 0600);
	if (a->fd < 0) {
		r = sbx_fail(err, a->fd, "audit log '%s'", path);
		goto fail;
	}
	r = host_fstat(a->fd, &st);
	if (r || !S_ISREG(st.st_mode)) {
		r = sbx_fail(err, r, "audit log '%s' is no regular file", path);
		goto fail;
	}
	if (flock(a->fd, LOCK_EX) < 0) {
		r = sbx_fail(err, -errno, "lock audit log '%s'", path);
		goto fail;
	}
	r = sync_tail(a, true);
	flock(a->fd, LOCK_UN);
	if (r == -EINVAL)
		r = sbx_fail(err, 0,
		             "'%s' is no audit log, or its end was changed (see sbx audit verify)",
		             path);
	else if (r)
		r = sbx_fail(err, r, "audit log '%s'", path);
	if (r)
		goto fail;
	*ret = a;
	return 0;
fail:
	audit_close(a);
	return r;
}

void audit_write(struct audit *a, const char *sandbox, const struct audit_event *e)
{
	int r = -errno;

	while (flock(a->fd, LOCK_EX) < 0) {
		if (errno != EINTR) {
			a->lost++;
			return;
		}
	}
	r = sync_tail(a, false);
	if (!r)
		r = note_losses(a);
	if (!r)
		r = write_event(a, sandbox, e);
	if (r)
		a->lost++;
	flock(a->fd, LOCK_UN);
}

void audit_skip(struct audit *a)
{
	a->lost++;
}

void audit_get_range(const struct audit *a, struct audit_range *r)
{
	*r = (struct audit_range){ .first = a->first, .last = a->last, .lost = a->lost };
	memcpy(r->head, a->our_head[0] ? a->our_head : a->head, sizeof(r->head));
}

void audit_close(struct audit *a)
{
	if (!a)
		return;
	if (a->fd >= 0 && a->lost != a->lost_noted && flock(a->fd, LOCK_EX) == 0) {
		if (!sync_tail(a, false))
			(void)note_losses(a); /* the last try */
		flock(a->fd, LOCK_UN);
	}
	host_close(a->fd);
	strbuf_fini(&a->line);
	free(a);
}
