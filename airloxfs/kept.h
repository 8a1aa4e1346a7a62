/* SPDX-License-Identifier: MIT
 *
 * kept: what a job prints: the start and the end of it, and what is new and
 * was not sent yet.  However much is written, it takes 1 MiB and a frame. */
#ifndef AIRLOXFS_KEPT_H
#define AIRLOXFS_KEPT_H

#include "core/buf.h"

#define KEPT_MAX ((size_t)1 << 20)	/* of a result's stdout, in UTF-8 */
#define KEPT_HALF (KEPT_MAX / 2 - 64)	/* of start and end; a marker fits */
#define KEPT_LIVE (32 * 1024)		/* of one frame of live output */

struct kept {
	struct buf head;
	uint8_t *ring;		/* the newest KEPT_HALF bytes after head */
	size_t ring_n, ring_at;	/* how many; where the next goes */
	uint64_t total;		/* bytes that were written */
	struct buf live;
	uint64_t live_skipped;	/* came while live was full */
	bool failed;		/* out of memory */
};

void kept_add(struct kept *k, const void *p, size_t n);
void kept_reset(struct kept *k);	/* begins anew; live output goes on */
void kept_free(struct kept *k);		/* wipes */
/* All of it as it can be read: start, marker, end. */
void kept_read(const struct kept *k, struct buf *out);
/* The same as UTF-8 of at most max bytes; what is none becomes U+FFFD.  True
 * where something was left out. */
bool kept_text(const struct kept *k, struct buf *out, size_t max);
/* A text cut in the same way. */
bool kept_cut(struct bytes text, struct buf *out, size_t max);
/* Bytes of anybody's as UTF-8, as a result has them. */
void kept_clean(struct buf *out, struct bytes s);
/* What is next for a frame: at most KEPT_LIVE bytes; empty: nothing. */
void kept_take_live(struct kept *k, struct buf *out);
/* A frame of n bytes did not arrive: that is said in the next one. */
void kept_lost(struct kept *k, size_t n);

/* Who has seen frames, some of which were left out, goes on in the whole
 * output here: after what reads as the end of what was seen (its last
 * KEPT_SEEN bytes), else where output was left out of `whole` itself, else at
 * its start. */
#define KEPT_SEEN ((size_t)256)
size_t kept_rest(struct bytes seen_end, struct bytes whole);

#endif
