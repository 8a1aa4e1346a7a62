/* SPDX-License-Identifier: MIT
 *
 * approval: which runners the owner has approved or rejected, by the owner's
 * signed events and nothing else (docs/PROTOCOL.md, sections 6 and 8).  A
 * rejection is final: no later or replayed approval undoes it. */
#ifndef AIRLOX_HOST_APPROVAL_H
#define AIRLOX_HOST_APPROVAL_H

#include "core/host/peer.h"
#include "core/host/wire_job.h"
#include "core/payload.h"

enum approval { APPROVAL_NONE, APPROVAL_GIVEN, APPROVAL_REFUSED };

/* Zero-initialise; approval_free at the end. */
struct approval_list {
	uint8_t (*approved)[PRIM_PUB];
	size_t approved_n;
	uint8_t (*rejected)[PRIM_PUB];
	size_t rejected_n;
};

/* A verified event (opened_new has looked at it) and its author's role: 1 if
 * it changed something, 0 if not, -1 when out of memory. */
int approval_hear(struct approval_list *l, const struct payload *event,
		  enum role author, struct err *e);
enum approval approval_of(const struct approval_list *l,
			  const uint8_t pub[PRIM_PUB]);
/* Whether this runner may work here: what the manifest asks is met. */
bool approval_stands(const struct approval_list *l, const struct manifest *m,
		     const uint8_t pub[PRIM_PUB]);
/* For result_binds; borrows the list. */
struct approvals approval_view(const struct approval_list *l,
			       const struct manifest *m);
void approval_free(struct approval_list *l);

/* --- the owner's acts --- */

/* First the relay's approve, so that it keeps the event's blob for the runner,
 * then the signed event, unless the list has it already.  Done again after a
 * crash it does what is missing.  ERR_POLICY for one that was rejected. */
int approval_give(struct peer *p, struct wire *w,
		  const struct approval_list *l, const uint8_t pub[PRIM_PUB],
		  struct err *e);
/* First the signed event, from which on nobody trusts it, then the relay's
 * reject, which ends its token.  reason may be NULL. */
int approval_refuse(struct peer *p, struct wire *w,
		    const struct approval_list *l, const uint8_t pub[PRIM_PUB],
		    const char *reason, struct err *e);

#endif
