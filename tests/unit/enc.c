/* SPDX-License-Identifier: MIT */
#include "core/enc.h"
#include "tests/unit/tap.h"

static void is_b64(const char *bytes, const char *text)
{
	struct buf out = { 0 }, back = { 0 };

	enc_b64(&out, bytes, strlen(bytes));
	is_str(buf_cstr(&out), text, "base64url of \"%s\"", bytes);
	ok(enc_b64_decode(&back, bytes_str(text)) == 0 &&
	   bytes_eq(buf_bytes(&back), bytes_str(bytes)), "and back");
	buf_free(&out);
	buf_free(&back);
}

static void refuses(const char *text, const char *why)
{
	struct buf out = { 0 };
	uint8_t two[2];

	ok(enc_b64_decode(&out, bytes_str(text)) < 0 && out.len == 0,
	   "base64url refuses %s", why);
	ok(enc_b64_fixed(two, 2, bytes_str(text)) < 0, "so does the fixed one");
	buf_free(&out);
}

static void is_b32(const char *bytes, const char *text)
{
	struct buf out = { 0 };

	enc_b32(&out, bytes, strlen(bytes));
	is_str(buf_cstr(&out), text, "base32 of \"%s\"", bytes);
	buf_free(&out);
}

int main(void)
{
	uint8_t two[2];
	char hex[5];

	/* RFC 4648, 10, without padding */
	is_b64("", "");
	is_b64("f", "Zg");
	is_b64("fo", "Zm8");
	is_b64("foo", "Zm9v");
	is_b64("foobar", "Zm9vYmFy");
	is_b64("\xff\xef\xbe", "_---");
	refuses("Zm8=", "padding");
	refuses("Zm9", "bits that are not zero");
	refuses("Zh", "bits that are not zero, of one byte");
	refuses("Z", "an impossible length");
	refuses("Zm+v", "the other alphabet");
	refuses("Zm/v", "the other alphabet's slash");
	refuses("Zm8\n", "a line end");
	ok(enc_b64_fixed(two, 2, bytes_str("Zm8")) == 0 &&
	   memcmp(two, "fo", 2) == 0, "two bytes where two are wanted");
	ok(enc_b64_fixed(two, 2, bytes_str("Zg")) < 0, "one byte is too few");
	ok(enc_b64_fixed(two, 2, bytes_str("Zm9v")) < 0,
	   "three bytes are too many");

	is_b32("f", "my");
	is_b32("fooba", "mzxw6ytb");
	is_b32("foobar", "mzxw6ytboi");

	enc_hex(hex, "\x0f\xa0", 2);
	is_str(hex, "0fa0", "hex is lowercase");
	ok(enc_hex_decode(two, 2, bytes_str("0fa0")) == 0 &&
	   memcmp(two, "\x0f\xa0", 2) == 0, "hex and back");
	ok(enc_hex_decode(two, 2, bytes_str("0FA0")) < 0, "no uppercase hex");
	ok(enc_hex_decode(two, 2, bytes_str("0fa")) < 0, "no half byte");
	ok(enc_hex_decode(two, 2, bytes_str("0fa00")) < 0, "none too many");

	char path[] = "/a\\040b\\134c\\1";
	enc_unoctal(path);
	is_str(path, "/a b\\c\\1", "a path of mountinfo");
	return done_testing();
}
