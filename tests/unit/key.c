/* SPDX-License-Identifier: MIT */
#include "core/enc.h"
#include "core/hash.h"
#include "core/key.h"
#include "tests/unit/tap.h"

/* RFC 8032, 7.1, test 3. */
static void rfc8032(void)
{
	static const char *const seed_hex =
		"c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7";
	static const char *const pub_hex =
		"fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025";
	static const char *const sig_hex =
		"6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac"
		"18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a";
	uint8_t seed[32], pub[32], sig[64], want[64];

	enc_hex_decode(seed, 32, bytes_str(seed_hex));
	enc_hex_decode(want, 32, bytes_str(pub_hex));
	prim_pub(pub, seed);
	is_mem(pub, want, 32, "the public key of RFC 8032");
	enc_hex_decode(want, 64, bytes_str(sig_hex));
	prim_sign(sig, seed, "\xaf\x82", 2);
	is_mem(sig, want, 64, "and its signature");
	ok(prim_verify(sig, pub, "\xaf\x82", 2), "which verifies");
	ok(!prim_verify(sig, pub, "\xaf\x83", 2), "for its own message only");
	/* the order of the base point, added to S: the same point, not canonical */
	static const uint8_t order[32] = {
		0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c,
		0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, [31] = 0x10,
	};
	unsigned carry = 0;
	for (int i = 0; i < 32; i++) {
		carry += (unsigned)sig[32 + i] + order[i];
		sig[32 + i] = (uint8_t)carry;
		carry >>= 8;
	}
	ok(!prim_verify(sig, pub, "\xaf\x82", 2), "S + L is refused");
}

static void small_order(void)
{
	uint8_t pub[32] = { 1 }, sig[64] = { 1 };

	ok(!prim_verify(sig, pub, "x", 1),
	   "the neutral element signs for nobody");
}

static void contexts(void)
{
	uint8_t seed[32] = { 7 }, pub[32], sig[64];
	struct bytes msg = bytes_str("hello");
	struct err e = { 0 };

	prim_pub(pub, seed);
	key_sign(sig, seed, KEY_CERT, msg);
	ok(key_verify(sig, pub, KEY_CERT, msg, &e) == 0, "in its context");
	ok(key_verify(sig, pub, KEY_JOIN, msg, &e) < 0 &&
	   e.code == ERR_SIGNATURE, "and in no other: %s", e.why);
	ok(prim_verify(sig, pub, "airlox/v1/cert\0hello", 20),
	   "what is signed is the context, a NUL and the message");
}

static void names(void)
{
	uint8_t seed[32] = { 7 }, pub[32], digest[32];
	char print[KEY_FINGERPRINT], hex[65], id[SESSION_ID + 1];
	enum role role = ROLE_OWNER;

	prim_pub(pub, seed);
	key_fingerprint(print, pub);
	hash_sha256(digest, pub, 32);
	enc_hex(hex, digest, 32);
	ok(strlen(print) == 16 && strncmp(print, hex, 16) == 0,
	   "a fingerprint is 8 bytes of SHA-256");
	key_session_id(id, pub);
	ok(strlen(id) == SESSION_ID && key_is_session_id(bytes_str(id)),
	   "%s is a session id", id);
	id[5] = '1';
	ok(!key_is_session_id(bytes_str(id)), "%s is none", id);
	ok(!key_is_session_id(bytes_str("ax_")), "nor is a short one");
	for (unsigned i = 0; i < ROLES; i++)
		ok(role_parse(&role, bytes_str(role_word((enum role)i))) == 0 &&
		   role == (enum role)i, "role %s", role_word(role));
	ok(role_parse(&role, bytes_str("admin")) < 0, "no other role");
}

static void hashing(void)
{
	struct hash *h = hash_new();
	uint8_t a[32], b[32];

	hash_add(h, "ab", 2);
	hash_add(h, "", 0);
	hash_add(h, "c", 1);
	hash_final(h, a);
	hash_sha256(b, "abc", 3);
	is_mem(a, b, 32, "a streamed hash is the same");
	is_mem(a, "\xba\x78\x16\xbf\x8f\x01\xcf\xea", 8, "that of FIPS 180-4");
	hash_final(h, a);
	hash_sha256(b, NULL, 0);
	is_mem(a, b, 32, "and it can be used again");
	hash_free(h);
	hash_free(NULL);
}

static void secrets(void)
{
	uint8_t *p = prim_secret_alloc(40);

	ok(p, "locked memory");
	if (p)
		memset(p, 1, 40);
	prim_wipe(p, 40);
	ok(p && p[0] == 0 && p[39] == 0, "is wiped");
	prim_secret_free(p);
	ok(prim_equal("abc", "abc", 3) && !prim_equal("abc", "abd", 3),
	   "comparison");
	for (int i = 0; i < 100; i++)
		if (prim_random_below(3) > 2)
			ok(false, "below three");
}

int main(void)
{
	if (prim_init() < 0)
		return 1;
	rfc8032();
	small_order();
	contexts();
	names();
	hashing();
	secrets();
	return done_testing();
}
