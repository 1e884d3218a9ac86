/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sbx-gofer: fd 3 is the control socket to the monitor, fd 4 the connection to the sentry. The first message on fd 3 is
 * the configuration; Started answers it once the process is confined, or says why it is not.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/host/sched.h"
#include "base/log.h"
#include "base/wire/wire.h"
#include "gofer/confine.h"
#include "gofer/gofer.h"
#include "gofer/reopen.h"
#include "gofer/watch.h"

#define FD_CONTROL 3
#define FD_SENTRY  4
#define FD_RESERVE 128  /* for directories that are read, donated fds on their way, the process's own */
#define FD_BUDGET  4096 /* O_PATH fds at most */

static uint8_t config_buf[WIRE_MSG_MAX];

static int receive_config(Sbx__Control__Message **ret, struct sbx_err *err)
{
	struct wire_msg m = { .buf = config_buf, .cap = sizeof(config_buf) };
	int r = wire_recv(FD_CONTROL, &m);

	if (r <= 0)
		return sbx_fail(err, r ? r : -EPIPE, "receive configuration");
	wire_close_fds(&m);
	*ret = sbx__control__message__unpack(NULL, m.len, config_buf);
	if (!*ret || (*ret)->m_case != SBX__CONTROL__MESSAGE__M_GOFER_CONFIG)
		return sbx_fail(err, 0, "not a configuration");
	return 0;
}

static void send_started(const struct confine *c, const struct sbx_err *err)
{
	Sbx__Control__Started s = SBX__CONTROL__STARTED__INIT;
	Sbx__Control__Message m = SBX__CONTROL__MESSAGE__INIT;
	uint8_t buf[1024];
	struct wire_msg w = { .buf = buf };
	static char note[64], text[sizeof(err->msg)];

	snprintf(note, sizeof(note), "gofer: seccomp%s%s", c->mount_ns ? ", mount namespace" : "",
		 c->empty_root ? ", empty root" : "");
	s.note = note;
	if (err) {
		snprintf(text, sizeof(text), "%s", err->msg);
		s.error = text;
		s.error_exit = 125;
	}
	m.m_case = SBX__CONTROL__MESSAGE__M_STARTED;
	m.started = &s;
	w.len = sbx__control__message__pack(&m, buf);
	if (wire_send(FD_CONTROL, &w) < 0)
		_exit(125); /* no monitor, no sandbox */
}

static unsigned fd_budget(void)
{
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl) < 0 || rl.rlim_cur < FD_RESERVE * 2)
		return FD_RESERVE / 2;
	return (unsigned)MIN(rl.rlim_cur - FD_RESERVE, (rlim_t)FD_BUDGET);
}

static int start(struct confine *c, struct gofer **ret, struct sbx_err *err)
{
	Sbx__Control__Message *m = NULL;
	const Sbx__Control__GoferConfig *cfg;
	struct gofer *g;
	int r = receive_config(&m, err);

	if (r < 0)
		return r;
	cfg = m->gofer_config;
	if (log_enable(cfg->log_channels) < 0)
		return sbx_fail(err, 0, "unknown log channel in '%s'", cfg->log_channels);
	c->all_read_only = true;
	for (size_t i = 0; i < cfg->n_grants; i++)
		c->all_read_only &= cfg->grants[i]->mode != SBX__CONTROL__GRANT_MODE__GRANT_RW;
	r = confine_isolate(c, err);
	if (r < 0)
		return r;
	r = reopen_init();
	if (r < 0)
		return sbx_fail(err, r, "open /proc/self/fd");
	r = gofer_server_create(fd_budget(), &g);
	if (r < 0)
		return sbx_fail(err, r, "start");
	audit_init(&g->audit, FD_CONTROL, cfg->audit_allows);
	r = gofer_configure(g, cfg, c->mount_ns, err);
	if (r < 0)
		return r;
	g->watches = watch_create();
	gofer_socket_time(g, FD_SENTRY);
	host_sched_short_turns();
	follow_start(&g->follow);
	sbx__control__message__free_unpacked(m, NULL);
	r = confine_steady(c, err);
	if (r < 0)
		return r;
	*ret = g;
	return 0;
}

int main(void)
{
	struct confine c = { 0 };
	struct sbx_err err = { 0 };
	struct gofer *g = NULL;
	int r;

	log_init("sbx-gofer", 2);
	if (fcntl(FD_CONTROL, F_GETFD) < 0 || fcntl(FD_SENTRY, F_GETFD) < 0) {
		log_err(CH_GOFER, "is started by sbx, not by hand");
		return 125;
	}
	r = start(&c, &g, &err);
	if (r < 0) {
		send_started(&c, &err);
		return 125;
	}
	send_started(&c, NULL);
	r = gofer_serve(g, FD_SENTRY, FD_CONTROL);
	if (r < 0)
		log_err(CH_GOFER, "%s", r == -EPROTO ? "a message that is not of the protocol" : strerror(-r));
	_exit(r < 0 ? 125 : 0); /* exit handlers would only meet the filter */
}
