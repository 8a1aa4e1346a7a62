/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/aead.h"
#include "core/session.h"

/* A key that could not be derived becomes a random one: what is sealed with
 * it opens nowhere, and nobody can guess it. */
static void derive(uint8_t *out, size_t n, const uint8_t ikm[32],
		   const char *salt, const void *info, size_t info_n)
{
	if (aead_hkdf(out, n, ikm, 32, salt, strlen(salt), info, info_n) < 0)
		prim_random(out, n);
}

static void derive_str(uint8_t out[32], const uint8_t ikm[32],
		       const char *info)
{
	derive(out, 32, ikm, "airlox/v1", info, strlen(info));
}

void session_from_owner(struct session_keys *k,
			const uint8_t owner_seed[PRIM_SEED])
{
	derive_str(k->session_key, owner_seed, "session-key");
	memcpy(k->role_seed, owner_seed, PRIM_SEED);
}

void session_role_seed(uint8_t out[PRIM_SEED],
		       const uint8_t owner_seed[PRIM_SEED], enum role role)
{
	static const char *const info[ROLES] = {
		[ROLE_SENDER] = "role:sender", [ROLE_RUNNER] = "role:runner",
		[ROLE_OBSERVER] = "role:observer",
	};

	if (role == ROLE_OWNER)
		memcpy(out, owner_seed, PRIM_SEED);
	else
		derive_str(out, owner_seed, info[role]);
}

/* HKDF with the session id as salt and info prefix, separator, name. */
static void derive_in_session(uint8_t *out, size_t n,
			      const uint8_t session_key[32],
			      const char *session_id, struct bytes prefix,
			      const char *name)
{
	cleanup_buf struct buf info = { 0 };

	buf_add(&info, prefix.p, prefix.n);
	buf_add_str(&info, name);
	if (buf_failed(&info))
		prim_random(out, n);
	else
		derive(out, n, session_key, session_id, info.data, info.len);
}

void session_item_key(uint8_t out[32], const uint8_t session_key[32],
		      const char *session_id, const char *item_id)
{
	static const uint8_t prefix[] = "airlox/v1/item-key"; /* and its NUL */

	derive_in_session(out, 32, session_key, session_id,
			  (struct bytes){ prefix, sizeof prefix }, item_id);
}

void session_progress_key(uint8_t out[32], const uint8_t session_key[32],
			  const char *session_id, const char *job_id)
{
	static const uint8_t prefix[] = "airlox/v1/progress-key"; /* and its NUL */

	derive_in_session(out, 32, session_key, session_id,
			  (struct bytes){ prefix, sizeof prefix }, job_id);
}

void session_local_key(uint8_t *out, size_t n, const uint8_t session_key[32],
		       const char *session_id, const char *label)
{
	derive_in_session(out, n, session_key, session_id,
			  bytes_str("airloxfs/v1/"), label);
}
