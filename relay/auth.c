/* SPDX-License-Identifier: MIT */
#include <string.h>
#include <strings.h>

#include "core/enc.h"
#include "core/prim.h"
#include "relay/auth.h"

void auth_new_token(char token[TOKEN_N + 1], uint8_t hash[HASH_SIZE])
{
	uint8_t raw[32];
	cleanup_buf struct buf b = { 0 };
	prim_random(raw, sizeof raw);
	enc_b64(&b, raw, sizeof raw);
	prim_wipe(raw, sizeof raw);
	memset(token, 0, TOKEN_N + 1);
	if (b.len == TOKEN_N)
		memcpy(token, b.data, TOKEN_N);
	hash_sha256(hash, token, TOKEN_N);
}

int auth_read(uint8_t hash[HASH_SIZE], struct bytes authorization)
{
	static const char scheme[] = "Bearer ";
	struct bytes a = authorization;
	if (a.n != sizeof scheme - 1 + TOKEN_N ||
	    strncasecmp((const char *)a.p, scheme, sizeof scheme - 1) != 0)
		return -1;
	hash_sha256(hash, a.p + sizeof scheme - 1, TOKEN_N);
	return 0;
}
