/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/aead.h"
#include "core/seal.h"

#define TAG AEAD_TAG

struct sealer {
	struct aead *aead;
	struct hash *hash;	/* over the whole blob */
	struct buf header;	/* canonical: associated data, then signed */
	uint8_t author[PRIM_PUB];
	int64_t left;		/* payload bytes still to come */
};

static int fail_memory(struct err *e)
{
	return err_set(e, ERR_MEMORY, "out of memory");
}

/* The header's canonical bytes, if a reader would take them. */
static int put_header(struct buf *out, const struct item_header *h,
		      struct err *e)
{
	struct item_header again;

	item_put_header(out, h);
	if (buf_failed(out))
		return fail_memory(e);
	int r = item_parse_header(&again, buf_bytes(out), e);
	item_free_header(&again);
	return r;
}

static struct aead *aead_for(bool seal, const struct item_header *h,
			     const uint8_t session_key[32],
			     const uint8_t nonce[AEAD_NONCE],
			     struct bytes raw_header)
{
	uint8_t key[AEAD_KEY];

	session_item_key(key, session_key, h->session_id, h->id);
	struct aead *a = seal ?
		aead_seal_new(key, nonce, raw_header.p, raw_header.n) :
		aead_open_new(key, nonce, raw_header.p, raw_header.n);
	prim_wipe(key, sizeof key);
	return a;
}

struct sealer *sealer_new(const struct item_header *h,
			  const uint8_t session_key[32], const uint8_t *nonce,
			  uint8_t blob_head[12], struct err *e)
{
	struct sealer *s = calloc(1, sizeof *s);

	if (!s || !(s->hash = hash_new())) {
		fail_memory(e);
		goto out_free;
	}
	if (put_header(&s->header, h, e) < 0)
		goto out_free;
	if (nonce)
		memcpy(blob_head, nonce, AEAD_NONCE);
	else
		prim_random(blob_head, AEAD_NONCE);
	memcpy(s->author, h->author, PRIM_PUB);
	s->left = h->size;
	s->aead = aead_for(true, h, session_key, blob_head,
			   buf_bytes(&s->header));
	if (!s->aead) {
		fail_memory(e);
		goto out_free;
	}
	hash_add(s->hash, blob_head, AEAD_NONCE);
	return s;

out_free:
	sealer_free(s);
	return NULL;
}

int sealer_cipher(struct sealer *s, uint8_t *out, const uint8_t *in, size_t n,
		  struct err *e)
{
	if (n > (uint64_t)s->left)
		return err_set(e, ERR_INVALID,
			       "seal: the payload is longer than announced");
	if (aead_update(s->aead, out, in, n) < 0)
		return err_set(e, ERR_SYS, "seal: the cipher refused");
	s->left -= (int64_t)n;
	return 0;
}

void sealer_hash(struct sealer *s, const uint8_t *out, size_t n)
{
	hash_add(s->hash, out, n);
}

int sealer_update(struct sealer *s, uint8_t *out, const uint8_t *in, size_t n,
		  struct err *e)
{
	if (sealer_cipher(s, out, in, n, e) < 0)
		return -1;
	sealer_hash(s, out, n);
	return 0;
}

int sealer_final(struct sealer *s, uint8_t blob_tail[16], struct buf *envelope,
		 uint8_t blob_sha256[HASH_SIZE],
		 const uint8_t author_seed[PRIM_SEED], struct err *e)
{
	uint8_t pub[PRIM_PUB];

	if (s->left != 0)
		return err_set(e, ERR_INVALID,
			       "seal: the payload is shorter than announced");
	prim_pub(pub, author_seed);
	if (memcmp(pub, s->author, PRIM_PUB) != 0)
		return err_set(e, ERR_SIGNATURE,
			       "seal: the header names another author");
	if (aead_seal_final(s->aead, blob_tail) < 0)
		return err_set(e, ERR_SYS, "seal: the cipher refused");
	hash_add(s->hash, blob_tail, TAG);
	hash_final(s->hash, blob_sha256);
	envelope_build(envelope, buf_bytes(&s->header), blob_sha256,
		       author_seed);
	return buf_failed(envelope) ? fail_memory(e) : 0;
}

