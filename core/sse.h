/* SPDX-License-Identifier: MIT
 *
 * sse: a server-sent event stream, parsed as it comes in pieces of any size
 * (WHATWG HTML, "server-sent events"; docs/PROTOCOL.md, section 7). */
#ifndef AIRLOX_SSE_H
#define AIRLOX_SSE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/buf.h"
#include "core/err.h"

#define SSE_KIND_MAX 31
#define SSE_LINE_MAX (1024 * 1024)	/* bytes of a line, and of an event */

struct event {
	bool has_seq;		/* it has an id that is a number <= 2^53-1 */
	uint64_t seq;
	char kind[SSE_KIND_MAX + 1];	/* "" for a comment (a keepalive) */
	struct bytes data;	/* borrowed, during the call */
};

/* Zero-initialise; sse_free at the end.  Fields are the parser's. */
struct sse {
	struct buf line, data;
	bool has_data, has_kind, has_seq, skip_lf, started;
	uint64_t seq;
	char kind[SSE_KIND_MAX + 1];
};

/* Feeds n bytes; each complete event, and each comment, goes to `on`, whose
 * -1 (with e filled) ends the feed.  An event without data or without a kind
 * is dropped, as is one whose kind is longer than SSE_KIND_MAX.  ERR_PROTO
 * where a line or an event is over SSE_LINE_MAX. */
int sse_feed(struct sse *s, const void *p, size_t n,
	     int (*on)(void *arg, const struct event *ev, struct err *e),
	     void *arg, struct err *e);
/* Forgets a half event: the connection was lost. */
void sse_reset(struct sse *s);
void sse_free(struct sse *s);

#endif
