/* SPDX-License-Identifier: MIT
 *
 * Goal: display text is judged as section 5 says, and nothing that a terminal
 * or a reader could be fooled by comes out of clear_escape. */
#include "core/clear.h"
#include "tests/unit/tap.h"

struct text {
	const char *s;
	bool good;
};

static const struct text texts[] = {
	{ "agent", true }, { "Zo\xc3\xab", true }, { "two  spaces", true },
	{ "a\u00a0b", true }, { "a\u3000b", true }, { "a\u061cb", true },
	{ "\u200f", true }, { "a\u200fb", true }, { "a\u034f" "b", true },
	{ "a\u200db", true }, { "\U0001f469\u200d\U0001f4bb", true },
	{ "a\ufe0f", true }, { "a\ufe0f\u200db", true },
	{ "", false }, { " ", false }, { " lead", false }, { "trail ", false },
	{ "\u00a0", false }, { "\u3000a", false }, { "a\nb", false },
	{ "a\tb", false }, { "a\x7f" "b", false }, { "a\xc2\x85" "b", false },
	{ "a\u202eb", false }, { "a\u200bb", false }, { "a\u2066b", false },
	{ "a\u200d", false }, { "\u200d" "a", false },
	{ "a\u200d\u200db", false },
	{ "a\u200d b", false }, { "a \u200db", false },
	{ "\ufe0f" "a", false }, { "a\ufe0f\ufe0f", false },
	{ "a\u200d\ufe0f" "b", false }, { " \ufe0f", false },
	{ "tag\U000e0041", false }, { "priv\ue000", false },
	{ "\u2800", false }, { "a\u00adb", false }, { "obj\ufffc", false },
	{ "a\x80", false }, { "\xed\xa0\x80", false }, { "\xc0\xaf", false },
	{ "\xf4\x90\x80\x80", false }, { "a\U0010fffdb", false },
};

static void check_texts(void)
{
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		struct err e = { 0 };
		int r = clear_check(bytes_str(texts[i].s), 64, "name", &e);
		ok(r == (texts[i].good ? 0 : -1), "text %zu %s", i,
		   texts[i].good ? "passes" : "is refused");
		if (r)
			is_int(e.code, ERR_INVALID, "  as invalid: %s", e.why);
	}
}

static void check_lengths(void)
{
	char s[3 * 65];

	for (size_t i = 0; i < 65; i++)
		memcpy(s + 3 * i, "\xe5\x90\x8d", 3);
	is_int(clear_check((struct bytes){ (uint8_t *)s, 192 }, 64, "n", NULL),
	       0, "64 characters of three bytes pass");
	is_int(clear_check((struct bytes){ (uint8_t *)s, 195 }, 64, "n", NULL),
	       -1, "65 do not");
	is_int(clear_count((struct bytes){ (uint8_t *)s, 195 }), 65, "counted");
}

static void check_utf8(void)
{
	static const struct text s[] = {
		{ "", true }, { "\x7f", true }, { "\xc2\x80", true },
		{ "\xdf\xbf\xe0\xa0\x80", true }, { "\xed\x9f\xbf", true },
		{ "\xee\x80\x80", true }, { "\xf4\x8f\xbf\xbf", true },
		{ "\xf0\x90\x80\x80", true }, { "\x80", false },
		{ "\xc1\xbf", false }, { "\xe0\x9f\xbf", false },
		{ "\xed\xbf\xbf", false }, { "\xf0\x8f\xbf\xbf", false },
		{ "\xf5\x80\x80\x80", false }, { "\xe2\x82", false },
		{ "\xff", false }, { "\xe2" "a\x82", false },
	};
	for (size_t i = 0; i < sizeof s / sizeof *s; i++)
		is_int(clear_utf8(bytes_str(s[i].s)), s[i].good,
		       "utf-8 %zu", i);
}

static void is_escaped(const char *from, const char *want)
{
	cleanup_buf struct buf b = { 0 };
	clear_escape(&b, bytes_str(from));
	is_str(buf_cstr(&b), want, "escaped to %s", want);
}

static void check_escape(void)
{
	is_escaped("na\xc3\xafve", "na\xc3\xafve");
	is_escaped("a\nb\tc\rd\\e", "a\\nb\\tc\\rd\\\\e");
	is_escaped("\x1b[2J\a\x7f", "\\x1B[2J\\x07\\x7F");
	is_escaped("x\u202ey\u2028z", "x\\u{202E}y\\u{2028}z");
	is_escaped("\xc2\x9b" "31m\xc2\x85", "\\u{9B}31m\\u{85}");
	is_escaped("caf\xe9 \xed\xa0\x80", "caf\\xE9 \\xED\\xA0\\x80");
	is_escaped("\ufeff\U000e0041", "\\u{FEFF}\\u{E0041}");
}

/* Every single character: one line, valid, nothing hidden left. */
static void check_all_characters(void)
{
	int bad = 0;

	for (uint32_t c = 0; c < 0x110000; c++) {
		if (c >= 0xd800 && c < 0xe000)
			continue;
		struct buf in = { 0 }, out = { 0 };
		clear_put(&in, c);
		clear_escape(&out, buf_bytes(&in));
		for (size_t at = 0; at < out.len;) {
			uint32_t d = clear_next(buf_bytes(&out), &at);
			bad += d < 0x20 || (d >= 0x7f && d < 0xa0) ||
			       clear_hidden(d);
		}
		buf_free(&in);
		buf_free(&out);
	}
	is_int(bad, 0, "nothing hidden survives, of all characters");
}

static bool folds_equal(const char *a, const char *b)
{
	cleanup_buf struct buf x = { 0 }, y = { 0 };
	clear_fold(&x, bytes_str(a));
	clear_fold(&y, bytes_str(b));
	return !x.failed && !y.failed && bytes_eq(buf_bytes(&x), buf_bytes(&y));
}

int main(void)
{
	check_texts();
	check_lengths();
	check_utf8();
	check_escape();
	check_all_characters();
	ok(folds_equal("alice", "ALICE"), "case folds");
	ok(folds_equal("Zo\xc3\xab", "zoe\xcc\x88"), "NFC and NFD are one");
	ok(folds_equal("\uff41lice", "alice"), "full width is one");
	ok(folds_equal("stra\u00dfe", "STRASSE"), "sharp s folds");
	ok(folds_equal("a b", "a_b"), "shown alike is alike");
	ok(folds_equal("a-b", "a_b"), "and so with a dash");
	ok(folds_equal("a\u200db", "a_b"), "and so with a joiner");
	ok(!folds_equal("alice", "alicf"), "two names are two");
	ok(folds_equal("\xff", "_"), "no UTF-8 has a key too");
	return done_testing();
}
