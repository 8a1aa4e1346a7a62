/* SPDX-License-Identifier: MIT
 *
 * store: the relay's log: every fact it must not forget, in the order in
 * which it became true.  Segments of at most 64 MiB in DIR/log; a record has
 * a header, a body (the fact) and maybe a small blob (ciphertext).
 *
 *	segment: "airlox-log" 00 version(1), nonce u32, crc32(before) u32,
 *		 0 u32, records
 *	record:  magic u32, version u8, type u8, 0 u16, body_n u32, blob_n u32,
 *		 tag u32, batch u32, crc32(body) u32, crc32(header before) ^
 *		 nonce u32, body, blob, zeros to a multiple of 8; big-endian
 *
 * The nonce keeps a peer's blob from looking like a record of ours.
 * `batch` is where in the segment the record's batch begins.  A batch is
 * written only after the one before it is durable, so a damaged record in the
 * last batch was never acknowledged and is dropped at start, while one before
 * it is damage, and refused, unless its session was purged: a purge zeroes
 * bodies and blobs and leaves the headers, with the session's tag, to step
 * over.  Segments go oldest first, so the record of a purge (REC_CLOSED, which
 * keeps no segment alive) outlives what it purged.
 *
 * Without a directory the segments are memory that dies with the process.
 *
 * store_append belongs to the commit thread.  store_read and store_blob need
 * the relay's lock (a segment can go otherwise).  store_drop and store_punch
 * may run anywhere. */
#ifndef RELAY_STORE_H
#define RELAY_STORE_H

#include "core/buf.h"
#include "core/err.h"

#define STORE_SEGMENT_MAX (64u << 20)
#define STORE_BLOB_MAX (64u * 1024)	/* larger blobs are files: blob.h */

enum rec_type {
	REC_SESSION = 1, REC_JOIN, REC_ITEM, REC_ACK, REC_EVICTED, REC_WANT,
	REC_RESEEDED, REC_LEFT, REC_REVOKED, REC_CLOSED,
	REC_JOB, REC_CANCEL, REC_APPROVED, REC_REJECTED,
	REC_TYPES
};

struct rec_loc {
	uint32_t segment, at, body_n, blob_n;
	uint32_t gen;		/* of the segment: store_compact_swap */
};

struct store_rec {
	enum rec_type type;
	uint32_t tag;		/* of the session: fact_tag */
	struct bytes body, blob;
	struct rec_loc loc;	/* set by store_append */
};

struct store;

/* dirfd is the data directory, or -1 for memory. */
struct store *store_open(int dirfd, struct err *e);
void store_close(struct store *st);

/* What the reader at start is given, in order.  body is valid until it
 * returns.  intact: false where the body is not what was written (purged, or
 * damage).  tail: the record is in the last batch.  Return 1 to drop it and
 * all after it (only in the tail), -1 with e filled to refuse. */
struct store_reader {
	int (*take)(void *arg, const struct store_rec *r, bool intact,
		    bool tail, struct err *e);
	void *arg;
};
/* *dropped: bytes cut off the torn tail. */
int store_load(struct store *st, const struct store_reader *rd,
	       uint64_t *dropped, struct err *e);

/* Whether n more bytes can be written and space is left for the facts that
 * free space (acks, evictions, ends): it is reserved ahead of what is
 * written.  ERR_FULL if not; those facts may be appended all the same. */
int store_room(struct store *st, size_t n, struct err *e);

/* One write, one fdatasync.  On failure nothing of it is in the log. */
int store_append(struct store *st, struct store_rec *recs, size_t n,
		 struct err *e);

/* Free bytes of the disk, as far as they are ours; -1 for memory. */
int64_t store_free(struct store *st);
/* Whether a write reaches the disk: 0 or -1. */
int store_probe(struct store *st);

/* Adds the record's body (or its blob) to out. */
int store_read(struct store *st, const struct rec_loc *loc, struct buf *out,
	       struct err *e);
int store_blob(struct store *st, const struct rec_loc *loc, struct buf *out,
	       struct err *e);

/* Compaction.  A sealed segment of which more than half was dropped, or 0. */
uint32_t store_sparse(struct store *st);
/* A record to keep, and where it will be. */
struct store_kept {
	uint32_t at, to;
	bool blob;		/* with its blob */
};
const struct store_kept *store_kept_at(const struct store_kept *kept,
				       size_t n, uint32_t at);
struct store_job {
	uint32_t number, size, live;
	int fd;
};
/* Writes what is kept of job->number into a new file; sorts kept and fills
 * its `to`. */
int store_compact_write(struct store *st, struct store_job *job,
			struct store_kept *kept, size_t n, struct err *e);
/* Puts it in the old one's place: from here on records are where `to` says,
 * with *gen; what names an older gen is known to be dropped.  Under the
 * relay's lock.  store_sync_names makes it last. */
int store_compact_swap(struct store *st, const struct store_job *job,
		       uint32_t *gen, struct err *e);
void store_sync_names(struct store *st);

/* Nothing is written from here on: for looking only. */
void store_look_only(struct store *st);

/* Zeroes a blob; zeroes a whole record and forgets it. */
void store_punch(struct store *st, const struct rec_loc *loc);
void store_drop(struct store *st, const struct rec_loc *loc);

#endif
