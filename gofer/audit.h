/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decisions go to the monitor as control.proto Audit messages. The first of a kind is sent at once; the same again
 * within a second is only counted and sent as one. What the monitor does not take in time is counted as lost and told
 * later: the gofer never waits for it.
 */
#ifndef SBX_GOFER_AUDIT_H
#define SBX_GOFER_AUDIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/macros.h"

#define AUDIT_SLOTS      64
#define AUDIT_OBJECT_MAX 1024
#define AUDIT_PER_SECOND 200

struct audit_event {
	const char *op;     /* these four live for ever */
	const char *mode;   /* "r", "w", "" */
	const char *rule;
	const char *reason;
	bool allow;
};

struct audit_slot {
	struct audit_event ev;
	char object[AUDIT_OBJECT_MAX];
	uint64_t since_ns;   /* when it was last sent */
	uint32_t count;      /* not sent yet */
	bool used;
};

struct audit {
	int sock; /* the monitor; -1: nowhere */
	bool allows;
	uint32_t lost;
	uint64_t window_ns;
	unsigned in_window;
	unsigned n_slots;    /* in use; the others were never touched, which is one page less each few events */
	struct audit_slot slots[AUDIT_SLOTS];
};

void audit_init(struct audit *a, int sock, bool allows);
/* @object is raw; it is quoted here. */
void audit_note(struct audit *a, const struct audit_event *ev, const char *object);
/* Sends what was counted and is due; @all: everything. */
void audit_flush(struct audit *a, bool all);
/* Milliseconds until audit_flush has work, -1: none. */
int audit_timeout(const struct audit *a);

#endif
