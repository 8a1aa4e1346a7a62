/* SPDX-License-Identifier: MIT
 *
 * http: the syntax of HTTP/1.1 heads (RFC 9110, 9112) that the relay and the
 * broker of a box share.  No I/O: bytes in, a verdict out.  What differs
 * stays with them: the relay refuses a malformed Host and keeps tabs beside a
 * value, for a proxy in front may read either in its own way; the broker
 * writes anew whatever it passes on. */
#ifndef CORE_HTTP_H
#define CORE_HTTP_H

#include "core/buf.h"

/* A refusal: the status to answer with, and why (static). */
struct http_fault {
	int status;
	const char *why;
};
int http_refuse(struct http_fault *f, int status, const char *why); /* -1 */

/* Looks for the end of a head in p[0..n), of at most max bytes.  *seen is how
 * far an earlier call looked (0 at first).  Gives the head's size, 0 when more
 * bytes are needed, -1 with f filled when no further byte could mend it: bare
 * CR or LF, control bytes, an empty first line, too large. */
long http_head_end(const uint8_t *p, size_t n, size_t max, size_t *seen,
		   struct http_fault *f);

bool http_is_token(uint8_t c);		/* tchar */
size_t http_token_len(struct bytes s);	/* of the token s begins with */
bool http_is(struct bytes s, const char *word);	/* whatever its case */
struct bytes http_trim(struct bytes s);	/* without spaces and tabs around */
/* The next word of a list with commas; false at its end. */
bool http_next_word(struct bytes *list, struct bytes *word);
bool http_has(struct bytes list, const char *word);

/* "HTTP/1.0" or "HTTP/1.1".  0, or -1 with f filled. */
int http_version(struct bytes s, bool *http10, struct http_fault *f);
bool http_is_target(struct bytes s);	/* visible ASCII, no fragment */
/* Keeps v in *slot, which is empty, or refuses a second one. */
int http_once(struct bytes *slot, struct bytes v, struct http_fault *f);
/* Digits only, at most 2^53-1.  0, or -1. */
int http_number(struct bytes s, int64_t *value);
int http_hex(uint8_t c);		/* 0 to 15, or -1 */
const char *http_reason(int status);

#endif
