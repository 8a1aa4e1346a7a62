/* SPDX-License-Identifier: MIT
 *
 * seal: a payload becomes a blob, and a blob a payload again, as streams: a
 * 1 GiB item never sits in memory (docs/PROTOCOL.md, section 6).
 *
 * What an opener hands out before opener_final has returned 0 is not verified
 * yet: the caller keeps it to itself until then. */
#ifndef AIRLOX_SEAL_H
#define AIRLOX_SEAL_H

#include "core/item.h"
#include "core/session.h"

struct sealer;

/* Starts a blob for header h (h->size must be the payload's true size).
 * nonce NULL: random.  The first 12 bytes of the blob, the nonce, are put
 * into `blob_head`. */
struct sealer *sealer_new(const struct item_header *h,
			  const uint8_t session_key[32], const uint8_t *nonce,
			  uint8_t blob_head[12], struct err *e);
/* Payload bytes in, as many blob bytes out. */
int sealer_update(struct sealer *s, uint8_t *out, const uint8_t *in, size_t n,
		  struct err *e);
/* The two halves of that, for two threads: all that sealer_cipher gave goes to
 * sealer_hash, in the same order, before sealer_final. */
int sealer_cipher(struct sealer *s, uint8_t *out, const uint8_t *in, size_t n,
		  struct err *e);
void sealer_hash(struct sealer *s, const uint8_t *out, size_t n);
/* The last 16 bytes of the blob, and the envelope, signed with the author's
 * seed.  -1 if the payload was not as long as h->size. */
int sealer_final(struct sealer *s, uint8_t blob_tail[16], struct buf *envelope,
		 uint8_t blob_sha256[HASH_SIZE],
		 const uint8_t author_seed[PRIM_SEED], struct err *e);
void sealer_free(struct sealer *s);

struct opener;

/* The signature needs the blob's hash and so the whole blob: two passes over
 * stored bytes.  opener_hash_* first (length, signature), then opener_open_*.
 * For what is already in memory use seal_open. */
int blob_verify(const struct envelope *v, const uint8_t sha256[HASH_SIZE],
		int64_t blob_n, struct err *e);	/* length, then signature */
struct opener *opener_new(const struct envelope *v,
			  const uint8_t session_key[32],
			  const uint8_t blob_head[12], struct err *e);
int opener_update(struct opener *o, uint8_t *out, const uint8_t *in, size_t n);
int opener_final(struct opener *o, const uint8_t blob_tail[16],
		 struct err *e);	/* ERR_DECRYPT */
void opener_free(struct opener *o);

/* All at once, in memory: length, signature, decryption, in that order. */
int seal_blob(struct buf *blob, struct buf *envelope,
	      const struct item_header *h, struct bytes payload,
	      const uint8_t session_key[32],
	      const uint8_t author_seed[PRIM_SEED], const uint8_t *nonce,
	      struct err *e);
int seal_open(struct buf *payload, const struct envelope *v, struct bytes blob,
	      const uint8_t session_key[32], struct err *e);

#endif
