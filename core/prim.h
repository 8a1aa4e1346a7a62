/* SPDX-License-Identifier: MIT
 *
 * prim: the primitives that come from libsodium, and the only room that
 * includes it: Ed25519, BLAKE2b, random bytes, wiping, constant-time
 * comparison, locked memory. */
#ifndef AIRLOX_PRIM_H
#define AIRLOX_PRIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PRIM_SEED 32	/* Ed25519 private key, as a seed */
#define PRIM_PUB 32
#define PRIM_SIG 64

int prim_init(void);	/* once, before all else; -1: no randomness */
void prim_random(void *to, size_t n);
uint32_t prim_random_below(uint32_t upper);
void prim_wipe(void *p, size_t n);
bool prim_equal(const void *a, const void *b, size_t n); /* constant time */

/* Memory that is locked, kept out of core dumps and guarded; NULL if the
 * system gives none.  prim_secret_free wipes. */
void *prim_secret_alloc(size_t n);
void prim_secret_free(void *p);

void prim_pub(uint8_t pub[PRIM_PUB], const uint8_t seed[PRIM_SEED]);
void prim_sign(uint8_t sig[PRIM_SIG], const uint8_t seed[PRIM_SEED],
	       const void *msg, size_t n);
/* Whether the bytes are a point of the curve at all; small order counts.  What
 * is none cannot be a public key. */
bool prim_is_point(const uint8_t pub[PRIM_PUB]);
/* Strict: canonical S, no small-order key, no small-order R. */
bool prim_verify(const uint8_t sig[PRIM_SIG], const uint8_t pub[PRIM_PUB],
		 const void *msg, size_t n);

/* BLAKE2b of n bytes, out_n 16..64; key may be NULL. */
void prim_blake2b(uint8_t *out, size_t out_n, const void *msg, size_t n,
		  const uint8_t *key, size_t key_n);

#endif
