/* SPDX-License-Identifier: Apache-2.0 */
/* A keyed hash (SipHash-1-3) for tables whose keys the guest chooses. */
#ifndef SBX_BASE_HASH_H
#define SBX_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

struct hash_key {
	uint64_t k0, k1; /* random, per process */
};

uint64_t hash_bytes(const struct hash_key *key, const void *p, size_t len);

/* A fast mix for integer keys of tables whose size bounds an attack (futex, inode numbers). */
static inline uint64_t hash_u64(uint64_t x)
{
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93ull;
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93ull;
	return x ^ (x >> 32);
}

#endif
