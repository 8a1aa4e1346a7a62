/* SPDX-License-Identifier: MIT
 *
 * http: reading HTTP/1.1 requests and answers (RFC 9112), strictly.  No I/O:
 * bytes in, a verdict out.
 *
 * The broker stands between two parsers that it does not know, so whatever
 * two parsers could read in two ways is refused, on both sides:
 * Content-Length beside Transfer-Encoding, two lengths or two hosts, a length
 * that is not all digits, a coding other than chunked, bare CR or LF, white
 * space before a colon, folded lines, control bytes, a request without Host (but for CONNECT).
 * What goes on is written anew, never copied. */
#ifndef RUNNER_BROKER_HTTP_H
#define RUNNER_BROKER_HTTP_H

#include "core/http.h"

#define HTTP_REQUEST_MAX (32u * 1024)
#define HTTP_ANSWER_MAX (64u * 1024)
#define HTTP_FIELDS_MAX 128u
#define HTTP_TRAILER_MAX (8u * 1024)

struct http_field {
	struct bytes name, value;
};

enum http_framing { HTTP_NONE, HTTP_LENGTH, HTTP_CHUNKED, HTTP_TO_CLOSE };

/* Borrows from the bytes it was parsed from. */
struct http_head {
	struct bytes method, target;	/* of a request */
	int status;			/* of an answer */
	struct bytes reason;
	struct http_field field[HTTP_FIELDS_MAX];
	unsigned field_n;
	struct bytes host;	/* of a request; p NULL: there is none */
	struct bytes upgrade, content_encoding, content_type;
	uint64_t length;
	bool has_length, chunked, expect, keep_alive, http10;
};

/* Parse the head that p[0..size) is, as http_head_end found it.  0, or -1 with f filled. */
int http_request_parse(struct http_head *h, const uint8_t *p, size_t size,
		       struct http_fault *f);
int http_answer_parse(struct http_head *h, const uint8_t *p, size_t size,
		      struct http_fault *f);

/* How the body is framed; an answer's depends on the request's method. */
enum http_framing http_request_framing(const struct http_head *h);
enum http_framing http_answer_framing(const struct http_head *h,
				      struct bytes method);

/* A field that is for the next hop only, by RFC 9110 7.6.1 or by the head's
 * own Connection. */
bool http_is_hop(const struct http_head *h, struct bytes name);

/* A body.  Set framing and left (HTTP_LENGTH) to start, the rest zero;
 * http_body_free at the end. */
struct http_body {
	enum http_framing framing;
	uint64_t left;
	bool lenient;		/* chunk extensions are dropped, not refused */
	int state;
	unsigned digits, skipped;
	struct buf trailer;	/* its lines, without the empty one */
};
/* Looks at p[0..n), takes *used bytes and gives a run of body bytes in *out
 * (empty while in the framing).  0: go on; 1: the body has ended; -1:
 * malformed.  HTTP_TO_CLOSE never ends by itself. */
int http_body_read(struct http_body *b, const uint8_t *p, size_t n,
		   size_t *used, struct bytes *out);
bool http_body_done(const struct http_body *b);
void http_body_free(struct http_body *b);

#endif
