/* SPDX-License-Identifier: MIT
 *
 * hash: SHA-256, streamed.  OpenSSL's digest, which uses the processor's SHA
 * instructions where libsodium's does not; the relay links this room and no
 * cipher. */
#ifndef AIRLOX_HASH_H
#define AIRLOX_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HASH_SIZE 32

struct hash;		/* a running SHA-256 */
struct hash *hash_new(void);	/* NULL: no memory */
void hash_add(struct hash *h, const void *p, size_t n);
void hash_final(struct hash *h, uint8_t out[HASH_SIZE]); /* h may be reused */
void hash_free(struct hash *h);

void hash_sha256(uint8_t out[HASH_SIZE], const void *p, size_t n);

#endif
