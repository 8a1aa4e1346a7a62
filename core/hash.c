/* SPDX-License-Identifier: MIT */
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "core/hash.h"

struct hash {
	EVP_MD_CTX *ctx;
};

struct hash *hash_new(void)
{
	struct hash *h = calloc(1, sizeof *h);

	if (!h)
		return NULL;
	h->ctx = EVP_MD_CTX_new();
	if (!h->ctx || EVP_DigestInit_ex(h->ctx, EVP_sha256(), NULL) != 1) {
		hash_free(h);
		return NULL;
	}
	return h;
}

void hash_add(struct hash *h, const void *p, size_t n)
{
	if (n)
		EVP_DigestUpdate(h->ctx, p, n);
}

void hash_final(struct hash *h, uint8_t out[HASH_SIZE])
{
	/* a digest that cannot run matches nothing anybody signed */
	if (EVP_DigestFinal_ex(h->ctx, out, NULL) != 1)
		memset(out, 0, HASH_SIZE);
	EVP_DigestInit_ex(h->ctx, NULL, NULL);
}

void hash_free(struct hash *h)
{
	if (h)
		EVP_MD_CTX_free(h->ctx);
	free(h);
}

void hash_sha256(uint8_t out[HASH_SIZE], const void *p, size_t n)
{
	if (EVP_Digest(n ? p : "", n, out, NULL, EVP_sha256(), NULL) != 1)
		memset(out, 0, HASH_SIZE);
}
