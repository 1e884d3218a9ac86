/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 (FIPS 180-4), for the hash chain of the audit log. */
#ifndef SBX_BASE_SHA256_H
#define SBX_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

#define SHA256_LEN 32

struct sha256 {
	uint32_t h[8];
	uint64_t len; /* bytes so far */
	uint8_t block[64];
};

void sha256_init(struct sha256 *s);
void sha256_update(struct sha256 *s, const void *data, size_t len);
void sha256_final(struct sha256 *s, uint8_t out[SHA256_LEN]);

/* Writes 64 lower-case digits and a NUL. */
void sha256_hex(const uint8_t digest[SHA256_LEN], char out[2 * SHA256_LEN + 1]);

#endif
