/* SPDX-License-Identifier: MIT
 *
 * aead: AES-256-GCM as a stream, its counter mode for ranges, AES-256-XTS
 * sectors for drafts, and HKDF-SHA256.  The only room that includes OpenSSL's
 * ciphers.  Never linked into the relay. */
#ifndef AIRLOX_AEAD_H
#define AIRLOX_AEAD_H

#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

#define AEAD_KEY 32
#define AEAD_NONCE 12
#define AEAD_TAG 16

struct aead;

/* A stream that seals (or opens) under key and nonce, with aad first. */
struct aead *aead_seal_new(const uint8_t key[AEAD_KEY],
			   const uint8_t nonce[AEAD_NONCE],
			   const void *aad, size_t aad_n);
struct aead *aead_open_new(const uint8_t key[AEAD_KEY],
			   const uint8_t nonce[AEAD_NONCE],
			   const void *aad, size_t aad_n);
/* n bytes in, n bytes out; in and out may be the same. */
int aead_update(struct aead *a, uint8_t *out, const uint8_t *in, size_t n);
int aead_seal_final(struct aead *a, uint8_t tag[AEAD_TAG]);
/* 0, or -1: what was opened so far is not to be trusted nor shown. */
int aead_open_final(struct aead *a, const uint8_t tag[AEAD_TAG]);
void aead_free(struct aead *a);	/* wipes */

/* Decrypts n bytes at plaintext offset `off` of a GCM stream without its tag
 * (its counter starts at 2 for the first block).  The caller has checked the
 * ciphertext otherwise. */
int aead_range(const uint8_t key[AEAD_KEY], const uint8_t nonce[AEAD_NONCE],
	       uint64_t off, uint8_t *out, const uint8_t *in, size_t n);

/* Tags of bytes that are not encrypted: GMAC.  Under one key the nth tag may
 * be shown for one content only.  Not thread-safe. */
struct aead_mac;
struct aead_mac *aead_mac_new(const uint8_t key[AEAD_KEY]);
int aead_mac_tag(struct aead_mac *m, uint64_t nth, uint8_t tag[AEAD_TAG],
		 const void *p, size_t n);
void aead_mac_free(struct aead_mac *m);	/* wipes */

/* The 4096-byte sectors of a vault, AES-256-XTS with the sector's number as
 * tweak; key is two different 32-byte halves.  One key's schedule serves many
 * sectors: n of them, numbered from `first`; in and out may be the same.  Not
 * thread-safe. */
#define AEAD_XTS_KEY 64
#define AEAD_SECTOR 4096
struct aead_xts;
struct aead_xts *aead_xts_new(const uint8_t key[AEAD_XTS_KEY]);
int aead_xts_seal(struct aead_xts *x, uint64_t first, uint8_t *out,
		  const uint8_t *in, size_t sectors);
int aead_xts_open(struct aead_xts *x, uint64_t first, uint8_t *out,
		  const uint8_t *in, size_t sectors);
void aead_xts_free(struct aead_xts *x);	/* wipes */

/* HKDF-SHA256 (RFC 5869), out_n at most 255 * 32. */
int aead_hkdf(uint8_t *out, size_t out_n, const void *ikm, size_t ikm_n,
	      const void *salt, size_t salt_n, const void *info, size_t info_n);

#endif
