/* SPDX-License-Identifier: MIT
 *
 * swap: writes a request anew for its upstream, with the credentials that the
 * policy has for it.  The box's words go on; its framing, its hops and its
 * own credentials do not. */
#ifndef RUNNER_BROKER_SWAP_H
#define RUNNER_BROKER_SWAP_H

#include "runner/broker/http.h"
#include "runner/broker/secret.h"
#include "runner/policy/match.h"

#define SWAP_BODY_MAX (1024u * 1024)

struct swap {
	const struct policy *policy;
	const struct secrets *secrets;
	const struct policy_ask *ask;
	struct bytes query;	/* with its "?", or empty */
	size_t swapped;		/* placeholders that were replaced */
};

/* The request line and the fields, without framing and without the empty line:
 * the caller adds those.  What it adds holds secrets: wipe it. */
void swap_head(struct buf *out, struct swap *s, const struct http_head *h);

/* Whether a body has to be held and searched before it is sent. */
bool swap_wants_body(const struct swap *s, const struct http_head *h);
/* The body, with the placeholders replaced as its type asks for. */
void swap_body(struct buf *out, struct swap *s, const struct http_head *h,
	       struct bytes body);

/* A placeholder of the policy that stands in what is sent to where it does not
 * belong, or where nothing replaces it; NULL: none. */
const struct policy_credential *
swap_stray(const struct swap *s, const struct http_head *h);

#endif
