/* SPDX-License-Identifier: MIT */
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/aead.h"

#define STEP_BYTES ((size_t)1 << 30)	/* OpenSSL counts in int */

struct aead {
	EVP_CIPHER_CTX *ctx;	/* its free wipes the key */
};

static struct aead *aead_new(bool seal, const uint8_t key[AEAD_KEY],
			     const uint8_t nonce[AEAD_NONCE],
			     const void *aad, size_t aad_n)
{
	struct aead *a = calloc(1, sizeof *a);
	int n;

	if (!a)
		return NULL;
	a->ctx = EVP_CIPHER_CTX_new();
	if (!a->ctx || aad_n > STEP_BYTES ||
	    EVP_CipherInit_ex(a->ctx, EVP_aes_256_gcm(), NULL, key, nonce,
			      seal) != 1 ||
	    (aad_n && EVP_CipherUpdate(a->ctx, NULL, &n, aad,
				       (int)aad_n) != 1)) {
		aead_free(a);
		return NULL;
	}
	return a;
}

struct aead *aead_seal_new(const uint8_t key[AEAD_KEY],
			   const uint8_t nonce[AEAD_NONCE],
			   const void *aad, size_t aad_n)
{
	return aead_new(true, key, nonce, aad, aad_n);
}

struct aead *aead_open_new(const uint8_t key[AEAD_KEY],
			   const uint8_t nonce[AEAD_NONCE],
			   const void *aad, size_t aad_n)
{
	return aead_new(false, key, nonce, aad, aad_n);
}

static int update(EVP_CIPHER_CTX *ctx, uint8_t *out, const uint8_t *in,
		  size_t n)
{
	while (n) {
		size_t step = n < STEP_BYTES ? n : STEP_BYTES;
		int done;

		if (EVP_CipherUpdate(ctx, out, &done, in, (int)step) != 1 ||
		    (size_t)done != step)
			return -1;
		in += step;
		out += step;
		n -= step;
	}
	return 0;
}

int aead_update(struct aead *a, uint8_t *out, const uint8_t *in, size_t n)
{
	return update(a->ctx, out, in, n);
}

int aead_seal_final(struct aead *a, uint8_t tag[AEAD_TAG])
{
	uint8_t none[AEAD_TAG];
	int n;

	if (EVP_CipherFinal_ex(a->ctx, none, &n) != 1 ||
	    EVP_CIPHER_CTX_ctrl(a->ctx, EVP_CTRL_AEAD_GET_TAG, AEAD_TAG,
				tag) != 1)
		return -1;
	return 0;
}

int aead_open_final(struct aead *a, const uint8_t tag[AEAD_TAG])
{
	uint8_t copy[AEAD_TAG], none[AEAD_TAG];
	int n;

	memcpy(copy, tag, sizeof copy);
	if (EVP_CIPHER_CTX_ctrl(a->ctx, EVP_CTRL_AEAD_SET_TAG, AEAD_TAG,
				copy) != 1 ||
	    EVP_CipherFinal_ex(a->ctx, none, &n) != 1)
		return -1;
	return 0;
}

void aead_free(struct aead *a)
{
	if (a)
		EVP_CIPHER_CTX_free(a->ctx);
	free(a);
}

/* GCM's counter block of plaintext block i is nonce || i + 2 (SP 800-38D,
 * 7.1: J0 = nonce || 1 makes the tag, and inc32 comes before the first). */
int aead_range(const uint8_t key[AEAD_KEY], const uint8_t nonce[AEAD_NONCE],
	       uint64_t off, uint8_t *out, const uint8_t *in, size_t n)
{
	const uint64_t end = (UINT64_C(0xffffffff) - 2) * 16;
	uint8_t iv[16], skip[16] = { 0 };
	int r = -1;

	if (off > end || n > end - off)
		return -1;
	uint32_t block = (uint32_t)(off / 16) + 2;
	memcpy(iv, nonce, AEAD_NONCE);
	for (int i = 0; i < 4; i++)
		iv[AEAD_NONCE + i] = (uint8_t)(block >> (24 - 8 * i));
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	if (ctx &&
	    EVP_CipherInit_ex(ctx, EVP_aes_256_ctr(), NULL, key, iv, 1) == 1 &&
	    update(ctx, skip, skip, off % 16) == 0 &&
	    update(ctx, out, in, n) == 0)
		r = 0;
	EVP_CIPHER_CTX_free(ctx);
	explicit_bzero(skip, sizeof skip);	/* keystream */
	return r;
}

struct aead_mac {
	EVP_CIPHER_CTX *ctx;
};

struct aead_mac *aead_mac_new(const uint8_t key[AEAD_KEY])
{
	struct aead_mac *m = calloc(1, sizeof *m);

