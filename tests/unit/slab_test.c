/* SPDX-License-Identifier: Apache-2.0 */
/* base/slab.h: objects do not overlap, are used again, and empty chunks go. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "base/slab.h"
#include "tests/lib/tap.h"

#define N 20000

struct thing {
	uint32_t who;
	uint8_t body[97];
};

static struct slab slab = SLAB_INIT(slab, struct thing);
static struct thing *things[N];

static struct thing *make(uint32_t who)
{
	struct thing *t = slab_alloc(&slab);

	if (!t)
		abort();
	t->who = who;
	memset(t->body, (int)(who % 251), sizeof(t->body));
	return t;
}

static bool intact(const struct thing *t, uint32_t who)
{
	if (t->who != who || (uintptr_t)t % 16)
		return false;
	for (size_t i = 0; i < sizeof(t->body); i++) {
		if (t->body[i] != who % 251)
			return false;
	}
	return true;
}

static unsigned broken(void)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < N; i++)
		n += things[i] && !intact(things[i], i);
	return n;
}

static unsigned chunks(void)
{
	unsigned n = 0;

	for (struct list *x = slab.partial.next; x != &slab.partial; x = x->next)
		n++;
	return n;
}

static void drop(uint32_t i)
{
	slab_free(&slab, things[i]);
	things[i] = NULL;
}

int main(void)
{
	unsigned seed = 1;

	slab_free(&slab, NULL);
	for (uint32_t i = 0; i < N; i++)
		things[i] = make(i);
	tap_eq(broken(), 0, "objects do not overlap");
	for (uint32_t i = 0; i < N; i += 3)
		drop(i);
	tap_eq(broken(), 0, "nor are they touched when others go");
	for (unsigned round = 0; round < 200000; round++) {
		uint32_t i = (uint32_t)rand_r(&seed) % N;

		if (things[i])
			drop(i);
		else
			things[i] = make(i);
	}
	tap_eq(broken(), 0, "nor when they come and go");
	for (uint32_t i = 0; i < N; i++)
		drop(i);
	tap_ok(chunks() <= 1, "what is empty goes back to the host, all but one");
	things[7] = make(7);
	things[8] = make(8);
	tap_ok(intact(things[7], 7) && intact(things[8], 8), "and it is of use again");
	return tap_done();
}
