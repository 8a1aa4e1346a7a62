/* SPDX-License-Identifier: MIT */
#include "core/aead.h"
#include "core/buf.h"
#include "core/enc.h"
#include "tests/unit/tap.h"

/* RFC 5869, A.1 and A.3. */
static void hkdf(void)
{
	uint8_t ikm[22], out[42], want[42];

	memset(ikm, 0x0b, sizeof ikm);
	enc_hex_decode(want, 42, bytes_str("3cb25f25faacd57a90434f64d0362f2a"
		"2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865"));
	ok(aead_hkdf(out, 42, ikm, 22, "\0\1\2\3\4\5\6\7\x8\x9\xa\xb\xc", 13,
		     "\xf0\xf1\xf2\xf3\xf4\xf5\xf6\xf7\xf8\xf9", 10) == 0,
	   "HKDF");
	is_mem(out, want, 42, "RFC 5869, A.1");
	enc_hex_decode(want, 42, bytes_str("8da4e775a563c18f715f802a063c5a31"
		"b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8"));
	ok(aead_hkdf(out, 42, ikm, 22, NULL, 0, NULL, 0) == 0, "HKDF");
	is_mem(out, want, 42, "RFC 5869, A.3");
}

/* GMAC is GCM without a text: RFC 4543. */
static void mac(void)
{
	uint8_t key[32] = { 7 }, nonce[12] = { 3 }, bytes[100] = { 1, 2, 3 };
	uint8_t tag[16], again[16], want[16];
	struct aead_mac *m = aead_mac_new(key);
	struct aead *a = aead_seal_new(key, nonce, bytes, sizeof bytes);

	ok(m && aead_mac_tag(m, 1, tag, bytes, 10) == 0 &&
	   aead_mac_tag(m, 3, tag, bytes, sizeof bytes) == 0, "two tags");
	ok(a && aead_seal_final(a, want) == 0, "GCM of associated data");
	is_mem(tag, want, 16, "is the third tag");
	ok(aead_mac_tag(m, 4, again, bytes, sizeof bytes) == 0 &&
	   memcmp(tag, again, 16) != 0, "the fourth is another");
	bytes[99] ^= 1;
	ok(aead_mac_tag(m, 3, again, bytes, sizeof bytes) == 0 &&
	   memcmp(tag, again, 16) != 0, "a changed byte changes it");
	ok(aead_mac_tag(m, 3, again, NULL, 0) == 0, "of nothing");
	aead_free(a);
	aead_mac_free(m);
}

/* The GCM specification's test case 16. */
static void gcm(void)
{
	uint8_t key[32], nonce[12], aad[20], in[60], want[60], tag[16];
	uint8_t out[60], got[16];

	enc_hex_decode(key, 32, bytes_str("feffe9928665731c6d6a8f9467308308"
					  "feffe9928665731c6d6a8f9467308308"));
	enc_hex_decode(nonce, 12, bytes_str("cafebabefacedbaddecaf888"));
	enc_hex_decode(aad, 20, bytes_str("feedfacedeadbeeffeedfacedeadbeef"
					  "abaddad2"));
	enc_hex_decode(in, 60, bytes_str("d9313225f88406e5a55909c5aff5269a"
		"86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6"
		"b525b16aedf5aa0de657ba637b39"));
	enc_hex_decode(want, 60, bytes_str("522dc1f099567d07f47f37a32a84427d"
		"643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828"
		"838c5f61e6393ba7a0abcc9f662"));
	enc_hex_decode(tag, 16, bytes_str("76fc6ece0f4e1768cddf8853bb2d551b"));
	struct aead *a = aead_seal_new(key, nonce, aad, 20);
	ok(a && aead_update(a, out, in, 7) == 0 &&
	   aead_update(a, out + 7, in + 7, 53) == 0 &&
	   aead_seal_final(a, got) == 0, "sealed in two steps");
	is_mem(out, want, 60, "the ciphertext of test case 16");
	is_mem(got, tag, 16, "and its tag");
	aead_free(a);
	a = aead_open_new(key, nonce, aad, 20);
	ok(a && aead_update(a, out, want, 60) == 0 &&
	   aead_open_final(a, tag) == 0 && memcmp(out, in, 60) == 0, "opened");
	aead_free(a);
	tag[0] ^= 1;
	a = aead_open_new(key, nonce, aad, 20);
	ok(a && aead_update(a, out, want, 60) == 0 &&
	   aead_open_final(a, tag) < 0, "not with another tag");
	aead_free(a);
	tag[0] ^= 1;
	a = aead_open_new(key, nonce, aad, 19);
	ok(a && aead_update(a, out, want, 60) == 0 &&
	   aead_open_final(a, tag) < 0, "nor with other associated data");
	aead_free(a);
	aead_free(NULL);
}

static void ranges(void)
{
	static const size_t offs[] = { 0, 1, 15, 16, 17, 31, 4095, 4096, 70001 };
	static const size_t lens[] = { 0, 1, 15, 16, 33, 5000 };
	enum { N = 80000 };
	uint8_t key[32] = { 1 }, nonce[12] = { 2 };
	static uint8_t plain[N], sealed[N], got[5000];

	for (size_t i = 0; i < N; i++)
		plain[i] = (uint8_t)(i * 7 + i / 256);
	struct aead *a = aead_seal_new(key, nonce, "x", 1);
	ok(a && aead_update(a, sealed, plain, N) == 0, "a stream");
	aead_free(a);
	for (size_t i = 0; i < sizeof offs / sizeof *offs; i++)
		for (size_t k = 0; k < sizeof lens / sizeof *lens; k++)
			ok(aead_range(key, nonce, offs[i], got,
				      sealed + offs[i], lens[k]) == 0 &&
			   memcmp(got, plain + offs[i], lens[k]) == 0,
			   "%zu bytes at %zu", lens[k], offs[i]);
	ok(aead_range(key, nonce, (uint64_t)1 << 36, got, sealed, 1) < 0,
	   "none past the last counter");
	ok(aead_range(key, nonce, UINT64_MAX, got, sealed, 5) < 0,
	   "none that overflows");
}

static void sectors(void)
{
	static uint8_t in[2 * AEAD_SECTOR], a[2 * AEAD_SECTOR], b[AEAD_SECTOR];
	uint8_t key[64];

	for (int i = 0; i < 64; i++)
		key[i] = (uint8_t)i;
	memset(in, 'x', sizeof in);
	struct aead_xts *x = aead_xts_new(key);
	ok(x && aead_xts_seal(x, 7, a, in, 2) == 0 &&
	   memcmp(a, a + AEAD_SECTOR, AEAD_SECTOR) != 0,
	   "the same bytes differ from sector to sector");
	ok(aead_xts_open(x, 8, b, a + AEAD_SECTOR, 1) == 0 &&
	   memcmp(b, in, sizeof b) == 0, "a sector opens as itself");
	ok(aead_xts_open(x, 7, b, a + AEAD_SECTOR, 1) == 0 &&
	   memcmp(b, in, sizeof b) != 0, "and as no other");
	aead_xts_free(x);
	aead_xts_free(NULL);
	memset(key, 0, sizeof key);
	x = aead_xts_new(key);
	ok(!x || aead_xts_seal(x, 0, a, in, 1) < 0,
	   "two equal halves are refused");
	aead_xts_free(x);
}

int main(void)
{
	hkdf();
	gcm();
	mac();
	ranges();
	sectors();
	return done_testing();
}