	if (!m)
		return NULL;
	m->ctx = EVP_CIPHER_CTX_new();
	if (!m->ctx || EVP_CipherInit_ex(m->ctx, EVP_aes_256_gcm(), NULL, key,
					 NULL, 1) != 1) {
		aead_mac_free(m);
		return NULL;
	}
	return m;
}

int aead_mac_tag(struct aead_mac *m, uint64_t nth, uint8_t tag[AEAD_TAG],
		 const void *p, size_t n)
{
	uint8_t nonce[AEAD_NONCE] = { 0 }, none[AEAD_TAG];
	int done;

	for (int i = 0; i < 8; i++)
		nonce[i] = (uint8_t)(nth >> (8 * i));
	if (n > STEP_BYTES ||
	    EVP_CipherInit_ex(m->ctx, NULL, NULL, NULL, nonce, 1) != 1 ||
	    (n && EVP_CipherUpdate(m->ctx, NULL, &done, p, (int)n) != 1) ||
	    EVP_CipherFinal_ex(m->ctx, none, &done) != 1 ||
	    EVP_CIPHER_CTX_ctrl(m->ctx, EVP_CTRL_AEAD_GET_TAG, AEAD_TAG,
				tag) != 1)
		return -1;
	return 0;
}

void aead_mac_free(struct aead_mac *m)
{
	if (m)
		EVP_CIPHER_CTX_free(m->ctx);
	free(m);
}

struct aead_xts {
	EVP_CIPHER_CTX *seal, *open;
};

static EVP_CIPHER_CTX *xts_ctx(bool seal, const uint8_t key[AEAD_XTS_KEY])
{
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();

	if (ctx && EVP_CipherInit_ex(ctx, EVP_aes_256_xts(), NULL, key, NULL,
				     seal) != 1) {
		EVP_CIPHER_CTX_free(ctx);
		return NULL;
	}
	return ctx;
}

struct aead_xts *aead_xts_new(const uint8_t key[AEAD_XTS_KEY])
{
	struct aead_xts *x = calloc(1, sizeof *x);

	if (!x)
		return NULL;
	x->seal = xts_ctx(true, key);
	x->open = xts_ctx(false, key);
	if (!x->seal || !x->open) {
		aead_xts_free(x);
		return NULL;
	}
	return x;
}

void aead_xts_free(struct aead_xts *x)
{
	if (x) {
		EVP_CIPHER_CTX_free(x->seal);
		EVP_CIPHER_CTX_free(x->open);
	}
	free(x);
}

static int xts(EVP_CIPHER_CTX *ctx, uint64_t sector, uint8_t *out,
	       const uint8_t *in, size_t sectors)
{
	for (; sectors; sectors--, sector++) {
		uint8_t tweak[16] = { 0 };
		int n;

		for (int i = 0; i < 8; i++)
			tweak[i] = (uint8_t)(sector >> (8 * i));
		if (EVP_CipherInit_ex(ctx, NULL, NULL, NULL, tweak, -1) != 1 ||
		    EVP_CipherUpdate(ctx, out, &n, in, AEAD_SECTOR) != 1 ||
		    n != AEAD_SECTOR)
			return -1;
		out += AEAD_SECTOR;
		in += AEAD_SECTOR;
	}
	return 0;
}

int aead_xts_seal(struct aead_xts *x, uint64_t first, uint8_t *out,
		  const uint8_t *in, size_t sectors)
{
	return xts(x->seal, first, out, in, sectors);
}

int aead_xts_open(struct aead_xts *x, uint64_t first, uint8_t *out,
		  const uint8_t *in, size_t sectors)
{
	return xts(x->open, first, out, in, sectors);
}

static OSSL_PARAM octets(const char *name, const void *p, size_t n)
{
	return OSSL_PARAM_construct_octet_string(name,
						 n ? (void *)p : (void *)"",
						 n);
}

int aead_hkdf(uint8_t *out, size_t out_n, const void *ikm, size_t ikm_n,
	      const void *salt, size_t salt_n, const void *info, size_t info_n)
{
	char digest[] = "SHA256";
	const OSSL_PARAM params[] = {
		OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest,
						 0),
		octets(OSSL_KDF_PARAM_KEY, ikm, ikm_n),
		octets(OSSL_KDF_PARAM_SALT, salt, salt_n),
		octets(OSSL_KDF_PARAM_INFO, info, info_n),
		OSSL_PARAM_construct_end(),
	};
	EVP_KDF *kdf = EVP_KDF_fetch(NULL, "HKDF", NULL);
	EVP_KDF_CTX *ctx = kdf ? EVP_KDF_CTX_new(kdf) : NULL;
	int r = ctx && EVP_KDF_derive(ctx, out, out_n, params) == 1 ? 0 : -1;

	EVP_KDF_CTX_free(ctx);
	EVP_KDF_free(kdf);
	return r;
}
