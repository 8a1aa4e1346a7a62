/* SPDX-License-Identifier: MIT
 *
 * http: reading HTTP/1.1 requests (RFC 9112), strictly.  No I/O: bytes in,
 * a verdict out.
 *
 * A head is buffered whole, at most 8 KiB and 64 fields, and parsed once.
 * Whatever two parsers could read in two ways is refused: Content-Length
 * beside Transfer-Encoding, two lengths or two hosts, a length that is not
 * all digits, a coding other than chunked, bare CR or LF, white space before
 * a colon, folded lines, control bytes, no Host, chunk extensions, trailers. */
#ifndef RELAY_HTTP_H
#define RELAY_HTTP_H

#include "core/http.h"

#define HTTP_HEAD_MAX (8 * 1024)
#define HTTP_FIELDS_MAX 64

enum http_method { HTTP_GET, HTTP_POST, HTTP_PUT, HTTP_OTHER };

/* Borrows from the bytes it was parsed from. */
struct http_head {
	enum http_method method;
	struct bytes path;	/* begins with "/", not decoded */
	struct bytes query;	/* after "?", or empty */
	struct bytes authorization, last_event_id; /* p NULL: absent */
	struct bytes target, refs;	/* Airlox-Target, Airlox-Refs */
	struct bytes forwarded;	/* the last X-Forwarded-For */
	uint64_t length;	/* Content-Length, 0 without one */
	bool has_length, chunked, expect, keep_alive, http10;
	size_t size;		/* bytes of the head, its empty line too */
};

/* Parses the head that p[0..size) is, as http_head_end found it.  0, or -1 with f filled. */
int http_head_parse(struct http_head *h, const uint8_t *p, size_t size,
		    struct http_fault *f);

/* A chunked body.  Zero to start.  Each call looks at p[0..n), takes *used
 * bytes and gives a run of body bytes in *out (empty while in the framing).
 * 0: go on; 1: the body has ended; -1: malformed. */
struct http_chunks {
	int state;
	unsigned digits;
	uint64_t left;
};
int http_chunks_read(struct http_chunks *c, const uint8_t *p, size_t n,
		     size_t *used, struct bytes *out);

/* A number from the query "name=N": 0 and *value, 1 when it is not there,
 * -1 when it is malformed. */
int http_query_number(struct bytes query, const char *name, int64_t *value);

#endif
