/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stream of --events=FD: a line of JSON for each thing that happens, while it happens. The
 * reader cannot hold the sandbox up: what it does not take in time is kept up to a bound, then
 * output events are dropped and counted.
 */
#ifndef SBX_TOOLS_MONITOR_EVENTS_H
#define SBX_TOOLS_MONITOR_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct run_denial;
struct run_result;

struct events {
	int fd; /* -1: none; made nonblocking */
	char *buf;
	size_t len, cap;
	uint64_t dropped;
};

void events_init(struct events *e, int fd);
void events_fini(struct events *e);
void events_flush(struct events *e);

void events_started(struct events *e, const struct run_result *res);
void events_output(struct events *e, const char *stream, const void *data, size_t len);
void events_denial(struct events *e, const struct run_denial *d);
void events_waiting(struct events *e, bool waiting);

/* The last line; waits a moment for a reader that is behind. */
void events_end(struct events *e, const struct run_result *res);

/* All there is to tell of a command that was never started: its denials and its end. @fd may be -1. */
void events_refused(int fd, const struct run_result *res);

#endif