void sealer_free(struct sealer *s)
{
	if (!s)
		return;
	aead_free(s->aead);
	hash_free(s->hash);
	buf_free(&s->header);
	free(s);
}

/* --- opening --- */

struct opener {
	struct aead *aead;
};

int blob_verify(const struct envelope *v, const uint8_t sha256[HASH_SIZE],
		int64_t blob_n, struct err *e)
{
	if (blob_n < BLOB_OVERHEAD || blob_n - BLOB_OVERHEAD != v->header.size)
		return err_set(e, ERR_INVALID, "item: the blob is not as long "
			       "as its header says");
	return envelope_verify(v, sha256, e);
}

struct opener *opener_new(const struct envelope *v,
			  const uint8_t session_key[32],
			  const uint8_t blob_head[12], struct err *e)
{
	struct opener *o = calloc(1, sizeof *o);

	if (o)
		o->aead = aead_for(false, &v->header, session_key, blob_head,
				   v->raw_header);
	if (!o || !o->aead) {
		fail_memory(e);
		opener_free(o);
		return NULL;
	}
	return o;
}

int opener_update(struct opener *o, uint8_t *out, const uint8_t *in, size_t n)
{
	return aead_update(o->aead, out, in, n);
}

int opener_final(struct opener *o, const uint8_t blob_tail[16], struct err *e)
{
	if (aead_open_final(o->aead, blob_tail) < 0)
		return err_set(e, ERR_DECRYPT, "item: it does not open with "
			       "this session's key");
	return 0;
}

void opener_free(struct opener *o)
{
	if (o)
		aead_free(o->aead);
	free(o);
}

/* --- in memory --- */

static int seal_into(uint8_t *to, struct sealer *s, struct bytes payload,
		     struct buf *envelope, const uint8_t *author_seed,
		     struct err *e)
{
	uint8_t sha256[HASH_SIZE];

	if (sealer_update(s, to, payload.p, payload.n, e) < 0)
		return -1;
	return sealer_final(s, to + payload.n, envelope, sha256, author_seed,
			    e);
}

int seal_blob(struct buf *blob, struct buf *envelope,
	      const struct item_header *h, struct bytes payload,
	      const uint8_t session_key[32],
	      const uint8_t author_seed[PRIM_SEED], const uint8_t *nonce,
	      struct err *e)
{
	uint8_t *to = buf_room(blob, payload.n + BLOB_OVERHEAD);

	if (!to)
		return fail_memory(e);
	struct sealer *s = sealer_new(h, session_key, nonce, to, e);
	if (!s)
		return -1;
	int r = seal_into(to + AEAD_NONCE, s, payload, envelope, author_seed,
			  e);
	if (r == 0)
		blob->len += payload.n + BLOB_OVERHEAD;
	sealer_free(s);
	return r;
}

int seal_open(struct buf *payload, const struct envelope *v, struct bytes blob,
	      const uint8_t session_key[32], struct err *e)
{
	uint8_t sha256[HASH_SIZE];

	hash_sha256(sha256, blob.p, blob.n);
	if (blob_verify(v, sha256, (int64_t)blob.n, e) < 0)
		return -1;
	size_t n = blob.n - BLOB_OVERHEAD;
	uint8_t *to = buf_room(payload, n + 1);
	if (!to)
		return fail_memory(e);
	struct opener *o = opener_new(v, session_key, blob.p, e);
	if (!o)
		return -1;
	int r = opener_update(o, to, blob.p + AEAD_NONCE, n);
	if (r < 0)
		err_set(e, ERR_SYS, "item: the cipher refused");
	else
		r = opener_final(o, blob.p + AEAD_NONCE + n, e);
	opener_free(o);
	if (r == 0)
		payload->len += n;
	else
		prim_wipe(to, n);	/* nobody vouches for it */
	return r;
}
