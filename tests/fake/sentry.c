/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stands in for sbx-sentry in tests of the monitor: speaks the control protocol and runs the
 * program on the host itself. A program name that starts with '@' asks for a way to misbehave.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sentry/control/channel.h"

static Sbx__Control__Message *config_message;
static Sbx__Control__SentryConfig *config;
static int stdio[WIRE_FDS_MAX];
static uint32_t changes_dropped;

static void send_message(Sbx__Control__Message *m)
{
	if (control_send(CONTROL_FD, m, NULL, 0))
		_exit(99);
}

static void send_started(const char *error, int code)
{
	Sbx__Control__Message m = SBX__CONTROL__MESSAGE__INIT;
	Sbx__Control__Started s = SBX__CONTROL__STARTED__INIT;

	s.platform = (char *)"fake";
	s.error = (char *)error;
	s.error_exit = code;
	m.m_case = SBX__CONTROL__MESSAGE__M_STARTED;
	m.started = &s;
	send_message(&m);
}

static void send_exited(int status, bool banned)
{
	Sbx__Control__Message m = SBX__CONTROL__MESSAGE__INIT;
	Sbx__Control__Exited e = SBX__CONTROL__EXITED__INIT;

	e.wait_status = status;
	e.tasks_peak = 1;
	e.changes_dropped = changes_dropped;
	e.banned = banned;
	m.m_case = SBX__CONTROL__MESSAGE__M_EXITED;
	m.exited = &e;
	send_message(&m);
}

static void send_denial(void)
{
	Sbx__Control__Message m = SBX__CONTROL__MESSAGE__INIT;
	Sbx__Control__Denial d = SBX__CONTROL__DENIAL__INIT;

	d.class_ = (char *)"file";
	d.op = (char *)"open";
	d.object = (char *)"/etc/shadow";
	d.rule = (char *)"hide";
	m.m_case = SBX__CONTROL__MESSAGE__M_DENIAL;
	m.denial = &d;
	send_message(&m);
}

static void send_changes(unsigned n)
{
	static Sbx__Control__Change c[2000], *p[2000];
	static char path[2000][16];
	Sbx__Control__Message m = SBX__CONTROL__MESSAGE__INIT;
	Sbx__Control__Changes list = SBX__CONTROL__CHANGES__INIT;

	m.m_case = SBX__CONTROL__MESSAGE__M_CHANGES;
	m.changes = &list;
	list.changes = p;
	for (unsigned at = 0; at < n; at += (unsigned)list.n_changes) {
		for (list.n_changes = 0; list.n_changes < 2000 && at + list.n_changes < n; list.n_changes++) {
			size_t i = list.n_changes;

			sbx__control__change__init(&c[i]);
			snprintf(path[i], sizeof(path[i]), "/f%u", (unsigned)(at + i));
			c[i].op = (char *)"A";
			c[i].path = path[i];
			p[i] = &c[i];
		}
		send_message(&m);
	}
}

/* Something of ours is to outlive us unless the monitor kills it. */
static void leave_daemon(void)
{
	if (fork() == 0) {
		setsid();
		if (fork() == 0) {
			for (;;)
				pause();
		}
		_exit(0);
	}
	wait(NULL);
}

static void eat_memory(size_t mib)
{
	if (fork() == 0) {
		volatile char *p = malloc(mib << 20);

		if (p) {
			for (size_t i = 0; i < mib << 20; i += 512)
				p[i] = 1;
		}
		for (;;)
			pause();
	}
}

static void misbehave(const char *what)
{
	if (!strcmp(what, "@die")) {
		raise(SIGSEGV);
	} else if (!strcmp(what, "@sigsys")) {
		raise(SIGSYS);
	} else if (!strcmp(what, "@nonsense")) {
		(void)!write(CONTROL_FD, "\xff\xff\xff", 3);
		pause();
	} else if (!strcmp(what, "@config")) {
		Sbx__Control__Message m = SBX__CONTROL__MESSAGE__INIT;

		m.m_case = SBX__CONTROL__MESSAGE__M_SENTRY_CONFIG;
		m.sentry_config = config;
		send_message(&m);
		pause();
	} else if (!strcmp(what, "@missing")) {
		send_started("no such program", 127);
		_exit(0);
	} else if (!strcmp(what, "@banned")) {
		send_started("", 0);
		send_exited(126 << 8, true);
		_exit(0);
	} else if (!strcmp(what, "@denials")) {
		send_started("", 0);
		for (int i = 0; i < 3; i++)
			send_denial();
		send_exited(0, false);
		_exit(0);
	} else if (!strcmp(what, "@denial-flood")) {
		send_started("", 0);
		for (int i = 0; i < 5000; i++)
			send_denial();
		send_exited(0, false);
		_exit(0);
	} else if (!strcmp(what, "@daemon")) {
		send_started("", 0);
		leave_daemon();
		send_exited(0, false);
		_exit(0);
	} else if (!strcmp(what, "@linger")) {
		send_started("", 0);
		send_exited(0, false);
		pause();
	} else if (!strcmp(what, "@changes")) {
		send_started("", 0);
		send_changes(80000);
		send_changes(40000);
		changes_dropped = 7;
		send_exited(0, false);
		_exit(0);
	} else if (!strcmp(what, "@late-changes")) {
		send_started("", 0);
		send_exited(0, false);
		send_changes(10);
		_exit(0);
	} else if (!strcmp(what, "@changes-then-deaf")) {
		send_started("", 0);
		send_changes(10);
		pause();
	} else if (!strcmp(what, "@die-later")) {
		send_started("", 0);
		raise(SIGKILL);
	} else if (!strcmp(what, "@memory")) {
		send_started("", 0);
		eat_memory(200);
		pause();
	}
	_exit(98);
}

static pid_t run_program(void)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	for (int i = 0; i < 3; i++)
		dup2(stdio[i], i);
	if (chdir(config->cwd) < 0)
		_exit(97);
	config->argv = realloc(config->argv, (config->n_argv + 1) * sizeof(char *));
	config->envp = realloc(config->envp, (config->n_envp + 1) * sizeof(char *));
	config->argv[config->n_argv] = NULL;
	config->envp[config->n_envp] = NULL;
	execvpe(config->argv[0], config->argv, config->envp);
	_exit(errno == ENOENT ? 127 : 126);
}

static void forward_signals(pid_t pid)
{
	Sbx__Control__Message *m;
	int fds[WIRE_FDS_MAX];
	unsigned n;

	while (control_recv(CONTROL_FD, &m, fds, &n) == 1) {
		if (m->m_case == SBX__CONTROL__MESSAGE__M_SIGNAL)
			kill(pid, m->signal->signo ? m->signal->signo : SIGKILL);
	}
	_exit(0);
}

int main(void)
{
	pid_t pid, helper;
	unsigned n;
	int st;

	if (control_recv_config(CONTROL_FD, &config_message, stdio, &n) != 1 ||
	    config_message->m_case != SBX__CONTROL__MESSAGE__M_SENTRY_CONFIG || n < 3)
		return 99;
	config = config_message->sentry_config;
	if (config->argv[0][0] == '@')
		misbehave(config->argv[0]);
	pid = run_program();
	send_started("", 0);
	helper = fork();
	if (helper == 0)
		forward_signals(pid);
	for (int i = 0; i < 3; i++)
		close(stdio[i]);
	waitpid(pid, &st, 0);
	send_exited(st, false);
	return 0;
}
