/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each request is two wake-ups. On one processor one is a switch; across processors it costs many times that, and where
 * the host's scheduler has once put the gofer away from the sentry it tends to leave it. So while requests come from
 * one processor the gofer binds itself to that, and is let go by the first that comes from another. When such turns
 * are short it takes more requests before it binds itself again.
 */
#ifndef SBX_GOFER_FOLLOW_H
#define SBX_GOFER_FOLLOW_H

#include <stdbool.h>
#include <stdint.h>

struct follow {
	bool on;        /* follow_start() found more processors than one, and may bind */
	bool bound;
	uint32_t cpu;   /* 1 + that of the last request; 0: not told */
	uint32_t count; /* of requests from there in a row */
	uint32_t need;  /* of them, to bind */
};

/* Before confinement; an error leaves it off. */
void follow_start(struct follow *f);
/* A request came from processor @cpu - 1. 1: bind to @cpu - 1; -1: let go; 0: nothing changes. */
int follow_decide(struct follow *f, uint32_t cpu);
/* As that, and does it. After the reply, so that nobody waits for it. */
void follow_request(struct follow *f, uint32_t cpu);

#endif
