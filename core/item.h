/* SPDX-License-Identifier: MIT
 *
 * item: header, envelope and reference (docs/PROTOCOL.md, section 6), and
 * the policy that needs no key: what the relay checks before a blob has
 * streamed in. */
#ifndef AIRLOX_ITEM_H
#define AIRLOX_ITEM_H

#include "core/cert.h"
#include "core/hash.h"

#define ITEM_ID 22		/* characters of base64url of 16 bytes */
#define ITEM_REFS_MAX 64
#define ENVELOPE_MAX (8 * 1024)
#define BLOB_OVERHEAD 28	/* nonce 12, tag 16 */

enum item_kind { ITEM_TEXT, ITEM_FILE, ITEM_JOB, ITEM_RESULT, ITEM_EVENT };
const char *item_kind_word(enum item_kind kind);

struct item_ref {
	char id[ITEM_ID + 1];
	uint8_t sha256[HASH_SIZE];	/* of the blob */
};

struct item_header {
	uint8_t author[PRIM_PUB];
	int64_t created_at_ms;
	char id[ITEM_ID + 1];
	enum item_kind kind;
	enum item_type type;	/* subkind of a file; TYPE_NONE otherwise */
	struct item_ref *refs;	/* owned */
	size_t ref_n;
	char session_id[SESSION_ID + 1];
	int64_t size;		/* of the payload, bytes */
};

struct envelope {
	struct item_header header;
	uint8_t sig[PRIM_SIG];
	struct bytes raw_header; /* canonical header within the input: the AAD */
};

bool item_is_id(struct bytes s);
void item_new_id(char out[ITEM_ID + 1]);	/* random */

/* Form only: canonical, right shape.  The envelope borrows raw_header from
 * `in`. */
int envelope_parse(struct envelope *v, struct bytes in, struct err *e);
/* The same, a little cheaper where the author is the one expected. */
int envelope_parse_from(struct envelope *v, struct bytes in,
			const struct cert *expected, struct err *e);
/* The signature, over raw_header || SHA-256(blob). */
int envelope_verify(const struct envelope *v,
		    const uint8_t blob_sha256[HASH_SIZE], struct err *e);
void envelope_free(struct envelope *v);

/* Canonical header; then the envelope around it, signed. */
void item_put_header(struct buf *out, const struct item_header *h);
void envelope_build(struct buf *out, struct bytes raw_header,
		    const uint8_t blob_sha256[HASH_SIZE],
		    const uint8_t seed[PRIM_SEED]);
void item_put_ref(struct buf *out, const struct item_ref *ref);	/* {...} */

/* Form only: canonical, right shape.  Frees nothing of `in`. */
int item_parse_header(struct item_header *h, struct bytes in, struct err *e);
void item_free_header(struct item_header *h);	/* its refs */

/* The author is the certificate's participant: the first check of a client,
 * before length and signature.  ERR_POLICY. */
int item_check_author(const struct item_header *h, const struct cert *author,
		      struct err *e);

/* Session, author, role, time, size, type: ERR_POLICY and its refinements.
 * `author` is the verified certificate of the author. */
int item_check_header(const struct item_header *h, const struct cert *author,
		      const struct manifest *m, struct err *e);

#endif
