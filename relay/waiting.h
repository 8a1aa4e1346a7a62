/* SPDX-License-Identifier: MIT
 *
 * waiting: who must have a blob before it leaves.  All of it under the
 * state's lock. */
#ifndef RELAY_WAITING_H
#define RELAY_WAITING_H

#include "relay/state.h"

/* Everyone who is a recipient of it now; nobody of those before. */
int waiting_fill(struct session *s, struct item *it);
/* Nobody; room for all who are here. */
int waiting_reset(struct session *s, struct item *it);
int waiting_add(struct session *s, struct item *it,
		const struct participant *p);
/* p has it, or needs it no more.  It is due for eviction once nobody waits;
 * one that nobody took stays for those who join later. */
void waiting_release(struct session *s, struct item *it,
		     const struct participant *p);
void waiting_release_all(struct session *s, const struct participant *p);

#endif
