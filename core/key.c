/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/enc.h"
#include "core/hash.h"
#include "core/json.h"
#include "core/key.h"

static const char *const contexts[] = {
	[KEY_MANIFEST] = "manifest", [KEY_CERT] = "cert", [KEY_JOIN] = "join",
	[KEY_ITEM] = "item", [KEY_PROGRESS] = "progress",
};

static const char *const roles[ROLES] = {
	[ROLE_OWNER] = "owner", [ROLE_SENDER] = "sender",
	[ROLE_RUNNER] = "runner", [ROLE_OBSERVER] = "observer",
};

const char *role_word(enum role role)
{
	return (unsigned)role < ROLES ? roles[role] : "";
}

int role_parse(enum role *role, struct bytes word)
{
	for (unsigned i = 0; i < ROLES; i++) {
		if (bytes_eq(word, bytes_str(roles[i]))) {
			*role = (enum role)i;
			return 0;
		}
	}
	return -1;
}

static void put_signed(struct buf *b, enum key_context context,
		       struct bytes msg)
{
	buf_add_str(b, "airlox/v1/");
	buf_add_str(b, contexts[context]);
	buf_add_byte(b, 0);
	buf_add(b, msg.p, msg.n);
}

void key_sign(uint8_t sig[PRIM_SIG], const uint8_t seed[PRIM_SEED],
	      enum key_context context, struct bytes msg)
{
	cleanup_buf struct buf b = { 0 };

	put_signed(&b, context, msg);
	if (buf_failed(&b))
		memset(sig, 0, PRIM_SIG);	/* verifies nowhere */
	else
		prim_sign(sig, seed, b.data, b.len);
}

int key_verify(const uint8_t sig[PRIM_SIG], const uint8_t pub[PRIM_PUB],
	       enum key_context context, struct bytes msg, struct err *e)
{
	cleanup_buf struct buf b = { 0 };

	put_signed(&b, context, msg);
	if (buf_failed(&b))
		return err_set(e, ERR_MEMORY, "out of memory");
	if (!prim_verify(sig, pub, b.data, b.len))
		return err_set(e, ERR_SIGNATURE, "%s: signature is not right",
			       contexts[context]);
	return 0;
}

void key_take_known(struct json_reader *r, const char *name,
		    uint8_t pub[PRIM_PUB], const uint8_t *known)
{
	json_take_fixed(r, name, pub, PRIM_PUB);
	if (r->bad || (known && memcmp(pub, known, PRIM_PUB) == 0))
		return;
	if (!prim_is_point(pub))
		json_fail(r, name, "is not a public key");
}

void key_take(struct json_reader *r, const char *name, uint8_t pub[PRIM_PUB])
{
	key_take_known(r, name, pub, NULL);
}

void key_fingerprint(char out[KEY_FINGERPRINT], const uint8_t pub[PRIM_PUB])
{
	uint8_t digest[HASH_SIZE];

	hash_sha256(digest, pub, PRIM_PUB);
	enc_hex(out, digest, (KEY_FINGERPRINT - 1) / 2);
}

void key_session_id(char out[SESSION_ID + 1], const uint8_t owner[PRIM_PUB])
{
	uint8_t digest[HASH_SIZE];
	cleanup_buf struct buf b = { 0 };

	hash_sha256(digest, owner, PRIM_PUB);
	buf_add_str(&b, "ax_");
	enc_b32(&b, digest, 16);
	memset(out, 0, SESSION_ID + 1);
	if (!buf_failed(&b))
		memcpy(out, b.data, SESSION_ID);
}

bool key_is_session_id(struct bytes s)
{
	if (s.n != SESSION_ID || memcmp(s.p, "ax_", 3) != 0)
		return false;
	for (size_t i = 3; i < s.n; i++) {
		uint8_t c = s.p[i];
		if (!(c >= 'a' && c <= 'z') && !(c >= '2' && c <= '7'))
			return false;
	}
	return true;
}
