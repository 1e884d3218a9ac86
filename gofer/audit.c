/* SPDX-License-Identifier: Apache-2.0 */
#include "gofer/audit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/log.h"
#include "sentry/control/control.pb-c.h"

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

void audit_init(struct audit *a, int sock, bool allows)
{
	a->sock = sock;
	a->lost = 0;
	a->window_ns = 0;
	a->in_window = 0;
	a->n_slots = 0;
	a->allows = allows;
}

/* protobuf-c wants char *; it does not write to them when packing. */
static char *unconst(const char *s)
{
	return (char *)(uintptr_t)s;
}

static int send_event(struct audit *a, const struct audit_event *ev, const char *object, uint32_t count)
{
	Sbx__Control__Audit au = SBX__CONTROL__AUDIT__INIT;
	Sbx__Control__Message m = SBX__CONTROL__MESSAGE__INIT;
	uint8_t buf[AUDIT_OBJECT_MAX + 512];

	au.class_ = unconst("file");
	au.op = unconst(ev->op);
	au.object = unconst(object);
	au.mode = unconst(ev->mode);
	au.verdict = unconst(ev->allow ? "allow" : "deny");
	au.rule = unconst(ev->rule);
	au.reason = unconst(ev->reason);
	au.count = count;
	m.m_case = SBX__CONTROL__MESSAGE__M_AUDIT;
	m.audit = &au;
	if (sbx__control__message__get_packed_size(&m) > sizeof(buf))
		return -EMSGSIZE;
	if (send(a->sock, buf, sbx__control__message__pack(&m, buf), MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		return -errno;
	return 0;
}

/* Within the rate, and the monitor takes it. */
static bool try_send(struct audit *a, const struct audit_event *ev, const char *object, uint32_t count, uint64_t now)
{
	if (now - a->window_ns >= NSEC_PER_SEC) {
		a->window_ns = now;
		a->in_window = 0;
	}
	if (a->in_window >= AUDIT_PER_SECOND || send_event(a, ev, object, count) < 0)
		return false;
	a->in_window++;
	return true;
}

static bool same(const struct audit_slot *s, const struct audit_event *ev, const char *object)
{
	return s->used && s->ev.op == ev->op && s->ev.rule == ev->rule && s->ev.mode == ev->mode &&
	       s->ev.allow == ev->allow && !strcmp(s->object, object);
}

/* The slot of this event, or one to use for it: free, or the one that was quiet for longest. */
static struct audit_slot *slot_for(struct audit *a, const struct audit_event *ev, const char *object)
{
	struct audit_slot *best = &a->slots[0];

	for (unsigned i = 0; i < a->n_slots; i++) {
		struct audit_slot *s = &a->slots[i];

		if (same(s, ev, object))
			return s;
		if (s->since_ns < best->since_ns)
			best = s;
	}
	if (a->n_slots == AUDIT_SLOTS)
		return best;
	best = &a->slots[a->n_slots++];
	best->used = false;
	return best;
}

void audit_note(struct audit *a, const struct audit_event *ev, const char *object)
{
	char quoted[AUDIT_OBJECT_MAX];
	struct audit_slot *s;
	uint64_t now;

	if (a->sock < 0 || (ev->allow && !a->allows))
		return;
	log_quote(quoted, sizeof(quoted), object, strlen(object));
	s = slot_for(a, ev, quoted);
	now = now_ns();
	if (!same(s, ev, quoted)) {
		if (s->used && s->count && !try_send(a, &s->ev, s->object, s->count, now))
			a->lost += s->count;
		s->used = true;
		s->ev = *ev;
		strcpy(s->object, quoted);
		s->since_ns = 0;
		s->count = 0;
	}
	s->count++;
	if ((!s->since_ns || now - s->since_ns >= NSEC_PER_SEC) && try_send(a, ev, quoted, s->count, now)) {
		s->count = 0;
		s->since_ns = now;
	} else if (!s->since_ns) {
		s->since_ns = now;
	}
}

void audit_flush(struct audit *a, bool all)
{
	static const struct audit_event lost = {
		.op = "audit", .mode = "", .rule = "rate", .reason = "events were lost"
	};
	uint64_t now = now_ns();

	for (unsigned i = 0; i < a->n_slots; i++) {
		struct audit_slot *s = &a->slots[i];

		if (!s->used || !s->count || (!all && now - s->since_ns < NSEC_PER_SEC))
			continue;
		if (!try_send(a, &s->ev, s->object, s->count, now))
			return;
		s->count = 0;
		s->since_ns = now;
	}
	if (a->lost && try_send(a, &lost, "", a->lost, now))
		a->lost = 0;
}

int audit_timeout(const struct audit *a)
{
	if (a->lost)
		return 1000;
	for (unsigned i = 0; i < a->n_slots; i++) {
		if (a->slots[i].used && a->slots[i].count)
			return 1000;
	}
	return -1;
}
