/* SPDX-License-Identifier: Apache-2.0 */
/* SipHash-1-3, after Aumasson and Bernstein, "SipHash: a fast short-input PRF" (2012). */
#include "base/hash.h"

#include <string.h>

struct sip {
	uint64_t v0, v1, v2, v3;
};

static inline uint64_t rotl(uint64_t x, unsigned n)
{
	return (x << n) | (x >> (64 - n));
}

static inline void sip_round(struct sip *s)
{
	s->v0 += s->v1;
	s->v1 = rotl(s->v1, 13) ^ s->v0;
	s->v0 = rotl(s->v0, 32);
	s->v2 += s->v3;
	s->v3 = rotl(s->v3, 16) ^ s->v2;
	s->v0 += s->v3;
	s->v3 = rotl(s->v3, 21) ^ s->v0;
	s->v2 += s->v1;
	s->v1 = rotl(s->v1, 17) ^ s->v2;
	s->v2 = rotl(s->v2, 32);
}

uint64_t hash_bytes(const struct hash_key *key, const void *p, size_t len)
{
	const uint8_t *b = p;
	struct sip s = {
		.v0 = key->k0 ^ 0x736f6d6570736575ull,
		.v1 = key->k1 ^ 0x646f72616e646f6dull,
		.v2 = key->k0 ^ 0x6c7967656e657261ull,
		.v3 = key->k1 ^ 0x7465646279746573ull,
	};
	uint64_t last = (uint64_t)len << 56, m;

	for (; len >= 8; len -= 8, b += 8) {
		memcpy(&m, b, 8);
		s.v3 ^= m;
		sip_round(&s);
		s.v0 ^= m;
	}
	m = 0;
	memcpy(&m, b, len);
	last |= m;
	s.v3 ^= last;
	sip_round(&s);
	s.v0 ^= last;
	s.v2 ^= 0xff;
	sip_round(&s);
	sip_round(&s);
	sip_round(&s);
	return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}
