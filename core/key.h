/* SPDX-License-Identifier: MIT
 *
 * key: signatures in a context, roles, fingerprints (docs/PROTOCOL.md,
 * section 2).  A signature covers "airlox/v1/" context 0x00 message. */
#ifndef AIRLOX_KEY_H
#define AIRLOX_KEY_H

#include "core/buf.h"
#include "core/err.h"
#include "core/prim.h"

enum key_context { KEY_MANIFEST, KEY_CERT, KEY_JOIN, KEY_ITEM, KEY_PROGRESS };

enum role { ROLE_OWNER, ROLE_SENDER, ROLE_RUNNER, ROLE_OBSERVER };
#define ROLES 4
const char *role_word(enum role role);		/* "owner" ... */
int role_parse(enum role *role, struct bytes word);	/* 0 or -1 */

void key_sign(uint8_t sig[PRIM_SIG], const uint8_t seed[PRIM_SEED],
	      enum key_context context, struct bytes msg);
/* ERR_SIGNATURE naming the context. */
int key_verify(const uint8_t sig[PRIM_SIG], const uint8_t pub[PRIM_PUB],
	       enum key_context context, struct bytes msg, struct err *e);

/* A public key in a closed structure: base64url of a point. */
struct json_reader;
void key_take(struct json_reader *r, const char *name, uint8_t pub[PRIM_PUB]);
/* The same, spared the arithmetic where it equals a key that was checked
 * already (NULL: none). */
void key_take_known(struct json_reader *r, const char *name,
		    uint8_t pub[PRIM_PUB], const uint8_t *known);

#define KEY_FINGERPRINT 17	/* 16 hex digits and a NUL */
void key_fingerprint(char out[KEY_FINGERPRINT], const uint8_t pub[PRIM_PUB]);

#define SESSION_ID 29		/* "ax_" and 26 characters of base32 */
void key_session_id(char out[SESSION_ID + 1], const uint8_t owner[PRIM_PUB]);
bool key_is_session_id(struct bytes s);

#endif
