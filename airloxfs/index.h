/* SPDX-License-Identifier: MIT
 *
 * index: what the journal of a mount remembers, as records: participants,
 * verified items, refusals, what was hidden, what is still missing.  A record
 * is canonical JSON (core/json.h); the journal seals it. */
#ifndef AIRLOXFS_INDEX_H
#define AIRLOXFS_INDEX_H

#include "core/hash.h"
#include "core/item.h"
#include "core/json.h"

#define INDEX_CHUNK 65536	/* bytes of ciphertext a tag covers */
#define INDEX_TAG 16		/* GMAC of it, in_chunk_key */
#define INDEX_BLOB_MAX 4096	/* blobs up to this are in the record: one sync
				 * makes both durable */

enum index_kind {
	INDEX_PARTICIPANT,	/* seq, text: the signed join */
	INDEX_LEFT,		/* seq, pub; text: "revoked", or empty */
	INDEX_ITEM,		/* struct index_item */
	INDEX_REJECTED,		/* seq, id, name, text: the reason */
	INDEX_PENDING,		/* seq, text: the envelope */
	INDEX_HIDDEN,		/* id */
	INDEX_OWN,		/* seq, id: an item of ours came back */
	INDEX_SEEN,		/* seq, id, text: the envelope of what a runner
				 * fetches only where a job needs it */
	INDEX_KINDS
};

/* An item that was verified once.  The view is what in/ shows: the text, the
 * file's body, or the one entry of a wrapping zip. */
struct index_item {
	struct bytes name;	/* in in/ */
	struct bytes original;	/* the file's name; empty: a text */
	struct bytes mime;
	uint64_t view_off;	/* within the payload; a text: 0 */
	uint64_t view_n;	/* bytes shown */
	bool is_text, wrapped;
	uint8_t sha256[HASH_SIZE];	/* of the view */
	uint8_t blob_sha256[HASH_SIZE];
	struct bytes chunks;	/* INDEX_TAG bytes a chunk of the blob */
	struct bytes blob;	/* the whole of a small one; else empty */
};

/* One record, either way.  Bytes are borrowed: of `doc`, or the caller's. */
struct index_record {
	enum index_kind kind;
	uint64_t seq;
	int64_t cursor;		/* every event up to it is settled; or -1 */
	struct bytes id, name, text;
	uint8_t pub[PRIM_PUB];
	struct index_item item;
	struct json *doc;	/* after index_parse: free with index_free */
	struct buf raw_chunks, raw_blob;
};

void index_put(struct buf *out, const struct index_record *r);
int index_parse(struct index_record *r, struct bytes record, struct err *e);
void index_free(struct index_record *r);

#endif
