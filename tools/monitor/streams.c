/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guest's standard streams. Without capture and without a deadline on silence the guest gets
 * our own fds and no byte passes through us; else it gets pipes.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/host/file.h"
#include "base/host/hostio.h"
#include "base/log.h"
#include "tools/monitor/monitor_priv.h"

/* How @fd, our stdout or stderr, takes bytes. Its flags are the caller's too, so it stays as it blocks. */
static void find_step(struct stream *s, int fd)
{
	struct stat st;

	s->step = PIPE_BUF;
	if (host_fstat(fd, &st))
		return;
	s->nowait = S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode);
	if (S_ISREG(st.st_mode))
		s->step = STREAM_CHUNK;
}

static int open_pipe(struct run *r, int i, struct sbx_err *err)
{
	struct stream *s = &r->streams[i];
	int p[2];

	s->pending = malloc(STREAM_CHUNK);
	if (!s->pending)
		return sbx_fail(err, -ENOMEM, "output pipe");
	if (pipe2(p, O_CLOEXEC) < 0)
		return sbx_fail(err, -errno, "output pipe");
	/* Only our end: the guest's end must block. */
	(void)fcntl(p[0], F_SETFL, O_NONBLOCK); /* cannot fail on a new pipe */
	s->from = p[0];
	s->to = r->spec->pass ? STDOUT_FILENO + i : -1;
	find_step(s, s->to);
	s->keep = r->spec->capture ? &r->res->out[i] : NULL;
	s->name = i ? "stderr" : "stdout";
	r->guest_stdio[1 + i] = p[1];
	r->guest_owned[1 + i] = true;
	return 0;
}

int streams_open(struct run *r, struct sbx_err *err)
{
	const struct run_spec *spec = r->spec;
	bool pipes = spec->capture || !spec->pass || spec->events_fd >= 0 ||
	             spec->policy->idle_timeout_ms;
	int ret;

	r->guest_stdio[0] = STDIN_FILENO;
	if (!spec->stdin_pipe) {
		r->guest_stdio[0] = host_open("/dev/null", O_RDONLY, 0);
		if (r->guest_stdio[0] < 0)
			return sbx_fail(err, r->guest_stdio[0], "/dev/null");
		r->guest_owned[0] = true;
	}
	if (!pipes) {
		r->guest_stdio[1] = STDOUT_FILENO;
		r->guest_stdio[2] = spec->merge ? STDOUT_FILENO : STDERR_FILENO;
		return 0;
	}
	ret = open_pipe(r, 0, err);
	if (ret || !spec->merge)
		return ret ? ret : open_pipe(r, 1, err);
	r->guest_stdio[2] = r->guest_stdio[1];
	r->streams[0].name = "output";
	return 0;
}

void stream_close(struct stream *s)
{
	host_close(s->from);
	s->from = -1;
	s->len = 0;
}

void stream_fini(struct stream *s)
{
	stream_close(s);
	free(s->pending);
	s->pending = NULL;
}

/* poll said that there is room: for PIPE_BUF bytes at least, so no way blocks. */
static ssize_t write_some(struct stream *s)
{
	const uint8_t *p = s->pending + s->at;
	ssize_t n;

	if (s->nowait) {
		n = host_write_nowait(s->to, p, s->len);
		if (n != -EOPNOTSUPP && n != -ENOSYS && n != -ESPIPE)
			return n;
		s->nowait = false;
	}
	return host_write(s->to, p, MIN(s->len, s->step));
}

void stream_write(struct run *r, struct stream *s)
{
	ssize_t n = write_some(s);

	if (n == -EINTR || n == -EAGAIN)
		return;
	if (n < 0) {
		/* Nobody reads: the guest is to see that as it would without us. */
		log_dbg(CH_MONITOR, "%s: %s", s->name, strerror((int)-n));
		stream_close(s);
		return;
	}
	s->at += (size_t)n;
	s->len -= (size_t)n;
}

void stream_read(struct run *r, struct stream *s)
{
	ssize_t n = read(s->from, s->pending, STREAM_CHUNK);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0) {
		stream_close(s);
		return;
	}
	if (r->t_idle != NEVER)
		r->t_idle = now_ns() + r->spec->policy->idle_timeout_ms * 1000000;
	if (s->keep && output_add(s->keep, s->pending, (size_t)n))
		run_fail(r, "no memory for the output");
	events_output(&r->events, s->name, s->pending, (size_t)n);
	if (s->to >= 0) {
		s->at = 0;
		s->len = (size_t)n;
	}
}
