/* SPDX-License-Identifier: MIT
 *
 * check: whether an intent may become a fact, given what is true now. */
#ifndef RELAY_CHECK_H
#define RELAY_CHECK_H

#include "relay/commit.h"

/* Under the lock.  0, or -1 with it->status, error and message set.  A status
 * below 300 says that it is true already and needs no record. */
int check_intent(struct state *st, struct intent *it);

/* Whether b must wait until a has been applied. */
bool check_conflict(const struct intent *a, const struct intent *b);

/* Fills the answer; -1. */
int check_say(struct intent *it, int status, const char *error,
	      const char *message);

/* 0, or -1 and the verdict on posting this id again: duplicate or conflict.
 * Also asked before a blob has streamed in; sha256 is NULL then, and an equal
 * signature, which covers the hash, speaks for it. */
int check_new_id(struct session *s, const char *id,
		 const struct participant *by, const uint8_t *sha256,
		 const uint8_t sig[FACT_SIG], const char **error,
		 const char **message);

#define WANT_LAPSE_MS (10 * 60 * 1000)

#endif
