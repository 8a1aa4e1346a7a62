/* SPDX-License-Identifier: MIT
 *
 * session: the keys of a session, derived from what an invite holds
 * (docs/PROTOCOL.md, section 2).  Not linked into the relay. */
#ifndef AIRLOX_SESSION_H
#define AIRLOX_SESSION_H

#include "core/key.h"

struct session_keys {
	uint8_t session_key[32];
	uint8_t role_seed[PRIM_SEED];	/* of the holder's role */
};

void session_from_owner(struct session_keys *k,
			const uint8_t owner_seed[PRIM_SEED]);
/* The seed of a role, from the owner's; ROLE_OWNER is the seed itself. */
void session_role_seed(uint8_t out[PRIM_SEED],
		       const uint8_t owner_seed[PRIM_SEED], enum role role);
/* A key of an item: the AEAD key of its blob. */
void session_item_key(uint8_t out[32], const uint8_t session_key[32],
		      const char *session_id, const char *item_id);
/* The key of a job's live output (section 7). */
void session_progress_key(uint8_t out[32], const uint8_t session_key[32],
			  const char *session_id, const char *job_id);
/* A key of ours, kept on this machine only: HKDF of the session key with
 * info "airloxfs/v1/" label. */
void session_local_key(uint8_t *out, size_t n, const uint8_t session_key[32],
		       const char *session_id, const char *label);

#endif
