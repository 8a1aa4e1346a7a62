/* SPDX-License-Identifier: MIT */
#include <sodium.h>

#include "core/prim.h"

_Static_assert(PRIM_SEED == crypto_sign_SEEDBYTES, "seed");
_Static_assert(PRIM_PUB == crypto_sign_PUBLICKEYBYTES, "public key");
_Static_assert(PRIM_SIG == crypto_sign_BYTES, "signature");

int prim_init(void) { return sodium_init() < 0 ? -1 : 0; }
void prim_random(void *to, size_t n) { randombytes_buf(to, n); }
uint32_t prim_random_below(uint32_t upper)
{
	return randombytes_uniform(upper);
}

void prim_wipe(void *p, size_t n)
{
	if (p)
		sodium_memzero(p, n);
}

bool prim_equal(const void *a, const void *b, size_t n)
{
	return sodium_memcmp(a, b, n) == 0;
}

void *prim_secret_alloc(size_t n) { return sodium_malloc(n); }
void prim_secret_free(void *p) { sodium_free(p); }

void prim_pub(uint8_t pub[PRIM_PUB], const uint8_t seed[PRIM_SEED])
{
	uint8_t sk[crypto_sign_SECRETKEYBYTES];

	crypto_sign_seed_keypair(pub, sk, seed);
	sodium_memzero(sk, sizeof sk);
}

void prim_sign(uint8_t sig[PRIM_SIG], const uint8_t seed[PRIM_SEED],
	       const void *msg, size_t n)
{
	uint8_t pub[PRIM_PUB], sk[crypto_sign_SECRETKEYBYTES];

	crypto_sign_seed_keypair(pub, sk, seed);
	crypto_sign_detached(sig, NULL, msg, n, sk);
	sodium_memzero(sk, sizeof sk);
}

bool prim_is_point(const uint8_t pub[PRIM_PUB])
{
	uint8_t sum[crypto_core_ed25519_BYTES];

	return crypto_core_ed25519_add(sum, pub, pub) == 0;
}

bool prim_verify(const uint8_t sig[PRIM_SIG], const uint8_t pub[PRIM_PUB],
		 const void *msg, size_t n)
{
	return crypto_sign_verify_detached(sig, msg, n, pub) == 0;
}

void prim_blake2b(uint8_t *out, size_t out_n, const void *msg, size_t n,
		  const uint8_t *key, size_t key_n)
{
	crypto_generichash(out, out_n, msg, n, key, key_n);
}
