/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/monitor/output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HEAD (OUTPUT_MAX / 2)
#define TAIL (OUTPUT_MAX - HEAD)

static int output_grow(struct output *o, size_t need)
{
	size_t cap = o->cap ? o->cap : 4096;
	uint8_t *p;

	while (cap < need)
		cap *= 2;
	if (cap == o->cap)
		return 0;
	p = realloc(o->buf, cap);
	if (!p)
		return -ENOMEM;
	o->buf = p;
	o->cap = cap;
	return 0;
}

int output_add(struct output *o, const void *data, size_t len)
{
	const uint8_t *p = data;

	if (output_grow(o, (size_t)MIN(o->total + len, (uint64_t)OUTPUT_MAX)))
		return -ENOMEM;
	while (len) {
		uint64_t at = o->total < HEAD ? o->total : HEAD + (o->total - HEAD) % TAIL;
		size_t n = MIN(len, (size_t)((at < HEAD ? HEAD : OUTPUT_MAX) - at));

		memcpy(o->buf + at, p, n);
		o->total += n;
		p += n;
		len -= n;
	}
	return 0;
}

uint64_t output_dropped(const struct output *o)
{
	return o->total > OUTPUT_MAX ? o->total - OUTPUT_MAX : 0;
}

static void reverse(uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n / 2; i++) {
		uint8_t t = p[i];

		p[i] = p[n - 1 - i];
		p[n - 1 - i] = t;
	}
}

/* Length of an unfinished UTF-8 character at the end of @p, at most 3. */
static size_t partial_end(const uint8_t *p, size_t n)
{
	for (size_t back = 1; back <= 3 && back <= n; back++) {
		uint8_t c = p[n - back];

		if ((c & 0xc0) == 0x80)
			continue;
		if ((c & 0xe0) == 0xc0)
			return back < 2 ? back : 0;
		if ((c & 0xf0) == 0xe0)
			return back < 3 ? back : 0;
		if ((c & 0xf8) == 0xf0)
			return back < 4 ? back : 0;
		return 0;
	}
	return 0;
}

/* Continuation bytes at the start of @p that belong to a character before it. */
static size_t partial_start(const uint8_t *p, size_t n)
{
	size_t i = 0;

	while (i < n && i < 3 && (p[i] & 0xc0) == 0x80)
		i++;
	return i;
}

void output_view(struct output *o, struct output_view *v)
{
	size_t start, cut;

	*v = (struct output_view){ .head = o->buf,
		                   .head_len = (size_t)MIN(o->total, (uint64_t)OUTPUT_MAX) };
	if (o->total <= OUTPUT_MAX)
		return;
	start = (size_t)((o->total - HEAD) % TAIL); /* oldest byte of the ring */
	reverse(o->buf + HEAD, start);
	reverse(o->buf + HEAD + start, TAIL - start);
	reverse(o->buf + HEAD, TAIL);
	v->dropped = output_dropped(o);
	v->head_len = HEAD - (cut = partial_end(o->buf, HEAD));
	v->dropped += cut;
	cut = partial_start(o->buf + HEAD, TAIL);
	v->tail = o->buf + HEAD + cut;
	v->tail_len = TAIL - cut;
	v->dropped += cut;
}

void output_fini(struct output *o)
{
	free(o->buf);
	*o = (struct output){ 0 };
}
