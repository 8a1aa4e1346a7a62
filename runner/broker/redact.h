/* SPDX-License-Identifier: MIT
 *
 * redact: takes secrets out of what goes to the box.  An upstream may echo
 * what it was sent, as it is or in another form; each form is overwritten
 * with "*" of the same length, so that no length changes:
 *
 *	raw; base64 and base64url, wherever in a longer text; hex;
 *	and each of these with any of its characters written as %XX, \uXXXX,
 *	\xXX, \c or &#N; (a percent or JSON encoder escapes what it likes);
 *	base64 with line ends in it.
 *
 * and %XX with its own "%" written %25 again, as in an address within another.
 *
 * What is not covered: compressed or encrypted forms, other encodings of them,
 * case changes, and secrets cut up by whoever answers.  At the ends of a
 * base64 form up to four bits each remain.
 *
 * Streaming: a stream may be cut anywhere, so what could be the beginning of
 * a secret is held back until more has come. */
#ifndef RUNNER_BROKER_REDACT_H
#define RUNNER_BROKER_REDACT_H

#include "core/buf.h"

#define REDACT_SECRETS_MAX 128u

struct redact_set;	/* the secrets, in locked memory */

struct redact_set *redact_new(void);		/* NULL: no locked memory */
void redact_free(struct redact_set *s);		/* wiped */
/* 0, or -1: too many, or no locked memory. */
int redact_add(struct redact_set *s, struct bytes secret);

/* Overwrites in place; gives how many.  What begins at the end and is not
 * whole stays. */
size_t redact_whole(const struct redact_set *s, uint8_t *p, size_t n);

/* A stream.  Zero to start. */
struct redact {
	struct buf held;
	size_t found;
};
/* Adds to out what of the stream is clean so far; with `end`, all of it. */
void redact_feed(struct redact *r, const struct redact_set *s,
		 struct bytes in, bool end, struct buf *out);
void redact_reset(struct redact *r);	/* and frees */

#endif
