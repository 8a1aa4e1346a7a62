/* SPDX-License-Identifier: MIT
 *
 * auth: tokens: 32 random bytes as base64url, given out once, kept only as
 * SHA-256 of their text. */
#ifndef RELAY_AUTH_H
#define RELAY_AUTH_H

#include "core/buf.h"
#include "core/hash.h"

#define TOKEN_N 43	/* characters */

/* A new token and its hash. */
void auth_new_token(char token[TOKEN_N + 1], uint8_t hash[HASH_SIZE]);
/* The hash of the token in an Authorization field; -1 if it holds none. */
int auth_read(uint8_t hash[HASH_SIZE], struct bytes authorization);

#endif
