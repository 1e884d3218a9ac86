/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/monitor/events.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/jsonw.h"
#include "base/macros.h"
#include "tools/monitor/base64.h"
#include "tools/monitor/monitor.h"
#include "tools/monitor/result.h"

#define BUFFER_MAX (1u << 20)
#define END_WAIT_MS 1000

void events_init(struct events *e, int fd)
{
	*e = (struct events){ .fd = fd };
	if (fd >= 0)
		(void)fcntl(fd, F_SETFL,
		            O_NONBLOCK |
		                    (fcntl(fd, F_GETFL) & O_APPEND)); /* checked by the option */
}

void events_fini(struct events *e)
{
	free(e->buf);
	*e = (struct events){ .fd = -1 };
}

void events_flush(struct events *e)
{
	ssize_t n = write(e->fd, e->buf, e->len);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0) {
		e->fd = -1; /* nobody reads any more */
		e->len = 0;
		return;
	}
	memmove(e->buf, e->buf + n, e->len - (size_t)n);
	e->len -= (size_t)n;
}

static void queue(struct events *e, struct strbuf *sb, bool may_drop)
{
	size_t max = may_drop ? BUFFER_MAX / 2 : BUFFER_MAX;

	if (!strbuf_ok(sb) || e->len + sb->len > max) {
		e->dropped++;
	} else {
		if (!e->buf) {
			e->buf = malloc(BUFFER_MAX);
			e->cap = BUFFER_MAX;
		}
		if (e->buf) {
			memcpy(e->buf + e->len, sb->p, sb->len);
			e->len += sb->len;
			events_flush(e);
		}
	}
	strbuf_fini(sb);
}

static void begin(struct jsonw *w, struct strbuf *sb, const char *name)
{
	*sb = (struct strbuf){ 0 };
	*w = (struct jsonw){ .sb = sb };
	jsonw_open(w, NULL, '{');
	jsonw_str(w, "event", name);
}

static void end(struct events *e, struct jsonw *w, bool may_drop)
{
	jsonw_close(w, '}');
	strbuf_putc(w->sb, '\n');
	queue(e, w->sb, may_drop);
}

void events_started(struct events *e, const struct run_result *res)
{
	struct strbuf sb;
	struct jsonw w;

	if (e->fd < 0)
		return;
	begin(&w, &sb, "started");
	jsonw_str(&w, "id", res->id);
	jsonw_str(&w, "platform", res->platform);
	end(e, &w, false);
}

void events_output(struct events *e, const char *stream, const void *data, size_t len)
{
	struct strbuf sb;
	struct jsonw w;

	if (e->fd < 0)
		return;
	begin(&w, &sb, "output");
	jsonw_str(&w, "stream", stream);
	if (utf8_valid(data, len)) {
		jsonw_str(&w, "encoding", "utf-8");
		jsonw_strn(&w, "data", data, len);
	} else {
		jsonw_str(&w, "encoding", "base64");
		jsonw_base64(&w, "data", data, len, NULL, 0);
	}
	end(e, &w, true);
}

void events_denial(struct events *e, const struct run_denial *d)
{
	struct strbuf sb;
	struct jsonw w;

	if (e->fd < 0)
		return;
	begin(&w, &sb, "denial");
	result_put_denial(&w, "denial", d);
	end(e, &w, false);
}

void events_waiting(struct events *e, bool waiting)
{
	struct strbuf sb;
	struct jsonw w;

	if (e->fd < 0)
		return;
	begin(&w, &sb, "waiting_for_input");
	jsonw_bool(&w, "waiting", waiting);
	end(e, &w, false);
}

void events_end(struct events *e, const struct run_result *res)
{
	struct strbuf sb;
	struct jsonw w;

	if (e->fd < 0)
		return;
	begin(&w, &sb, "end");
	jsonw_str(&w, "id", res->id);
	jsonw_str(&w, "status", result_status_name(res->status));
	jsonw_int(&w, "exit_code", res->exit_code);
	jsonw_str(&w, "message", res->message);
	jsonw_uint(&w, "dropped", e->dropped);
	end(e, &w, false);
	while (e->fd >= 0 && e->len) {
		struct pollfd p = { .fd = e->fd, .events = POLLOUT };

		if (poll(&p, 1, END_WAIT_MS) <= 0)
			break;
		events_flush(e);
	}
}

void events_refused(int fd, const struct run_result *res)
{
	struct events e;

	events_init(&e, fd);
	for (size_t i = 0; i < res->n_denials; i++)
		events_denial(&e, &res->denials[i]);
	events_end(&e, res);
	events_fini(&e);
}
